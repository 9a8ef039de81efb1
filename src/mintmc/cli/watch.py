"""``mintmc watch``: a run while it is being made, from its store."""

from __future__ import annotations

from typing import Annotated

import typer

from mintmc.cli import shared
from mintmc.cli.mistakes import mistakes


def watch(
    run: shared.Store,
    once: Annotated[bool, typer.Option("--once", help="Show it as it is now, and end.")] = False,
    every: Annotated[float, typer.Option(help="Seconds from one look to the next.")] = 2.0,
) -> None:
    """Watch a run while it is being made: progress, acceptance, what mixes worst, verdict so far. Ctrl-C leaves."""
    with mistakes():
        from mintmc.cli.watching import follow, frame

        if once:
            frame(run).print()
            return
        if not every > 0:
            raise ValueError(f"--every must be above 0, got {every:g}")
        try:
            follow(run, every)
        except KeyboardInterrupt:
            typer.echo(f"the run goes on; to look again: mintmc watch {run}", err=True)


def register(app: typer.Typer) -> None:
    """Make it a command."""
    app.command(epilog="Example: mintmc watch run.zarr")(watch)
