"""A Bayesian neural network in plain JAX.

python examples/neural_network/plain_jax.py
"""

import jax
import jax.numpy as jnp

from curve import UNITS, fit


def network(p, x):
    """One layer of hidden units; x has all rows of a batch."""
    hidden = jnp.tanh(x[:, None] * p["inner"] + p["offset"])
    return hidden @ p["outer"] + p["level"]


def init(key):
    """Weights from the prior, others for each chain."""
    inner, offset, outer = jax.random.normal(key, (3, UNITS))
    return {"inner": inner, "offset": offset, "outer": outer, "level": jnp.zeros(())}


def main(**settings):
    """Draws, and a picture of the curve."""
    return fit(network, init, **settings)


if __name__ == "__main__":
    main()[1].savefig("plain_jax.png")
