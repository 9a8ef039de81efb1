"""What ``diagnose`` found, and how it reads: numbers by stable names, words for them, limits that they are held to."""

from __future__ import annotations

from dataclasses import dataclass

from mintmc.markup import Html, card, element, joined, listed, table

MAX_RHAT = 1.01
MIN_ESS_PER_CHAIN = 100
MAX_NOISE = 4.0
"""Above this the penalty rejects most moves, and normality of the tails matters."""
MAX_HEATING = 1.05

WORDS = {
    "temperature": "temperature",
    "acceptance": "acceptance",
    "lowest_acceptance": "lowest acceptance of a chain",
    "undefined_moves": "undefined moves",
    "noise_mean": "log-ratio noise, mean",
    "noise_95": "log-ratio noise, 95%",
    "rhat": "R-hat",
    "ess_bulk": "ESS, bulk",
    "ess_tail": "ESS, tail",
    "ess_per_million": "ESS per million data touched",
    "expected_bias": "expected bias, standard deviations",
    "expected_spread": "expected error of the spread",
    "ratio_skewness": "skewness of the log ratio",
    "residual_noise": "residual noise, on all data",
    "ratio_kurtosis": "excess kurtosis of the log ratio",
    "centre_distance": "distance from the centre, standard deviations",
    "centre_farthest": "the same, farthest draw",
    "centre_checked": "the same, farthest move checked",
    "slowest_fall": "fall of the density at three standard deviations, over a normal's",
    "implied_temperature": "temperature that the noise implies",
    "rungs": "rungs",
    "lowest_rung_acceptance": "lowest acceptance of a rung",
    "largest_rung_noise": "largest log-ratio noise of a rung",
    "lowest_jump_rate": "lowest jump rate",
    "lowest_swap_rate": "lowest swap rate",
    "unfed": "states without a ring to jump to",
    "round_trips": "round trips",
    "modes": "modes",
    "modes_unseen": "modes not seen, estimated",
    "leap_acceptance": "acceptance of leaps",
    "leap_noise": "log-ratio noise of leaps",
    "mode_chi_square": "weights of modes, chi-square per degree of freedom",
}
"""How each number is called where it is printed; the names themselves stay the same from release to release."""


@dataclass(frozen=True)
class Diagnosis:
    """What ``diagnose`` found: numbers by name (``WORDS`` says what each is), warnings with advice, notes.

    It prints as a short report.
    """

    numbers: dict[str, float]
    warnings: tuple[str, ...]
    table: str = ""
    notes: tuple[str, ...] = ()

    @property
    def trusted(self) -> bool:
        """True if nothing speaks against the run."""
        return not self.warnings

    @property
    def verdict(self) -> str:
        """Whether to trust the run, in one sentence."""
        return "Nothing speaks against this run." if self.trusted else "This run should not be trusted as it is."

    @property
    def words(self) -> dict[str, str]:
        """The numbers as they are shown, by what they are called."""
        return {WORDS.get(name, name): _round(value) for name, value in self.numbers.items()}

    def _repr_html_(self) -> Html:
        notes = joined([element("div", "What it cannot know:"), listed(self.notes)]) if self.notes else ""
        numbers = table(("number", "value"), self.words.items())
        rungs = element("pre", self.table) if self.table else ""
        return card(self.verdict, listed(self.warnings), notes, numbers, rungs, tone="good" if self.trusted else "bad")

    def __str__(self) -> str:
        width = max(map(len, self.words))
        lines = [f"  {name:<{width}}  {value}" for name, value in self.words.items()]
        verdict = self.verdict if self.trusted else f"{self.verdict.removesuffix('.')}:"
        table = [self.table] if self.table else []
        notes = ["What it cannot know:", *(f"  - {note}" for note in self.notes)] if self.notes else []
        return "\n".join([*table, *lines, verdict, *(f"  - {warning}" for warning in self.warnings), *notes])


def _round(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
