import json

import arviz_stats
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from truth import gaussian_data


def tree_of(init, log_likelihood, **settings):
    posterior = mintmc.Posterior(log_likelihood, gaussian_data(500))
    sampler = settings.pop("sampler", mintmc.MINT(batch_size=50, alpha=0.5))
    return mintmc.sample(posterior, sampler, init=init, draws=200, warmup=100, chains=2, progress=False, **settings)


def test_params_of_a_dict_become_variables_by_name():
    tree = tree_of(
        {"mean": 0.0, "noise": {"log_sd": np.zeros((2, 3))}},
        lambda p, x: -0.5 * (x - p["mean"]) ** 2 - jnp.sum(p["noise"]["log_sd"] ** 2),
    )
    group = tree["tempered_posterior"]
    assert group["mean"].dims == ("chain", "draw")
    assert group["noise.log_sd"].shape == (2, 200, 2, 3)


def test_a_bare_array_is_called_theta_and_a_tuple_is_numbered():
    assert "theta" in tree_of(0.0, lambda t, x: -0.5 * (x - t) ** 2)["tempered_posterior"]
    group = tree_of((0.0, np.zeros(2)), lambda p, x: -0.5 * (x - p[0]) ** 2 - jnp.sum(p[1] ** 2))["tempered_posterior"]
    assert set(group.data_vars) == {"theta_0", "theta_1"}


def test_the_group_says_the_temperature():
    def log_likelihood(t, x):
        return -0.5 * (x - t) ** 2

    cold = tree_of(0.0, log_likelihood, sampler=mintmc.MetropolisHastings())
    hot = tree_of(0.0, log_likelihood, sampler=mintmc.MetropolisHastings(temperature=2.0))
    assert set(cold.children) == {"posterior", "sample_stats", "start"}
    assert set(hot.children) == {"tempered_posterior", "sample_stats", "start"}
    assert hot["tempered_posterior"].attrs["temperature"] == 2.0


def test_arviz_reads_it():
    tree = tree_of(0.0, lambda t, x: -0.5 * (x - t) ** 2)
    summary = arviz_stats.summary(tree, group="tempered_posterior")
    assert {"mean", "sd", "r_hat"} <= set(summary.columns)
    assert np.isfinite(arviz_stats.ess(tree, group="tempered_posterior")["theta"])


def test_attributes_say_what_made_it():
    attributes = tree_of(0.0, lambda t, x: -0.5 * (x - t) ** 2, seed=3).attrs
    assert attributes["seed"] == 3
    assert attributes["n"] == 500
    settings = json.loads(attributes["sampler_settings"])
    assert settings["kind"] == "MINT"
    assert settings["proposal"]["kind"] == "RandomWalk"
    assert {"compile_time", "warmup_time", "sampling_time"} <= set(attributes)


def test_statistics_of_every_draw_are_there():
    stats = tree_of(0.0, lambda t, x: -0.5 * (x - t) ** 2)["sample_stats"]
    for name in ("accepted", "acceptance_rate", "log_ratio_noise", "data_touched"):
        assert stats[name].dims == ("chain", "draw")
    assert stats["accepted"].dtype == bool
    assert "energy" not in stats  # not known on batches


def test_diagnose_refuses_a_tree_without_draws():
    tree = tree_of(0.0, lambda t, x: -0.5 * (x - t) ** 2)
    del tree["tempered_posterior"]
    with pytest.raises(ValueError, match="tree must have a group posterior or tempered_posterior"):
        mintmc.diagnose(tree)
