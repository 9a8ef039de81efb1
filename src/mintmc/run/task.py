"""What a user asked for, checked: the same for every sampler."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from mintmc.flat import FlatTarget
from mintmc.params import Params
from mintmc.reordered import reordering
from mintmc.run.crew import Alone, Together
from mintmc.run.keys import key_of
from mintmc.threefry import unrolled


@dataclass(frozen=True)
class Task:
    """How many chains, draws and steps of which posterior, from where, and who makes them."""

    target: FlatTarget
    thetas: list[Array]  # where each chain of this process starts
    example: Params  # the first chain's params
    seed: int
    draws: int
    warmup: int
    thin: int
    first_chain: int = 0  # of those that run here; others may run elsewhere
    sharers: int = 1  # devices that make each full pass together
    parts: int = 1  # processes among which chains are shared out
    folder: Path | None = None  # of the run's store
    is_new: bool = True  # whether there is nothing to go on with
    is_brief: bool = False  # whether it takes longer to compile its programs than to run them
    settled_rows: int = 0  # read to choose what the sampler had left open
    settled: str = ""  # what was chosen, in words

    @property
    def chains(self) -> int:
        """Chains that run here."""
        return len(self.thetas)

    @property
    def crew(self) -> Alone:
        """Who runs its programs."""
        return Together() if self.sharers > 1 else Alone()

    def of(self, target: FlatTarget) -> Task:
        """The same for another target, such as one with a reference beside every row."""
        return replace(self, target=target)

    def key(self, purpose: int, chain: int, *rung: int) -> Array:
        """The random stream of a chain, or of a rung of it."""
        return unrolled(key_of(self.seed, purpose, self.first_chain + chain, *rung))

    def first_step(self, temperatures: Any) -> Array:
        """A step size to start from: about that of a posterior worth n/T observations."""
        return jnp.sqrt(jnp.asarray(temperatures) / float(max(self.target.n, 1)))  # n may exceed 32 bits

    def check_reads(self, surely: bool = False) -> None:
        """Raise what went wrong where programs read data from disk; ``surely`` at the end, when no other look comes."""
        if self.target.posterior.data is not None:
            self.target.posterior.data.check_reads(surely)


_ON_CPU = {"xla_cpu_prefer_vector_width": 512}
"""XLA's default of 256-bit vectors leaves half of a wide CPU unused."""
_REORDERED = {
    "xla_cpu_enable_fast_math": True,
    # Nothing of it but sums in any order: these keep their meaning.
    "xla_cpu_fast_math_honor_nans": True,
    "xla_cpu_fast_math_honor_infs": True,
    "xla_cpu_fast_math_honor_division": True,
    "xla_cpu_fast_math_honor_functions": True,
}


def compile_program(function: Any, *args: Any, is_brief: bool = False, may_reorder: bool = False) -> Any:
    """Compile ahead of time, for arguments like these; with less effort if it will hardly run.

    See ``mintmc.reordered`` for what ``may_reorder`` allows.
    """
    options: dict[str, Any] = {"xla_backend_optimization_level": 1} if is_brief else {}
    if may_reorder := may_reorder and jax.default_backend() == "cpu":
        options |= _REORDERED
    if jax.default_backend() == "cpu":
        options |= _ON_CPU
    with reordering(may_reorder):
        return jax.jit(function, compiler_options=options).lower(*args).compile()
