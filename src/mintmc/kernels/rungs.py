"""The rungs of a ladder that move side by side: what each samples, and what two neighbours compare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import Array

from mintmc.control import Controlled
from mintmc.data import Batch
from mintmc.energy import Model, Tempered


@dataclass(frozen=True)
class Rungs:
    """Temperatures and batches, the coldest rung first."""

    model: Model
    temperatures: tuple[float, ...]
    batch_sizes: tuple[int, ...]  # n reads all data
    penalised: bool
    dtype: Any
    temper: str
    is_controlled: bool  # whether batches estimate only what the expansions in batch["control"] leave

    def __len__(self) -> int:
        return len(self.temperatures)

    @property
    def exact(self) -> int:
        """Rungs that read all data; they come first."""
        return sum(size == self.model.n for size in self.batch_sizes)

    @property
    def all_temperatures(self) -> Array:
        """As one array."""
        return jnp.asarray(self.temperatures, self.dtype)

    def target(self, temperature: float | Array, exchange: bool = False) -> Tempered:
        """What a rung samples, or what an exchange compares."""
        kind = Controlled if self.is_controlled else Tempered
        return kind(self.model, temperature, self.temper, exchange)

    def others(self, batch: Batch) -> dict[str, Any]:
        """What steps on batches are given beside rows."""
        return {"control": batch["control"]} if self.is_controlled else {}
