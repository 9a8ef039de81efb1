"""Stochastic-gradient samplers: follow the gradient on a batch, add noise, test nothing.

Cheap and never exact at a constant step; both stay in the mode they start in. They are here to be compared with.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from mintmc import check
from mintmc.control import Controlled, Taylor
from mintmc.data import BATCHINGS
from mintmc.energy import TEMPERS, Tempered
from mintmc.flat import FlatTarget
from mintmc.kernels.schedule import StepSize, check_step_size, largest_step
from mintmc.kernels.sghmc import SGHMCKernel
from mintmc.kernels.sgld import SGLDKernel
from mintmc.params import Params
from mintmc.posterior import Posterior
from mintmc.proposals import initial_scale
from mintmc.proposals.tuning import check_preconditioner
from mintmc.run.settle import Setting, Settled, check_settled
from mintmc.samplers.base import KernelSampler, check_differentiable, check_has_data, check_settings
from mintmc.samplers.control import check_control, check_control_fits
from mintmc.samplers.step_size import choose


@dataclass(frozen=True)
class SGLD(KernelSampler):
    """Stochastic gradient Langevin dynamics: theta <- theta + eps/2 M grad log pi_T + N(0, eps M).

    At a constant step the draws are too wide, the more the larger the step and the smaller the batch
    (``mintmc.kernels.sgld`` has the formula). With a schedule, weigh the draws by ``sample_stats["step_size"]``.

    Parameters
    ----------
    batch_size
        m, the rows of one batch; n is unadjusted Langevin on all data.
    temperature
        T in exp(-energy / T).
    step_size
        eps: a constant, or a schedule such as ``Polynomial.between(1e-2, 1e-4, steps)``, where steps of warm-up count.
        None finds the mode and takes the largest constant at which no direction's variance is off by more than 5%, by
        the curvature there and the noise of batch gradients; it says how slowly that forgets.
    temper
        "posterior" divides the whole energy by T, "likelihood" leaves the prior as it is.
    batching
        "shuffled" (slices of a shuffled copy) or "uniform" (a fresh subset at every step, slower).
    preconditioner
        M: None, a vector of variances or a covariance matrix of the flat parameters.
    control
        ``Taylor()``: gradients known to first order around the mode, batches for what is left (SGLD-CV).

    Examples
    --------
    >>> import numpy as np, mintmc
    >>> x = np.random.default_rng(0).normal(size=1000)
    >>> posterior = mintmc.Posterior(lambda mean, x: -0.5 * (x - mean) ** 2, x)
    >>> sampler = SGLD(batch_size=100)
    >>> tree = mintmc.sample(posterior, sampler, init=0.0, draws=500, chains=2, progress=False)
    >>> weights = tree.sample_stats["step_size"]
    >>> bool(abs((weights * tree.posterior["theta"]).sum() / weights.sum() - x.mean()) < 0.1)
    True
    """

    batch_size: int
    _: KW_ONLY
    temperature: float = 1.0
    step_size: StepSize | None = None
    temper: str = "posterior"
    batching: str = "shuffled"
    preconditioner: Any = None
    control: Taylor | None = None

    @property
    def left_open(self) -> tuple[str, ...]:
        """The step, unless it was given."""
        return ("step_size",) if self.step_size is None else ()

    def settle(self, setting: Setting) -> Settled:
        """With a step that suits the curvature and the noise."""
        return choose(self, setting)

    def __post_init__(self) -> None:
        _check_settings(self)
        if isinstance(self.preconditioner, str):
            raise TypeError(
                "preconditioner must be None, a vector of variances or a covariance matrix (nothing is adapted "
                f"without an acceptance test), got {check.shown(self.preconditioner)}"
            )
        check_preconditioner(self.preconditioner)

    def check(self, posterior: Posterior, params: Params) -> None:
        """Refuse settings that do not fit the posterior or its parameters."""
        _check_fits(self, posterior, params)
        initial_scale(self.preconditioner, posterior.flat(params).dim, float)

    def target_temperature(self, n: int) -> float:
        """The temperature of the distribution that its draws come near to."""
        return float(self.temperature)

    def kernel(self, target: FlatTarget) -> SGLDKernel:
        """The kernel of one chain."""
        check_settled(self)
        assert self.step_size is not None
        tempered = _tempered(self, target)
        scale = initial_scale(self.preconditioner, target.dim, target.dtype)
        return SGLDKernel(tempered, self.step_size, scale, self.batch_size, target.dim, target.dtype)


@dataclass(frozen=True)
class SGHMC(KernelSampler):
    """Stochastic gradient Hamiltonian Monte Carlo: Langevin with momentum r and friction C.

    r <- r + eps grad log pi_T - eps C r + N(0, 2 eps (C - eps V/2)), theta <- theta + eps r. Its step is comparable
    with the square root of SGLD's. ``mintmc.kernels.sghmc`` says how far from pi_T it settles.

    Parameters
    ----------
    batch_size
        m, the rows of one batch.
    temperature
        T in exp(-energy / T).
    step_size
        eps: a constant, or a schedule such as ``Polynomial.between(1e-2, 1e-3, steps)``, where steps of warm-up count.
        None chooses it as ``SGLD`` does.
    friction
        C, at least eps V/2 and at most 1/eps (where no momentum is left and it is SGLD). None is twice the root of the
        smallest curvature at the mode.
    noise_estimate
        V, the variance of the batch gradient of log pi_T, (n/T)^2 var_i(grad l_i) / m * (1 - m/n): a number, or one
        for each of the flat parameters. 0 leaves the gradient noise uncorrected. With ``control`` V is that of the
        residuals.
    resample_every
        Draw a fresh momentum before every so many steps; None never does, and starts at rest.
    control
        ``Taylor()``: gradients known to first order around the mode, batches for what is left.
    temper
        "posterior" divides the whole energy by T, "likelihood" leaves the prior as it is.
    batching
        "shuffled" (slices of a shuffled copy) or "uniform" (a fresh subset at every step, slower).

    Examples
    --------
    >>> import numpy as np, mintmc
    >>> x = np.random.default_rng(0).normal(size=1000)
    >>> posterior = mintmc.Posterior(lambda mean, x: -0.5 * (x - mean) ** 2, x)
    >>> sampler = SGHMC(batch_size=100, step_size=5e-3, friction=50.0, noise_estimate=1000**2 / 100 * 0.9)
    >>> tree = mintmc.sample(posterior, sampler, init=0.0, draws=500, chains=2, progress=False)
    >>> bool(abs(tree.posterior["theta"].mean() - x.mean()) < 0.1)
    True
    """

    batch_size: int
    _: KW_ONLY
    temperature: float = 1.0
    step_size: StepSize | None = None
    friction: float | None = None
    noise_estimate: Any = 0.0
    resample_every: int | None = None
    temper: str = "posterior"
    batching: str = "shuffled"
    control: Taylor | None = None

    @property
    def left_open(self) -> tuple[str, ...]:
        """Step and friction, unless they were given."""
        return tuple(name for name in ("step_size", "friction") if getattr(self, name) is None)

    def settle(self, setting: Setting) -> Settled:
        """With a step and a friction that suit the curvature and the noise."""
        return choose(self, setting)

    def __post_init__(self) -> None:
        _check_settings(self)
        if self.friction is not None:
            check.number("friction", self.friction, 0)
        if self.resample_every is not None:
            check.integer("resample_every", self.resample_every, 1, most=check.LARGEST_COUNT)
        noise = _variances("noise_estimate", self.noise_estimate)
        if self.step_size is None or self.friction is None:
            return
        step = largest_step(self.step_size)
        # Steps only ever decrease, and both limits with them: the first step decides.
        if self.friction < step * noise.max() / 2:
            raise ValueError(
                f"friction must be at least step_size * noise_estimate / 2 = {step * noise.max() / 2:g} "
                f"(less would need noise of negative variance), got {self.friction:g}"
            )
        if self.friction * step > 1:
            raise ValueError(f"friction must be at most 1/step_size = {1 / step:g}, got {self.friction:g}")

    def check(self, posterior: Posterior, params: Params) -> None:
        """Refuse settings that do not fit the posterior or its parameters."""
        _check_fits(self, posterior, params)
        shape, dim = np.shape(self.noise_estimate), posterior.flat(params).dim
        if shape not in ((), (dim,)):
            raise ValueError(f"noise_estimate must be a number or have shape ({dim},), got shape {shape}")

    def target_temperature(self, n: int) -> float:
        """The temperature of the distribution that its draws come near to."""
        return float(self.temperature)

    def kernel(self, target: FlatTarget) -> SGHMCKernel:
        """The kernel of one chain."""
        check_settled(self)
        assert self.step_size is not None
        assert self.friction is not None
        tempered = _tempered(self, target)
        noise = jnp.asarray(self.noise_estimate, target.dtype)
        settings = (self.step_size, self.friction, noise, self.resample_every, self.batch_size)
        return SGHMCKernel(tempered, *settings, target.dim, target.dtype)


def _tempered(sampler: SGLD | SGHMC, target: FlatTarget) -> Tempered:
    kind = Tempered if sampler.control is None else Controlled
    return kind(target.model, sampler.target_temperature(target.n), sampler.temper)


def _check_settings(sampler: SGLD | SGHMC) -> None:
    check_settings(sampler)
    if sampler.control is not None:
        check_control(sampler)
    check.integer("batch_size", sampler.batch_size, 1)
    if sampler.step_size is not None:
        check_step_size(sampler.step_size)
    check.number("temperature", sampler.temperature, 0)
    check.choice("temper", sampler.temper, TEMPERS)
    check.choice("batching", sampler.batching, BATCHINGS)


def _check_fits(sampler: SGLD | SGHMC, posterior: Posterior, params: Params) -> None:
    check_has_data(posterior)
    check.integer("batch_size", sampler.batch_size, 1, posterior.n, "n")
    check_differentiable(type(sampler).__name__, posterior, params)
    if sampler.control is not None:
        check_control_fits(sampler.control, None, posterior, params)


def _variances(name: str, value: Any) -> np.ndarray:
    """A variance, or a vector of them."""
    what = "a number or a vector of numbers in [0, inf)"
    array = check.array(name, value, what, dims=(0, 1))
    if array.size == 0 or (array < 0).any():
        raise ValueError(f"{name} must be {what}, got {check.shown(value)}")
    return array
