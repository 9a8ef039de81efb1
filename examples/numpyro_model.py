"""A NumPyro model sampled from mini-batches: robust regression on 20,000 rows, 200 of them a step.

    python examples/numpyro_model.py

The model is plain NumPyro. ``mintmc.from_numpyro`` reads its priors, its supports and its likelihood row by row; the
sampler then touches a batch a step, at temperature 1, and draws come back with the model's names.
"""

import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist

import mintmc

TRUTH = {"slope": np.array([1.0, -0.5, 0.25]), "scale": 0.5, "freedom": 4.0}


def model(x, y):
    """Linear regression with Student's t errors."""
    with numpyro.plate("feature", x.shape[1]):
        slope = numpyro.sample("slope", dist.Normal(0.0, 2.0))
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    freedom = numpyro.sample("freedom", dist.Gamma(2.0, 0.1))
    numpyro.deterministic("length", jnp.sqrt(jnp.sum(slope**2)))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.StudentT(freedom, x @ slope, scale), obs=y)


def simulated(n, seed=0):
    """Rows from the model at known parameters."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(n, 3)).astype(np.float32)
    noise = TRUTH["scale"] * generator.standard_t(TRUTH["freedom"], size=n)
    return x, (x @ TRUTH["slope"] + noise).astype(np.float32)


def main(n=20_000, draws=1000):
    """Draws of the posterior, as an ArviZ tree."""
    posterior = mintmc.from_numpyro(model, *simulated(n))
    sampler = mintmc.MINT(200, temperature=1.0, control=mintmc.Taylor())
    return mintmc.sample(posterior, sampler, init=posterior.init, draws=draws, progress=False)


if __name__ == "__main__":
    print(main().posterior.mean(("chain", "draw")))
