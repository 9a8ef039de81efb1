"""When a run may end before all its draws are made: goals, and the numbers of draws at which they are looked at.

These numbers grow by a quarter from one to the next and depend on nothing else, so a seed gives the same number of
draws on any machine, however often the run was stopped and gone on with. Parameters that were worst are looked at
first: as long as one of them falls short the others need not be known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mintmc import check
from mintmc.result.mixing import ess_bulk, rhat

FIRST_LOOK = 100
"""Draws of each chain before the first look."""
_DRAWS_PER_ESS = 4
"""Judged for each effective draw that is wanted: every so many of a longer run."""


@dataclass(frozen=True)
class Ess:
    """Stop when the bulk ESS of every parameter has come to ``least``: ``sample(..., until=mintmc.Ess(1000))``.

    ``draws`` is then the most draws that are made.

    Parameters
    ----------
    least
        Effective draws, of all chains together, of the parameter that has fewest.
    var_names
        Parameters, or quantities computed from them, that matter; None takes all parameters.

    Examples
    --------
    >>> import mintmc
    >>> density = mintmc.Posterior.from_density(lambda x: -0.5 * x**2)
    >>> sampler, goal = mintmc.MetropolisHastings(), mintmc.Ess(200)
    >>> tree = mintmc.sample(density, sampler, init=0.0, draws=50_000, until=goal, progress=False)
    >>> tree.posterior.sizes["draw"] < 50_000
    True
    """

    least: float
    var_names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "least", check.number("least", self.least, 0))
        object.__setattr__(self, "var_names", _names(self.var_names))

    @property
    def draws_needed(self) -> float:
        """Draws that must be judged, of all chains: fewer could not have that ESS, however well they mix."""
        return _DRAWS_PER_ESS * self.least

    def shortfalls(self, draws: np.ndarray) -> np.ndarray:
        """Of each parameter of draws (chain, draw, parameter), the less its ESS, the larger; NaN if it has none."""
        return -ess_bulk(draws)

    def value(self, shortfall: float) -> float:
        """The ESS of the parameter with the largest shortfall."""
        return -shortfall

    def is_met(self, value: float) -> bool:
        """Whether that is enough."""
        return value >= self.least

    def said(self, value: float) -> str:
        """How it reads."""
        return f"ESS is {value:,.0f}, {self.least:,.0f} wanted"


@dataclass(frozen=True)
class RHat:
    """Stop when the R-hat of every parameter is down to ``most``: ``sample(..., until=mintmc.RHat(1.01))``.

    Chains that started in one place agree early. ``Ess`` asks for more.

    Parameters
    ----------
    most
        The largest R-hat, above 1.
    var_names
        As in ``Ess``.

    Examples
    --------
    >>> import mintmc
    >>> mintmc.RHat(1.01)
    RHat(most=1.01, var_names=None)
    """

    most: float
    var_names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "most", check.number("most", self.most, 1))
        object.__setattr__(self, "var_names", _names(self.var_names))

    @property
    def draws_needed(self) -> float:
        """Draws that must be judged, of all chains; no more than others ask for."""
        return 0.0

    def shortfalls(self, draws: np.ndarray) -> np.ndarray:
        """Of each parameter of draws (chain, draw, parameter), its R-hat; NaN if it has none."""
        return rhat(draws)

    def value(self, shortfall: float) -> float:
        """The R-hat of the parameter with the largest shortfall."""
        return shortfall

    def is_met(self, value: float) -> bool:
        """Whether that is low enough."""
        return value <= self.most

    def said(self, value: float) -> str:
        """How it reads."""
        return f"R-hat is {value:.4g}, {self.most:g} wanted"


GOALS: dict[str, Any] = {"Ess": Ess, "RHat": RHat}
"""What a store may name."""


def check_goal(goal: Any, chains: int) -> None:
    """Refuse what is no goal, or none for so many chains."""
    if goal is None:
        return
    check.instance("until", goal, (Ess, RHat), "mintmc.Ess(...) or mintmc.RHat(...)")
    if isinstance(goal, RHat) and chains < 2:
        raise ValueError(f"until must be mintmc.Ess(...) where one chain runs alone, got {goal}")


def check_names(goal: Any, known: Mapping[str, Any]) -> None:
    """Refuse a goal for parameters that there are not."""
    for name in goal.var_names or ():
        if name not in known:
            raise ValueError(f"until must have var_names among {', '.join(sorted(known))}, got {goal}")


def restored_goal(coded: Any) -> Any:
    """The goal that a store holds, None if it holds none that can be read."""
    if not isinstance(coded, dict) or coded.get("kind") not in GOALS:
        return None
    names = coded.get("var_names")
    bound = {name: value for name, value in coded.items() if name not in ("kind", "var_names")}
    return GOALS[coded["kind"]](**bound, var_names=names["tuple"] if isinstance(names, dict) else None)


def next_look(drawn: int) -> int:
    """The first number of draws above ``drawn`` at which goals are looked at.

    Examples
    --------
    >>> next_look(0), next_look(100), next_look(1000)
    (100, 125, 1151)
    """
    look = FIRST_LOOK
    while look <= drawn:
        look += look // 4
    return look


def is_look(drawn: int) -> bool:
    """Whether goals are looked at after so many draws."""
    return drawn > 0 and next_look(drawn - 1) == drawn


def _names(given: Any) -> tuple[str, ...] | None:
    if given is None:
        return None
    names = [given] if isinstance(given, str) else check.listed("var_names", given, "a list of names")
    if not names or not all(isinstance(name, str) for name in names):
        raise TypeError(f"var_names must be a list of names of parameters, got {check.shown(given)}")
    return tuple(names)
