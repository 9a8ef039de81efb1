"""MNIST, 1 versus 7 (LeCun, Cortes & Burges; CC BY-SA 3.0), shipped with the package."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mintmc.posterior import Posterior


class Digits(NamedTuple):
    """Pixels in [0, 1], one image a row, and labels: +1 for a 1, -1 for a 7."""

    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray


@cache
def load() -> Digits:
    """The 13,007 training and 2,163 test images."""
    with (files("mintmc.experiments.logistic") / "mnist_1v7.npz").open("rb") as file:
        raw = np.load(file)
        images = {part: raw[f"{part}_images"].reshape(-1, 784).astype(np.float32) / 255 for part in ("train", "test")}
        labels = {part: np.where(raw[f"{part}_labels"] == 1, 1, -1).astype(np.float32) for part in ("train", "test")}
    return Digits(images["train"], labels["train"], images["test"], labels["test"])


def log_likelihood(weights: Any, row: Any) -> Any:
    """Log-likelihood of one labelled image, without an intercept."""
    return jax.nn.log_sigmoid(row["y"] * jnp.dot(row["x"], weights))


def standard_normal(weights: Any) -> Any:
    """A N(0, 1) prior on every weight."""
    return -0.5 * jnp.sum(weights**2)


def posterior(flat_prior: bool) -> Posterior:
    """Logistic regression on the training images."""
    digits = load()
    return Posterior(log_likelihood, {"x": digits.x, "y": digits.y}, None if flat_prior else standard_normal)
