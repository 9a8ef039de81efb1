"""A line through data of which some are wrong: Student's t beside the normal.

    python examples/robust_regression.py

One row in twenty comes from a sensor that failed. The normal model bends the line towards them, and is sure of it;
Student's t with 4 degrees of freedom expects such rows. Leave-one-out says which of the two predicts better.
"""

import numpy as np
import pandas
from matplotlib.figure import Figure

import mintmc
from drawing import BLUE, GREY, ORANGE, band

TRUTH = {"Intercept": 1.0, "x": 2.0}


def readings(n, seed=0):
    """A line, noise, and failures where x is large."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    failed = (x > 1) & (rng.random(n) < 0.3)
    y = TRUTH["Intercept"] + TRUTH["x"] * x + 0.5 * rng.normal(size=n)
    return pandas.DataFrame({"x": x, "y": np.where(failed, -8 + rng.normal(size=n), y)})


def main(n=5000, draws=1000):
    """Both models, compared, and their lines."""
    table, trees = readings(n), {}
    for family in ("gaussian", "student"):
        model = mintmc.glm("y ~ x", table, family=family)
        sampler = mintmc.MINT(temperature=1.0, control=mintmc.Taylor())
        trees[family] = mintmc.sample(model, sampler, init=model.init, draws=draws, progress=False)
        mintmc.add_log_likelihood(trees[family], model, draws=200)
    tree = trees["student"]
    print(mintmc.summary(tree).to_string())
    print(mintmc.diagnose(tree))
    print(mintmc.compare(trees).to_string())

    x = np.linspace(-3, 3, 50)
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.subplots()
    axes.plot(*table[["x", "y"]].to_numpy()[:2000].T, ".", color=GREY, markersize=2)
    for family, color in (("gaussian", ORANGE), ("student", BLUE)):
        lines = mintmc.map_draws(trees[family], lambda p: p["beta"][0] + p["beta"][1] * x)
        band(axes, x, lines, color, family)
    axes.plot(x, TRUTH["Intercept"] + TRUTH["x"] * x, "k--", linewidth=1, label="truth")
    axes.set(xlabel="x", ylabel="y")
    axes.legend(frameon=False)
    return tree, figure


if __name__ == "__main__":
    main()[1].savefig("robust_regression.png")
