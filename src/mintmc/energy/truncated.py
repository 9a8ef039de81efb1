"""A tempered density whose energies are cut off below: a rung of the equi-energy sampler."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from mintmc.energy.density import Density
from mintmc.energy.model import Referenced
from mintmc.energy.tempered import Estimate, Tempered, certain, jacobian_change, mean_and_its_variance


@dataclass(frozen=True, kw_only=True)
class Truncated(Tempered):
    """log pi = B - sum of weight * max(U, floor) over ``terms``, U counted from a reference state.

    One term (1/T, H) is a rung of the equi-energy sampler, whose energies are cut off below H. With a second one,
    (-1/T', H') of the hotter rung, and ``exchange``, a move drawn from that rung has this log ratio. A floor of -inf
    cuts nothing off. Cut-off energies estimated on a batch are biased: max is not linear in the noise.
    """

    terms: tuple[tuple[Array, Array], ...]  # (weight, floor)
    reference: Density

    def log_ratio(self, here: Density, there: Density) -> Array:
        """Exact log pi(there) - log pi(here), from two full passes."""
        before, after = (state.energy_above(self.reference, self.temper) for state in (here, there))
        prior, _ = there.minus(here)
        return self._log_ratio(before, after, self._base(prior, jacobian_change(here, there)))

    def difference(self, here: Array, there: Array, batch: Referenced) -> Estimate:
        """The log ratio, both ends on the same batch."""
        before, each_before = self.model.energies_above(here, batch, self.reference, self.temper)
        after, each_after = self.model.energies_above(there, batch, self.reference, self.temper)
        each = self._slope(after) * each_after - self._slope(before) * each_before
        _, variance = mean_and_its_variance(each, self.model.n)
        base = self._base(*self.model.without_data(there)) - self._base(*self.model.without_data(here))
        return certain(Estimate(self._log_ratio(before, after, base), float(self.model.n) ** 2 * variance))

    def _log_ratio(self, before: Array, after: Array, base: Array | int) -> Array:
        ends = [weight * (jnp.maximum(before, floor) - jnp.maximum(after, floor)) for weight, floor in self.terms]
        return jnp.where(after == jnp.inf, -jnp.inf, jnp.stack(ends).sum() + base)

    def _slope(self, energy: Array) -> Array:
        """How fast -log pi grows with the energy: noise below all floors does no harm."""
        return jnp.stack([weight * (energy > floor) for weight, floor in self.terms]).sum()
