"""``mintmc plot``: draws of a stored run, one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mintmc.cli import shared
from mintmc.cli.mistakes import check_parent, mistakes


def plot(
    run: shared.Store,
    out: Annotated[Path, typer.Option(help="The picture to write; its ending says what kind.")] = Path("trace.png"),
    variables: shared.Variables = None,
) -> None:
    """Draw the trace of a stored run: what every chain did, parameter by parameter."""
    with mistakes():
        check_parent("--out", out)
        from mintmc.cli.stored import tree_of
        from mintmc.result.trace import plot_trace

        names = shared.names_of(variables or None)
        plot_trace(tree_of(run, names), names).savefig(out, dpi=150)
    typer.echo(f"figure: {out}")


def register(app: typer.Typer) -> None:
    """Make it a command."""
    app.command(epilog="Example: mintmc plot run.zarr --out trace.png --variables mean,sd")(plot)
