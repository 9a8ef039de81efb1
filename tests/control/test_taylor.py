"""Expansions around a centre, against sums and differences computed in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.control import each, expand, residual_gradient

RNG = np.random.default_rng(3)
N, D = 3001, 3  # a number of rows that no block divides
X = RNG.normal(size=(N, D)).astype(np.float32)
Y = (RNG.random(N) < 0.3).astype(np.float32)
CENTRE, HERE, THERE = (RNG.normal(size=D).astype(np.float32) * 0.3 for _ in range(3))


def log_likelihood(theta, row):
    x, y = row
    return y * (x @ theta) - jnp.logaddexp(0.0, x @ theta)


POSTERIOR = mintmc.Posterior(log_likelihood, (X, Y))


def model_of(posterior, dim=D):
    return posterior.model(lambda theta: theta, dim)


def exact(centre):
    """Gradients (n, d) and Hessians (n, d, d) of all rows, in float64."""
    p = 1 / (1 + np.exp(-X.astype(float) @ centre))
    return (Y - p)[:, None] * X, -(p * (1 - p))[:, None, None] * (X[:, :, None] * X[:, None, :]).astype(float)


@pytest.fixture(scope="module")
def expansion():
    return jax.jit(lambda centre: expand(model_of(POSTERIOR), centre, POSTERIOR.rows))(jnp.asarray(CENTRE))


def test_sums_are_those_of_all_rows(expansion):
    gradients, hessians = exact(CENTRE)
    np.testing.assert_allclose(expansion.gradient, gradients.sum(0), rtol=2e-5, atol=1e-3)
    np.testing.assert_allclose(expansion.hessian, hessians.sum(0), rtol=1e-5, atol=1e-3)


def test_a_centre_elsewhere_is_told_apart(expansion):
    """The twin of the test above: the sums at another centre."""
    _, hessians = exact(CENTRE + 0.1)
    assert np.abs(expansion.hessian - hessians.sum(0)).max() > 1


def test_differences_are_those_of_parabolas(expansion):
    gradients, hessians = exact(CENTRE)
    here, there = HERE.astype(float) - CENTRE, THERE.astype(float) - CENTRE
    parabola = [gradients @ h + 0.5 * np.einsum("i,nij,j->n", h, hessians, h) for h in (here, there)]
    wanted = parabola[1] - parabola[0]
    found = each(model_of(POSTERIOR), expansion, jnp.asarray(HERE), jnp.asarray(THERE), POSTERIOR.rows)
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    np.testing.assert_allclose(expansion.total(jnp.asarray(HERE), jnp.asarray(THERE)), wanted.sum(), rtol=1e-5)


def test_order_one_is_linear():
    first = expand(model_of(POSTERIOR), jnp.asarray(CENTRE), POSTERIOR.rows, order=1)
    gradients, _ = exact(CENTRE)
    assert first.hessian is None
    found = each(model_of(POSTERIOR), first, jnp.asarray(HERE), jnp.asarray(THERE), POSTERIOR.rows)
    np.testing.assert_allclose(found, gradients @ (THERE - HERE), atol=1e-5)
    np.testing.assert_allclose(
        first.total(jnp.asarray(HERE), jnp.asarray(THERE)), (gradients @ (THERE - HERE)).sum(), rtol=1e-4
    )
    np.testing.assert_allclose(first.total_gradient(jnp.asarray(HERE)), gradients.sum(0), rtol=2e-5, atol=1e-3)


@pytest.mark.parametrize("order", [1, 2])
def test_residual_gradients_and_known_sums_add_up(order):
    """On all rows, residuals and what is known make up the gradient itself."""
    model = model_of(POSTERIOR)
    expansion = expand(model, jnp.asarray(CENTRE), POSTERIOR.rows, order)
    theta = jnp.asarray(HERE)
    whole = N * residual_gradient(model, expansion, theta, POSTERIOR.rows) + expansion.total_gradient(theta)
    np.testing.assert_allclose(whole, exact(HERE)[0].sum(0), rtol=1e-4, atol=5e-3)


def test_float32_holds_the_sums_of_many_rows():
    """To what the blocks' own sums are rounded to, 1e-6; one number after the other is off by a hundred times that."""
    n = 2**22
    posterior = mintmc.Posterior(lambda theta, x: -0.55 * (theta[0] - x) ** 2, np.full(n, 0.3, np.float32))
    found = jax.jit(lambda c: expand(model_of(posterior, 1), c, posterior.rows))(jnp.ones(1))
    np.testing.assert_allclose(found.hessian, -1.1 * n, rtol=1e-6)
    assert abs(np.cumsum(np.full(n, 1.1, np.float32))[-1] / (1.1 * n) - 1) > 1e-4


def test_data_on_disk_give_the_same(tmp_path, expansion):
    path = tmp_path / "rows.npy"
    np.save(path, np.column_stack([X, Y]))
    posterior = mintmc.Posterior(lambda theta, row: log_likelihood(theta, (row[:D], row[D])), path)
    found = jax.jit(lambda centre: expand(model_of(posterior), centre, posterior.rows))(jnp.asarray(CENTRE))
    np.testing.assert_allclose(found.gradient, expansion.gradient, rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(found.hessian, expansion.hessian, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("order", [0, 3])
def test_orders_are_one_and_two(order):
    with pytest.raises(ValueError, match=f"order must be in .1, 2., got {order}"):
        mintmc.Taylor(order=order)
