"""Mini-batch tempered Markov chain Monte Carlo for posteriors with many observations and many modes.

Names are imported when they are first used: ``import mintmc`` by itself loads neither JAX nor anything else.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mintmc import protocols
    from mintmc.control import Taylor
    from mintmc.control.bounds import RegressionBounds, RemainderBounds, logistic_bound, logistic_remainder
    from mintmc.control.lower_bounds import Bound, JaakkolaJordan
    from mintmc.data.open import open_data
    from mintmc.data.prepare import prepare
    from mintmc.kernels.schedule import Polynomial
    from mintmc.ladder.ladder import Ladder
    from mintmc.ladder.rings import QuantileRings, SpacedRings
    from mintmc.models.blackjax import as_blackjax
    from mintmc.models.from_numpyro import from_numpyro
    from mintmc.models.from_pymc import from_pymc
    from mintmc.models.glm import glm
    from mintmc.modes import find_mode
    from mintmc.posterior import Posterior
    from mintmc.proposals import NUTS, Autoregressive, Custom, Hamiltonian, Langevin, RandomWalk
    from mintmc.result.compare import compare, loo
    from mintmc.result.diagnose import diagnose
    from mintmc.result.draws import map_draws, params_at
    from mintmc.result.evidence import log_evidence
    from mintmc.result.ladder_plots import plot_ladder
    from mintmc.result.modes import mode_weights, relative_variance
    from mintmc.result.pointwise import add_log_likelihood, add_posterior_predictive
    from mintmc.result.predict import predict
    from mintmc.result.summary import summary
    from mintmc.result.tempered import TemperedDraws
    from mintmc.result.trace import plot_trace
    from mintmc.result.weighted import weighted_draws
    from mintmc.run.initial import PerChain
    from mintmc.run.sample import resume
    from mintmc.run.sofar import SoFar
    from mintmc.run.until import Ess, RHat
    from mintmc.samplers import (
        MINT,
        MINTEE,
        SGHMC,
        SGLD,
        AustereMH,
        BarkerMH,
        ConfidenceMH,
        EquiEnergy,
        FireflyMC,
        Leaps,
        MetropolisHastings,
        ParallelTempering,
        ScalableMH,
        TaylorProxy,
        TunaMH,
    )
    from mintmc.study.audit_rung import audit_rung
    from mintmc.study.choose import sample
    from mintmc.study.find_modes import find_modes
    from mintmc.study.late_starts import late_starts
    from mintmc.study.normality import normality
    from mintmc.study.plan import plan
    from mintmc.study.report import report
    from mintmc.study.tune import tune_ladder

_NAMES = {
    "mintmc.control": ("Taylor",),
    "mintmc.control.bounds": ("RegressionBounds", "RemainderBounds", "logistic_bound", "logistic_remainder"),
    "mintmc.control.lower_bounds": ("Bound", "JaakkolaJordan"),
    "mintmc.data.open": ("open_data",),
    "mintmc.data.prepare": ("prepare",),
    "mintmc.kernels.schedule": ("Polynomial",),
    "mintmc.ladder.ladder": ("Ladder",),
    "mintmc.ladder.rings": ("QuantileRings", "SpacedRings"),
    "mintmc.models.blackjax": ("as_blackjax",),
    "mintmc.models.from_numpyro": ("from_numpyro",),
    "mintmc.models.from_pymc": ("from_pymc",),
    "mintmc.models.glm": ("glm",),
    "mintmc.modes": ("find_mode",),
    "mintmc.posterior": ("Posterior",),
    "mintmc.proposals": ("NUTS", "Autoregressive", "Custom", "Hamiltonian", "Langevin", "RandomWalk"),
    "mintmc.result.compare": ("compare", "loo"),
    "mintmc.result.diagnose": ("diagnose",),
    "mintmc.result.draws": ("map_draws", "params_at"),
    "mintmc.result.evidence": ("log_evidence",),
    "mintmc.result.ladder_plots": ("plot_ladder",),
    "mintmc.result.modes": ("mode_weights", "relative_variance"),
    "mintmc.result.pointwise": ("add_log_likelihood", "add_posterior_predictive"),
    "mintmc.result.predict": ("predict",),
    "mintmc.result.summary": ("summary",),
    "mintmc.result.tempered": ("TemperedDraws",),
    "mintmc.result.trace": ("plot_trace",),
    "mintmc.result.weighted": ("weighted_draws",),
    "mintmc.run.initial": ("PerChain",),
    "mintmc.run.sample": ("resume",),
    "mintmc.run.sofar": ("SoFar",),
    "mintmc.run.until": ("Ess", "RHat"),
    "mintmc.samplers": (
        "MINT",
        "MINTEE",
        "SGHMC",
        "SGLD",
        "AustereMH",
        "BarkerMH",
        "ConfidenceMH",
        "EquiEnergy",
        "FireflyMC",
        "Leaps",
        "MetropolisHastings",
        "ParallelTempering",
        "ScalableMH",
        "TaylorProxy",
        "TunaMH",
    ),
    "mintmc.study.audit_rung": ("audit_rung",),
    "mintmc.study.choose": ("sample",),
    "mintmc.study.find_modes": ("find_modes",),
    "mintmc.study.late_starts": ("late_starts",),
    "mintmc.study.normality": ("normality",),
    "mintmc.study.plan": ("plan",),
    "mintmc.study.report": ("report",),
    "mintmc.study.tune": ("tune_ladder",),
}
"""Where each public name lives; ``protocols`` is a module itself."""
_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "MINT",
    "MINTEE",
    "NUTS",
    "SGHMC",
    "SGLD",
    "AustereMH",
    "Autoregressive",
    "BarkerMH",
    "Bound",
    "ConfidenceMH",
    "Custom",
    "EquiEnergy",
    "Ess",
    "FireflyMC",
    "Hamiltonian",
    "JaakkolaJordan",
    "Ladder",
    "Langevin",
    "Leaps",
    "MetropolisHastings",
    "ParallelTempering",
    "PerChain",
    "Polynomial",
    "Posterior",
    "QuantileRings",
    "RHat",
    "RandomWalk",
    "RegressionBounds",
    "RemainderBounds",
    "ScalableMH",
    "SoFar",
    "SpacedRings",
    "Taylor",
    "TaylorProxy",
    "TemperedDraws",
    "TunaMH",
    "add_log_likelihood",
    "add_posterior_predictive",
    "as_blackjax",
    "audit_rung",
    "compare",
    "diagnose",
    "find_mode",
    "find_modes",
    "from_numpyro",
    "from_pymc",
    "glm",
    "late_starts",
    "log_evidence",
    "logistic_bound",
    "logistic_remainder",
    "loo",
    "map_draws",
    "mode_weights",
    "normality",
    "open_data",
    "params_at",
    "plan",
    "plot_ladder",
    "plot_trace",
    "predict",
    "prepare",
    "protocols",
    "relative_variance",
    "report",
    "resume",
    "sample",
    "summary",
    "tune_ladder",
    "weighted_draws",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


# Checkers of types look at the imports above, and must not be told that any name whatever is there.
if not TYPE_CHECKING:

    def __getattr__(name):
        from importlib import import_module
        from importlib.util import find_spec

        if name in _HOMES:
            globals()[name] = getattr(import_module(_HOMES[name]), name)
        elif not name.startswith("_") and find_spec(f"mintmc.{name}") is not None:
            globals()[name] = import_module(f"mintmc.{name}")
        else:
            raise AttributeError(f"module 'mintmc' has no attribute {name!r}")
        return globals()[name]
