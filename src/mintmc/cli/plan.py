"""``mintmc plan``: which sampler suits a posterior."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mintmc.cli import shared, toml
from mintmc.cli.mistakes import check_parent, mistakes


def plan(
    context: typer.Context,
    file: shared.Model,
    draws: Annotated[int, typer.Option(help="Draws of each chain.")] = 1000,
    warmup: shared.Warmup = 1000,
    chains: shared.Chains = 4,
    seed: Annotated[int, typer.Option(help="Of all randomness.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="A picture of the noise against the batch size: noise.png.")] = None,
    settings: toml.Settings = None,
    json: shared.Json = False,
) -> None:
    """Say which sampler suits FILE's posterior, and what it will cost."""
    with mistakes(file=file):
        toml.refuse_others(context)
        if plot is not None:
            check_parent("--plot", plot)
        from mintmc.cli import model_file, show
        from mintmc.study.plan import plan as mintmc_plan

        with show.quietly(json):
            model = model_file.load(file)
            found = mintmc_plan(model.posterior, init=model.init, draws=draws, warmup=warmup, chains=chains, seed=seed)
        typer.echo(show.as_json(_plain(found)) if json else str(found))
        if plot is not None:
            found.plot().savefig(plot, dpi=150)


def _plain(found: Any) -> dict[str, Any]:
    """A plan in words and numbers."""
    options = [
        {
            "sampler": option.name,
            "seconds": option.seconds,
            "rows": option.rows,
            "effective": option.effective,
            "against": list(option.against),
        }
        for option in found.options
    ]
    numbers = {name: getattr(found, name) for name in ("n", "dim", "modes", "draws", "warmup", "chains")}
    return {"chosen": found.best.name, "why": list(found.sentences), **numbers, "options": options}


def register(app: typer.Typer) -> None:
    """Make it a command."""
    app.command(epilog="Example: mintmc plan model.py --draws 5000")(plan)
