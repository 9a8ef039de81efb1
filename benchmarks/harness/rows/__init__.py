"""Every row: what measures it, with which sizes, and whether it belongs to the ten minutes or to the full run."""

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Row:
    """A measurement in a process of its own, which gives one or more lines."""

    name: str
    function: str  # module.function of this package
    settings: dict[str, Any] = field(default_factory=dict)
    small: dict[str, Any] = field(default_factory=dict)  # sizes that say nothing, to see that it runs
    is_full: bool = False

    def measure(self, small: bool = False) -> list[dict[str, Any]]:
        """Its lines."""
        module, function = self.function.split(".")
        settings = self.settings | (self.small if small else {})
        return getattr(import_module(f"harness.rows.{module}"), function)(**settings)


LITTLE = {"n": 2000, "draws": 500, "rounds": 2}
FEW = LITTLE | {"their_draws": 60}


def _logistic(n: int, d: int, is_full: bool, **settings: Any) -> Row:
    small = FEW | {"d": 5}
    return Row(
        f"logistic-{n:.0e}-{d}".replace("e+0", "e"), "one_mode.logistic", {"n": n, "d": d, **settings}, small, is_full
    )


def _tied(n: int, is_full: bool) -> Row:
    return Row(
        f"tied-means-{n:.0e}".replace("e+0", "e"), "tempered.tied_means_at", {"n": n}, FEW | {"batch": 100}, is_full
    )


def _forty(dim: int, is_full: bool) -> Row:
    small = {"draws": 500, "particles": 100, "rounds": 2, "nested": False}
    return Row(f"forty-{dim}", "many_modes.forty_normals", {"dim": dim, "nested": dim <= 5}, small, is_full)


def _sweep(axis: str, values: tuple[int, ...], **settings: Any) -> Row:
    small = {"values": values[:2], "n": 2000, "draws": 500, "rounds": 1} if axis not in ("n", "d") else {}
    small = small or {"values": (1000, 2000) if axis == "n" else (2, 5), "draws": 500, "rounds": 1}
    settings = {"axis": axis, "values": values, **settings}
    return Row(f"sweep-{axis}", "sweeps.sweep", settings, small | ({"n": 2000} if axis == "d" else {}), True)


ROWS = (
    Row("import", "start.importing", {}, {"rounds": 1}),
    Row("first-draw", "start.first_draws", {}, {"rounds": 1, "samplers": ("MINT",)}),
    Row("mint-step", "steps.mint_over_c", {}, LITTLE | {"batch": 100}),
    Row("sgld", "steps.stochastic_gradients", {"method": "sgld"}, LITTLE | {"batch": 100}),
    Row("sghmc", "steps.stochastic_gradients", {"method": "sghmc"}, LITTLE | {"batch": 100}),
    Row("mixture-pass", "passes.mixture", {}, {"n": 2000, "passes": 3, "rounds": 2}),
    Row("chains-on-cores", "passes.chains_on_cores", {}, {"n": 2000, "draws": 500, "rounds": 1}),
    Row("chain-on-cores", "passes.one_chain_on_cores", {"rounds": 2}, {"n": 2000, "draws": 50, "rounds": 1}),
    Row("hmc", "one_mode.hamiltonian", {}, FEW | {"d": 5}),
    _logistic(10_000, 20, False, small=True, rounds=3),
    _logistic(1_000_000, 20, False, bars=(1000, 100), over=("BlackJAX HMC", "BlackJAX NUTS", "NumPyro NUTS")),
    Row("hmcecs", "one_mode.over_hmcecs", {}, FEW | {"d": 5}),
    _tied(1_000_000, False),
    Row("three-normals", "many_modes.three", {}, {"n": 2000, "draws": 500, "particles": 20, "rounds": 2}),
    _forty(2, False),
    Row("disk-1e8", "disk.from_disk", {"rows": 100_000_000}, {"rows": 2_000_000, "draws": 500, "rounds": 1}),
    Row("large-n", "steps.large_over_small", {}, {"small": 2000, "large": 4000, "batch": 100, "draws": 500}, True),
    Row("barker", "steps.barker_over_mint", {}, {"n": 2000, "draws": 500, "rounds": 1}, True),
    _logistic(100_000, 20, True, small=True),
    _logistic(10_000_000, 20, True),
    _logistic(100_000, 200, True, bars=(20, None), draws=40_000),
    _logistic(1_000_000, 200, True, draws=40_000),
    Row("robust", "one_mode.robust", {}, FEW | {"d": 5}, True),
    Row("mnist", "one_mode.digits", {}, {"n": 2000, "draws": 20, "rounds": 1, "their_draws": 20}, True),
    _tied(10_000, True),
    _tied(100_000, True),
    _tied(10_000_000, True),
    _forty(5, True),
    _forty(10, True),
    _forty(50, True),
    Row("fifty", "many_modes.fifty", {}, {"scale": "quick"}, True),
    Row(
        "disk-1e9",
        "disk.from_disk",
        {"rows": 1_000_000_000, "bar": 1.5},
        {"rows": 2_000_000, "draws": 500, "rounds": 1},
        True,
    ),
    _sweep("n", (10_000, 100_000, 1_000_000)),
    _sweep("d", (5, 20, 80), draws=30_000),
    _sweep("m", (25, 100, 400, 1600)),
    _sweep("chains", (1, 2, 4, 8), draws=20_000),
    _sweep("cores", (1, 2)),
)
_NUTS = {"n": 10_000, "draws": 20_000, "rounds": 3, "their_draws": 500, "over": ("BlackJAX NUTS",)}
_SGLD = {"method": "sgld", "n": 10_000, "draws": 5000, "rounds": 3}
GUARD = (
    Row("import", "start.import_over_jax", {"rounds": 3}, {"rounds": 1}),
    Row("mint-step", "steps.mint_over_c", {"n": 100_000, "draws": 30_000, "rounds": 4}, LITTLE | {"batch": 100}),
    Row("sgld", "steps.stochastic_gradients", _SGLD, LITTLE | {"batch": 100}),
    Row("logistic", "one_mode.logistic", _NUTS, FEW | {"d": 5}),
)
"""The fast subset whose ratios are stored."""


def parts() -> dict[str, Any]:
    """Functions that a row calls in processes of their own."""
    found: dict[str, Any] = {}
    for module in ("passes", "start", "sweeps"):
        found |= import_module(f"harness.rows.{module}").PARTS
    return found
