"""``mintmc reproduce``: the paper's experiments."""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from mintmc.cli.mistakes import fail, nearest


class Experiment(StrEnum):
    """Experiments of the paper."""

    TIED_MEANS = "tied-means"
    LOGISTIC = "logistic"
    FIFTY_MODES = "fifty-modes"
    TWENTY_MODES = "twenty-modes"
    CONTROL_NOISE = "control-noise"


class Scale(StrEnum):
    """How much to run."""

    QUICK = "quick"
    STANDARD = "standard"
    PAPER = "paper"


_NAMES = [str(name) for name in Experiment]
_SCALES = "quick: about a minute; paper: the paper's own numbers; standard: between them (fifty-modes)."


def reproduce(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help=f"One of {', '.join(Experiment)}.", autocompletion=lambda: _NAMES)
    ],
    scale: Annotated[Scale, typer.Option(metavar="SCALE", help=_SCALES)] = Scale.QUICK,
    out: Annotated[Path | None, typer.Option(help="Folder for figure, page and numbers; default results/NAME.")] = None,
    progress: Annotated[bool, typer.Option(help="Show progress bars.")] = True,
) -> None:
    """Reproduce an experiment of the paper: a figure, its numbers, and a page that sets claim beside measurement."""
    if name not in _NAMES:
        fail(f"NAME must be one of {', '.join(_NAMES)}, got {name}{nearest(name, _NAMES)}")
    if scale == Scale.STANDARD and name != Experiment.FIFTY_MODES:
        fail(f"scale must be quick or paper for {name}, got standard")
    folder = f"mintmc.experiments.{name.replace('-', '_')}"
    is_file = name in (Experiment.TWENTY_MODES, Experiment.CONTROL_NOISE)
    experiment = import_module(folder if is_file else f"{folder}.experiment")
    out = out or Path("results") / name
    try:
        figure = experiment.reproduce(scale.value, out, progress)
    except OSError as error:
        fail(f"cannot write to {out}: {error.strerror or error}")
    page = figure.with_suffix(".md")
    typer.echo(page.read_text())
    typer.echo(f"figure: {figure}\npage:   {page}")


def register(app: typer.Typer) -> None:
    """Make it a command."""
    app.command(epilog="Example: mintmc reproduce tied-means --scale quick --out results/tied-means")(reproduce)
