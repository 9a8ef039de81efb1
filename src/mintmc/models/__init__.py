"""Models as people write them: a formula and a table, NumPyro, PyMC."""

from mintmc.models.from_numpyro import from_numpyro
from mintmc.models.from_pymc import from_pymc
from mintmc.models.glm import glm

__all__ = ["from_numpyro", "from_pymc", "glm"]
