"""How large a move is for what an expansion leaves of a row's log-likelihood: M, the same for all rows.

For a regression model l_i(theta) = f_i(x_i'theta) with |f_i'|, |f_i''|, |f_i'''| <= L0_i, L1_i, L2_i, a centre c,
h = theta - c, h' = theta' - c, D = theta' - theta, S = (h + h')/2 and w_i the expansion of d_i = l_i(theta') -
l_i(theta) (``control/taylor.py``), every row has |d_i - w_i| <= c_i M(theta, theta'), where

    order 0 (w_i = 0)   c_i = L0_i |x_i|        M = |D|
    order 1             c_i = L1_i |x_i|^2      M = |D| |S| (1 + |cos(S, D)|) / 2
    order 2             c_i = L2_i |x_i|^3      M = |D|/2 (|D|^2/12 + |S|^2 K(cos(S, D))),
                                                K(o) = max over unit x of |x'D| (x'S)^2 / (|D| |S|^2)
                                                     = (2 + |o| s)^1.5 / (3^1.5 s),  s = sqrt(2 + o^2/4) - |o|/2

Why: from theta to theta', v = x_i'(theta_t - c) goes from x_i'h to x_i'h' in a straight line, and |d_i - w_i| is at
most L1_i |x_i'D| times the mean of |v|, or L2_i |x_i'D| times the mean of v^2/2. The latter mean is ((x_i'S)^2 +
(x_i'D)^2/12)/2. The former is |x_i'S|, and the largest |x'D x'S| of a unit x is |D| |S| (1 + |cos|)/2; only where v
changes its sign is it more, and only where h and h' point to opposite sides can that make M larger: M is then the top
eigenvalue of (h h^T + h' h'^T)/2, if that is larger. So M of order 1 is the smallest that serves all x; M of order 2 is
within a few per cent of it.

Prado, Nemeth & Sherlock (2024) have |D| max(|h| (1 + |cos(h, D)|)/2, the same of h') at order 1, and at order 2 |D|/2
(|D|^2/6 + |h|^2 K(cos(h, D)) + the same of h'). These are valid, too: for random walks of 10 to 50 parameters they are
1.2 to 1.4 times, and 2.1 to 2.4 times as large.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array


def smallest_size(order: int, dd: Array, ss: Array, ds: Array) -> Array:
    """M from the products D'D, S'S and D'S."""
    if order == 0:
        return jnp.sqrt(dd)
    if order == 1:
        same_sign = (jnp.sqrt(dd * ss) + jnp.abs(ds)) / 2
        opposed = ss - dd / 4  # the product of h and h'
        eigenvalue = (ss + dd / 4 + jnp.sqrt(ds**2 + opposed**2)) / 2
        return jnp.where(opposed < 0, jnp.maximum(same_sign, eigenvalue), same_sign)
    return jnp.sqrt(dd) / 2 * (dd / 12 + _largest_cubic(ss, dd, ds))


def published_size(order: int, dd: Array, ss: Array, ds: Array) -> Array:
    """The same, as published."""
    if order == 0:
        return jnp.sqrt(dd)
    ends = [(ss - ds + dd / 4, ds - dd / 2), (ss + ds + dd / 4, ds + dd / 2)]  # h'h and h'D, then those of h'
    if order == 1:
        here, there = ((jnp.sqrt(dd * hh) + jnp.abs(hd)) / 2 for hh, hd in ends)
        return jnp.maximum(here, there)
    return jnp.sqrt(dd) / 2 * (dd / 6 + sum(_largest_cubic(hh, dd, hd) for hh, hd in ends))


def _largest_cubic(hh: Array, dd: Array, hd: Array) -> Array:
    """|h|^2 K(cos(h, D)): the largest |x'D| (x'h)^2 / |D| of a unit x."""
    hh = jnp.maximum(hh, 0)  # a difference, where it is small
    cosine = jnp.minimum(jnp.abs(hd) / jnp.maximum(jnp.sqrt(hh * dd), jnp.finfo(hh.dtype).tiny), 1)
    s = jnp.sqrt(2 + cosine**2 / 4) - cosine / 2
    root = jnp.sqrt((2 + cosine * s) / 3)
    return hh * root**3 / s
