"""What stands beside independent chains: who looks on, and what they know of the target around centres."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from mintmc.run.draws import Draws
from mintmc.statistics import Info


class Watcher(Protocol):
    """Looks on while chains run, and has more to show of them than draws: a ladder's rungs, for example."""

    def begin(self, states: list[Any]) -> list[int]:
        """Note where the chains start; the rows read for it, by chain."""
        ...

    def note(self, chain: int, state: Any, values: Info | None) -> None:
        """Note a stretch: the state at its end, and (of draws) what was recorded."""
        ...

    def checkpoint(self) -> Any:
        """What it knows, as a pytree of arrays."""
        ...

    def restore(self, checkpoint: Any) -> None:
        """Go on from a checkpoint."""
        ...

    def groups(self, draws: Draws, totals: dict[str, np.ndarray], steps: int) -> dict[str, Any]:
        """Groups of the tree, of a part of the draws and of totals over so many steps."""
        ...

    def facts(self, totals: dict[str, np.ndarray]) -> dict[str, Any]:
        """What it knows of the whole run."""
        ...


class Centres(Protocol):
    """What chains know of the target around centres: found before the first step, reconsidered in warm-up."""

    kernel: Any  # of one chain; another one after `reconsider` or `restore` if its batches have another size
    of_chain: Any  # a list of Centre: expansion and Laplace approximation, either of which may be None
    rows_read: Any  # to find them

    def supplied(self, chain: int) -> Mapping[str, Any]:
        """What steps of a chain read beside rows."""
        ...

    def reconsider(self, states: list[Any], tunings: list[Any]) -> list[int]:
        """Half-way through warm-up: give chains that wandered off a centre of their own; says which."""
        ...

    def checkpoint(self) -> Any:
        """What a run must find again."""
        ...

    def restore(self, checkpoint: Any) -> None:
        """Go on with the centres of a checkpoint."""
        ...

    def facts(self) -> dict[str, Any]:
        """What the tree should know."""
        ...

    def said(self) -> str:
        """One line about them."""
        ...
