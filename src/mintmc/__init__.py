"""Mini-batch tempered Markov chain Monte Carlo for posteriors with many observations and many modes."""

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
from mintmc.result.weighted import weighted_draws
from mintmc.run.initial import PerChain
from mintmc.run.sample import resume
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
    "RandomWalk",
    "RegressionBounds",
    "RemainderBounds",
    "ScalableMH",
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
