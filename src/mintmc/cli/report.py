"""``mintmc report``: a stored run as one page of HTML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mintmc.cli import shared
from mintmc.cli.mistakes import mistakes


def report(
    run: shared.Store,
    out: Annotated[Path, typer.Option(help="The file to write; an older report is replaced.")] = Path("report.html"),
) -> None:
    """Write a stored run as one page of HTML that needs no network: whether to trust it comes first."""
    with mistakes():
        from mintmc.study.report import report as mintmc_report

        typer.echo(f"report: {mintmc_report(run, out)}")


def register(app: typer.Typer) -> None:
    """Make it a command."""
    app.command(epilog="Example: mintmc report run.zarr --out report.html")(report)
