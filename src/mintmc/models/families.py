"""Families of regressions: how the response of a row is distributed, given eta = x'beta.

    binomial   y = 0 or 1        P(y = 1) = sigmoid(eta) ("logit") or the normal distribution function ("probit")
    poisson    y = 0, 1, 2, ...  mean exp(eta) ("log") or log(1 + exp(eta)) ("softplus")
    gaussian   any y             normal(eta, sigma)
    student    any y             eta + sigma * Student's t with nu degrees of freedom

Log-likelihoods are normalised. Each is f_i(x_i'beta) given sigma; where the derivatives of f_i have bounds, exact
samplers that read a few rows have what they need (``bounds``): not for exponential means, which grow without bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jax import Array

from mintmc import check
from mintmc.control.bounds import RegressionBounds
from mintmc.models.design import Design

LINKS = {
    "binomial": ("logit", "probit"),
    "poisson": ("log", "softplus"),
    "gaussian": ("identity",),
    "student": ("identity",),
}
"""By family; the first is the default."""
_FLAT = -15.0
"""Below it log(log(1 + exp(eta))) is eta, up to float32."""


@dataclass(frozen=True)
class Family:
    """A family with its link; ``sigma`` is None where it is a parameter, or where there is none."""

    name: str
    link: str
    nu: float = 0.0
    sigma: float | None = None

    @classmethod
    def of(cls, name: Any, link: Any, nu: Any, sigma: Any) -> Family:
        """From what a user wrote."""
        check.choice("family", name, tuple(LINKS))
        link = LINKS[name][0] if link is None else check.choice(f"link of family {name!r}", link, LINKS[name])
        if nu is not None and name != "student":
            raise ValueError(f"nu must be None for family {name!r}: it is of 'student', got {check.shown(nu)}")
        if sigma is not None and name not in ("gaussian", "student"):
            raise ValueError(f"sigma must be None for family {name!r}, got {check.shown(sigma)}")
        nu = check.number("nu", 4.0 if nu is None else nu, 0) if name == "student" else 0.0
        return cls(name, link, nu, None if sigma is None else check.number("sigma", sigma, 0))

    @property
    def has_sigma(self) -> bool:
        """Whether sigma is a parameter."""
        return self.link == "identity" and self.sigma is None

    def spread(self, y: np.ndarray) -> float:
        """What coefficients are measured in: of the response, 1 on scales of logarithms."""
        return float(np.std(y, ddof=1)) if self.link == "identity" else 1.0

    def linked(self, y: np.ndarray) -> float:
        """Where eta would be if it were the same for all rows."""
        n = len(y)
        if self.name == "binomial":
            share = (y.sum() + 0.5) / (n + 1)
            return float(scipy.special.logit(share) if self.link == "logit" else scipy.special.ndtri(share))
        mean = float(y.mean())
        if self.name == "poisson":
            mean = max(mean, 0.5 / n)
            return math.log(mean) if self.link == "log" else mean + math.log(-math.expm1(-mean))
        return mean

    def rows(self, design: Design) -> dict[str, np.ndarray]:
        """What the log-likelihood is computed from; a binomial y is -1 or +1."""
        if self.name == "binomial":
            return {"x": design.x, "y": 2 * design.y - 1}
        if self.name != "poisson":
            return {"x": design.x, "y": design.y}
        near = np.maximum(design.y, 1.0)
        constant = design.y * np.log(near) - near - scipy.special.gammaln(design.y + 1)
        return {"x": design.x, "y": design.y, "log_near": np.log(near), "constant": constant}

    def log_likelihood(self) -> Callable[[Any, Any], Array]:
        """``(params, row) -> scalar``."""
        of_row = {"binomial": self._binomial, "poisson": self._poisson}.get(self.name, self._located)

        def log_likelihood(params: Any, row: Any) -> Array:
            # Accelerators round the factors of a product to 10 bits unless told not to.
            eta = jnp.dot(row["x"], params["beta"], precision="highest")
            return of_row(eta, row, params.get("sigma", self.sigma))

        return log_likelihood

    def _binomial(self, eta: Array, row: Any, sigma: Any) -> Array:
        signed = row["y"] * eta
        return jax.nn.log_sigmoid(signed) if self.link == "logit" else jax.scipy.stats.norm.logcdf(signed)

    def _poisson(self, eta: Array, row: Any, sigma: Any) -> Array:
        """Around y itself, or 1 where it is 0: y log(mean) and the mean are large there, and nearly cancel."""
        near, log_near = jnp.maximum(row["y"], 1.0), row["log_near"]
        if self.link == "log":
            above = eta - log_near
            return jnp.asarray(row["y"] * above - near * jnp.expm1(above) + row["constant"])
        mean = jax.nn.softplus(eta)
        log_mean = jnp.where(eta < _FLAT, eta, jnp.log(jax.nn.softplus(jnp.maximum(eta, _FLAT))))
        return jnp.asarray(row["y"] * (log_mean - log_near) - (mean - near) + row["constant"])

    def _located(self, eta: Array, row: Any, sigma: Any) -> Array:
        z, nu = (row["y"] - eta) / sigma, self.nu
        if self.name == "gaussian":
            return jnp.asarray(-0.5 * z**2 - jnp.log(sigma) - 0.5 * math.log(2 * math.pi))
        constant = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - 0.5 * math.log(nu * math.pi)
        return constant - jnp.log(sigma) - (nu + 1) / 2 * jnp.log1p(z**2 / nu)

    def bounds(self, design: Design) -> RegressionBounds:
        """What exact samplers need to know of the derivatives; refuses models without such bounds."""
        if self.link == "log":
            raise ValueError("bounds must be of a model that has some, got link 'log': link='softplus' has")
        if self.has_sigma:
            got = f"family {self.name!r} with sigma as a parameter"
            raise ValueError(f"bounds must be of a model whose sigma is fixed (sigma=...), got {got}")
        if self.name == "binomial":
            make = RegressionBounds.logistic if self.link == "logit" else RegressionBounds.probit
            return make(design.x)
        if self.name == "poisson":
            return RegressionBounds.poisson(design.x, design.y)
        assert self.sigma is not None
        if self.name == "student":
            return RegressionBounds.student_t(design.x, self.nu, self.sigma)
        return RegressionBounds(design.x, second=self.sigma**-2)

    def check_response(self, design: Design) -> None:
        """Refuse values that such a response cannot have."""
        y, where = design.y, f"response {design.response!r}"
        if self.name == "binomial":
            wanted = f"{where} must be 0 or 1, truth values, or two categories for family 'binomial'"
            if design.levels is not None and len(design.levels) != 2:
                raise ValueError(f"{wanted}, got {len(design.levels)}: {check.shown(list(design.levels))}")
            _check_values(wanted, y, (y == 0) | (y == 1))
            return
        if design.levels is not None:
            raise ValueError(f"{where} must be numbers for family {self.name!r}, got {check.shown(design.levels)}")
        if self.name == "poisson":
            wanted = f"{where} must be counts, whole numbers of at least 0, for family 'poisson'"
            _check_values(wanted, y, (y >= 0) & (y == np.floor(y)))
        elif y.min() == y.max():
            raise ValueError(f"{where} must vary for family {self.name!r}, got {y[0]:g} in all rows")


def _check_values(wanted: str, y: np.ndarray, good: np.ndarray) -> None:
    if not good.all():
        row = int(np.argmin(good))
        raise ValueError(f"{wanted}, got {y[row]:g} in row {row}")
