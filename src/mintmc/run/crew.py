"""How programs run: in one process that is alone with them, or in all processes together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from mintmc.energy import DATA_AXIS
from mintmc.run.processes import wait_for_all


class Alone:
    """How a process runs programs that are its own."""

    @property
    def writes(self) -> bool:
        """Whether this process writes what was made."""
        return True

    def lanes(self, chains: int) -> int:
        """Programs that may run at once."""
        return chains

    def program(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """``function`` as it is to be compiled."""
        return function

    def given(self, tree: Any) -> Any:
        """Arguments as a program takes them."""
        return tree

    def taken(self, tree: Any) -> Any:
        """Results as this process takes them."""
        return tree

    def agreed(self, value: int) -> int:
        """What all go by."""
        return value

    def meet(self, name: str) -> None:
        """Go on when all have come this far."""


class Together(Alone):
    """How processes run one program on all of them, each with the same arguments and results; the first writes."""

    @property
    def writes(self) -> bool:
        """Whether this process writes what all of them have made."""
        return jax.process_index() == 0

    def lanes(self, chains: int) -> int:
        """One, or processes would run different programs at the same time."""
        return 1

    def program(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """``function`` on all devices."""
        mesh, everywhere = Mesh(jax.devices(), (DATA_AXIS,)), PartitionSpec()
        return jax.shard_map(function, mesh=mesh, in_specs=everywhere, out_specs=everywhere, check_vma=False)

    def given(self, tree: Any) -> Any:
        """Arrays that every process has, as one."""
        sharding = NamedSharding(Mesh(jax.devices(), (DATA_AXIS,)), PartitionSpec())

        def place(leaf: Any) -> Any:
            if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
                return jax.random.wrap_key_data(place(jax.random.key_data(leaf)), impl=jax.random.key_impl(leaf))
            here = np.asarray(leaf)
            return jax.make_array_from_callback(here.shape, sharding, lambda index: here[index])

        return jax.tree.map(place, tree)

    def taken(self, tree: Any) -> Any:
        """Arrays of this process alone."""
        return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), tree)

    def agreed(self, value: int) -> int:
        """What the first process says."""
        from jax.experimental.multihost_utils import broadcast_one_to_all

        return int(broadcast_one_to_all(np.int64(value)))

    def meet(self, name: str) -> None:
        """Go on when all processes have come this far."""
        wait_for_all(name)
