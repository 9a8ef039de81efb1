"""Posteriors from models that are written in another language."""

from mintmc.models.from_numpyro import from_numpyro
from mintmc.models.from_pymc import from_pymc

__all__ = ["from_numpyro", "from_pymc"]
