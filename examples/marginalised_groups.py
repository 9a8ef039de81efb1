"""A hierarchical model whose local variables are integrated out: one row is one group.

    python examples/marginalised_groups.py

Pupils y_ij in schools j: y_ij ~ normal(mu + u_j, sigma), u_j ~ normal(0, tau). With 20,000 schools there are 20,000
u_j, of which a batch of schools knows only its own. Given mu, sigma and tau the u_j are normal, so they can be
integrated out by hand: with k pupils of mean m and sum of squares s about it, a school has the log-likelihood

    log normal(m; mu, sqrt(tau^2 + sigma^2 / k)) - (k - 1) log sigma - s / (2 sigma^2) + constant

and three parameters are left. What a school's u_j is follows afterwards, from every draw.
"""

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

import mintmc
from drawing import BLUE, ORANGE

TRUTH = {"mu": 50.0, "sigma": 10.0, "tau": 4.0}


def schools(n, seed=0):
    """Of every school the number of its pupils, their mean, their sum of squares; and what u_j was."""
    rng = np.random.default_rng(seed)
    pupils, offset = rng.integers(3, 40, n), rng.normal(0, TRUTH["tau"], n)
    mean = rng.normal(TRUTH["mu"] + offset, TRUTH["sigma"] / np.sqrt(pupils))
    return {"pupils": pupils * 1.0, "mean": mean, "squares": TRUTH["sigma"] ** 2 * rng.chisquare(pupils - 1)}, offset


def log_likelihood(p, school):
    """Of one school, its own level integrated out."""
    spread = jnp.sqrt(p["tau"] ** 2 + p["sigma"] ** 2 / school["pupils"])
    within = (school["pupils"] - 1) * jnp.log(p["sigma"]) + school["squares"] / (2 * p["sigma"] ** 2)
    return jax.scipy.stats.norm.logpdf(school["mean"], p["mu"], spread) - within


def log_prior(p):
    """Weak: mu is somewhere about 50, spreads are some ten."""
    return -0.5 * ((p["mu"] - 50) / 50) ** 2 - (p["sigma"] + p["tau"]) / 10


def offset_of(p, school, key):
    """A draw of u_j given the parameters: normal, shrunk towards 0 by what the school tells."""
    precision = school["pupils"] / p["sigma"] ** 2 + 1 / p["tau"] ** 2
    centre = (school["mean"] - p["mu"]) * school["pupils"] / p["sigma"] ** 2 / precision
    return centre + jax.random.normal(key) / jnp.sqrt(precision)


def main(n=20_000, draws=1000):
    """The three parameters from batches of schools, and the levels of forty schools."""
    data, offset = schools(n)
    posterior = mintmc.Posterior(log_likelihood, data, log_prior, transforms={"sigma": "positive", "tau": "positive"})
    sampler = mintmc.MINT(temperature=1.0, control=mintmc.Taylor())
    init = {"mu": 40.0, "sigma": 5.0, "tau": 5.0}
    tree = mintmc.sample(posterior, sampler, init=init, draws=draws, progress=False)
    print(mintmc.summary(tree).assign(truth=TRUTH.values()).to_string())
    print(mintmc.diagnose(tree))

    some = {name: values[:40] for name, values in data.items()}
    levels = mintmc.predict(tree, offset_of, some, seed=0)["prediction"]
    low, high = levels.quantile([0.05, 0.95], ("chain", "draw")).values
    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.vlines(range(40), low, high, color=BLUE, linewidth=3, label="90% of the draws")
    axes.plot(some["mean"] - TRUTH["mu"], ".", color="black", label="mean of the pupils")
    axes.plot(offset[:40], "x", color=ORANGE, label="truth")
    axes.set(xlabel="school", ylabel="level of a school, above all schools")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return tree, figure


if __name__ == "__main__":
    main()[1].savefig("marginalised_groups.png")
