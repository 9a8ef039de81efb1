"""A NumPyro model sampled from mini-batches: logistic regression on 20,000 rows, 200 of them a step.

    python examples/numpyro_model.py

The model is plain NumPyro. ``mintmc.from_numpyro`` reads its priors, its supports and its likelihood row by row; the
sampler then touches a batch a step, at temperature 1, and draws come back with the model's names.
"""

import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist

import mintmc
from drawing import histograms

SLOPE = np.array([1.0, -0.5, 0.25])


def model(x, y):
    """Logistic regression whose slopes share a scale that is learned too."""
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    with numpyro.plate("feature", x.shape[1]):
        slope = numpyro.sample("slope", dist.Normal(0.0, scale))
    numpyro.deterministic("odds", jnp.exp(slope))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=x @ slope), obs=y)


def simulated(n, seed=0):
    """Rows from the model at known slopes."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(n, len(SLOPE))).astype(np.float32)
    return x, generator.binomial(1, 1 / (1 + np.exp(-x @ SLOPE)))


def main(n=20_000, draws=1000):
    """Draws of the posterior, as an ArviZ tree, and a picture of the slopes."""
    posterior = mintmc.from_numpyro(model, *simulated(n))
    sampler = mintmc.MINT(200, temperature=1.0, control=mintmc.Taylor())
    tree = mintmc.sample(posterior, sampler, init=posterior.init, draws=draws, progress=False)
    print(mintmc.summary(tree).to_string())
    print(mintmc.diagnose(tree))
    return tree, histograms(tree.posterior["slope"], SLOPE)


if __name__ == "__main__":
    main()[1].savefig("numpyro_model.png")
