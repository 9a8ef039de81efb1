"""Other samplers on the same posteriors, each at its best settings; one that is not installed is left out, and says so.

A peer is built once for a workload, which compiles it, and returns ``run(seed) -> Run``.
"""

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from math import pi
from typing import Any, NamedTuple

import numpy as np

from harness.timing import smallest_ess


class Run(NamedTuple):
    """What a sampler has made, and what it took."""

    draws: np.ndarray  # (chain, draw, d)
    core_seconds: float
    touched: float  # rows read

    @property
    def effective(self) -> float:
        """Draws, of the worst parameter."""
        return smallest_ess(self.draws)


Build = Callable[..., Callable[[int], Run]]


def leapfrog(d: int) -> tuple[float, int]:
    """A step that is accepted often enough on d independent normals, and steps that go a quarter of a period."""
    step = 1.6 / d**0.25
    return step, max(1, round(pi / 2 / step))


def built(wanted: Mapping[str, tuple[str, Build]], *arguments: Any, **settings: Any):
    """Peers by name, and why others are missing; ``wanted`` is the package that each needs and what builds it."""
    ready, missing = {}, {}
    for name, (package, build) in wanted.items():
        if find_spec(package) is None:
            missing[name] = f"skipped: {package} is not installed (pip install 'mintmc[benchmarks]')"
            continue
        try:
            ready[name] = build(*arguments, **settings)
        except Exception as error:  # a peer that does not start must not cost the others their row
            missing[name] = f"did not start: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return ready, missing
