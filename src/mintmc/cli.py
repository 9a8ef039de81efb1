"""The command line: ``mintmc reproduce NAME``."""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


class Experiment(StrEnum):
    """Experiments of the paper."""

    TIED_MEANS = "tied-means"
    LOGISTIC = "logistic"


class Scale(StrEnum):
    """How much to run."""

    QUICK = "quick"
    PAPER = "paper"


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version("mintmc"))
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")] = False,
) -> None:
    """Mini-batch tempered Markov chain Monte Carlo."""


@app.command()
def reproduce(
    name: Annotated[Experiment, typer.Argument(help="Which experiment of the paper.")],
    scale: Annotated[Scale, typer.Option(help="quick: about a minute; paper: the paper's own numbers.")] = Scale.QUICK,
    out: Annotated[Path | None, typer.Option(help="Folder for figure, page and numbers; default results/NAME.")] = None,
    progress: Annotated[bool, typer.Option(help="Show progress bars.")] = True,
) -> None:
    """Reproduce an experiment of the paper: a figure, its numbers, and a page that sets claim beside measurement."""
    experiment = import_module(f"mintmc.experiments.{name.value.replace('-', '_')}")
    out = out or Path("results") / name.value
    try:
        figure = experiment.reproduce(scale.value, out, progress)
    except OSError as error:
        typer.echo(f"error: cannot write to {out}: {error.strerror or error}", err=True)
        raise typer.Exit(2) from error
    page = figure.with_suffix(".md")
    typer.echo(page.read_text())
    typer.echo(f"figure: {figure}\npage:   {page}")


def main() -> None:
    """Entry point."""
    app()
