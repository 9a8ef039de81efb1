"""Shapes of the numerical core are checked at every call while tests run (``mintmc/shapes.py``)."""

from beartype import beartype
from jaxtyping import jaxtyped

import mintmc
from mintmc.control import target, taylor
from mintmc.energy import model, tempered
from mintmc.modes.label import Landscape
from mintmc.proposals import Leap

CHECKED = {
    taylor: ("each", "expand", "residual_gradient"),
    taylor.Expansion: ("total", "total_gradient"),
    target.Controlled: ("levels", "known", "batch_gradient"),
    model.Model: ("each", "density", "density_and_gradient"),
    tempered: ("mean_and_its_variance",),
    tempered.Tempered: (
        "without_data_gradient",
        "without_data_curvature",
        "full_gradient",
        "base_gradient",
        "batch_gradient",
        "difference",
        "differences",
        "levels",
        "level",
    ),
    Landscape: ("log_weighted", "log_density", "carried"),
    Leap: ("move", "way"),
    mintmc.RandomWalk: ("randomness", "move"),
    mintmc.Langevin: ("randomness", "move"),
    mintmc.Hamiltonian: ("randomness", "move"),
    mintmc.Autoregressive: ("randomness", "move"),
}


def check():
    """From now on a call with other shapes, or a result of another shape, is an error."""
    for owner, names in CHECKED.items():
        for name in names:
            setattr(owner, name, jaxtyped(typechecker=beartype)(getattr(owner, name)))
