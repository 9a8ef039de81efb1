"""A mixture of three normals: six posteriors in one, because nobody says which component is the first.

    python examples/mixture_label_switching.py

Renaming the components changes no likelihood, so that every mode has 3! = 6 copies of the same weight. A sampler that
stays in one of them looks as if it had converged. ``Leaps`` finds all six and leaps between them, at temperature 1.
"""

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

import mintmc
from drawing import BLUE, GREY

TRUTH = np.array([-3.0, 0.0, 4.0])


def measured(n, seed=0):
    """A number from each of n things, of three kinds."""
    rng = np.random.default_rng(seed)
    return TRUTH[rng.integers(0, 3, n)] + rng.normal(size=n)


def log_likelihood(p, x):
    """Of one number, whichever kind it is of."""
    return jax.nn.logsumexp(jax.scipy.stats.norm.logpdf(x, p["mean"], p["sd"])) - jnp.log(3.0)


def log_prior(p):
    """Means about 0, give or take 10; a spread of about 1."""
    return -0.5 * jnp.sum(p["mean"] ** 2) / 100 - p["sd"]


def main(n=2000, draws=1000):
    """All six copies, and how often each was visited."""
    posterior = mintmc.Posterior(log_likelihood, measured(n), log_prior, transforms={"sd": "positive"})
    init = {"mean": np.array([-1.0, 0.0, 1.0]), "sd": 1.0}
    tree = mintmc.sample(posterior, mintmc.Leaps(), init=init, draws=draws, progress=False)
    print(mintmc.summary(tree).to_string())
    print(mintmc.diagnose(tree))
    share = tree.modes["weight"].values
    print("weights of the modes:", np.round(share, 3))

    figure = Figure(figsize=(7.6, 3.6), layout="constrained")
    plane, bars = figure.subplots(1, 2)
    mean = tree.posterior["mean"].stack(all=("chain", "draw")).values
    plane.plot(mean[0], mean[1], ".", color=BLUE, markersize=3)
    plane.set(xlabel="mean of component 0", ylabel="mean of component 1", aspect="equal")
    bars.bar(range(len(share)), share, color=BLUE)
    bars.axhline(1 / 6, color=GREY, linestyle="--", label="1/6")
    bars.set(xlabel="mode", ylabel="share of the draws", ylim=(0, 0.22))
    bars.legend(frameon=False, loc="upper right")
    return tree, figure


if __name__ == "__main__":
    main()[1].savefig("mixture_label_switching.png")
