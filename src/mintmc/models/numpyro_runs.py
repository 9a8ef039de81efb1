"""A NumPyro model run on all its rows, or on some of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc import check
from mintmc.data import Rows
from mintmc.data.array import row_count
from mintmc.models.bridged import ONE_AT_A_TIME, check_runs
from mintmc.params import Params


@dataclass(frozen=True)
class Whole:
    """A model with all it is called with."""

    model: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def first(self) -> Any:
        """One run at a random point, from which the model's form is read."""
        advice = f"model must run on its arguments, {check.form((*self.args, dict(self.kwargs)))}"
        return check_runs(lambda: traced(somewhere(self.model, 0), self.args, self.kwargs), advice)

    def trace(self, params: Params) -> Any:
        """The run at given params."""
        from numpyro import handlers

        return traced(handlers.substitute(self.model, data=params), self.args, self.kwargs)

    def lengths(self) -> set[int]:
        """Of the leading axes of arguments."""
        return {leaf.shape[0] for leaf in jax.tree.leaves((self.args, dict(self.kwargs))) if _is_array(leaf)}


@dataclass(frozen=True)
class Runs:
    """A model on some rows: the arguments that are rows are replaced, and the data's plates shrink with them."""

    whole: Whole
    rows: Mapping[str, Any]
    places: Sequence[int]  # of the rows among the leaves of all arguments
    plates: frozenset[str]

    @classmethod
    def of(cls, whole: Whole, n: int, plates: frozenset[str]) -> Runs:
        """Find the arguments that are rows."""
        paths = jax.tree_util.tree_leaves_with_path((whole.args, dict(whole.kwargs)))
        found = [(place, *each) for place, each in enumerate(paths) if _is_array(each[1]) and each[1].shape[0] == n]
        rows = {_name(path): np.asarray(leaf) for _, path, leaf in found}
        return cls(whole, rows, [place for place, *_ in found], plates)

    def few(self, length: int) -> Rows:
        """The first rows: for what does not depend on them."""
        return {name: leaf[:length] for name, leaf in self.rows.items()}

    def trace(self, params: Params, rows: Rows) -> Any:
        """The run at given params on some rows."""
        from numpyro import handlers

        return self._run(handlers.substitute(self.whole.model, data=params), rows)

    def anywhere(self, rows: Rows) -> Any:
        """The run at a random point on some rows."""
        return self._run(somewhere(self.whole.model, 0), rows)

    def drawn(self, key: Array) -> Any:
        """A run whose latent sites are drawn from the prior."""
        from numpyro import handlers

        return self._run(handlers.seed(self.whole.model, key), self.few(1))

    def _run(self, model: Callable[..., Any], rows: Rows) -> Any:
        leaves, structure = jax.tree.flatten((self.whole.args, dict(self.whole.kwargs)))
        for place, name in zip(self.places, self.rows, strict=True):
            leaves[place] = jnp.asarray(rows[name])
        args, kwargs = jax.tree.unflatten(structure, leaves)
        return traced(_on_rows(model, self.plates, row_count(rows)), args, kwargs)


def traced(model: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The sites of a run, by name."""
    from numpyro import handlers

    with ONE_AT_A_TIME:  # chains are traced in threads, and NumPyro's stack of handlers is one for all
        return handlers.trace(model).get_trace(*args, **kwargs)


def somewhere(model: Callable[..., Any], seed: int) -> Callable[..., Any]:
    """The model at a random point near 0 in coordinates without bounds, which improper priors have too."""
    from numpyro import handlers
    from numpyro.infer import init_to_uniform

    seeded = handlers.seed(model, jax.random.key(seed))
    result: Callable[..., Any] = handlers.substitute(seeded, substitute_fn=init_to_uniform(radius=1.0))
    return result


def _on_rows(model: Callable[..., Any], plates: frozenset[str], length: int) -> Callable[..., Any]:
    """The model with plates of the data as long as a batch, whatever size it gives them."""
    from numpyro.primitives import Messenger

    class OnRows(Messenger):  # type: ignore[misc]
        def process_message(self, msg: Any) -> None:
            if msg["type"] == "plate" and msg["name"] in plates:
                msg["value"], msg["args"] = jnp.arange(length), (msg["args"][0], None)

    result: Callable[..., Any] = OnRows(model)
    return result


def _is_array(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and len(getattr(leaf, "shape", ())) > 0


def _name(path: Any) -> str:
    """Of an argument, as a user would write it."""
    first, second, *rest = path
    inside = jax.tree_util.keystr(tuple(rest))
    return f"args[{second.idx}]{inside}" if first.idx == 0 else f"{second.key}{inside}"
