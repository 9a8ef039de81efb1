"""Data and NumPyro models that tests of bridges share."""

import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist

GENERATOR = np.random.default_rng(0)
N = 60
X = GENERATOR.normal(size=(N, 3))
LINEAR = X @ [0.5, -1.0, 0.2]
Y = {
    "logistic": GENERATOR.binomial(1, 1 / (1 + np.exp(-LINEAR))),
    "poisson": GENERATOR.poisson(np.exp(LINEAR)),
    "student": LINEAR + 0.5 * GENERATOR.standard_t(4, size=N),
    "mixture": GENERATOR.normal(size=N) + GENERATOR.choice([-4, 0, 4], size=N),
}


def logistic(x, y):
    b = numpyro.sample("b", dist.Normal(0, 2).expand([3]).to_event(1))
    numpyro.deterministic("odds", jnp.exp(b))
    with numpyro.plate("data", x.shape[0]):
        linear = numpyro.deterministic("linear", x @ b)
        numpyro.sample("y", dist.Bernoulli(logits=linear), obs=y)


def poisson(x, y=None):
    """Without a plate."""
    b = numpyro.sample("b", dist.Normal(0, 2).expand([3]).to_event(1))
    numpyro.sample("y", dist.Poisson(jnp.exp(x @ b)), obs=y)


def student(data):
    """With a plate whose size is a number, and data in a dict."""
    with numpyro.plate("feature", 3):
        b = numpyro.sample("b", dist.Normal(0, 2))
    sd = numpyro.sample("sd", dist.HalfNormal(1.0))
    df = numpyro.sample("df", dist.Gamma(2.0, 0.1))
    with numpyro.plate("data", N):
        numpyro.sample("y", dist.StudentT(df, data["x"] @ b, sd), obs=data["y"])


def mixture(y, ordered=True):
    weights = numpyro.sample("weights", dist.Dirichlet(jnp.full(3, 2.0)))
    flat = dist.Normal(0, 5).expand([3]).to_event(1)
    bounded = dist.TransformedDistribution(flat, dist.transforms.OrderedTransform())
    means = numpyro.sample("means", bounded if ordered else flat)
    sd = numpyro.sample("sd", dist.LogNormal(0, 1))
    parts = dist.MixtureSameFamily(dist.Categorical(weights), dist.Normal(means, sd))
    with numpyro.plate("data", len(y)):
        numpyro.sample("y", parts, obs=y)


MODELS = {
    "logistic": (logistic, (X, Y["logistic"]), {}),
    "poisson": (poisson, (X,), {"y": Y["poisson"]}),
    "student": (student, ({"x": X, "y": Y["student"]},), {}),
    "mixture": (mixture, (Y["mixture"],), {}),
    "plain mixture": (mixture, (Y["mixture"],), {"ordered": False}),
}
