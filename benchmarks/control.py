"""T = 1 from mini-batches with control variates, beside samplers on all data: NumPyro's NUTS and BlackJAX's HMC.

    pip install numpyro blackjax
    python benchmarks/control.py            # all parts, about fifteen minutes on two idle cores
    python benchmarks/control.py law slope  # some of them

Each row runs in a process of its own and is printed as it is measured; all of them go to benchmarks/control.json. Time
is core-time: of the whole process where it is a rival's, seconds times cores where it is ours. Compiling is left out on
both sides.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import mintmc
from harness.process import answer, measured
from harness.timing import core_seconds, smallest_ess
from harness.workloads import logistic_data, logistic_likelihood, regression, student_likelihood, wide_prior

HERE = Path(__file__).parent
CHAINS = 2


def posterior_of(x, y, log_likelihood=logistic_likelihood):
    return mintmc.Posterior(log_likelihood, {"x": x, "y": y}, wide_prior)


def mint(posterior, d, draws, **settings):
    """Draws of MINT with control variates, and core-seconds of sampling; compiled before."""
    sampler = mintmc.MINT(settings.pop("batch_size", 100), temperature=1.0, control=mintmc.Taylor())
    given = {"init": np.zeros(d), "warmup": 500, "chains": CHAINS, "progress": False, "audit": False} | settings
    mintmc.sample(posterior, sampler, draws=2000, **given)
    tree = mintmc.sample(posterior, sampler, draws=draws, **given)
    return tree, tree.attrs["sampling_time"] * CHAINS


def set_up(posterior, d):
    """Core-seconds of finding the mode and the Hessian, compiled before; and the mode."""
    mintmc.find_mode(posterior, np.zeros(d))
    begun = core_seconds()
    mode = mintmc.find_mode(posterior, np.zeros(d))
    return core_seconds() - begun, mode


def nuts(x, y, start, warmup, draws):
    """Draws of NumPyro's NUTS, core-seconds of warm-up and of sampling."""
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    def model(x, y):
        beta = numpyro.sample("beta", dist.Normal(0, 10).expand([x.shape[1]]).to_event(1))
        numpyro.sample("y", dist.Bernoulli(logits=x @ beta), obs=y)

    mcmc = MCMC(NUTS(model), num_warmup=warmup, num_samples=draws, progress_bar=False, jit_model_args=True)
    init, given = {"beta": jnp.asarray(start)}, (jnp.asarray(x), jnp.asarray(y))
    begun = core_seconds()
    mcmc.warmup(jax.random.key(0), *given, init_params=init, collect_warmup=False)
    warmed = core_seconds()
    mcmc.run(jax.random.key(1), *given)
    jax.block_until_ready(mcmc.get_samples())
    ended = core_seconds()
    return np.asarray(mcmc.get_samples()["beta"])[None], warmed - begun, ended - warmed


def hmc(x, y, start, warmup, draws, steps=8):
    """Draws of BlackJAX's HMC, core-seconds of warm-up and of sampling, compiled before."""
    import blackjax

    def log_density(beta, x, y):
        eta = x @ beta
        return jnp.dot(y, eta) - jnp.logaddexp(0.0, eta).sum() + wide_prior(beta)

    def adapt(key, start, x, y):
        warm = blackjax.window_adaptation(
            blackjax.hmc, lambda beta: log_density(beta, x, y), num_integration_steps=steps
        )
        (state, parameters), _ = warm.run(key, start, num_steps=warmup)
        return state, {name: parameters[name] for name in ("step_size", "inverse_mass_matrix")}

    def sample(key, state, parameters, x, y):
        kernel = blackjax.hmc(lambda beta: log_density(beta, x, y), **parameters, num_integration_steps=steps)

        def one(state, key):
            state, _ = kernel.step(key, state)
            return state, state.position

        return jax.lax.scan(one, state, jax.random.split(key, draws))[1]

    given = (jnp.asarray(x), jnp.asarray(y))
    adapt = jax.jit(adapt).lower(jax.random.key(0), jnp.asarray(start), *given).compile()
    begun = core_seconds()
    state, parameters = jax.block_until_ready(adapt(jax.random.key(0), jnp.asarray(start), *given))
    warmed = core_seconds() - begun
    sample = jax.jit(sample).lower(jax.random.key(1), state, parameters, *given).compile()
    begun = core_seconds()
    positions = jax.block_until_ready(sample(jax.random.key(1), state, parameters, *given))
    return np.asarray(positions)[None], warmed, core_seconds() - begun


def law(n):
    """Means and deviations of all 20 coefficients against all data: NUTS up to 1e5 rows, beyond it full-batch MH."""
    n, d = int(n), 20
    x, y = logistic_data(n, d)
    posterior = posterior_of(x, y)
    tree, _ = mint(posterior, d, 70_000)
    ours = tree.posterior["theta"].values.astype(float)
    if n <= 100_000:
        # Deviations to 1% take 5,000 effective draws of squares, of which NUTS makes fewer than of the means.
        theirs, _, _ = nuts(x, y, np.asarray(mintmc.find_mode(posterior, np.zeros(d)).params), 500, 15_000)
        reference = "NUTS"
    else:
        sampler = mintmc.MetropolisHastings(mintmc.Autoregressive())
        given = {"init": np.zeros(d), "warmup": 100, "chains": CHAINS, "progress": False}
        theirs = mintmc.sample(posterior, sampler, draws=3500, **given).posterior["theta"].values
        reference = "full-batch MH, autoregressive"
    theirs = np.asarray(theirs, float)
    ess = [smallest_ess(draws) for draws in (ours, theirs)]
    means = [draws.mean((0, 1)) for draws in (ours, theirs)]
    ess_of_squares = [smallest_ess((draws - draws.mean((0, 1))) ** 2) for draws in (ours, theirs)]
    deviations = [draws.std((0, 1)) for draws in (ours, theirs)]
    scale, error = deviations[1], np.sqrt(1 / ess[0] + 1 / ess[1])
    ratio, ratio_error = deviations[0] / deviations[1] - 1, np.sqrt(sum(0.5 / number for number in ess_of_squares))
    return {
        "what": f"law at n = {n:.0e}, d = 20, against {reference}",
        "mean, largest distance in standard errors": float(np.abs((means[0] - means[1]) / scale / error).max()),
        "deviation, largest relative difference": float(np.abs(ratio).max()),
        "the same in standard errors": float(np.abs(ratio / ratio_error).max()),
        "the same, mean over coefficients": float(ratio.mean()),
        "effective draws": ess,
        "effective draws of squares": ess_of_squares,
        "bar": "3 standard errors; deviations within 1% plus their error",
    }


def step_time(n, place):
    """Core-microseconds of a step at n rows, in memory or on disk."""
    n, d = int(n), 20
    x, y = logistic_data(n, d)
    if place == "memory":
        posterior = posterior_of(x, y)
        return {"n": n, "place": place, "microseconds": mint(posterior, d, 100_000)[1] / CHAINS / 100_000 * 1e6}
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "rows.npy", np.column_stack([x, y]))
        del x, y
        mintmc.prepare(Path(folder) / "rows.npy", Path(folder) / "prepared")
        posterior = mintmc.Posterior(
            lambda theta, row: logistic_likelihood(theta, {"x": row[:-1], "y": row[-1]}),
            Path(folder) / "prepared",
            wide_prior,
        )
        return {"n": n, "place": place, "microseconds": mint(posterior, d, 100_000)[1] / CHAINS / 100_000 * 1e6}


def rivals(n, d):
    """Effective draws a core-second, of the worst coefficient: ours over NUTS and HMC on all data."""
    n, d = int(n), int(d)
    x, y = logistic_data(n, d)
    posterior = posterior_of(x, y)
    seconds, mode = set_up(posterior, d)
    tree, sampling = mint(posterior, d, 200_000 if d < 100 else 40_000)
    rate = smallest_ess(tree.posterior["theta"].values) / sampling
    whole = seconds + 10_000 / rate
    row = {
        "what": f"effective draws a core-second, n = {n:.0e}, d = {d}",
        "ours": rate,
        "acceptance": float(tree.sample_stats["acceptance_rate"].mean()),
        "noise": float(tree.sample_stats["log_ratio_noise"].mean()),
        "core-microseconds a step": sampling / (tree.posterior.sizes["draw"] * CHAINS) * 1e6,
        "set-up, core-seconds": seconds,
        "passes to the mode": mode.passes,
    }
    for name, rival in (("NUTS", nuts), ("HMC", hmc)):
        found, warmed, sampled = rival(x, y, np.asarray(mode.params), 500, 500)
        theirs = smallest_ess(found) / sampled
        row |= {
            name: theirs,
            f"over {name}": rate / theirs,
            f"over {name}, set-up included, 10,000 effective draws": (warmed + 10_000 / theirs) / whole,
        }
    return row | {"bar": "1,000 and 100 with set-up at n = 1e6, d = 20; 20 at n = 1e5, d = 200"}


def poisson(theta, row):
    eta = row["x"] @ theta
    return row["y"] * eta - jnp.exp(eta)


def mixture(theta, row):
    parts = jnp.stack([-0.5 * (row["y"] - theta[k]) ** 2 for k in range(3)])
    return jax.nn.logsumexp(parts)


def network(theta, row):
    w, b, v = theta[:150].reshape(3, 50), theta[150:200], theta[200:]
    return -0.5 * ((row["y"] - jnp.tanh(row["x"][:3] @ w + b) @ v) / 0.3) ** 2


def model(name):
    """The batch that was chosen for a model, its noise, and effective draws a core-second over full-batch MH."""
    n = 2000 if name == "network" else 100_000
    x, eta, rng = regression(n, 10)
    start = np.zeros(10)
    if name == "poisson":
        posterior = posterior_of(x, rng.poisson(np.exp(0.3 * eta)).astype(np.float32), poisson)
    elif name == "student":
        posterior = posterior_of(x, (eta + rng.standard_t(4, n)).astype(np.float32), student_likelihood)
    elif name == "mixture":
        y = np.array([-4.0, 0.0, 5.0])[rng.integers(0, 3, n)] + rng.normal(size=n)
        posterior, start = posterior_of(x[:, :1], y.astype(np.float32), mixture), np.array([-3.5, 0.5, 4.5])
    else:
        y = np.sin(x[:, 2]) + 0.5 * x[:, 3] * x[:, 4] + 0.3 * rng.normal(size=n)
        posterior = mintmc.Posterior(
            network, {"x": x[:, 2:5], "y": y.astype(np.float32)}, lambda theta: -0.5 * jnp.sum(theta**2)
        )
        start = 0.3 * rng.normal(size=250)
    draws = 500 if name == "network" else 50_000
    tree, seconds = mint(posterior, start.size, draws, batch_size=None, init=start, warmup=500)
    row = {
        "what": f"{name}, n = {n:.0e}, d = {start.size}",
        "batch": tree.attrs["batch_size"],
        "noise": float(tree.sample_stats["log_ratio_noise"].mean()),
        "acceptance": float(tree.sample_stats["acceptance_rate"].mean()),
        "effective draws a core-second": smallest_ess(tree.posterior["theta"].values) / seconds,
        "modes not found": tree.attrs["modes_not_found"],
    }
    if name == "network":
        return row
    given = {"init": start, "warmup": 100, "chains": CHAINS, "progress": False}
    exact = mintmc.sample(posterior, mintmc.MetropolisHastings(mintmc.Autoregressive()), draws=2000, **given)
    rate = smallest_ess(exact.posterior["theta"].values) / (exact.attrs["sampling_time"] * CHAINS)
    ours, theirs = (run.posterior["theta"].values.astype(float) for run in (tree, exact))
    error = np.sqrt(1 / smallest_ess(ours) + 1 / smallest_ess(theirs))
    distance = np.abs(ours.mean((0, 1)) - theirs.mean((0, 1))) / theirs.std((0, 1)) / error
    return row | {
        "over full-batch MH with the same proposal": row["effective draws a core-second"] / rate,
        "mean, largest distance in standard errors": float(distance.max()),
    }


PARTS = {
    "law": [("law", n) for n in ("1e4", "1e5", "1e6")],
    "slope": [("step_time", n, place) for place in ("memory", "disk") for n in ("1e5", "1e6", "1e7")],
    "rivals": [("rivals", "1e6", "20"), ("rivals", "1e5", "200")],
    "models": [("model", name) for name in ("poisson", "student", "mixture", "network")],
}
NUMBERS = {"1e4": 10_000, "1e5": 100_000, "1e6": 1_000_000, "1e7": 10_000_000}


def measure(part):
    """One row, in a process of its own."""
    begun = time.perf_counter()
    row = measured(__file__, "--one", *part) | {"seconds": time.perf_counter() - begun}
    print(json.dumps(row), flush=True)
    return row


def slopes(rows):
    """Of log time against log n, by place."""
    for place in ("memory", "disk"):
        points = [(row["n"], row["microseconds"]) for row in rows if row.get("place") == place]
        if len(points) > 1:
            slope = float(np.polyfit(*np.log(np.array(points)).T, 1)[0])
            yield {"what": f"slope of a step's time over n, {place}", "slope": slope, "bar": 0.05}


def main():
    wanted = sys.argv[1:] or list(PARTS)
    if wanted[0] == "--one":
        words = [str(NUMBERS.get(word, word)) for word in wanted[1:]]
        answer(globals(), words)
        return
    rows = [measure(part) for name in wanted for part in PARTS[name]]
    for row in slopes(rows):
        print(json.dumps(row), flush=True)
        rows.append(row)
    (HERE / "control.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
