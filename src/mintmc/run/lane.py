"""What chains and rungs share: keys, states, compiled programs, and the shuffled copy they read."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree

from mintmc.data import ArrayData, Batching, DiskData, Fresh, FromDisk, Rows, Runs, Shuffled, Uniform
from mintmc.energy import Density
from mintmc.kernels.base import Kernel
from mintmc.posterior import Params, Posterior
from mintmc.proposals import Proposal, Tuning
from mintmc.run import adapt
from mintmc.run.interrupt import Interrupt
from mintmc.run.processes import Alone, Together
from mintmc.run.progress import Display
from mintmc.samplers.base import on_vectors
from mintmc.store.saver import Saver

PASSES_PER_SHUFFLE = 50


class Task(NamedTuple):
    """What a user asked for, checked."""

    posterior: Posterior  # with a reference beside every row, if the sampler reads batches on a ladder
    sampler: Any  # a Sampler, or an EquiEnergy
    thetas: list[Array]  # where each chain starts
    unravel: Callable[[Array], Params]
    reference: Density | None  # of a ladder: what energies are counted from
    seed: int
    draws: int
    warmup: int
    thin: int
    reference_touched: int = 0  # data read to know the reference
    first_chain: int = 0  # of those that run here; others may run elsewhere
    sharers: int = 1  # processes that make each full pass together
    folder: Path | None = None  # of the run's store
    is_new: bool = True  # whether there is nothing to go on with

    @property
    def crew(self) -> Alone:
        """Who runs its programs."""
        return Together() if self.sharers > 1 else Alone()

    def check_reads(self) -> None:
        """Raise what went wrong where programs read data from disk."""
        if isinstance(self.posterior.data, DiskData):
            self.posterior.data.check_reads()

    @property
    def dim(self) -> int:
        """The number of parameters."""
        return self.thetas[0].size

    def kernel(self, **settings: Any) -> Kernel:
        """A kernel of the sampler for this posterior."""
        model = replace(self.posterior.model(self.unravel, self.dim), sharers=self.sharers)
        return self.sampler.kernel(model, self.thetas[0], self.unravel, lambda p: ravel_pytree(p)[0], **settings)

    @property
    def proposal(self) -> Proposal:
        """The sampler's proposal between flat vectors."""
        return on_vectors(self.sampler.proposal, self.unravel, lambda p: ravel_pytree(p)[0])

    def first_step(self, temperatures: float | tuple[float, ...]) -> Array:
        """A step size to start from: about that of a posterior worth n/T observations."""
        return jnp.sqrt(jnp.asarray(temperatures) / float(max(self.posterior.n, 1)))  # n may exceed 32 bits

    @property
    def reference_energy(self) -> float:
        """What the energies of a ladder are counted from."""
        return 0.0 if self.reference is None else float(self.reference.energy(self.energy_of))

    @property
    def energy_of(self) -> str:
        """What a ladder tempers, and so what its energies are of: "posterior" or "likelihood"."""
        return self.posterior.model(self.unravel, self.dim).tempered(self.sampler.temper)

    def batching(self, kernel: Kernel) -> Batching:
        """How the batches of a kernel are drawn: from rows in memory, or from a file."""
        data, n = self.posterior.data, self.posterior.n
        if not isinstance(data, DiskData):
            return Uniform(n) if self.sampler.batching == "uniform" else Shuffled(n)
        if data.mapped is not None:
            sizes = [size for role, size in kernel.batches.items() if role != "all"]
            return Runs.of(n, sizes or [n], self.posterior.beside)
        if {"all", "stream"} <= set(kernel.batches):
            raise ValueError(f"data must be in memory, or prepared, for an oracle or a proxy, got {data.name}")
        return FromDisk(data) if "stream" in kernel.batches else Fresh(data, self.posterior.beside)

    def shuffles(self, sizes: Collection[int]) -> Shuffles:
        """What batches of these sizes are sliced from, if they are."""
        sliced = self.sampler.batching == "shuffled" and isinstance(self.posterior.data, ArrayData)
        return Shuffles(self.posterior, self.seed, max(sizes, default=0) if sliced else 0)


class Purpose:
    """What a key is for: the first thing folded into the seed."""

    init, start, warmup, draw = range(4)


class Session(NamedTuple):
    """What a run works with while it runs."""

    pool: ThreadPoolExecutor
    display: Display
    interrupt: Interrupt
    saver: Saver


class LaneState(NamedTuple):
    """Where one chain stands."""

    state: Any
    adaptation: adapt.Adaptation | None
    tuning: Tuning | None


class Shuffles:
    """The rows that batches are sliced from: a shuffled copy of those in memory, new every epoch."""

    def __init__(self, posterior: Posterior, seed: int, wrap: int):
        self.data, self.seed, self.wrap, self.epoch = posterior.data, seed, wrap, -1
        self.rows = posterior.rows

    def at(self, epoch: int) -> Rows:
        """The rows of an epoch; those of the posterior, in their own order, if nothing is sliced."""
        if self.wrap and epoch != self.epoch:
            assert isinstance(self.data, ArrayData)
            self.epoch = epoch
            self.rows = jax.tree.map(jnp.asarray, self.data.shuffled(self.seed, epoch, self.wrap))
        return self.rows


def key_of(seed: int, *path: int) -> Array:
    """The key of a purpose, a chain, a rung."""
    key = jax.random.key(seed)
    for part in path:
        key = jax.random.fold_in(key, part)
    return key


def compile_program(function: Any, *args: Any) -> Any:
    """Compile ahead of time, for arguments like these."""
    # XLA's default of 256-bit vectors leaves half of a wide CPU unused.
    options = {"xla_cpu_prefer_vector_width": 512} if jax.default_backend() == "cpu" else None
    return jax.jit(function, compiler_options=options).lower(*args).compile()


def record_capacity(dim: int) -> int:
    """Draws that one stretch records at most."""
    return max(64, min(2**16, 2**21 // (dim + 8)))


def check_countable(n: int, rungs: int, proposal: Any) -> None:
    """Refuse more rows than a step can count, in 32 bits, where what it reads varies."""
    # A test reads a row at most four times (both ends, and both ends of an oracle or a jump), each gradient once more.
    gradients = proposal.visits + 1 if proposal is not None and proposal.uses_gradient else 0
    most = (2**31 - 2**24) // ((4 + gradients) * rungs)
    if n > most:
        raise ValueError(f"data must have at most {most} rows where each step counts what it reads, got {n}")


def ints(*values: int) -> list[Array]:
    """Whole numbers as a compiled program takes them."""
    return [jnp.asarray(value, jnp.int32) for value in values]


@contextmanager
def workers(count: int) -> Iterator[ThreadPoolExecutor]:
    """Threads to run lanes on; after an error, or Ctrl-C, what has not begun is not begun."""
    pool = ThreadPoolExecutor(count)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def cores(lanes: int) -> int:
    """Threads to run so many lanes on."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(lanes, available))
