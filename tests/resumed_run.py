"""A small run in a process of its own, to be killed: resumed_run.py SAMPLER STORE DRAWS [AT].

With AT it kills itself at its AT-th write, fsync or rename, beginning with the first file of the store.
"""

import os
import signal
import sys
from functools import cache
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import mintmc
from mintmc.store import keeper

SAMPLERS = {
    "mint": mintmc.MINT(50, alpha=0.5, proposal=mintmc.RandomWalk(preconditioner="diagonal")),
    "equi-energy": mintmc.EquiEnergy(
        mintmc.Ladder([1, 4, 16], [None, 300, 100]), proposal=mintmc.Langevin(), round_length=70, capacity=50
    ),
    "sgld": mintmc.SGLD(batch_size=50, step_size=1e-5),
    "metropolis-hastings": mintmc.MetropolisHastings(mintmc.Langevin()),
    "barker": mintmc.BarkerMH(batch_size=50),
    "sghmc": mintmc.SGHMC(batch_size=50, step_size=1e-5, friction=0.1),
    "parallel-tempering": mintmc.ParallelTempering(mintmc.Ladder([1, 4, 16], [None, 300, 100])),
}


def log_likelihood(params, x):
    return -0.5 * (x - params["a"]) ** 2 - 0.5 * (x - params["b"].sum()) ** 2


@cache
def posterior(n=2000):
    """One object: what was compiled for it serves all runs of a process."""
    return mintmc.Posterior(log_likelihood, np.random.default_rng(0).normal(size=n))


def run(name, out, draws, **settings):
    settings = {"warmup": 500, "chains": 2, "progress": False} | settings
    init = {"a": 0.0, "b": jnp.zeros(2)}
    return mintmc.sample(posterior(), SAMPLERS[name], init=init, draws=draws, out=out, **settings)


def run_one_chain(out, draws):
    """One chain on so much data that two processes share its full passes."""
    sampler, init = SAMPLERS["metropolis-hastings"], {"a": 0.0, "b": jnp.zeros(2)}
    settings = {"warmup": 200, "chains": 1, "progress": False}
    return mintmc.sample(posterior(200_000), sampler, init=init, draws=draws, out=out, **settings)


def going_on(path):
    """A file that appears when a run has compiled and goes on."""
    return Path(f"{path}.going-on")


def kill_at(count):
    """Be killed just before one of the calls that change what is on disk, but for those of compiled programs."""
    left, programs = [count], os.environ.get("JAX_COMPILATION_CACHE_DIR", "no such folder")

    def killing(function):
        def wrapped(*args, **kwargs):
            left[0] -= not str(args[0]).startswith(programs)
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)

        return wrapped

    for name in ("open", "write", "fsync", "replace", "mkdir"):
        setattr(os, name, killing(getattr(os, name)))


def main(name, path, draws, at=None):
    # As often as possible, so that a random moment is often one of saving.
    keeper._SECONDS_BETWEEN, keeper._SHARE = 0.0, 1e9
    restored = keeper.Saver.restored

    def restored_and_said(self, like):
        found = restored(self, like)
        going_on(path).touch()
        return found

    keeper.Saver.restored = restored_and_said
    if at is not None:
        kill_at(int(at))
    run(name, path, int(draws))


if __name__ == "__main__":
    main(*sys.argv[1:])
