"""Functions that a user wrote: an error of theirs is told as one of the argument, by name and in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.interpreters.partial_eval import dce_jaxpr

from mintmc.check.words import first_line, form


def called(name: str, given: Callable[..., Any], *args: Any) -> Any:
    """What a user's function returns; an error of its own is told as one of the argument."""
    try:
        return given(*args)
    except Exception as error:  # whatever a user's function may raise
        raise ValueError(f"{name} must work for {form(args)}, got {first_line(error)}") from error


def returned(name: str, given: Callable[..., Any], *args: Any, takes: str = "") -> Any:
    """What a user's function returns for arguments like these, found by tracing it: types and shapes, no numbers.

    ``takes`` says in words what it is called with; by default, the form of the arguments.
    """
    found: list[Any] = []

    def traced(*args: Any) -> None:
        try:
            found.append(jax.tree.map(_kind, given(*args)))
        except jax.errors.JAXTypeError as error:
            wanted = "be written with jax.numpy, so that JAX can trace it"
            raise TypeError(f"{name} must {wanted}, got {first_line(error)}") from error
        except Exception as error:  # whatever a user's function may raise
            wanted = takes or " and ".join(map(form, args))
            raise ValueError(f"{name} must work for {wanted}, got {first_line(error)}") from error

    jax.eval_shape(traced, *args)
    return found[0]


def _kind(leaf: Any) -> Any:
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) if hasattr(leaf, "shape") and hasattr(leaf, "dtype") else leaf


def scalar(name: str, given: Callable[..., Any], *args: Any, takes: str = "") -> None:
    """Check, without running it, that a function returns one float for arguments like these."""
    floats(name, given, (), *args, takes=takes)


def floats(name: str, given: Callable[..., Any], wanted: tuple[int, ...], *args: Any, takes: str = "") -> None:
    """The same for an array of floats of the shape ``wanted``; a plain number will do for a scalar."""
    result = returned(name, given, *args, takes=takes)
    after = f" for {takes}" if takes else ""
    if isinstance(result, (int, float)) and not isinstance(result, bool) and not wanted:
        return
    if not isinstance(result, jax.ShapeDtypeStruct) or result.shape != wanted:
        got = f"shape {result.shape}" if isinstance(result, jax.ShapeDtypeStruct) else form(result)
        what = f"one float for each row, shape {wanted}" if wanted else "a scalar"
        raise ValueError(f"{name} must return {what}, got {got}{after}")
    if not jax.numpy.issubdtype(result.dtype, jax.numpy.floating):
        raise TypeError(f"{name} must return a float, got dtype {result.dtype}{after}")


def of_its_row(name: str, given: Callable[..., Any], params: Any, row: Any) -> None:
    """Refuse, without running it, a log-likelihood that looks at params but not at the row that it is given.

    It would be counted once for every row: most likely it sums over data that it has from elsewhere.
    """
    traced = jax.make_jaxpr(given)(params, row).jaxpr
    used = dce_jaxpr(traced, [True] * len(traced.outvars))[1]
    count = len(jax.tree.leaves(params))
    if any(used[:count]) and not any(used[count:]):
        raise ValueError(
            f"{name} must be that of the one row it is given (batched=True: of each of its rows), got a function that "
            f"does not look at it: if it sums over all rows by itself, use mintmc.Posterior.from_density"
        )
