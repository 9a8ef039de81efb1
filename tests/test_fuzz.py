"""Every public argument gets everything that it should not: each call succeeds or says what is wrong, in one line."""

import contextlib
import inspect
import itertools

import matplotlib
import numpy as np
import numpyro
import pytest
import xarray

import mintmc
import mintmc.run.driver
import mintmc.study.normality
from fuzzing import POOL, deadline, unclear
from made_tree import made_tree
from mintmc import check

N = 100
X = np.random.default_rng(0).normal(size=N)
X2 = np.stack([X, X[::-1]], axis=1)
SIGNS = np.where(X > 0, 1.0, -1.0)
LADDER = mintmc.Ladder([1, 4])
NEW = "a new folder"
NEVER_BUILT = {"Bound", "SoFar", "TemperedDraws", "protocols"}
"""Protocols, which users implement and do not make, what a callback is told, and a warning."""


class ReachedError(Exception):
    """All checks were passed: from here on it would compile and run."""


def log_likelihood(theta, x):
    return -0.5 * (x - theta) ** 2


def functions(log_likelihood, data, log_prior, init):
    return run(mintmc.Posterior(log_likelihood, data, log_prior), mintmc.MetropolisHastings(), init=init)


def density(log_density, init):
    return run(mintmc.Posterior.from_density(log_density), mintmc.MetropolisHastings(), init=init)


def proposed(sample, log_ratio):
    return run(POSTERIOR, mintmc.MetropolisHastings(mintmc.Custom(sample, log_ratio)))


def with_proxy(remainder, centre, every):
    return run(POSTERIOR, mintmc.ConfidenceMH(proxy=mintmc.TaylorProxy(remainder, centre, every), batch_size=10))


def with_bound(bound):
    return run(POSTERIOR, mintmc.ConfidenceMH(bound=bound, batch_size=10))


def with_distance(scales, distance):
    return run(POSTERIOR, mintmc.TunaMH(scales, distance=distance))


def with_reference(reference, feed, steps, rings, capacity, jump_probability):
    settings = {"feed": feed, "steps": steps, "rings": rings, "capacity": capacity}
    sampler = mintmc.EquiEnergy(LADDER, reference=reference, jump_probability=jump_probability, **settings)
    return run(POSTERIOR, sampler)


def with_preconditioner(preconditioner, step_size):
    return run(POSTERIOR, mintmc.MetropolisHastings(mintmc.Langevin(step_size, preconditioner=preconditioner)))


def with_centre(centre, order, batch_size, temperature):
    control = mintmc.Taylor(centre, order=order)
    return run(POSTERIOR, mintmc.MINT(batch_size, temperature=temperature, control=control))


def with_modes(modes, explore, starts, places, batch_size):
    control = None if batch_size is None else mintmc.Taylor()
    settings = {"modes": modes, "explore": explore, "starts": starts, "places": places, "batch_size": batch_size}
    return run(POSTERIOR, mintmc.Leaps(control=control, **settings), warmup=30)


def run(posterior, sampler=None, init=0.0, warmup=3, **settings):
    sampler = sampler or mintmc.MINT(batch_size=10, alpha=0.5)
    return mintmc.sample(posterior, sampler, init=init, draws=3, warmup=warmup, chains=1, progress=False, **settings)


def numpyro_model(x):
    mean = numpyro.sample("mean", numpyro.distributions.Normal(0.0, 1.0))
    with numpyro.plate("rows", len(x)):
        numpyro.sample("x", numpyro.distributions.Normal(mean, 1.0), obs=x)


def pymc_model():
    import pymc  # takes seconds

    with pymc.Model() as model:
        pymc.Normal("x", pymc.Normal("mean", 0.0, 1.0), 1.0, observed=X)
    return model


POSTERIOR = mintmc.Posterior(log_likelihood, X)
GOOD = {
    # name: (what to call, arguments without a default, or with one that is not the usual case)
    "MINT": (mintmc.MINT, {"batch_size": 10, "alpha": 0.5}),
    "MINTEE": (mintmc.MINTEE, {"smallest_batch": 10}),
    "MINTEE.for_data": (mintmc.MINTEE(2, growth=3.0).for_data, {"n": N}),
    "SGHMC": (mintmc.SGHMC, {"batch_size": 10, "step_size": 0.1, "friction": 1.0}),
    "SGLD": (mintmc.SGLD, {"batch_size": 10, "step_size": 0.1}),
    "AustereMH": (mintmc.AustereMH, {}),
    "AustereMH.conservative": (mintmc.AustereMH.conservative, {"n": 2000, "max_error": 0.1}),
    "Autoregressive": (mintmc.Autoregressive, {}),
    "BarkerMH": (mintmc.BarkerMH, {}),
    "ConfidenceMH": (mintmc.ConfidenceMH, {"bound": "oracle"}),
    "Custom": (mintmc.Custom, {"sample": lambda key, x: x}),
    "EquiEnergy": (mintmc.EquiEnergy, {"ladder": LADDER}),
    "Ess": (mintmc.Ess, {"least": 10.0}),
    "FireflyMC": (mintmc.FireflyMC, {"bound": mintmc.JaakkolaJordan.untuned(X2, SIGNS)}),
    "Hamiltonian": (mintmc.Hamiltonian, {}),
    "JaakkolaJordan": (mintmc.JaakkolaJordan.untuned, {"x": X2, "y": SIGNS}),
    "JaakkolaJordan.tuned": (mintmc.JaakkolaJordan.tuned, {"x": X2, "y": SIGNS, "theta_map": np.zeros(2)}),
    "Ladder": (mintmc.Ladder, {"temperatures": [1, 4]}),
    "Ladder.mint": (mintmc.Ladder.mint, {"n": N, "smallest_batch": 10, "growth": 1.4, "alpha": 0.9}),
    "Ladder.geometric": (mintmc.Ladder.geometric, {"hottest": 9, "rungs": 3}),
    "Langevin": (mintmc.Langevin, {}),
    "Leaps": (mintmc.Leaps, {}),
    "glm": (mintmc.glm, {"formula": "y ~ x", "table": {"x": X, "y": X**2}}),
    "MetropolisHastings": (mintmc.MetropolisHastings, {}),
    "NUTS": (mintmc.NUTS, {}),
    "as_blackjax": (
        mintmc.as_blackjax,
        {
            "posterior": POSTERIOR,
            "sampler": mintmc.MINT(10, alpha=0.5, proposal=mintmc.RandomWalk(0.1)),
            "init": 0.0,
        },
    ),
    "ParallelTempering": (mintmc.ParallelTempering, {"ladder": LADDER}),
    "PerChain": (
        lambda params, apart: run(POSTERIOR, init=mintmc.PerChain(params, apart)),
        {"params": np.zeros(1), "apart": True},
    ),
    "Polynomial": (mintmc.Polynomial, {"a": 0.1, "b": 1.0, "gamma": 0.6}),
    "Polynomial.between": (mintmc.Polynomial.between, {"first": 0.1, "last": 0.01, "steps": 100}),
    "Posterior": (mintmc.Posterior, {"log_likelihood": log_likelihood, "data": X}),
    "Posterior.from_density": (mintmc.Posterior.from_density, {"log_density": lambda x: -(x**2)}),
    "Posterior.energy": (POSTERIOR.energy, {"params": 0.0}),
    "QuantileRings": (mintmc.QuantileRings, {}),
    "RHat": (mintmc.RHat, {"most": 1.01}),
    "RandomWalk": (mintmc.RandomWalk, {}),
    "RegressionBounds": (mintmc.RegressionBounds, {"x": X2, "first": 1.0}),
    "RegressionBounds.logistic": (mintmc.RegressionBounds.logistic, {"x": X2}),
    "RegressionBounds.poisson": (mintmc.RegressionBounds.poisson, {"x": X2, "y": np.arange(N)}),
    "RegressionBounds.student_t": (mintmc.RegressionBounds.student_t, {"x": X2, "degrees": 3.0}),
    "RemainderBounds": (mintmc.RemainderBounds, {"scales": np.ones(N), "distance": lambda here, there, at: 0.0}),
    "ScalableMH": (mintmc.ScalableMH, {"bounds": mintmc.RegressionBounds.logistic(X2)}),
    "SpacedRings": (mintmc.SpacedRings, {}),
    "Taylor": (mintmc.Taylor, {}),
    "TaylorProxy": (mintmc.TaylorProxy, {"remainder": lambda here, there, centre: 0.0}),
    "TunaMH": (mintmc.TunaMH, {"scales": np.ones(N)}),
    "TunaMH.logistic": (mintmc.TunaMH.logistic, {"x": X2}),
    "find_mode": (mintmc.find_mode, {"posterior": POSTERIOR, "init": 0.0}),
    "find_modes": (mintmc.find_modes, {"posterior": POSTERIOR, "init": 0.0}),
    "from_numpyro": (lambda model: mintmc.from_numpyro(model, X), {"model": numpyro_model}),
    "plan": (mintmc.plan, {"posterior": POSTERIOR, "init": 0.0}),
    "logistic_bound": (mintmc.logistic_bound, {"x": X2}),
    "logistic_remainder": (mintmc.logistic_remainder, {"x": X2}),
    "relative_variance": (mintmc.relative_variance, {"weights": [0.5, 0.5]}),
    "normality": (mintmc.normality, {"posterior": POSTERIOR, "params": 0.0, "batch_size": 10, "batches": 5}),
    "sample": (
        mintmc.sample,
        {"posterior": POSTERIOR, "sampler": mintmc.MINT(10, alpha=0.5), "init": 0.0, "chains": 1, "progress": False},
    ),
    "tune_ladder": (
        mintmc.tune_ladder,
        {"posterior": POSTERIOR, "init": 0.0, "hottest": 4.0, "rungs": 2, "chains": 1},
    ),
    "a model": (functions, {"log_likelihood": log_likelihood, "data": X, "log_prior": None, "init": 0.0}),
    "a density": (density, {"log_density": lambda x: -(x**2), "init": 0.0}),
    "a proposal": (proposed, {"sample": lambda key, x: x, "log_ratio": None}),
    "a proxy": (with_proxy, {"remainder": lambda here, there, at: 0.0, "centre": None, "every": None}),
    "a bound": (with_bound, {"bound": lambda here, there: 1.0}),
    "a distance": (with_distance, {"scales": np.ones(N), "distance": None}),
    "a ladder": (
        with_reference,
        {"reference": None, "feed": None, "steps": None, "rings": [1.0], "capacity": 10, "jump_probability": 0.1},
    ),
    "a centre": (with_centre, {"centre": None, "order": 2, "batch_size": 10, "temperature": 1.0}),
    "leaps": (with_modes, {"modes": None, "explore": None, "starts": 10, "places": 3, "batch_size": None}),
    "a preconditioner": (with_preconditioner, {"preconditioner": None, "step_size": 0.1}),
}


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """Everything public, with arguments that work: what needs a run or a file, too."""
    matplotlib.use("agg")
    folder = tmp_path_factory.mktemp("fuzz")
    np.save(folder / "x.npy", X)
    normal = mintmc.Posterior.from_density(lambda x: -0.5 * x**2)
    store, number = folder / "run.zarr", itertools.count()
    sampler, settings = mintmc.ParallelTempering(LADDER, keep_rungs=True), {"draws": 40, "warmup": 5, "chains": 2}
    tree = mintmc.sample(normal, sampler, init=0.0, **settings, progress=False, out=store)
    late = with_late_modes(POSTERIOR)

    def prepare(source, out, columns, transform, seed, memory, progress):
        out = folder / str(next(number)) if out is NEW else out
        settings = {"columns": columns, "transform": transform, "seed": seed, "memory": memory, "progress": progress}
        return mintmc.prepare(source, out, **settings)

    defaults = {"columns": None, "transform": None, "seed": 0, "memory": 2**20, "progress": None}
    from_files = {
        "from_pymc": (mintmc.from_pymc, {"model": pymc_model()}),
        "open_data": (mintmc.open_data, {"source": folder / "x.npy"}),
        "prepare": (prepare, {"source": folder / "x.npy", "out": NEW, **defaults}),
        "resume": (mintmc.resume, {"path": store, "posterior": normal, "progress": False}),
        "audit_rung": (mintmc.audit_rung, {"posterior": normal, "tree": tree, "rung": 1, "init": 0.0}),
        "diagnose": (mintmc.diagnose, {"tree": tree}),
        "late_starts": (mintmc.late_starts, {"posterior": POSTERIOR, "tree": late}),
        "log_evidence": (mintmc.log_evidence, {"tree": tree}),
        "mode_weights": (mintmc.mode_weights, {"tree": tree, "label": lambda x: x > 0}),
        "mode_weights.regional": (
            mintmc.mode_weights,
            {"tree": tree, "label": lambda x: x > 0, "method": "regional"},
        ),
        "weighted_draws": (mintmc.weighted_draws, {"tree": tree}),
        "plot_ladder": (mintmc.plot_ladder, {"tree": tree}),
        "plot_trace": (mintmc.plot_trace, {"tree": tree}),
        "report": (mintmc.report, {"run": tree}),
    }
    return GOOD | from_files | after_a_run()


def with_late_modes(posterior):
    """A tree like that of a run with leaps that has found a mode too late."""
    made = made_tree(posterior, 0.0, np.random.default_rng(0).normal(size=(2, 40, 1)))
    made["modes"] = xarray.DataTree(xarray.Dataset({"weight": ("mode", [1.0]), "end_theta": ("mode", [0.0])}))
    made.attrs["modes_late"] = [[1.0]]
    return made


def after_a_run():
    """What works on trees."""
    made = made_tree(POSTERIOR, 0.0, np.random.default_rng(0).normal(size=(2, 40, 1)))
    judged = mintmc.add_log_likelihood(made.copy(), POSTERIOR)
    drawn = {"tree": made, "posterior": POSTERIOR}
    return {
        "params_at": (mintmc.params_at, {"tree": made, "chain": 0, "draw": 0}),
        "map_draws": (mintmc.map_draws, {"tree": made, "function": lambda theta: theta}),
        "predict": (mintmc.predict, {"tree": made, "function": lambda theta, x: theta * x, "inputs": X}),
        "predict at random": (
            mintmc.predict,
            {"tree": made, "function": lambda theta, x, key: theta * x, "inputs": X, "seed": 0},
        ),
        "add_log_likelihood": (mintmc.add_log_likelihood, drawn),
        "add_posterior_predictive": (
            mintmc.add_posterior_predictive,
            {**drawn, "function": lambda theta, x, key: theta},
        ),
        "summary": (mintmc.summary, {"tree": made}),
        "loo": (mintmc.loo, {"tree": judged}),
        "compare": (mintmc.compare, {"trees": {"a": judged, "b": judged}}),
    }


@pytest.fixture
def reached(monkeypatch, tmp_path):
    """What passes the checks is not run; what writes, writes somewhere else."""

    def reach(*args, **kwargs):
        raise ReachedError

    monkeypatch.setattr(mintmc.run.driver.Driver, "drive", reach)
    monkeypatch.setattr(mintmc.study.normality, "Uniform", reach)
    monkeypatch.setattr("mintmc.study.find_modes.explored", reach)
    monkeypatch.setattr("mintmc.study.plan.look", reach)
    monkeypatch.setattr("mintmc.result.over_rows.OverRows.computed", reach)
    monkeypatch.setattr("mintmc.study.report.html_page", reach)
    monkeypatch.chdir(tmp_path)


def arguments(call):
    kinds = inspect.signature(call).parameters.values()
    return [kind.name for kind in kinds if kind.kind not in (kind.VAR_KEYWORD, kind.VAR_POSITIONAL)]


def mistakes(calls):
    """Every argument of every call with every value of the pool."""
    return [(name, {argument: value}) for name in calls for argument in arguments(calls[name][0]) for value in POOL]


def fault(call, good, wrong):
    """What is wrong with the answer to wrong arguments; None if it is a success or a clear refusal of one of them."""
    try:
        with deadline(20):
            call(**{**good, **wrong})
    except ReachedError:
        return None
    except Exception as error:
        found = [unclear(error, argument, {**good, **wrong}) for argument in wrong]
        return None if None in found else f"{found[0]}: {type(error).__name__}: {error}"
    return None


def judge(calls, chosen):
    found = {}
    for name, wrong in chosen:
        answer = fault(*calls[name], wrong)
        if answer is not None:
            found[f"{name}({', '.join(f'{key}={check.shown(value)}' for key, value in wrong.items())})"] = answer
    assert not found, "\n".join(f"{call}: {answer}" for call, answer in found.items())


def test_everything_public_is_fuzzed(calls):
    fuzzed = {name.split(".")[0] for name in calls}
    assert set(mintmc.__all__) <= fuzzed | NEVER_BUILT


@pytest.mark.parametrize("name", GOOD)
def test_what_is_meant_to_be_right_is(name, reached):
    call, good = GOOD[name]
    with contextlib.suppress(ReachedError):
        call(**good)


@pytest.mark.usefixtures("reached")
def test_two_thousand_mistakes_end_in_a_clear_line(calls, record_property):
    every = mistakes(calls)
    record_property("tried", 2000)
    judge(calls, [every[i] for i in np.random.default_rng(0).permutation(len(every))[:2000]])


@pytest.mark.usefixtures("reached")
def test_two_mistakes_at_once_end_in_a_clear_line(calls):
    rng, chosen = np.random.default_rng(1), []
    several = [name for name in calls if len(arguments(calls[name][0])) > 1]
    for name in rng.choice(several, 500):
        pair = rng.choice(arguments(calls[name][0]), 2, replace=False)
        chosen.append((name, {str(argument): POOL[rng.integers(len(POOL))] for argument in pair}))
    judge(calls, chosen)


@pytest.mark.slow
@pytest.mark.usefixtures("reached")
def test_all_mistakes_end_in_a_clear_line(calls):
    judge(calls, mistakes(calls))


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (ValueError("batch_size must be at least 1, got -1"), None),
        (KeyError("batch_size -1"), "a KeyError"),
        (ValueError("must be at least 1, got -1"), "no word of the argument"),
        (ValueError("batch_size must be at least -1, got another"), "no word of the value"),
        (ValueError("batch_size\n-1"), "more than a line"),
    ],
)
def test_the_judge_tells_clear_answers_from_others(answer, found):
    assert unclear(answer, "batch_size", {"batch_size": -1}) == found
