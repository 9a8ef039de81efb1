"""Run a sampler on a posterior, into a tree of draws."""

from __future__ import annotations

import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from mintmc import check
from mintmc.energy import Density
from mintmc.posterior import Posterior
from mintmc.result.tree import RunFacts, build_tree
from mintmc.run.chains import ChainRun
from mintmc.run.initial import check_start, initial_states
from mintmc.run.interrupt import Interrupt
from mintmc.run.lane import Purpose, Task, cores, key_of
from mintmc.run.progress import Display
from mintmc.run.rounds import LadderRun
from mintmc.samplers import MINTEE, EquiEnergy, Sampler
from mintmc.samplers.base import check_has_data

if TYPE_CHECKING:
    import xarray


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
    if not hasattr(sampler, "kernel") and not isinstance(sampler, MINTEE):
        raise TypeError(f"sampler must be a mintmc sampler such as MINT(...), got {sampler!r}")

    begun = time.perf_counter()
    task = _task(posterior, sampler, init, draws, warmup, chains, thin, seed)
    run: ChainRun | LadderRun = (LadderRun if isinstance(task.sampler, EquiEnergy) else ChainRun)(task)
    threads = cores(chains if isinstance(run, ChainRun) else chains * len(run.ladder))
    with Display(progress) as display, Interrupt() as interrupt, ThreadPoolExecutor(threads) as pool:
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
    temperature = task.sampler.target_temperature(posterior.n)
    ladder = None if task.reference is None else run.ladder_facts(finished)
    facts = RunFacts(sampler, posterior.n, temperature, seed, warmup, thin, timings, run.facts(), ladder)
    return build_tree(run.kept.first(finished), task.unravel, facts)


def _task(posterior, sampler, init, draws, warmup, chains, thin, seed) -> Task:
    """Check everything before anything compiles."""
    thetas, unravel, example = initial_states(init, chains, key_of(seed, Purpose.init))
    if isinstance(sampler, MINTEE):
        check_has_data(posterior)
        sampler = sampler.for_data(posterior.n)
    sampler.check(posterior, example)
    check_start(posterior, thetas, unravel)
    reference = None
    if hasattr(sampler, "ladder"):
        at = example if sampler.reference is None else sampler.reference
        zero = jnp.zeros((), thetas[0].dtype)
        absolute = posterior.data is None and sampler.reference is None
        reference = Density(zero, zero, zero) if absolute else posterior.density(at)
        if min(sampler.ladder.rows(posterior.n)) < posterior.n:
            posterior = posterior.referenced(at)
    return Task(posterior, sampler, thetas, unravel, reference, seed, draws, warmup, thin)
