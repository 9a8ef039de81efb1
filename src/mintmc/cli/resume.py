"""``mintmc resume``: go on with a stored run."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from mintmc.cli import shared
from mintmc.cli.mistakes import mistakes
from mintmc.run.guard import TIMEOUT


def resume(
    run: shared.Store,
    file: shared.Model,
    draws: Annotated[int | None, typer.Option(help="More draws than were asked for at first.")] = None,
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
    """Go on with a stored run, with the sampler that made it. FILE is executed, the store is not."""
    with mistakes(timeout, file):
        shared.join_others(coordinator, processes, process_id, distributed, timeout)
        from mintmc.cli import model_file, show
        from mintmc.run.places import record_of_run
        from mintmc.run.sample import resume as mintmc_resume
        from mintmc.store.encode import is_readable

        with show.quietly(json):
            model = model_file.load(file)
        # FILE may say another one; it is asked only for what no store can hold.
        record = record_of_run(run)
        missing = {name: getattr(model, name) for name in ("sampler", "init") if not is_readable(record[name])}
        settings = {"draws": draws, "until": show.goal(until_ess, until_rhat), "progress": progress, "audit": audit}
        show.show(partial(mintmc_resume, run, model.posterior, **settings, **missing), run, file, json)


def register(app: typer.Typer) -> None:
    """Make it a command."""
    app.command(epilog="Example: mintmc resume run.zarr model.py --draws 10000")(resume)
