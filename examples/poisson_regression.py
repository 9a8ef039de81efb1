"""Counts: how many bicycles pass in an hour, by weather and day. Poisson regression, and a sampler that is chosen.

    python examples/poisson_regression.py

The model is one line. ``sample`` without a sampler looks at the posterior first, and says what it takes and why.
"""

import jax.numpy as jnp
import numpy as np
import pandas
from matplotlib.figure import Figure

import mintmc
from drawing import BLUE, GREY, band

TRUTH = {"Intercept": 3.0, "temperature": 0.04, "rain": -0.5, "weekend": -0.3}


def hours(n, seed=0):
    """A table of hours, and how many bicycles passed in each."""
    rng = np.random.default_rng(seed)
    temperature, rain, weekend = rng.uniform(0, 30, n), rng.random(n) < 0.3, rng.random(n) < 2 / 7
    table = pandas.DataFrame({"temperature": temperature, "rain": rain * 1.0, "weekend": weekend * 1.0})
    log_mean = TRUTH["Intercept"] + sum(TRUTH[name] * table[name] for name in table)
    return table.assign(bikes=rng.poisson(np.exp(log_mean)))


def main(n=50_000, draws=1000):
    """What the count depends on, and the expected count on a dry weekday by temperature."""
    table = hours(n)
    model = mintmc.glm("bikes ~ temperature + rain + weekend", table, family="poisson")
    tree = mintmc.sample(model, draws=draws, progress=False)
    print(tree.attrs["chosen"])
    print(mintmc.summary(tree).assign(truth=TRUTH.values()).to_string())
    print(mintmc.diagnose(tree))

    degrees = np.linspace(0, 30, 61)
    curves = mintmc.map_draws(tree, lambda p: jnp.exp(p["beta"][0] + p["beta"][1] * degrees))
    usual = table[(table["rain"] == 0) & (table["weekend"] == 0)]
    counted = usual.groupby(usual["temperature"].round())["bikes"].mean()
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(counted.index, counted, "o", color=GREY, markersize=4, label="counted, mean by degree")
    band(axes, degrees, curves, BLUE, "expected, with 90% interval")
    axes.set(xlabel="temperature, degrees", ylabel="bicycles in a dry hour of a weekday")
    axes.legend(frameon=False)
    return tree, figure


if __name__ == "__main__":
    main()[1].savefig("poisson_regression.png")
