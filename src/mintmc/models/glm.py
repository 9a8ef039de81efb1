"""Regressions on a table, from a formula: generalised linear models as posteriors."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import jax
import numpy as np
from jax import Array

from mintmc import check
from mintmc.control.bounds import RegressionBounds
from mintmc.models.design import Design
from mintmc.models.families import Family
from mintmc.models.priors import Prior
from mintmc.posterior import Posterior


class Glm(Posterior):
    """A regression as a ``Posterior``; made by ``mintmc.glm``.

    Attributes
    ----------
    design
        The rows: ``design.terms`` (names of coefficients), ``design.x`` and ``design.y``, and ``design.levels``, the
        two categories of a response of words; the second is what the model is the probability of.
    family
        ``family.name``, ``family.link``, and what is fixed, ``family.nu`` and ``family.sigma``.
    prior
        Its ``scales`` are those of the coefficients.

    Examples
    --------
    >>> import numpy as np, mintmc
    >>> table = {"y": [1.0, 3.0, 2.0, 5.0], "x": [0.0, 1.0, 2.0, 3.0]}
    >>> model = mintmc.glm("y ~ x", table)
    >>> model
    glm('y ~ x', family='gaussian', link='identity', n=4, terms=['Intercept', 'x'])
    >>> print(model.init["beta"], model.init["sigma"].round(2))
    [2.75 0.  ] 1.71
    """

    def __init__(self, design: Design, family: Family, prior: Prior):
        self.design, self.family, self.prior = design, family, prior
        is_flat = prior.scales is None and prior.sigma_mean is None
        super().__init__(
            family.log_likelihood(),
            family.rows(design),
            None if is_flat else prior.log_density,
            transforms={"sigma": "positive"} if family.has_sigma else None,
            dims={"beta": ["term"]},
            coords={"term": list(design.terms)},
        )

    @property
    def init(self) -> dict[str, np.ndarray]:
        """Where to start: the same mean for all rows, that of the response, and sigma its standard deviation."""
        beta = np.zeros(len(self.design.terms), jax.dtypes.canonicalize_dtype(np.float64))
        if self.design.intercept is not None:
            beta[self.design.intercept] = self.family.linked(self.design.y)
        if not self.family.has_sigma:
            return {"beta": beta}
        return {"beta": beta, "sigma": np.asarray(self.family.spread(self.design.y), beta.dtype)}

    @cached_property
    def bounds(self) -> RegressionBounds:
        """What ``ScalableMH`` and ``TunaMH`` need: where only ``beta`` is a parameter, and the mean no exponential."""
        return self.family.bounds(self.design)

    def sample_prior(self, key: Array) -> dict[str, Array]:
        """One draw of params from the prior; ``init=model.sample_prior`` starts chains there."""
        return self.prior.sample(key)

    def __repr__(self) -> str:
        settings = f"family={self.family.name!r}, link={self.family.link!r}"
        return f"glm({self.design.formula!r}, {settings}, n={self.n}, terms={check.shown(list(self.design.terms))})"


def glm(
    formula: str,
    table: Any,
    family: str = "gaussian",
    *,
    link: str | None = None,
    prior_scale: float | None = 2.5,
    nu: float | None = None,
    sigma: float | None = None,
) -> Glm:
    """A regression on a table: a ``Posterior`` of coefficients ``beta``, named by the terms of a formula.

    Parameters
    ----------
    formula
        ``"y ~ x1 + x2 + C(group)"``, in the notation of formulaic: an intercept unless there is a 0, words and
        ``C(...)`` as indicators of all categories but the first, ``a:b`` and ``a*b`` for interactions, functions
        (``log``, ``center``, ``scale``, ``poly``, ``bs``, ``np``), and ``.`` for all columns. It is code: do not
        compute one that you do not trust.
    table
        A table of pandas, Polars or pyarrow, a dict of arrays, or the path of a Parquet, Arrow or CSV file. Only the
        columns of the formula are read, into memory; missing values are refused.
    family
        "gaussian", "student", "binomial" (0 and 1, truth values or two categories, of which the second is 1) or
        "poisson" (counts).
    link
        "logit" or "probit" of a binomial mean, "log" or "softplus" (a mean of log(1 + exp(x'beta))) of a Poisson's;
        None is the first. Others are "identity".
    prior_scale
        k of a weak prior in the units of the data, as rstanarm's: with s = sd(y) for gaussian and student, 1 for
        others, ``beta ~ normal(0, k s / sd(x))`` for each term, and the intercept where all predictors are at their
        means ~ normal(m, k s), m = mean(y) for gaussian and student, 0 for others. None leaves coefficients with a
        flat prior, which may make the posterior improper. ``sigma ~ exponential`` of mean s.
    nu
        Degrees of freedom of "student"; 4 by default.
    sigma
        Fixes the scale of "gaussian" or "student"; None makes it a parameter.

    Returns
    -------
    A ``Posterior`` that also has ``init`` (params to start from), ``bounds`` (what exact samplers need), ``design``
    and ``sample_prior(key)``.

    Examples
    --------
    >>> import numpy as np, mintmc
    >>> rng = np.random.default_rng(0)
    >>> table = {"age": rng.normal(40, 10, 2000), "country": rng.choice(["chad", "peru"], 2000)}
    >>> table["clicked"] = rng.random(2000) < 1 / (1 + np.exp(4 - 0.1 * table["age"]))
    >>> model = mintmc.glm("clicked ~ age + C(country)", table, family="binomial")
    >>> model.design.terms
    ('Intercept', 'age', 'C(country)[T.peru]')
    >>> tree = mintmc.sample(model, mintmc.ScalableMH(model.bounds), init=model.init, draws=500, progress=False)
    >>> age = tree.posterior["beta"].sel(term="age")
    >>> bool(abs(age.mean() - 0.1) < 4 * age.std())
    True
    """
    chosen = Family.of(family, link, nu, sigma)
    scale = None if prior_scale is None else check.number("prior_scale", prior_scale, 0)
    design = Design.of(formula, table)
    chosen.check_response(design)
    return Glm(design, chosen, Prior.of(design, chosen, scale))
