"""``mintmc summary``: the table of a stored run."""

from __future__ import annotations

import warnings

import typer

from mintmc.cli import shared
from mintmc.cli.mistakes import mistakes


def summary(run: shared.Store, variables: shared.Variables = None, json: shared.Json = False) -> None:
    """Show the table of a stored run: means, spreads, ESS and R-hat; what is not the posterior is called so."""
    with mistakes(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        from mintmc.cli import show
        from mintmc.cli.stored import tree_of
        from mintmc.result.summary import summary as mintmc_summary
        from mintmc.result.tempered import TemperedDraws

        names = shared.names_of(variables or None)
        tree = tree_of(run, names)
        table = mintmc_summary(tree, var_names=names)
    if json:
        typer.echo(show.as_json({"run": str(run), "temperature": tree.attrs["temperature"], "table": show.rows(table)}))
        return
    for warning in caught:
        if issubclass(warning.category, TemperedDraws):
            typer.echo(str(warning.message))
    typer.echo(show.as_text(table))


def register(app: typer.Typer) -> None:
    """Make it a command."""
    app.command(epilog="Example: mintmc summary run.zarr --variables mean,sd")(summary)
