"""Options and arguments that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Model = Annotated[
    Path, typer.Argument(metavar="FILE", help="A Python file that defines posterior and init. It is executed.")
]
Store = Annotated[Path, typer.Argument(metavar="RUN", help="The run store. Nothing in it is executed.")]
Draws = Annotated[int, typer.Option(help="Draws of each chain; with --until-ess or --until-rhat, at most.")]
Warmup = Annotated[int, typer.Option(help="Steps before them, to adapt.")]
Chains = Annotated[int, typer.Option(help="Independent chains.")]
Progress = Annotated[bool, typer.Option(help="Show progress: bars in a terminal, lines elsewhere.")]
Variables = Annotated[str | None, typer.Option(help="Names of parameters, with commas; default: all.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output, and nothing else.")]
Audit = Annotated[bool, typer.Option(help="When it is finished, compare some of its moves with all data.")]
UntilEss = Annotated[float | None, typer.Option(help="Stop when the smallest bulk ESS of a parameter is this.")]
UntilRhat = Annotated[float | None, typer.Option(help="Stop when the largest R-hat of a parameter is this.")]
Coordinator = Annotated[str | None, typer.Option(help="HOST:PORT of the first of several processes.")]
Processes = Annotated[int | None, typer.Option(help="How many processes share the run.")]
ProcessId = Annotated[int | None, typer.Option(help="Which of them this is, from 0.")]
Distributed = Annotated[bool, typer.Option(help="Find all three from Slurm, Kubernetes or MPI.")]
Timeout = Annotated[int, typer.Option(help="Seconds after which a process that is not heard of is taken to be gone.")]


def join_others(
    coordinator: str | None, processes: int | None, process_id: int | None, distributed: bool, timeout: int
) -> None:
    """Become one of several processes, if that is asked for."""
    given = {"--processes": processes, "--process-id": process_id}
    if distributed or coordinator is not None:
        from mintmc.run.processes import join

        join(coordinator, processes, process_id, timeout)
    elif named := [name for name, value in given.items() if value is not None]:
        raise ValueError(f"--coordinator or --distributed must be given with {' and '.join(named)}, got neither")


def names_of(variables: str | None) -> list[str] | None:
    """``"a,b"`` as a list; None for all.

    Examples
    --------
    >>> names_of("mean,sd"), names_of(None)
    (['mean', 'sd'], None)
    """
    return None if variables is None else [name.strip() for name in variables.split(",") if name.strip()]
