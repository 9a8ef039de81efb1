"""``mintmc report``: a stored run as one page of HTML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    run: Annotated[Path, typer.Argument(help="The run store. Nothing in it is executed.")],
    out: Annotated[Path, typer.Option(help="The file to write; an older report is replaced.")] = Path("report.html"),
) -> None:
    """Write a stored run as one page of HTML that needs no network: whether to trust it comes first."""
    from mintmc.study.report import report as mintmc_report  # brings JAX, which --help does not need

    typer.echo(f"report: {mintmc_report(run, out)}")
