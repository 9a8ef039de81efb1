"""Sums of log-likelihoods: the one place where n, m, T and the prior are scaled.

With l_i(theta) the log-likelihood of datum i, the chain's target is

    log pi_T(theta) = B(theta) - U(theta) / T.

If the posterior is tempered (the paper's definition), U = -(sum_i l_i + log prior) is the energy; if the likelihood
alone is (the fractional posterior), U = -sum_i l_i, and the log prior belongs to B, which no temperature divides. The
log Jacobian of a change of variables always does: it belongs to the coordinates, not to the model. Where states change
places on a ladder B cancels. The likelihood's term is n_eff * mean_i l_i, n_eff = n / T.

On a batch S of m of the n rows, drawn without replacement, the mean of any f_i has the estimated variance

    var_S(f_i) / m * (1 - m/n),

so an estimated log ratio n_eff * mean_S(l_i(theta') - l_i(theta)) has noise s2 = n_eff^2 times that.

A sum of 1e6 log-likelihoods does not fit into float32 (an error of 0.1), so a full pass carries it in two floats: every
addition's rounding error is computed exactly (Knuth's two-sum) and summed beside the result.

A state of density zero (a log prior or log-likelihood of -inf) is no error: a move there has the log ratio -inf. The
prior comes first: what the likelihood says where the prior is zero does not count, even if it is not a number.
"""

from mintmc.energy.density import Density
from mintmc.energy.model import DATA_AXIS, PARTS, Model, Referenced, block_size
from mintmc.energy.tempered import TEMPERS, Estimate, Tempered
from mintmc.energy.truncated import Truncated
from mintmc.energy.two_floats import two_sum

__all__ = [
    "DATA_AXIS",
    "PARTS",
    "TEMPERS",
    "Density",
    "Estimate",
    "Model",
    "Referenced",
    "Tempered",
    "Truncated",
    "block_size",
    "two_sum",
]
