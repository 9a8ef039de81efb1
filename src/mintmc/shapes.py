"""Shapes of the numerical core, as types: tests check them at run time (``conftest.py``).

d is the number of parameters, m the rows of a batch, k the modes that there is room for. The same letter is the same
number throughout one call.
"""

from jax import Array
from jaxtyping import Float

Scalar = Float[Array, ""]
Vector = Float[Array, " d"]
Matrix = Float[Array, "d d"]
PerRow = Float[Array, " m"]
PerMode = Float[Array, " k"]
