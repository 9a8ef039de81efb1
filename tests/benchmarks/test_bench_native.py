"""The programs in C compute what they are compared with."""

import numpy as np
import pytest

from harness import native

ROWS = 1000
pytestmark = pytest.mark.skipif(not native.has_compiler(), reason="no C compiler (cc or gcc)")


def uniforms(count):
    """The program's own generator, xorshift64."""
    bits, mask, found = 88172645463325252, 2**64 - 1, []
    for _ in range(count):
        bits ^= bits << 13 & mask
        bits ^= bits >> 7
        bits ^= bits << 17 & mask
        found.append(((bits >> 11) + 0.5) * 2.0**-53)
    return np.array(found)


def test_the_pass_over_the_mixture_is_right_with_any_number_of_threads():
    radius, angle, apart = uniforms(3 * ROWS).reshape(ROWS, 3).T
    x = np.sqrt(-2 * np.log(radius)) * np.cos(2 * np.pi * angle) + 2 * (apart < 1 / 50)
    theta = np.array([2.0] + [0.01 * (j % 7) for j in range(1, 50)])
    parts = np.exp(x[:, None] * theta - theta**2 / 2)
    value, slope = np.log(parts.sum(axis=1)).sum(), (parts[:, 0] / parts.sum(axis=1) * (x - 2)).sum()
    program = native.built("mixture_pass", N=ROWS)
    for threads in (1, 2, 3):
        _, found, gradient = native.printed(program, 1, threads)
        # float32: 24 bits of every one of 1,000 terms.
        assert found == pytest.approx(value, rel=1e-6)
        assert gradient == pytest.approx(slope, abs=1e-3)


def test_the_step_in_c_accepts_about_as_often_as_ours_does():
    """A random walk of two parameters at alpha = 0.5 whose step suits it; far from 0 and 1 in any case."""
    _, accepted = native.printed(native.built("mint_step", N=ROWS, M=100), 2000)
    assert 0.05 < accepted < 0.95
