"""``mintmc prepare``: shuffle data on disk."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from mintmc.cli.mistakes import mistakes
from mintmc.cli.shared import names_of


def prepare(
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="A .npy, .zarr, .parquet, .arrow, .feather or .csv file.")
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to be made.")],
    columns: Annotated[str | None, typer.Option(help="Columns of a table, with commas.")] = None,
    seed: Annotated[int, typer.Option(help="Of the shuffle.")] = 0,
    memory: Annotated[int, typer.Option(help="Megabytes to work in.")] = 256,
    progress: Annotated[bool, typer.Option(help="Show a progress bar.")] = True,
) -> None:
    """Shuffle data on disk, so that a slice is a random subset: for mini-batches of data larger than memory."""
    from rich.progress import Progress

    from mintmc.data.prepare import prepare as prepare_data

    bar = Progress(disable=not progress)
    task = bar.add_task("shuffling", total=None)

    def show(done: int, total: int) -> None:
        bar.start()  # not before: a mistake is one line
        bar.update(task, completed=done, total=total)

    with mistakes(), ExitStack() as stack:
        stack.callback(lambda: bar.stop() if bar.live.is_started else None)
        data = prepare_data(
            source,
            out,
            columns=names_of(columns or None),
            seed=seed,
            memory=memory * 2**20,
            progress=show,
        )
    typer.echo(f"{data.n:,} rows in random order: {out}")


def register(app: typer.Typer) -> None:
    """Make it a command."""
    app.command(epilog="Example: mintmc prepare table.parquet prepared --columns x,y")(prepare)
