"""Every mistake with a ladder sampler is refused before anything compiles, by argument, with the value."""

import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mistakes import each_refused
from truth import gaussian_data, gaussian_log_likelihood

POSTERIOR = mintmc.Posterior(gaussian_log_likelihood, gaussian_data(100))
DENSITY = mintmc.Posterior.from_density(lambda x: -0.5 * x**2)
LADDER = mintmc.Ladder([1, 2, 4])
NOISY = mintmc.Ladder([1, 2, 4], [None, 50, 20])


def make(ladder=LADDER, **settings):
    return mintmc.EquiEnergy(ladder, **settings)


def paper(**settings):
    return mintmc.MINTEE(**({"smallest_batch": 10} | settings))


def run(sampler, posterior=POSTERIOR, init=0.0):
    return mintmc.sample(posterior, sampler, init=init, draws=5, warmup=5, chains=1, progress=False)


MISTAKES = {
    # name: (what to call, error, what the message says)
    "ladder a list": (lambda: make([1, 2, 4]), TypeError, r"ladder must be a mintmc.Ladder, got \[1, 2, 4\]"),
    "no ladder, but steps of its rungs": (
        lambda: make(None, steps=(1, 2)),
        ValueError,
        r"ladder must be given with steps, got None and \(1, 2\)",
    ),
    "no ladder, but jumps of its rungs": (
        lambda: make(None, jump_probability=(0.1, 0.2)),
        ValueError,
        r"ladder must be given with jump_probability, got None and \(0.1, 0.2\)",
    ),
    "no ladder to truncate at": (
        lambda: make(None, truncate=True, rings=mintmc.SpacedRings(c=10.0)),
        ValueError,
        "ladder must be given with truncate, got None and True",
    ),
    "no ladder, but control of its batches": (
        lambda: mintmc.ParallelTempering(control=mintmc.Taylor()),
        ValueError,
        "ladder must be given with control, got None",
    ),
    "ladder a word": (lambda: make("mint"), TypeError, "ladder must be a mintmc.Ladder, got 'mint'"),
    "jump below 0": (
        lambda: make(jump_probability=-0.1),
        ValueError,
        r"jump_probability must be in \[0, 1\), got -0.1",
    ),
    "always a jump": (lambda: make(jump_probability=1), ValueError, r"jump_probability must be in \[0, 1\), got 1"),
    "temper": (lambda: make(temper="prior"), ValueError, "temper must be one of .*, got 'prior'"),
    "jump above 1": (lambda: make(jump_probability=1.1), ValueError, r"jump_probability must be in \[0, 1\), got 1.1"),
    "jump nan": (lambda: make(jump_probability=np.nan), ValueError, r"jump_probability must be in \[0, 1\), got nan"),
    "jump a word": (
        lambda: make(jump_probability="often"),
        TypeError,
        r"jump_probability must be a number in \[0, 1\), got 'often'",
    ),
    "a jump too few": (
        lambda: make(jump_probability=(0.1, 0.2)),
        ValueError,
        r"jump_probability must have one entry for each of 3 rungs, got \(0.1, 0.2\)",
    ),
    "one jump above 1": (
        lambda: make(jump_probability=(0.1, 1.2, 0.3)),
        ValueError,
        r"jump_probability must be in \[0, 1\), got 1.2",
    ),
    "MINTEE, jump above 1": (lambda: paper(jump_probability=2), ValueError, r"jump_prob.* in \[0, 1\), got 2"),
    "edges falling": (
        lambda: make(rings=[3.0, 1.0]),
        ValueError,
        r"rings must be strictly increasing edges, got \[3.0, 1.0\]",
    ),
    "edges twice": (lambda: make(rings=[1.0, 1.0]), ValueError, "rings must be strictly increasing edges, got"),
    "no edges": (lambda: make(rings=[]), ValueError, r"rings must be strictly increasing edges, got \[\]"),
    "edge nan": (lambda: make(rings=[1.0, np.nan]), ValueError, "rings must be in .*, got nan"),
    "edge infinite": (lambda: make(rings=[1.0, np.inf]), ValueError, "rings must be in .*, got inf"),
    "edge a word": (lambda: make(rings=[1.0, "high"]), TypeError, "rings must be a number .*, got 'high'"),
    "rings a word": (lambda: make(rings="quantile"), TypeError, "rings must be QuantileRings, .*, got 'quantile'"),
    "rings a number": (lambda: make(rings=5), TypeError, "rings must be QuantileRings, .*, got 5"),
    "MINTEE, edges falling": (lambda: paper(rings=[3.0, 1.0]), ValueError, "rings must be strictly increasing"),
    "no ring": (lambda: mintmc.QuantileRings(0), ValueError, "count must be at least 1, got 0"),
    "half a ring": (lambda: mintmc.QuantileRings(2.5), TypeError, "count must be a whole number .*, got 2.5"),
    "no spacing": (lambda: mintmc.SpacedRings(c=0.0), ValueError, r"c must be in \(0, inf\), got 0"),
    "lowest nan": (lambda: mintmc.SpacedRings(lowest=np.nan), ValueError, "lowest must be in .*, got nan"),
    "no capacity": (lambda: make(capacity=0), ValueError, "capacity must be at least 1, got 0"),
    "MINTEE, no capacity": (lambda: paper(capacity=0), ValueError, "capacity must be at least 1, got 0"),
    "shared a number": (lambda: make(share_rings=1), TypeError, "share_rings must be True or False, got 1"),
    "truncate a number": (lambda: make(truncate=1), TypeError, "truncate must be True or False, got 1"),
    "penalty a word": (lambda: make(penalty="yes"), TypeError, "penalty must be True or False, got 'yes'"),
    "truncate at quantiles": (
        lambda: make(truncate=True),
        ValueError,
        r"rings must be SpacedRings or edges with truncate=True, got QuantileRings\(count=20\)",
    ),
    "MINTEE, truncate at quantiles": (
        lambda: paper(truncate=True),
        ValueError,
        "rings must be SpacedRings or edges with truncate=True, got QuantileRings",
    ),
    "too few edges to truncate": (
        lambda: make(truncate=True, rings=[1.0]),
        ValueError,
        "rings must have 2 edges or more to truncate at, got 1",
    ),
    "no feed": (lambda: make(feed=0), ValueError, "feed must be at least 1, got 0"),
    "no round": (lambda: make(round_length=0), ValueError, "round_length must be at least 1, got 0"),
    "too few steps": (
        lambda: make(steps=(1, 2)),
        ValueError,
        r"steps must have one entry for each of 3 rungs, got \(1, 2\)",
    ),
    "no steps": (lambda: make(steps=(1, 0, 1)), ValueError, "steps must be at least 1, got 0"),
    "half a step": (lambda: make(steps=(1, 1.5, 1)), TypeError, "steps must be a whole number .*, got 1.5"),
    "unknown batching": (lambda: make(batching="x"), ValueError, "batching must be one of 'shuffled'.*got 'x'"),
    "batches of a density": (
        lambda: run(make(NOISY), DENSITY),
        ValueError,
        "batch_sizes must be None for a density without data, got 50",
    ),
    "batch above n": (
        lambda: run(make(mintmc.Ladder([1, 2, 4], [None, 500, 20]))),
        ValueError,
        r"batch_sizes must be in \[2, n=100\], got 500",
    ),
    "reference of another size": (
        lambda: run(make(reference=np.zeros(3))),
        ValueError,
        "reference must have 1 parameters like init, got 3",
    ),
    "reference whole": (lambda: run(make(reference=3)), TypeError, "reference must be an array of floats, got dtype"),
    "reference nan": (lambda: run(make(reference=np.nan)), ValueError, "reference must be finite, got nan"),
    "no proposal": (
        lambda: run(make(proposal="walk")),
        TypeError,
        "proposal must be RandomWalk, Langevin, Hamiltonian, NUTS or Custom, got 'walk'",
    ),
    "not differentiable": (
        lambda: run(
            make(proposal=mintmc.Langevin()),
            mintmc.Posterior.from_density(lambda x: -jnp.asarray(np.asarray(x) ** 2)),
        ),
        ValueError,
        "proposal Langevin needs a log density that JAX can differentiate",
    ),
    "start of probability zero": (
        lambda: run(make(), mintmc.Posterior.from_density(lambda x: jnp.where(x > 1, 0.0, -jnp.inf))),
        ValueError,
        "log_density must be finite at init, got -inf",
    ),
    "MINTEE on a density": (
        lambda: run(paper(), DENSITY),
        ValueError,
        "posterior must have data to take mini-batches of, got a density without data",
    ),
    "MINTEE, batch above n": (
        lambda: run(paper(smallest_batch=100)),
        ValueError,
        r"smallest_batch must be in \[2, n - 1=99\], got 100",
    ),
    "MINTEE, batch of one": (lambda: paper(smallest_batch=1), ValueError, "smallest_batch must be at least 2, got 1"),
    "MINTEE, no growth": (lambda: paper(growth=1.0), ValueError, r"growth must be in \(1, inf\), got 1"),
    "MINTEE, alpha": (lambda: paper(alpha=1.0), ValueError, r"alpha must be in \(0, 1\), got 1"),
    "MINTEE, too many rungs": (lambda: run(paper(rungs=50)), ValueError, "rungs must be at most .*, got 50"),
    "MINTEE, one rung": (lambda: run(paper(rungs=1)), ValueError, "rungs must be at least 2, got 1"),
    "MINTEE, reference": (lambda: run(paper(reference=np.zeros(3))), ValueError, "reference must have 1 parameters"),
    "MINTEE, too few edges to truncate": (
        lambda: run(paper(truncate=True, rings=[1.0])),
        ValueError,
        "rings must have .* edges or more to truncate at, got 1",
    ),
}


test_mistake_is_refused = each_refused(MISTAKES)


@pytest.mark.usefixtures("no_compiler")
def test_the_fixture_sees_the_compiler():
    """Else the table above would say nothing of when a mistake is refused."""
    with pytest.raises(AssertionError, match="a mistake reached the compiler"):
        run(make(), DENSITY)
