"""What the three networks share: a noisy curve, the model around a network, its run, and a picture.

The network is a function ``(params, x) -> y`` of all rows of a batch at once, which is what ``batched=True`` says.
Weights have N(0, 1) priors, the noise is known.
"""

import arviz_stats
import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

import mintmc

UNITS = 8
NOISE = 0.2


def rows(n, seed=0):
    """A curve that was measured everywhere but between 0 and 1."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 2, n)
    x = np.where(x > 0, x + 1, x).astype(np.float32)
    return {"x": x, "y": (np.sin(1.5 * x) + NOISE * rng.normal(size=n)).astype(np.float32)}


def posterior_of(network, data):
    """The posterior of the weights of a network."""

    def log_likelihood(params, batch):
        return jax.scipy.stats.norm.logpdf(batch["y"], network(params, batch["x"]), NOISE)

    def log_prior(params):
        return -0.5 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(params))

    return mintmc.Posterior(log_likelihood, data, log_prior, batched=True)


def fit(network, init, n=200, draws=1000, warmup=2000):
    """Draws, the verdict on the weights and on the curve, and a picture. ``init`` is key -> params."""
    data = rows(n)
    # Such a posterior is narrow and bent: many small steps.
    sampler = mintmc.MetropolisHastings(mintmc.Hamiltonian(steps=200, target_acceptance=0.9))
    settings = {"draws": draws, "warmup": warmup, "progress": False}
    tree = mintmc.sample(posterior_of(network, data), sampler, init=init, **settings)
    print(mintmc.diagnose(tree))

    x = np.linspace(-4, 4, 81, dtype=np.float32)
    like = init(jax.random.key(0))
    curve = mintmc.predict(tree, lambda params, x: network(params, x[None])[0], x, like=like)["prediction"]
    measured = curve.sel(obs=(x >= -3) & (x <= 3))
    print(f"R-hat of the curve where there are data: {float(arviz_stats.rhat(measured).max()):.3f} at most")
    print(f"ESS of the curve there: {float(arviz_stats.ess(measured).min()):.0f} at least")
    return tree, drawn(data, x, curve)


def drawn(data, x, curve):
    """The data, and where the curve may be."""
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(data["x"], data["y"], ".", color="#718096", markersize=3, label="data")
    low, high = curve.quantile([0.05, 0.95], ("chain", "draw")).values
    axes.fill_between(x, low, high, color="#2b6cb0", alpha=0.3, linewidth=0, label="90% of the draws")
    axes.plot(x, curve.mean(("chain", "draw")), color="#2b6cb0", label="mean")
    axes.plot(x, np.sin(1.5 * x), "k--", linewidth=1, label="truth")
    axes.set(xlabel="x", ylabel="y", ylim=(-2.5, 2.5))
    axes.legend(frameon=False, ncols=2)
    return figure
