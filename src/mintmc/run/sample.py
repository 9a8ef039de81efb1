"""Run a sampler on a posterior: chains side by side, in stretches, into a tree of draws.

Each chain is one program; as many run at once as the machine has cores, each on a thread of its own (XLA releases the
interpreter while it computes). The data are shared by all of them, not copied.
"""

from __future__ import annotations

import math
import os
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from mintmc import check
from mintmc.data import Rows, Shuffled, Uniform
from mintmc.kernels.base import Kernel
from mintmc.posterior import Posterior
from mintmc.proposals import Tuning
from mintmc.result.tree import Draws, RunFacts, build_tree
from mintmc.run import adapt, program
from mintmc.run.initial import check_start, initial_states
from mintmc.run.interrupt import Interrupt
from mintmc.run.progress import Display
from mintmc.samplers import Sampler

if TYPE_CHECKING:
    import xarray

_SECONDS_PER_STRETCH = 0.4
_PASSES_PER_SHUFFLE = 50


def sample(
    posterior: Posterior,
    sampler: Sampler,
    *,
    init: Any,
    draws: int = 1000,
    warmup: int = 1000,
    chains: int = 4,
    thin: int = 1,
    seed: int = 0,
    progress: bool = True,
) -> xarray.DataTree:
    """Draw from a posterior.

    Parameters
    ----------
    posterior
        What to sample.
    sampler
        How: ``MINT``, ``MetropolisHastings``.
    init
        One params pytree (every chain starts there), a function ``key -> params`` (called once a chain), or
        ``PerChain(params)`` with a leading axis of chains.
    draws, warmup
        Recorded draws of each chain, and steps before them in which step size and preconditioner are adapted.
    chains
        Independent chains; they run side by side on the machine's cores.
    thin
        Steps from one recorded draw to the next.
    seed
        The same seed gives the same draws, on any number of cores.
    progress
        Show a progress bar.

    Returns
    -------
    xarray.DataTree
        Draws in group ``posterior`` (T = 1) or ``tempered_posterior`` (any other temperature), statistics of each draw
        in ``sample_stats``. Ready for ArviZ.

    Examples
    --------
    >>> import numpy as np, mintmc
    >>> x = np.random.default_rng(0).normal(3.0, 1.0, size=10_000)
    >>> posterior = mintmc.Posterior(lambda p, x: -0.5 * (x - p["mean"]) ** 2, x)
    >>> tree = mintmc.sample(posterior, mintmc.MINT(batch_size=100, alpha=0.5), init={"mean": 3.0}, progress=False)
    >>> bool(abs(tree.tempered_posterior["mean"].mean() - 3.0) < 0.1)
    True
    """
    draws = check.integer("draws", draws, 1)
    warmup = check.integer("warmup", warmup, 0)
    chains = check.integer("chains", chains, 1)
    thin = check.integer("thin", thin, 1)
    seed = check.integer("seed", seed, 0)
    if not isinstance(posterior, Posterior):
        raise TypeError(f"posterior must be a mintmc.Posterior, got {posterior!r}")
    if not hasattr(sampler, "kernel"):
        raise TypeError(f"sampler must be a mintmc sampler such as MINT(...), got {sampler!r}")

    begun = time.perf_counter()
    root = jax.random.key(seed)
    thetas, unravel, example = initial_states(init, chains, jax.random.fold_in(root, _Purpose.init))
    sampler.check(posterior, example)
    check_start(posterior, thetas, unravel)
    kernel = sampler.kernel(
        posterior.model(unravel, thetas[0].size), thetas[0], unravel, lambda params: ravel_pytree(params)[0]
    )
    run = _Run(posterior, sampler, kernel, thetas, root, seed, draws, warmup, thin)
    with Display(progress) as display, Interrupt() as interrupt, ThreadPoolExecutor(_cores(chains)) as pool:
        run.compile(pool)
        compiled = time.perf_counter()
        run.warm_up(pool, display, interrupt)
        warmed = time.perf_counter()
        finished = run.collect(pool, display, interrupt)
    if finished < draws:
        warnings.warn(f"interrupted: {finished} of {draws} draws were made", stacklevel=2)
    timings = {
        "compile": compiled - begun,
        "warmup": warmed - compiled,
        "sampling": time.perf_counter() - warmed,
    }
    facts = RunFacts(
        sampler,
        posterior.n,
        sampler.target_temperature(posterior.n),
        seed,
        warmup,
        thin,
        timings,
        run.facts(),
    )
    return build_tree(run.kept.first(finished), unravel, facts)


class _Purpose:
    """What a key is for: the first thing folded into the seed."""

    init, start, warmup, draw = range(4)


class _ChainState(NamedTuple):
    state: Any
    adaptation: adapt.Adaptation | None
    tuning: Tuning | None


class _Run:
    """The state of one run: chains, the current shuffle, and the draws kept so far."""

    def __init__(self, posterior, sampler, kernel: Kernel, thetas, root, seed, draws, warmup, thin):
        self.posterior, self.sampler, self.kernel, self.thetas = posterior, sampler, kernel, thetas
        self.root, self.seed, self.draws, self.warmup, self.thin = root, seed, draws, warmup, thin
        dim = thetas[0].size
        self.capacity = max(64, min(2**16, 2**21 // (dim + 8)))
        self.warmup_totals = np.zeros((len(thetas), 4))
        slices = {role: size for role, size in kernel.batches.items() if role != "all"}
        self.wrap = max(slices.values(), default=0)
        self.shuffles = bool(slices) and sampler.batching == "shuffled"
        # Every so many steps the chains have read the data often enough to pay for a new shuffle.
        per_step = sum(slices.values())
        self.steps_per_shuffle = math.ceil(_PASSES_PER_SHUFFLE * posterior.n / per_step) if self.shuffles else 2**62
        self.epoch = -1
        self.rows = self._rows(0)

    def compile(self, pool: ThreadPoolExecutor) -> None:
        """Start the chains and compile the programs that run them."""
        kernel, theta = self.kernel, self.thetas[0]
        batching = (Uniform if self.sampler.batching == "uniform" else Shuffled)(self.posterior.n)
        programs = program.build(kernel, batching, self.thin, self.capacity, self.warmup, theta.size)
        # A step of a posterior worth n/T observations is about this large.
        first_step = (self.posterior.n / self.sampler.target_temperature(self.posterior.n) or 1.0) ** -0.5
        self.states = []
        start = jax.jit(programs.init)
        for chain, theta in enumerate(self.thetas):
            state = start(self._key(_Purpose.start, chain), theta, self.rows)
            adaptation = None if kernel.proposal is None else adapt.start(kernel.proposal, theta, first_step)
            self.states.append(_ChainState(state, adaptation, adapt.tuning(adaptation, final=True)))
        state, adaptation, tuning = self.states[0]
        key, zero = self._key(_Purpose.draw, 0), jnp.zeros((), jnp.int32)
        compiling = []
        if self.warmup:
            compiling.append(pool.submit(_compile, programs.warm, state, adaptation, key, zero, zero, self.rows))
        compiling.append(pool.submit(_compile, programs.draw, state, tuning, key, zero, zero, self.rows))
        self.warm_program, self.draw_program = compiling[0].result(), compiling[-1].result()
        self.kept = Draws.empty(
            len(self.thetas), self.draws, self.draw_program.out_info[1], kernel.touched and kernel.touched * self.thin
        )

    def warm_up(self, pool: ThreadPoolExecutor, display: Display, interrupt: Interrupt) -> None:
        """Adapt every chain's step size and preconditioner, then freeze them."""

        def run(chain: int, first: int, last: int) -> float:
            state, adaptation, tuning = self.states[chain]
            key = self._key(_Purpose.warmup, chain)
            state, adaptation, totals = self.warm_program(state, adaptation, key, *_ints(first, last), self.rows)
            totals = np.asarray(totals, dtype=float)
            self.warmup_totals[chain] += totals
            self.states[chain] = _ChainState(state, adaptation, tuning)
            return totals[0] / (last - first)

        if self.warmup:
            finished = self._stretches("warm-up", self.warmup, 1, 0, run, pool, display, interrupt)
            if finished < self.warmup:
                raise KeyboardInterrupt
        self.states = [s._replace(tuning=adapt.tuning(s.adaptation, final=True)) for s in self.states]

    def collect(self, pool: ThreadPoolExecutor, display: Display, interrupt: Interrupt) -> int:
        """Make the draws; returns how many each chain made."""

        def run(chain: int, first: int, last: int) -> float:
            state, adaptation, tuning = self.states[chain]
            key = self._key(_Purpose.draw, chain)
            state, record = self.draw_program(state, tuning, key, *_ints(first, last), self.rows)
            self.kept.write(chain, first, last, record)
            self.states[chain] = _ChainState(state, adaptation, tuning)
            return float(self.kept.acceptance_rate[chain, first:last].mean())

        return self._stretches("draws", self.draws, self.thin, self.warmup, run, pool, display, interrupt)

    def facts(self) -> dict[str, Any]:
        """What else the tree should know."""
        tunings = [s.tuning for s in self.states]
        setup = self.kernel.init_touched
        steps = (self.kernel.touched or 0) * self.warmup
        return {
            "step_size": [float(t.step_size) for t in tunings if t is not None],
            "data_touched_setup": [int(setup + steps + totals[2]) for totals in self.warmup_totals],
            "warmup_acceptance_rate": float(self.warmup_totals[:, 0].mean() / max(self.warmup, 1)),
        }

    def _stretches(self, name, total, thin, offset, run, pool, display, interrupt) -> int:
        """Run all chains from 0 to ``total`` in stretches of about the same time; returns where they stopped."""
        phase = display.phase(name, total * len(self.thetas))
        first, size = 0, 16
        while first < total and not interrupt.requested:
            at = offset + first * thin
            self.rows = self._rows(at // self.steps_per_shuffle)
            to_next_shuffle = self.steps_per_shuffle - at % self.steps_per_shuffle
            last = min(total, first + size, first + -(-to_next_shuffle // thin))
            begun = time.perf_counter()
            rates = list(pool.map(lambda chain, a=first, b=last: run(chain, a, b), range(len(self.thetas))))
            seconds = time.perf_counter() - begun
            display.advance(phase, (last - first) * len(self.thetas), float(np.mean(rates)))
            size = _next_size(last - first, seconds, self.capacity)
            first = last
        return first

    def _rows(self, epoch: int) -> Rows:
        if not self.shuffles:
            return self.posterior.rows
        if epoch == self.epoch:
            return self.rows
        self.epoch = epoch
        return jax.tree.map(jnp.asarray, self.posterior.data.shuffled(self.seed, epoch, self.wrap))

    def _key(self, purpose: int, chain: int) -> Array:
        return jax.random.fold_in(jax.random.fold_in(self.root, purpose), chain)


def _compile(function: Any, *args: Any) -> Any:
    # XLA's default of 256-bit vectors leaves half of a wide CPU unused.
    options = {"xla_cpu_prefer_vector_width": 512} if jax.default_backend() == "cpu" else None
    return jax.jit(function, compiler_options=options).lower(*args).compile()


def _ints(*values: int) -> list[Array]:
    return [jnp.asarray(value, jnp.int32) for value in values]


def _next_size(size: int, seconds: float, capacity: int) -> int:
    fitting = int(size * _SECONDS_PER_STRETCH / max(seconds, 1e-6))
    return max(1, min(capacity, 8 * size, fitting))


def _cores(chains: int) -> int:
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(chains, available))
