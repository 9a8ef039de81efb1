"""Sample a posterior, watch and judge the run, go on with it, prepare data, reproduce the paper."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from mintmc.cli import diagnose, plan, plot, prepare, report, reproduce, resume, sample, summary, watch
from mintmc.cli.mistakes import MISTAKE, OneLine, debug

app = typer.Typer(
    cls=OneLine,
    help=__doc__,
    epilog="Example: mintmc sample model.py --draws 2000 --out run.zarr",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version("mintmc"))
        raise typer.Exit


@app.callback()
def show_options(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")] = False,
    debug_: Annotated[bool, typer.Option("--debug", help="Show where an error was raised.")] = False,
    cache: Annotated[
        Path | None,
        typer.Option(envvar="MINTMC_CACHE", help="Folder to keep compiled programs in, for the next command."),
    ] = None,
) -> None:
    """Mini-batch tempered Markov chain Monte Carlo."""
    debug.append(debug_)
    if cache is not None:
        import jax

        jax.config.update("jax_compilation_cache_dir", str(cache))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


for command in (sample, resume, watch, summary, diagnose, report, plot, plan, prepare, reproduce):
    command.register(app)


def main() -> None:
    """Entry point."""
    try:
        app(prog_name="mintmc")
    except SystemExit as end:
        # Nothing has joined other processes that has not imported this.
        if end.code == MISTAKE and "mintmc.run.processes" in sys.modules:
            from mintmc.run.processes import leave

            leave(MISTAKE)
        raise
