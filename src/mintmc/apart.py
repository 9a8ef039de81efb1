"""A part of a loop that is compiled as a call of its own, for XLA's CPU runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.experimental.xla_metadata import set_xla_metadata


def apart(function: Callable[..., Any], *args: Any) -> Any:
    """``function(*args)``, compiled as a call of its own within a loop.

    XLA's CPU runtime runs up to eight kernels one after the other; a longer sequence goes through its scheduler, which
    allocates memory at every turn of the loop and costs as much as a small batch.
    """

    def within(*args: Any) -> Any:
        # Or the calls in it would stay calls, too: every jnp.where is one.
        with set_xla_metadata(inlineable="true"):
            return function(*args)

    with set_xla_metadata(inlineable="false"):
        return jax.jit(within)(*args)
