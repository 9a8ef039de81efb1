"""A Bayesian neural network as an Equinox module: the module itself is what is sampled.

python examples/neural_network/equinox_module.py
"""

import equinox
import jax
import jax.numpy as jnp

from curve import UNITS, fit


class Network(equinox.Module):
    """One layer of hidden units, of one x."""

    hidden: equinox.nn.Linear
    outer: equinox.nn.Linear

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.hidden = equinox.nn.Linear(1, UNITS, key=first)
        self.outer = equinox.nn.Linear(UNITS, 1, key=second)

    def __call__(self, x):
        """The value there."""
        return self.outer(jnp.tanh(self.hidden(x[None])))[0]


def network(module, x):
    """Of all rows of a batch."""
    return jax.vmap(module)(x)


def main(**settings):
    """Draws, and a picture of the curve; a key makes a module, another for each chain."""
    return fit(network, Network, **settings)


if __name__ == "__main__":
    main()[1].savefig("equinox_module.png")
