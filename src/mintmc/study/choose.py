"""``sample`` without a sampler: it looks, chooses, says why, and says so if what it chose did not do."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mintmc import check
from mintmc.posterior import Posterior
from mintmc.result.diagnose import diagnose
from mintmc.run.places import record_of_run
from mintmc.run.progress import Display
from mintmc.run.protocol import Sampler
from mintmc.run.sample import check_stops
from mintmc.run.sample import sample as sample_with
from mintmc.run.sofar import SoFar
from mintmc.run.until import Ess, RHat
from mintmc.store.encode import decode, is_readable
from mintmc.store.run_store import is_new
from mintmc.study.plan import plan, start_of

if TYPE_CHECKING:
    from xarray import DataTree


class NotTrusted(UserWarning):
    """Something speaks against a run whose sampler was chosen automatically."""


def sample(
    posterior: Posterior,
    sampler: Sampler | None = None,
    *,
    init: Any = None,
    draws: int = 1000,
    warmup: int = 1000,
    chains: int = 4,
    thin: int = 1,
    seed: int = 0,
    out: str | Path | None = None,
    progress: bool = True,
    audit: bool = True,
    until: Ess | RHat | None = None,
    callback: Callable[[SoFar], Any] | None = None,
) -> DataTree:
    """Draw from a posterior.

    Parameters
    ----------
    posterior
        What to sample.
    sampler
        How: ``MINT``, ``MetropolisHastings``, ``EquiEnergy``, any other (see docs/samplers.md). None looks at the
        posterior (``plan``), takes the cheapest that samples T = 1, says in three lines what, why and at what cost, and
        warns if something speaks against the run in the end.
    init
        Where chains start; None where the posterior knows (``glm``, ``from_numpyro``, ``from_pymc``). One params
        pytree, a function ``key -> params`` (called once a chain), or ``PerChain(params)`` with a leading axis of
        chains. Whole numbers are made floats. One point is where the first chain starts; the others start around it,
        at distances of sqrt(T/n) in every parameter (T that of the hottest rung on a ladder; sqrt(T) for a density),
        or closer where the density would be zero. Such chains do not disagree about modes that are farther apart: give
        each a start of its own (``PerChain``, or draws from the prior) if there may be any. With a ``Custom`` proposal
        all start at that point.
    draws, warmup
        Recorded draws of each chain, and steps before them in which step size and preconditioner are adapted.
    chains
        Independent chains; they run side by side on the machine's cores.
    thin
        Steps from one recorded draw to the next.
    seed
        The same seed gives the same draws, on any number of cores.
    out
        Path of a run store (Zarr): draws and statistics are streamed to it, in memory that does not grow with
        their number. The same call again goes on with an unfinished run, or with a larger ``draws``; with a smaller
        one it returns that many. None keeps everything in memory.
    progress
        Show a progress bar.
    audit
        Compare some moves of a run on batches with all data, after warm-up and when it is finished, for ``diagnose``: a
        few dozen passes over all data (fewer where n is large), counted as ``data_touched_audit``.
    until
        ``mintmc.Ess(1000)`` or ``mintmc.RHat(1.01)``: stop when that is reached; ``draws`` is then the most. It is
        looked at after 100, 125, 156, ... draws, so a seed always gives the same number of them.
    callback
        Called after each stretch (about 0.4 s) with a ``SoFar``: what is known so far. Returning False stops the run:
        everything is saved as after Ctrl-C, and ``tree.attrs["stopped"]`` says why. Whatever else it returns, None too,
        lets the run go on.

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
    check.instance("posterior", posterior, Posterior, "a mintmc.Posterior")
    init = start_of(posterior, init)
    settings: dict[str, Any] = {"draws": draws, "warmup": warmup, "chains": chains, "seed": seed}
    more: dict[str, Any] = {"thin": thin, "out": out, "progress": progress, "audit": audit}
    more |= {"until": until, "callback": callback}
    if sampler is not None:
        return sample_with(posterior, sampler, init=init, **settings, **more)
    # Before anything is looked at; the rest is checked by those who use it.
    check.integer("thin", thin, 1)
    check.flag("progress", progress)
    check.flag("audit", audit)
    check_stops(until, callback, check.integer("chains", chains, 1))
    out = None if out is None else check.folder("out", out)
    if (known := _recorded(out)) is not None:
        return sample_with(posterior, known, init=init, **settings, **more)
    display = Display(progress)
    display.say("no sampler given: looking at the posterior to choose one, for seconds to a few minutes")
    chosen = plan(posterior, init=init, **settings)
    display.say("\n".join(chosen.sentences))
    tree = sample_with(posterior, chosen.sampler, init=init, **settings, **more)
    tree.attrs["chosen"] = "\n".join(chosen.sentences)
    if against := diagnose(tree).warnings:
        warnings.warn(f"this run should not be trusted as it is: {'; '.join(against)}", NotTrusted, stacklevel=2)
    return tree


def _recorded(out: str | Path | None) -> Any:
    """The sampler of a run that was begun: going on with it is no time to choose another."""
    if out is None or is_new(Path(out)):
        return None
    record = record_of_run(Path(out))
    return decode(record["sampler"]) if is_readable(record["sampler"]) else None
