"""Settings of SGHMC that cannot be right are refused before anything compiles."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np

import mintmc
from mintmc.kernels.schedule import Polynomial
from mintmc.samplers.stochastic_gradient import SGHMC
from mistakes import each_refused
from stochastic import X, run

GOOD = SGHMC(10, step_size=1e-3, friction=1.0)

MISTAKES = {
    # name: (what to call, error, what the message says)
    "batch of none": (lambda: replace(GOOD, batch_size=0), ValueError, "batch_size must be at least 1, got 0"),
    "batch above n": (
        lambda: run(SGHMC(501, step_size=1e-3, friction=1.0)),
        ValueError,
        r"batch_size must be in \[1, n=500\], got 501",
    ),
    "step 0": (lambda: replace(GOOD, step_size=0.0), ValueError, r"step_size must be in \(0, inf\), got 0"),
    "no friction": (lambda: replace(GOOD, friction=0.0), ValueError, r"friction must be in \(0, inf\), got 0"),
    "friction below the noise": (
        lambda: replace(GOOD, noise_estimate=4000.0),
        ValueError,
        r"friction must be at least step_size \* noise_estimate / 2 = 2 .*got 1",
    ),
    "friction below the noise of one parameter": (
        lambda: replace(GOOD, noise_estimate=[0.0, 4000.0]),
        ValueError,
        r"friction must be at least step_size \* noise_estimate / 2 = 2 .*got 1",
    ),
    "friction below the noise at the first step": (
        lambda: replace(GOOD, step_size=Polynomial.between(1e-2, 1e-4, 100), noise_estimate=400.0),
        ValueError,
        r"friction must be at least step_size \* noise_estimate / 2 = 2 .*got 1",
    ),
    "friction above 1/step": (
        lambda: replace(GOOD, friction=2000.0),
        ValueError,
        "friction must be at most 1/step_size = 1000, got 2000",
    ),
    "negative noise": (
        lambda: replace(GOOD, noise_estimate=-1.0),
        ValueError,
        r"noise_estimate must be a number or a vector of numbers in \[0, inf\), got -1.0",
    ),
    "nan noise": (lambda: replace(GOOD, noise_estimate=[1.0, np.nan]), ValueError, "noise_estimate must be.*nan"),
    "noise a word": (lambda: replace(GOOD, noise_estimate="low"), TypeError, "noise_estimate must be.*got 'low'"),
    "noise a matrix": (lambda: replace(GOOD, noise_estimate=np.eye(2)), ValueError, "noise_estimate must be a number"),
    "noise of another size": (
        lambda: run(replace(GOOD, noise_estimate=np.ones(3))),
        ValueError,
        r"noise_estimate must be a number or have shape \(1,\), got shape \(3,\)",
    ),
    "never resampled": (
        lambda: replace(GOOD, resample_every=0),
        ValueError,
        "resample_every must be at least 1, got 0",
    ),
    "temperature 0": (lambda: replace(GOOD, temperature=0.0), ValueError, r"temperature must be in \(0, inf\), got 0"),
    "unknown temper": (lambda: replace(GOOD, temper="x"), ValueError, "temper must be one of 'posterior'.*got 'x'"),
    "unknown batching": (lambda: replace(GOOD, batching="x"), ValueError, "batching must be one of.*got 'x'"),
    "density without data": (
        lambda: run(GOOD, mintmc.Posterior.from_density(lambda t: -(t**2))),
        ValueError,
        "posterior must have data to take mini-batches of",
    ),
    "not differentiable": (
        lambda: run(GOOD, mintmc.Posterior(lambda t, x: -jnp.asarray(np.asarray(t > x), float), X)),
        ValueError,
        "SGHMC needs a log density that JAX can differentiate",
    ),
}


test_mistake_is_refused = each_refused(MISTAKES)
