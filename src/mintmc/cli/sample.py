"""``mintmc sample``: draw from the posterior of a model file."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from mintmc.cli import shared, toml, words
from mintmc.cli.mistakes import check_parent, mistakes, nearest
from mintmc.run.guard import TIMEOUT

_EPILOG = "\n\n".join(
    [
        "Samplers:",
        "\b\n" + words.listing(),
        "Settings of one, its proposal and its ladder: mintmc sample --sampler mint --help",
        "Example: mintmc sample model.py --sampler mint --batch-size 1000 --alpha 0.5 --draws 5000 --out run.zarr",
    ]
)


class WithSamplers(TyperCommand):
    """Its help knows the settings of every sampler."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Show the settings of a sampler if its help is asked for."""
        if (word := asked_for(args)) is not None:
            with mistakes():
                from mintmc.cli.settings_help import settings_help

                typer.echo(settings_help(word))
            raise typer.Exit
        result: list[str] = super().parse_args(ctx, args)
        return result


def asked_for(arguments: list[str]) -> str | None:
    """The sampler whose settings are asked for: ``--sampler mint --help``, or ``--help mint``.

    Examples
    --------
    >>> asked_for(["--sampler", "mint", "--help"]), asked_for(["--help", "mint"]), asked_for(["--help"])
    ('mint', 'mint', None)
    """
    if "--help" not in arguments:
        return None
    pairs = [*pairwise(arguments), *(word.partition("=")[::2] for word in arguments)]
    named = [value for option, value in pairs if option == "--sampler" and value and not value.startswith("-")]
    after = arguments[arguments.index("--help") + 1 :][:1]
    return next(iter([*named, *(word for word in after if word in words.SAMPLERS)]), None)


def sample(
    context: typer.Context,
    file: shared.Model,
    sampler: Annotated[
        str | None, typer.Option(help="One of those below; default: what FILE calls sampler, or it chooses.")
    ] = None,
    draws: shared.Draws = 1000,
    warmup: shared.Warmup = 1000,
    chains: shared.Chains = 4,
    thin: Annotated[int, typer.Option(help="Steps from one draw to the next.")] = 1,
    seed: Annotated[int, typer.Option(help="The same seed gives the same draws.")] = 0,
    out: Annotated[Path, typer.Option(help="The run store; the same command again goes on with it.")] = Path(
        "run.zarr"
    ),
    settings: toml.Settings = None,
    until_ess: shared.UntilEss = None,
    until_rhat: shared.UntilRhat = None,
    progress: shared.Progress = True,
    json: shared.Json = False,
    audit: shared.Audit = True,
    coordinator: shared.Coordinator = None,
    processes: shared.Processes = None,
    process_id: shared.ProcessId = None,
    distributed: shared.Distributed = False,
    timeout: shared.Timeout = TIMEOUT,
) -> None:
    """Sample FILE's posterior. FILE is executed. Settings of sampler, proposal and ladder are options: --alpha 0.5."""
    # Settings before FILE are taken for it.
    name, others = split_file([str(file), *context.args])
    with mistakes(timeout, Path(name)):
        check_parent("--out", out)
        shared.join_others(coordinator, processes, process_id, distributed, timeout)
        from mintmc.cli import model_file, show
        from mintmc.study.choose import sample as mintmc_sample

        with show.quietly(json):
            model = model_file.load(Path(name))
        chosen = _sampler(context, sampler, others) or model.sampler
        run = partial(mintmc_sample, model.posterior, chosen, init=model.init, draws=draws, warmup=warmup)
        run = partial(run, chains=chains, thin=thin, seed=seed, audit=audit, until=show.goal(until_ess, until_rhat))
        show.show(partial(run, out=out, progress=progress), out, Path(name), json)


def _sampler(context: typer.Context, word: str | None, others: list[str]) -> Any:
    """The sampler that options ask for, None if none does."""
    from mintmc.cli import options

    known, from_file = list(toml.options_of(context)), toml.of_sampler(context)
    if word is not None:
        return options.build_sampler(word, {**from_file, **options.parse_pairs(others)}, known)
    given = [*others, *(f"--{name.replace('_', '-')}" for name in from_file)]
    if given:
        if hint := nearest(given[0].partition("=")[0], known):
            raise ValueError(f"there is no option {given[0]}{hint}")
        raise ValueError(f"--sampler must be given with settings of it, got {' '.join(given)}")
    return None


def split_file(arguments: list[str]) -> tuple[str, list[str]]:
    """The Python file among the arguments, and the others.

    Examples
    --------
    >>> split_file(["--batch-size", "100", "model.py", "--no-penalty"])
    ('model.py', ['--batch-size', '100', '--no-penalty'])
    """
    place = next((i for i, argument in enumerate(arguments) if argument.endswith(".py")), 0)
    return arguments[place], arguments[:place] + arguments[place + 1 :]


def register(app: typer.Typer) -> None:
    """Make it a command."""
    taken = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command(cls=WithSamplers, epilog=_EPILOG, context_settings=taken)(sample)
