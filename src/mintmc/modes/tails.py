"""How fast the density falls away from a mode, beside the normal distribution that the curvature there describes.

Along the direction in which the Laplace approximation N(c, S) spreads a parameter j most, at t standard deviations,

    theta = c +- t S e_j / sqrt(S_jj),        log pi(c) - log pi(theta) over t^2 / 2

is 1 for a normal density and less where tails are heavier. Moves that are drawn from the approximation visit such tails
too seldom and stay there for long: draws look good and are too narrow. Measured at t = 3, 4,000 draws of
``Autoregressive``: Student's t with 3, 5, 7, 10 and 20 degrees of freedom has 0.52, 0.61, 0.67, 0.73 and 0.83, and
runs that nothing else spoke against spread by 0.63, 0.86, 0.92, 0.98 and 0.99 of what they should.
"""

from __future__ import annotations

import jax
import numpy as np

from mintmc.control import Laplace
from mintmc.energy import Tempered
from mintmc.flat import FlatTarget

_DEVIATIONS = 3.0
_FEWEST, _MOST = 2, 16
"""Parameters that are looked at."""
_EVALUATIONS = 2**26
"""Of the log-likelihood of a row, but for the fewest."""


def slowest_fall(flat: FlatTarget, target: Tempered, normal: Laplace, seed: int = 0) -> tuple[float, int]:
    """The smallest fall over that of the normal, of some parameters in both directions; and rows read.

    Examples
    --------
    >>> import jax.numpy as jnp, mintmc
    >>> from mintmc.control import laplace
    >>> from mintmc.modes.search import Search
    >>> flat = mintmc.Posterior.from_density(lambda x: -2 * jnp.log1p(x**2 / 3)).flat(0.0)  # Student's t, 3 degrees
    >>> search = Search(flat, 100)
    >>> normal = laplace(search.target, search.expansion(jnp.zeros(1))[0])
    >>> round(slowest_fall(flat, search.target, normal)[0], 2)
    0.52
    """
    density = flat.compiled(("density",), lambda: jax.jit(flat.model.density))
    rows, most = flat.posterior.rows, int(np.clip(_EVALUATIONS // max(2 * flat.n, 1), _FEWEST, _MOST))
    chosen = np.random.default_rng(seed).permutation(flat.dim)[:most]
    factor = np.asarray(normal.factor, float)
    here, falls = density(normal.centre, rows), []
    for parameter in chosen:
        direction = factor @ factor[parameter] / np.linalg.norm(factor[parameter])
        for sign in (-1, 1):
            there = normal.centre + np.asarray(sign * _DEVIATIONS * direction, normal.centre.dtype)
            falls.append(-float(target.log_ratio(here, density(there, rows))))
    if flat.posterior.data is not None:
        flat.posterior.data.check_reads()
    return min(falls) / (_DEVIATIONS**2 / 2), flat.n * (1 + len(falls))
