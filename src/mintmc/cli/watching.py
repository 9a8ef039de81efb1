"""Frames of a run that is being made. They are read from its store, which is valid at every moment, and only read."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mintmc.result.diagnose import diagnose
from mintmc.result.worst import worst
from mintmc.run.phase import clock_of
from mintmc.store.run_store import is_new, open_run, read_record

_WORST = 8
_FEWEST = 100
"""Draws of a chain from which on a run is judged."""


class Frame(NamedTuple):
    """A run as it was at one moment."""

    parts: tuple[RenderableType, ...]
    is_over: bool  # whether nothing more is to come

    def print(self) -> None:
        """Show it once."""
        Console(highlight=False).print(Group(*self.parts))


def follow(run: Path, every: float) -> None:
    """Show frame after frame, until the run is finished."""
    with Live(console=Console(highlight=False), auto_refresh=False) as live:
        while not (now := frame(run)).is_over:
            live.update(Group(*now.parts), refresh=True)
            time.sleep(every)
        live.update(Group(*now.parts), refresh=True)


def frame(run: Path) -> Frame:
    """The run as it is now; of several processes, the parts that each of them has made."""
    stores = [path for path in (run, *_parts_of(run)) if path.exists() and not is_new(path)]
    if not stores:
        return Frame((Text(f"{run}: waiting for its first save"),), False)
    if run in stores:
        stores = [run]
    # Asked first: a run that ends meanwhile is shown once more, as finished.
    is_over = stores == [run] and _is_over(run, read_record(run))
    shown: list[RenderableType] = []
    for store in stores:
        shown += _about(store)
    return Frame(tuple(shown), is_over)


def _parts_of(run: Path) -> list[Path]:
    return sorted(path for path in run.parent.glob(f"{run.name}.part-*") if path.is_dir())


def _is_over(run: Path, record: dict[str, Any]) -> bool:
    """Whether all draws are made and nobody writes to it any more."""
    is_made = record["drawn"] >= record["draws"] or record.get("is_reached")
    return bool(is_made) and not _lock_of(run).exists()


def _lock_of(run: Path) -> Path:
    return run.resolve().with_name(run.resolve().name + ".lock")


def _about(store: Path) -> Iterator[RenderableType]:
    record = read_record(store)
    yield Text(f"{store}: {_kind(record)}, {record['chains']} chains, {_state(store, record)}", style="bold")
    yield _progress(record)
    if record["drawn"]:
        tree = open_run(store)
        rates: Any = tree["sample_stats"]["acceptance_rate"].mean("draw").to_numpy()
        yield Text(f"acceptance of each chain: {' '.join(f'{rate:.2f}' for rate in rates)}")
        if record["drawn"] >= _FEWEST:
            yield _mixing(tree)
            yield _verdict(tree, "" if _is_over(store, record) else "So far ")


def _kind(record: dict[str, Any]) -> str:
    sampler = record["sampler"]
    return str(sampler.get("kind", "a sampler")) if isinstance(sampler, dict) else "a sampler"


def _state(store: Path, record: dict[str, Any]) -> str:
    """Whether somebody is at work."""
    seconds = clock_of(sum(record["seconds"].values()))
    if _is_over(store, record):
        return f"finished in {seconds}"
    try:
        held = json.loads(_lock_of(store).read_text())
        return f"running for {seconds} (process {held['process']} on {held['host']})"
    except (OSError, ValueError, KeyError, TypeError):
        return f"stopped after {seconds}"


def _progress(record: dict[str, Any]) -> Table:
    """Warm-up and draws: chains go side by side, so each has come as far."""
    table = Table.grid(padding=(0, 2))
    to_warm = record.get("to_warm", record["warmup"])
    most = f"of at most {record['draws']:,}" if record.get("goal") else f"of {record['draws']:,}"
    rows = (
        ("warm-up", record["warmed"], to_warm, f"of {to_warm:,}"),
        ("draws", record["drawn"], record["draws"], most),
    )
    for name, done, total, of in rows:
        table.add_row(name, ProgressBar(total=max(total, 1), completed=done, width=30), f"{done:,} {of} a chain")
    return table


def _mixing(tree: Any) -> Table:
    table = Table(box=None, title_justify="left", title="parameters that mix worst", padding=(0, 2, 0, 0))
    for column in ("", "mean", "sd", "ESS, bulk", "ESS, tail", "R-hat"):
        table.add_column(column, justify="left" if not column else "right")
    for name, row in worst(tree, _WORST).iterrows():
        counts = (f"{row['ess_bulk']:,.0f}", f"{row['ess_tail']:,.0f}", f"{row['r_hat']:.3f}")
        table.add_row(str(name), f"{row['mean']:.4g}", f"{row['sd']:.3g}", *counts)
    return table


def _verdict(tree: Any, when: str) -> Text:
    found = diagnose(tree)
    if found.trusted:
        return Text(_sentence(f"{when}nothing speaks against this run."), style="green")
    lines = [_sentence(f"{when}this run should not be trusted:"), *(f"  - {warning}" for warning in found.warnings)]
    return Text("\n".join(lines), style="yellow")


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]
