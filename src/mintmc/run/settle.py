"""What a sampler leaves open is chosen before its run begins, and then stands: in the tree, in the store, for ever.

A sampler names the settings that it leaves open (``left_open``) and chooses them by a look at the posterior or by pilot
runs (``settle``). From then on the run is that of the sampler with everything chosen. A stored run is gone on with as
it was settled: nothing is chosen twice.
"""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax

from mintmc import check
from mintmc.posterior import Posterior
from mintmc.run.initial import initial_states
from mintmc.run.keys import Purpose, key_of
from mintmc.store.encode import decode, encode, is_readable
from mintmc.store.provenance import differences
from mintmc.store.run_store import is_new, read_record


class Settled(NamedTuple):
    """A sampler with everything chosen, what that took, and why it was chosen so."""

    sampler: Any
    rows_read: int = 0
    said: str = ""


class Setting(NamedTuple):
    """For what a sampler is to be settled."""

    posterior: Posterior
    init: Any
    thetas: list[Any]  # where chains would start
    example: Any  # the first chain's params
    chains: int
    steps: int  # of each chain, in all
    seed: int


def settled(
    posterior: Posterior, sampler: Any, init: Any, chains: int, steps: int, seed: int, out: Path | None
) -> Settled:
    """The sampler as its run is to know it: as a store has it, as it was given, or as it chooses itself."""
    left_open = sampler.left_open
    done = None if out is None or is_new(out) else read_record(out)
    notes = (done or {}).get("settled") or {}
    before = Settled(sampler, notes.get("rows_read", 0), notes.get("said", ""))
    if not left_open:
        return before
    if jax.process_count() > 1:
        raise ValueError(f"{left_open[0]} must be given where several processes share a run, got None")
    if done is not None and is_readable(done["sampler"]):
        return before._replace(sampler=_as_stored(sampler, decode(done["sampler"]), left_open, out))
    thetas, example = initial_states(posterior, init, chains, key_of(seed, Purpose.init))
    sampler.check(posterior, example)
    chosen: Settled = sampler.settle(Setting(posterior, init, thetas, example, chains, steps, seed))
    return chosen


def _as_stored(sampler: Any, stored: Any, left_open: tuple[str, ...], out: Path | None) -> Any:
    """The sampler of a store, if it is the given one but for what that leaves open."""
    known = {each.name for each in fields(stored)}
    blank = replace(stored, **{name: None for name in left_open if name in known})
    if found := differences({"sampler": encode(blank)}, {"sampler": encode(sampler)}):
        raise ValueError(f"out must be a new path or the same run, got {out}, which differs: {'; '.join(found)}")
    return stored


def check_settled(sampler: Any) -> None:
    """Refuse to plan a run of a sampler that still leaves something open."""
    for name in sampler.left_open:
        what = f"{name} must be chosen before a run is planned (mintmc.sample does)"
        raise ValueError(f"{what}, got {check.shown(getattr(sampler, name))}")
