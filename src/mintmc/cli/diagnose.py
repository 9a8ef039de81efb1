"""``mintmc diagnose``: whether a stored run can be trusted."""

from __future__ import annotations

import typer

from mintmc.cli import shared
from mintmc.cli.mistakes import mistakes


def diagnose(run: shared.Store, variables: shared.Variables = None, json: shared.Json = False) -> None:
    """Say in words and numbers whether a stored run can be trusted, by all parameters or by those that matter."""
    with mistakes():
        from mintmc.cli import show
        from mintmc.cli.stored import tree_of
        from mintmc.result.diagnose import diagnose as mintmc_diagnose

        names = shared.names_of(variables or None)
        found = mintmc_diagnose(tree_of(run, names), var_names=names)
    typer.echo(show.as_json({"run": str(run), **show.verdict(found)}) if json else str(found))


def register(app: typer.Typer) -> None:
    """Make it a command."""
    app.command(epilog="Example: mintmc diagnose run.zarr --variables mean,sd")(diagnose)
