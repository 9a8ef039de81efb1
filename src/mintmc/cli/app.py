"""Sample a posterior, go on with a run, prepare data, reproduce the paper."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, NoReturn

import jax
import typer
from jax import process_count
from jax.errors import JaxRuntimeError

from mintmc.cli import model_file, options
from mintmc.cli.report import report
from mintmc.result.diagnose import diagnose
from mintmc.result.reading import draws_group
from mintmc.result.summary import summary as mintmc_summary
from mintmc.result.tempered import TemperedDraws
from mintmc.run.processes import TIMEOUT, join, leave
from mintmc.run.sample import Interrupted, record_of_run
from mintmc.run.sample import resume as mintmc_resume
from mintmc.store.encode import is_readable
from mintmc.store.run_store import open_run, verify
from mintmc.study.choose import sample as mintmc_sample
from mintmc.study.plan import plan as mintmc_plan

_MISTAKE = 2
"""The exit code that says so."""
_debug = [False]
"""What ``--debug`` said last."""
app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


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


Audit = Annotated[bool, typer.Option(help="When it is finished, compare some of its moves with all data.")]
Coordinator = Annotated[str | None, typer.Option(help="HOST:PORT of the first of several processes.")]
Processes = Annotated[int | None, typer.Option(help="How many processes share the run.")]
ProcessId = Annotated[int | None, typer.Option(help="Which of them this is, from 0.")]
Distributed = Annotated[bool, typer.Option(help="Find all three from Slurm, Kubernetes or MPI.")]
Timeout = Annotated[int, typer.Option(help="Seconds after which a process that is not heard of is taken to be gone.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version("mintmc"))
        raise typer.Exit


@app.callback()
def show_options(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error was raised.")] = False,
    cache: Annotated[
        Path | None,
        typer.Option(envvar="MINTMC_CACHE", help="Folder to keep compiled programs in, for the next command."),
    ] = None,
) -> None:
    """Mini-batch tempered Markov chain Monte Carlo."""
    _debug.append(debug)
    if cache is not None:
        jax.config.update("jax_compilation_cache_dir", str(cache))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


@app.command()
def reproduce(
    name: Annotated[Experiment, typer.Argument(help="Which experiment of the paper.")],
    scale: Annotated[Scale, typer.Option(help="quick: about a minute; paper: the paper's own numbers.")] = Scale.QUICK,
    out: Annotated[Path | None, typer.Option(help="Folder for figure, page and numbers; default results/NAME.")] = None,
    progress: Annotated[bool, typer.Option(help="Show progress bars.")] = True,
) -> None:
    """Reproduce an experiment of the paper: a figure, its numbers, and a page that sets claim beside measurement."""
    if scale == Scale.STANDARD and name != Experiment.FIFTY_MODES:
        _fail(f"scale must be quick or paper for {name.value}, got standard")
    folder = f"mintmc.experiments.{name.value.replace('-', '_')}"
    is_file = name in (Experiment.TWENTY_MODES, Experiment.CONTROL_NOISE)
    experiment = import_module(folder if is_file else f"{folder}.experiment")
    out = out or Path("results") / name.value
    try:
        figure = experiment.reproduce(scale.value, out, progress)
    except OSError as error:
        typer.echo(f"error: cannot write to {out}: {error.strerror or error}", err=True)
        raise typer.Exit(2) from error
    page = figure.with_suffix(".md")
    typer.echo(page.read_text())
    typer.echo(f"figure: {figure}\npage:   {page}")


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def sample(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A Python file that defines posterior and init. It is executed.")],
    sampler: Annotated[
        str | None, typer.Option(help="Such as mint or equi-energy; default: what FILE calls sampler, or it chooses.")
    ] = None,
    draws: Annotated[int, typer.Option(help="Draws of each chain.")] = 1000,
    warmup: Annotated[int, typer.Option(help="Steps before them, to adapt.")] = 1000,
    chains: Annotated[int, typer.Option(help="Independent chains.")] = 4,
    thin: Annotated[int, typer.Option(help="Steps from one draw to the next.")] = 1,
    seed: Annotated[int, typer.Option(help="The same seed gives the same draws.")] = 0,
    out: Annotated[Path, typer.Option(help="The run store; the same command again goes on with it.")] = Path(
        "run.zarr"
    ),
    progress: Annotated[bool, typer.Option(help="Show progress bars.")] = True,
    audit: Audit = True,
    coordinator: Coordinator = None,
    processes: Processes = None,
    process_id: ProcessId = None,
    distributed: Distributed = False,
    timeout: Timeout = TIMEOUT,
) -> None:
    """Sample FILE's posterior. FILE is executed. Settings of sampler, proposal and ladder are options: --alpha 0.5."""
    with _mistakes(timeout):
        _join(coordinator, processes, process_id, distributed, timeout)
        # Settings before FILE are taken for it.
        name, others = options.split_file([str(file), *context.args])
        model = model_file.load(Path(name))
        settings = options.parse_pairs(others)
        if sampler is None and settings:
            raise ValueError(f"--sampler must be given with settings of it, got {' '.join(others)}")
        chosen = model.sampler if sampler is None else options.build_sampler(sampler, settings)
        run = partial(mintmc_sample, model.posterior, chosen, init=model.init, draws=draws, warmup=warmup)
        run = partial(run, chains=chains, thin=thin, seed=seed, audit=audit)
        _show(partial(run, out=out, progress=progress), out, Path(name))


@app.command()
def resume(
    run: Annotated[Path, typer.Argument(help="The run store. Nothing in it is executed.")],
    file: Annotated[Path, typer.Argument(help="The Python file that defines posterior. It is executed.")],
    draws: Annotated[int | None, typer.Option(help="More draws than were asked for at first.")] = None,
    progress: Annotated[bool, typer.Option(help="Show progress bars.")] = True,
    audit: Audit = True,
    coordinator: Coordinator = None,
    processes: Processes = None,
    process_id: ProcessId = None,
    distributed: Distributed = False,
    timeout: Timeout = TIMEOUT,
) -> None:
    """Go on with a stored run, with the sampler that made it. FILE is executed, the store is not."""
    with _mistakes(timeout):
        _join(coordinator, processes, process_id, distributed, timeout)
        model = model_file.load(file)
        # FILE may say another one; it is asked only for what no store can hold.
        record = record_of_run(run)
        missing = {name: getattr(model, name) for name in ("sampler", "init") if not is_readable(record[name])}
        settings = {"draws": draws, "progress": progress, "audit": audit, **missing}
        _show(partial(mintmc_resume, run, model.posterior, **settings), run, file)


@app.command()
def plan(
    file: Annotated[Path, typer.Argument(help="A Python file that defines posterior and init. It is executed.")],
    draws: Annotated[int, typer.Option(help="Draws of each chain.")] = 1000,
    warmup: Annotated[int, typer.Option(help="Steps before them, to adapt.")] = 1000,
    chains: Annotated[int, typer.Option(help="Independent chains.")] = 4,
    seed: Annotated[int, typer.Option(help="Of all randomness.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="A picture of the noise against the batch size: noise.png.")] = None,
) -> None:
    """Say which sampler suits FILE's posterior, and what it will cost."""
    with _mistakes():
        model = model_file.load(file)
        found = mintmc_plan(model.posterior, init=model.init, draws=draws, warmup=warmup, chains=chains, seed=seed)
        typer.echo(str(found))
        if plot is not None:
            found.plot().savefig(plot, dpi=150)


@app.command()
def prepare(
    source: Annotated[Path, typer.Argument(help="A .npy, .zarr, .parquet, .arrow or .feather file.")],
    out: Annotated[Path, typer.Argument(help="Folder to be made.")],
    columns: Annotated[str | None, typer.Option(help="Columns of a table, with commas.")] = None,
    seed: Annotated[int, typer.Option(help="Of the shuffle.")] = 0,
    memory: Annotated[int, typer.Option(help="Megabytes to work in.")] = 256,
    progress: Annotated[bool, typer.Option(help="Show a progress bar.")] = True,
) -> None:
    """Shuffle data on disk, so that a slice is a random subset: for mini-batches of data larger than memory."""
    from rich.progress import Progress

    from mintmc.data.prepare import prepare as prepare_data

    with _mistakes(), Progress(disable=not progress) as bar:
        task = bar.add_task("shuffling", total=None)
        chosen = columns.split(",") if columns else None
        data = prepare_data(
            source,
            out,
            columns=chosen,
            seed=seed,
            memory=memory * 2**20,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    typer.echo(f"{data.n:,} rows in random order: {out}")


@app.command()
def summary(
    run: Annotated[Path, typer.Argument(help="The run store. Nothing in it is executed.")],
    variables: Annotated[str | None, typer.Option(help="Names of parameters, with commas; default: all.")] = None,
) -> None:
    """Show the table of a stored run: means, spreads, ESS and R-hat; what is not the posterior is called so."""
    with _mistakes(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        record_of_run(run)
        verify(run)
        tree = open_run(run)
        chosen = variables.split(",") if variables else None
        known = set(map(str, tree[draws_group(tree)].data_vars))
        if missing := [name for name in chosen or () if name not in known]:
            raise ValueError(f"--variables must be among {', '.join(sorted(known))}, got {missing[0]}")
        table = mintmc_summary(tree, var_names=chosen)
    for warning in caught:
        if issubclass(warning.category, TemperedDraws):
            typer.echo(str(warning.message))
    typer.echo(table.to_string())


def _join(
    coordinator: str | None, processes: int | None, process_id: int | None, distributed: bool, timeout: int
) -> None:
    """Become one of several processes, if that is asked for."""
    given = {"--processes": processes, "--process-id": process_id}
    if distributed or coordinator is not None:
        join(coordinator, processes, process_id, timeout)
    elif named := [name for name, value in given.items() if value is not None]:
        raise ValueError(f"--coordinator or --distributed must be given with {' and '.join(named)}, got neither")


@contextmanager
def _mistakes(timeout: int = 0) -> Iterator[None]:
    """A user's mistake is one line and exit code 2, never a traceback."""
    try:
        yield
    except JaxRuntimeError as error:
        if process_count() == 1:
            raise
        time.sleep(2 * timeout)  # JAX finds out which process is gone, and the guard says so
        _fail(f"another process is gone ({str(error).splitlines()[0]}); start the same again, in all, to go on")
    except (ValueError, TypeError, OSError, ImportError) as error:
        if _debug[-1]:
            raise
        _fail(str(error))


def _fail(message: str) -> NoReturn:
    typer.echo(f"error: {' '.join(message.split())}", err=True)
    raise typer.Exit(_MISTAKE)


def _show(run: Callable[[], Any], out: Path, file: Path) -> None:
    """Run, then say how it went and where it is; if interrupted, how to go on."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            tree = run()
        except KeyboardInterrupt:
            tree = None
    if tree is None or any(issubclass(warning.category, Interrupted) for warning in caught):
        how = f"mintmc resume {out} {file}" if process_count() == 1 else "the same again in every process"
        typer.echo(f"interrupted; to go on: {how}", err=True)
        raise typer.Exit(130)
    typer.echo(str(diagnose(tree)))
    typer.echo(f"draws: {out}")


app.command()(_mistakes()(report))


def main() -> None:
    """Entry point."""
    try:
        app()
    except SystemExit as end:
        if end.code == _MISTAKE:
            leave(_MISTAKE)
        raise
