"""What chains and rungs share: keys, states, compiled programs, and the shuffled copy they read."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree

from mintmc.data import Batching, Rows, Shuffled, Uniform
from mintmc.energy import Density
from mintmc.kernels.base import Kernel
from mintmc.posterior import Params, Posterior
from mintmc.proposals import Tuning
from mintmc.run import adapt
from mintmc.run.interrupt import Interrupt
from mintmc.run.progress import Display
from mintmc.run.saver import Saver

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
    first_chain: int = 0  # of those that run here; others may run elsewhere

    @property
    def dim(self) -> int:
        """The number of parameters."""
        return self.thetas[0].size

    def kernel(self, **settings: Any) -> Kernel:
        """A kernel of the sampler for this posterior."""
        model = self.posterior.model(self.unravel, self.dim)
        return self.sampler.kernel(model, self.thetas[0], self.unravel, lambda p: ravel_pytree(p)[0], **settings)

    @property
    def batching(self) -> Batching:
        """How batches are drawn."""
        return (Uniform if self.sampler.batching == "uniform" else Shuffled)(self.posterior.n)


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
    """The copy of the data that batches are sliced from, shuffled anew every epoch."""

    def __init__(self, posterior: Posterior, seed: int, wrap: int):
        self.posterior, self.seed, self.wrap, self.epoch = posterior, seed, wrap, -1
        self.rows = posterior.rows if wrap == 0 else self.at(0)

    def at(self, epoch: int) -> Rows:
        """The rows of an epoch; those of the posterior, in their own order, if nothing is sliced."""
        if self.wrap and epoch != self.epoch:
            assert self.posterior.data is not None
            self.epoch = epoch
            self.rows = jax.tree.map(jnp.asarray, self.posterior.data.shuffled(self.seed, epoch, self.wrap))
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


def ints(*values: int) -> list[Array]:
    """Whole numbers as a compiled program takes them."""
    return [jnp.asarray(value, jnp.int32) for value in values]


def cores(lanes: int) -> int:
    """Threads to run so many lanes on."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(lanes, available))
