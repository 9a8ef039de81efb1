"""A regression on a table in a file: what a user writes is ``fit``.

A website notes who clicked: a row for every visit, with the visitor's age and country. The chance of a click given both
is a logistic regression, and its posterior is sampled exactly (MH-SS) from a handful of rows a step.

    python examples/regression_on_a_table.py
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas

import mintmc
from drawing import histograms

TRUTH = {"Intercept": -3.0, "age": 0.05, "C(country)[T.mali]": 0.0, "C(country)[T.peru]": 0.8}
"""The coefficients that the visits below are made with."""


def visits(n, seed=0):
    """A table of visits."""
    rng = np.random.default_rng(seed)
    table = pandas.DataFrame({"age": rng.uniform(18, 80, n), "country": rng.choice(["chad", "mali", "peru"], n)})
    intercept, slope, mali, peru = TRUTH.values()
    by_country = {"chad": intercept, "mali": intercept + mali, "peru": intercept + peru}
    log_odds = table["country"].map(by_country) + slope * table["age"]
    return table.assign(clicked=rng.random(n) < 1 / (1 + np.exp(-log_odds)))


def fit(path, **settings):
    """All that there is to write.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "visits.parquet")
    ...     visits(5000).to_parquet(path)
    ...     tree = fit(path, draws=500, chains=2, progress=False)
    >>> tree.posterior["beta"].coords["term"].values.tolist() == list(TRUTH)
    True
    """
    model = mintmc.glm("clicked ~ age + C(country)", path, family="binomial")
    return mintmc.sample(model, mintmc.ScalableMH(model.bounds), init=model.init, **settings)


def main(n=100_000, draws=1000):
    """The table, its posterior, and a picture of the coefficients."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "visits.parquet")
        visits(n).to_parquet(path)
        tree = fit(path, draws=draws, progress=False)
    print(mintmc.summary(tree).assign(truth=TRUTH.values()).to_string())
    print(f"rows read a step, of {n:,}: {float(tree.sample_stats.rows_read.mean()):.2f}")
    print(mintmc.diagnose(tree))
    return tree, histograms(tree.posterior["beta"], TRUTH.values())


if __name__ == "__main__":
    main()[1].savefig("regression_on_a_table.png")
