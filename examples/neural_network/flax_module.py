"""A Bayesian neural network in Flax (Linen): its params are what is sampled.

python examples/neural_network/flax_module.py
"""

import jax.numpy as jnp
from flax import linen

from curve import UNITS, fit


class Network(linen.Module):
    """One layer of hidden units, of all rows of a batch."""

    @linen.compact
    def __call__(self, x):
        """A value for every row."""
        hidden = jnp.tanh(linen.Dense(UNITS)(x[:, None]))
        return linen.Dense(1)(hidden)[:, 0]


def init(key):
    """Flax's own, another for each chain."""
    return Network().init(key, jnp.zeros(1))


def main(**settings):
    """Draws, and a picture of the curve."""
    return fit(Network().apply, init, **settings)


if __name__ == "__main__":
    main()[1].savefig("flax_module.png")
