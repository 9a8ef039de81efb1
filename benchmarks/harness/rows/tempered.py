"""Tied means, T > 1: MINT over samplers on all data at the same temperature, effective draws a core-second."""

import jax
import jax.numpy as jnp
import numpy as np

import mintmc
from harness import peers
from harness.line import line
from harness.peers import Run, by_blackjax
from harness.process import cores
from harness.rows.one_mode import rounds_of
from harness.workloads import tied
from mintmc.experiments.tied_means import experiment as tied_means

INIT = np.array([0.5, 0.0], np.float32)


class Tempered:
    """The tied means at a temperature, as peers see them: nothing is whitened, the law is wide and has two modes."""

    def __init__(self, posterior, temperature):
        self.n, self.d, self.temperature = posterior.n, 2, temperature
        self.on_device = jnp.asarray(posterior.rows)

    def log_density(self, theta, rows):
        """The whole energy is tempered, as MINT's."""
        log_likelihood = jax.vmap(tied_means.log_likelihood, (None, 0))(theta, rows).sum()
        return (log_likelihood + tied_means.log_prior(theta)) / self.temperature

    def theta(self, draws):
        """Draws as they are."""
        return np.asarray(draws)


def tied_means_at(n=1_000_000, batch=1000, draws=100_000, their_draws=None, rounds=2):
    """MINT at alpha = 0.5 beside full-batch random walks of ours, and BlackJAX's NUTS and MALA."""
    posterior, chains = tied(n), cores()
    sampler = mintmc.MINT(batch, alpha=0.5)
    temperature = sampler.target_temperature(n)
    their_draws = their_draws or int(min(4000, max(200, 2e8 / n)))

    def by(sampler, draws):
        settings = {"init": INIT, "warmup": 500, "chains": chains, "progress": False, "audit": False}
        mintmc.sample(posterior, sampler, draws=100, **settings)

        def run(seed):
            tree = mintmc.sample(posterior, sampler, draws=draws, seed=seed, **settings)
            taken, touched = tree.attrs["sampling_time"] * chains, float(tree.sample_stats["data_touched"].sum())
            return Run(tree["tempered_posterior"]["theta"].values, taken, touched)

        return run

    walk = mintmc.MetropolisHastings(temperature=temperature)
    wanted = {"BlackJAX NUTS": ("blackjax", by_blackjax.nuts), "BlackJAX MALA": ("blackjax", by_blackjax.mala)}
    ready, missing = peers.built(wanted, Tempered(posterior, temperature), their_draws)
    contestants = {"ours": by(sampler, draws), "our MH on all data": by(walk, their_draws), **ready}
    rates, rows = rounds_of(contestants, rounds)
    counts = {f"rows an effective draw, {name}": value for name, value in rows.items()}
    ours = rates.pop("ours")
    settings = {"unit": "a core-second", "counts": counts, "skipped": missing}
    point = {"n": n, "d": 2, "m": batch, "chains": chains, "cores": chains}
    what = f"effective draws at T = {temperature:,.0f}, m = {batch}"
    return [line(f"tied means, n = {n:.0e}", what, ours, rates, **settings, point=point)]
