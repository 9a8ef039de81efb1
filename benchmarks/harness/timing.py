"""Core-time without compiling, effective draws, and measuring in turn."""

import time
from collections.abc import Callable, Mapping

import jax
import numpy as np

_COMPILED = [0.0]
_COMPILING = ("/jax/core/compile/backend_compile_duration", "/jax/core/compile/jaxpr_to_mlir_module_duration")
"""What is left out. Not tracing: a function that is traced within another would be taken off twice."""
jax.monitoring.register_event_duration_secs_listener(
    lambda event, seconds, **_: _COMPILED.append(_COMPILED.pop() + seconds * (event in _COMPILING))
)


def core_seconds() -> float:
    """Of all threads of this process, compiling left out."""
    return time.process_time() - _COMPILED[0]


def smallest_ess(draws) -> float:
    """Bulk effective draws of the worst parameter, of draws (chain, draw, parameter)."""
    from arviz_base import from_dict
    from arviz_stats import ess

    return float(ess(from_dict({"posterior": {"theta": np.asarray(draws, float)}}))["theta"].min())


def in_turn(contestants: Mapping[str, Callable[[int], float]], rounds: int) -> dict[str, list[float]]:
    """Each contestant once, then each once more: a machine that drifts drifts for all of them."""
    found: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds):
        for name, run in contestants.items():
            found[name].append(float(run(number)))
    return found
