"""What chains and rungs share: keys, states, compiled programs, and the shuffled copy they read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree

from mintmc.data import Batching, DiskData, Rows, Shuffled, Uniform
from mintmc.energy import Density
from mintmc.kernels.base import Kernel
from mintmc.posterior import Params, Posterior
from mintmc.proposals import Tuning
from mintmc.run import adapt
from mintmc.run.interrupt import Interrupt
from mintmc.run.processes import Alone, Together
from mintmc.run.progress import Display
from mintmc.run.saver import Saver

PASSES_PER_SHUFFLE = 50
_BYTES_PER_WINDOW = 2**25


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

    def first_step(self, temperatures: float | tuple[float, ...]) -> Array:
        """A step size to start from: about that of a posterior worth n/T observations."""
        return jnp.sqrt(jnp.asarray(temperatures) / max(self.posterior.n, 1))

    @property
    def reference_energy(self) -> float:
        """What the energies of a ladder are counted from."""
        return 0.0 if self.reference is None else float(self.reference.energy(self.energy_of))

    @property
    def energy_of(self) -> str:
        """What a ladder tempers, and so what its energies are of: "posterior" or "likelihood"."""
        return self.posterior.model(self.unravel, self.dim).tempered(self.sampler.temper)

    @property
    def batching(self) -> Batching:
        """How batches are drawn from the rows in memory."""
        return (Uniform if self.sampler.batching == "uniform" else Shuffled)(rows_in_memory(self.posterior))


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
    """The rows that batches are sliced from, new every epoch: a shuffled copy of the data, or a window of a file.

    While one window is in use the next is read in the background.
    """

    def __init__(self, posterior: Posterior, seed: int, wrap: int):
        self.data, self.seed, self.wrap, self.epoch = posterior.data, seed, wrap, -1
        self.size = rows_in_memory(posterior)
        self.rows = posterior.rows
        self.reader = ThreadPoolExecutor(1) if isinstance(self.data, DiskData) else None
        self.next: tuple[int, Future] | None = None

    def at(self, epoch: int) -> Rows:
        """The rows of an epoch; those of the posterior, in their own order, if nothing is sliced."""
        if self.wrap == 0 or epoch == self.epoch:
            return self.rows
        self.epoch = epoch
        if self.reader is None:
            self.rows = self._read(epoch)
        else:
            read = self.next[1] if self.next and self.next[0] == epoch else self.reader.submit(self._read, epoch)
            self.rows = read.result()
            self.next = epoch + 1, self.reader.submit(self._read, epoch + 1)
        return self.rows

    def _read(self, epoch: int) -> Rows:
        if isinstance(self.data, DiskData):
            return jax.tree.map(jnp.asarray, self.data.window(self.seed, epoch, self.size, self.wrap))
        assert self.data is not None
        return jax.tree.map(jnp.asarray, self.data.shuffled(self.seed, epoch, self.wrap))


def rows_in_memory(posterior: Posterior) -> int:
    """All rows, or as many of those on disk as a window holds."""
    if not isinstance(posterior.data, DiskData):
        return posterior.n
    return min(posterior.n, max(1, _BYTES_PER_WINDOW // posterior.data.bytes_per_row))


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
