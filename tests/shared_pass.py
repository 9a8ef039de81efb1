"""A full pass shared by as many devices as there are, against that of one: fails if a bit differs."""

from dataclasses import replace

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from mintmc.run.crew import Together
from mintmc.run.processes import check_sharers
from resumed_run import posterior

if __name__ == "__main__":
    model = posterior(200_000)
    theta, unravel = ravel_pytree({"a": 0.003, "b": np.array([0.001, 0.002], np.float32)})
    alone = model.model(unravel, theta.size)
    together = replace(alone, sharers=check_sharers())
    assert together.sharers > 1
    one = jax.jit(alone.density_and_gradient)
    all_of_them = jax.jit(Together().program(together.density_and_gradient))
    for key in jax.random.split(jax.random.key(0), 20):
        at = theta + 0.003 * jax.random.normal(key, theta.shape)
        for a, b in zip(
            jax.tree.leaves(one(at, model.rows)),
            jax.tree.leaves(all_of_them(*Together().given((at, model.rows)))),
            strict=True,
        ):
            np.testing.assert_array_equal(a, b)
