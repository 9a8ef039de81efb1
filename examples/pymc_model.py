"""A PyMC model sampled from mini-batches: counts that vary more than Poisson's, 20,000 rows.

    python examples/pymc_model.py

The model is plain PyMC, with its dims and coords. ``mintmc.from_pymc`` reads its priors, its transforms and its
likelihood row by row; draws come back with the model's names.
"""

import numpy as np
import pymc as pm

import mintmc
from drawing import histograms

SLOPE = {"price": -0.8, "advertised": 0.5, "holiday": 0.3}


def sales(n, seed=0):
    """Predictors, and how many were sold."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(size=n), rng.random(n) < 0.4, rng.random(n) < 0.1]).astype(np.float32)
    mean = np.exp(1.5 + x @ np.array(list(SLOPE.values())))
    return x, rng.negative_binomial(3.0, 3.0 / (3.0 + mean))


def model_of(x, sold):
    """Negative binomial regression."""
    with pm.Model(coords={"predictor": list(SLOPE)}) as model:
        intercept = pm.Normal("intercept", 0.0, 2.0)
        slope = pm.Normal("slope", 0.0, 1.0, dims="predictor")
        shape = pm.Gamma("shape", 2.0, 0.5)
        mean = pm.math.exp(intercept + pm.math.dot(pm.Data("x", x), slope))
        pm.NegativeBinomial("sold", mu=mean, alpha=shape, observed=sold)
    return model


def main(n=20_000, draws=1000):
    """Draws of the posterior, as an ArviZ tree, and a picture of the slopes."""
    posterior = mintmc.from_pymc(model_of(*sales(n)))
    sampler = mintmc.MINT(temperature=1.0, control=mintmc.Taylor())
    tree = mintmc.sample(posterior, sampler, init=posterior.init, draws=draws, progress=False)
    print(mintmc.summary(tree).to_string())
    print(mintmc.diagnose(tree))
    return tree, histograms(tree.posterior["slope"], SLOPE.values())


if __name__ == "__main__":
    main()[1].savefig("pymc_model.png")
