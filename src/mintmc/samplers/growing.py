"""What samplers with a growing batch share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array

from mintmc import check
from mintmc.acceptance.minibatch import AcceptanceTest
from mintmc.data import BATCHINGS
from mintmc.energy import TEMPERS, Model, Tempered
from mintmc.kernels import metropolis
from mintmc.kernels.base import Kernel
from mintmc.posterior import Params, Posterior, check_counted
from mintmc.samplers.base import check_has_data, check_proposal_fits, check_settings, on_vectors


def check_growing(sampler: Any) -> None:
    """The checks that all samplers with a growing batch share."""
    check_settings(sampler)
    check.integer("batch_size", sampler.batch_size, 2)
    check.number("temperature", sampler.temperature, 0)
    check.choice("temper", sampler.temper, TEMPERS)
    check.choice("batching", sampler.batching, BATCHINGS)


def check_growing_fits(sampler: Any, posterior: Posterior, params: Params) -> None:
    """Refuse settings that do not fit the posterior or its parameters."""
    check_has_data(posterior)
    check_counted(posterior)
    check.integer("batch_size", sampler.batch_size, 2, posterior.n, "n")
    check_proposal_fits(sampler.proposal, posterior, params)


def growing_kernel(
    sampler: Any, test: AcceptanceTest, block: int, model: Model, theta: Array, unravel: Callable, ravel: Callable
) -> Kernel:
    """Metropolis-Hastings with a test that reads blocks of rows until it can decide."""
    target = Tempered(model, sampler.target_temperature(model.n), sampler.temper)
    proposal = on_vectors(sampler.proposal, unravel, ravel)
    return metropolis.kernel(metropolis.Settings(target, proposal, test, block, theta.size, jnp.dtype(theta.dtype)))
