"""The paper's check of its one assumption: t = sqrt(m) (mean over a batch - mean over all) is normal.

For the chain that is run (common batches) what must be normal is the difference l_i(theta') - l_i(theta); give
``other`` to check that instead of the level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc import check
from mintmc.data import Uniform
from mintmc.params import Params, check_alike, flatten
from mintmc.posterior import Posterior
from mintmc.result.plots import INK, new_axes


@dataclass(frozen=True)
class Normality:
    """The distribution of t over random batches."""

    t: np.ndarray
    batch_size: int
    deviation: float  # the standard deviation that t has for normal data of the same variance
    skewness: float
    excess_kurtosis: float

    def plot(self, axes: Any = None) -> Any:
        """Histogram of t against the normal with the same mean and variance; returns the axes."""
        axes = new_axes(axes)
        axes.hist(self.t, bins=60, density=True, color=INK["mint"], alpha=0.5, label=f"{len(self.t)} batches")
        mean, sd = self.t.mean(), self.t.std()
        x = np.linspace(mean - 4.5 * sd, mean + 4.5 * sd, 300)
        density = np.exp(-0.5 * ((x - mean) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))
        axes.plot(x, density, color=INK["truth"], label="normal")
        axes.set(xlabel=r"$t = \sqrt{m}\,(\hat\mu - \mu)$", ylabel="density", title=f"batches of {self.batch_size}")
        axes.legend(frameon=False, title=f"skewness {self.skewness:.2f}\nex. kurtosis {self.excess_kurtosis:.2f}")
        return axes

    def __str__(self) -> str:
        """Moments, beside those of a normal sample of the same size."""
        count = len(self.t)
        return (
            f"t over {count} batches of {self.batch_size}: sd {self.t.std():.4g} (predicted {self.deviation:.4g}), "
            f"skewness {self.skewness:.3f} +- {(6 / count) ** 0.5:.3f}, "
            f"excess kurtosis {self.excess_kurtosis:.3f} +- {(24 / count) ** 0.5:.3f}"
        )


def normality(
    posterior: Posterior,
    params: Params,
    batch_size: int,
    *,
    other: Params | None = None,
    batches: int = 5000,
    seed: int = 0,
) -> Normality:
    """Draw ``batches`` random batches and look at the distribution of t.

    Parameters
    ----------
    posterior, params, batch_size
        The model, the state at which to look, and m.
    other
        A second state: look at differences of log-likelihoods between the two, which is what MINT's ratio is made of.
    batches, seed
        How many batches to draw, and from which seed.

    Examples
    --------
    >>> import numpy as np, mintmc
    >>> x = np.random.default_rng(0).normal(size=10_000)
    >>> posterior = mintmc.Posterior(lambda mean, x: -0.5 * (x - mean) ** 2, x)
    >>> result = mintmc.normality(posterior, 0.0, batch_size=400, batches=1000)
    >>> bool(abs(result.t.std() / result.deviation - 1) < 0.1)
    True
    """
    check.instance("posterior", posterior, Posterior, "a mintmc.Posterior")
    if posterior.data is None:
        raise ValueError("posterior must have data to take mini-batches of, got a density without data")
    m = check.integer("batch_size", batch_size, 1, posterior.n, "n")
    batches = check.integer("batches", batches, 2, most=10**7)
    seed = check.integer("seed", seed, 0, 2**32 - 1)
    theta = posterior.vector(params, "params")
    posterior.check_functions(params, "params")
    model = posterior.flat(params).model
    if posterior.rows is None:
        raise ValueError("posterior must have its data in memory, or prepared, got data on disk")
    each = jax.jit(model.each)(theta, posterior.rows)
    if other is not None:
        flatten(other, "other")
        check_alike("other", other, params, like="params")
        second = posterior.vector(other, "other")
        each = each - jax.jit(model.each)(second, posterior.rows)
    if not jnp.isfinite(each).all():
        states = f"params={check.shown(params)}" + ("" if other is None else f" and other={check.shown(other)}")
        raise ValueError(f"log_likelihood must be finite for all data, got another value at {states}")
    batching = Uniform(posterior.n)

    def one(key: Array) -> Array:
        scaled: Array = jnp.sqrt(m) * (batching.take(each, batching.ticket(key), 0, m) - each.mean()).mean()
        return scaled

    keys = jax.random.split(jax.random.key(seed), batches)
    t = np.asarray(jax.jit(lambda keys: jax.lax.map(one, keys))(keys), dtype=float)
    values = np.asarray(each, dtype=float)
    # Where all rows are alike, or in the batch, t is 0 and has no shape.
    z = (t - t.mean()) / t.std() if t.std() > 0 else np.full_like(t, np.nan)
    return Normality(
        t=t,
        batch_size=m,
        deviation=float(values.std(ddof=1) * np.sqrt(1 - m / posterior.n)) if posterior.n > 1 else 0.0,
        skewness=float((z**3).mean()),
        excess_kurtosis=float((z**4).mean() - 3),
    )
