"""What ``plan`` found: samplers and what runs of them are expected to be like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mintmc import check
from mintmc.markup import Html, card, element, joined, listed, table
from mintmc.result.plots import new_figure
from mintmc.samplers import MINT
from mintmc.written import written


@dataclass(frozen=True)
class Option:
    """A sampler, and what a run of it is expected to be like."""

    sampler: Any
    seconds: float  # of the whole run
    rows: float  # read
    effective: float  # draws, of the worst parameter; NaN if it was not tried
    against: tuple[str, ...] = ()  # what speaks against it
    trial: Any = None  # the tree of its trial

    @property
    def name(self) -> str:
        """What to write to get it."""
        return written(self.sampler)

    def seconds_to(self, effective: float) -> float:
        """Seconds to so many effective draws."""
        if not self.effective > 0:
            return np.inf
        return self.seconds * max(1.0, effective / self.effective)


@dataclass(frozen=True)
class Plan:
    """What ``plan`` found: options, the best first. It prints as a table; ``sampler`` is what to pass to ``sample``."""

    options: tuple[Option, ...]
    n: int
    dim: int
    modes: int
    descents: int
    is_regular: bool
    draws: int
    warmup: int
    chains: int
    effective: float
    seconds: float

    @property
    def best(self) -> Option:
        """The first."""
        return self.options[0]

    @property
    def sampler(self) -> Any:
        """The best sampler."""
        return self.best.sampler

    @property
    def sentences(self) -> tuple[str, str, str]:
        """What was chosen, why, and what it will cost."""
        best = self.best
        why = [self._about_modes()]
        if self._measured and self.modes == 1:
            size, noise = self._measured["batch_size"], self._measured["residual_noise"]
            what = "is enough" if isinstance(best.sampler, MINT) else f"has a noise of {noise:.1g}, all data none"
            why.append(f"a batch of {size:,} rows {what}")
        cost = f"about {_seconds(best.seconds)}, {best.rows:.2g} rows"
        if best.effective > 0:
            cost += f", {best.effective:,.0f} effective draws of {self.draws * self.chains:,}"
            if best.effective < self.effective:
                more = int(np.ceil(self.draws * self.effective / best.effective))
                cost += f" (draws={more} would give {self.effective:,.0f})"
        others = [f"{other.name} {_seconds(other.seconds)}" for other in self.options[1:2]]
        against = f"; but {best.against[0]}" if best.against else ""
        return (
            f"chosen: {best.name}{against}",
            f"why:    {'; '.join(why)}",
            f"cost:   {'; next best: '.join([cost, *others])}",
        )

    def _about_modes(self) -> str:
        if not self.descents:
            return "no gradients to look for modes with"
        modes = f"{self.modes} modes" if self.modes > 1 else f"one mode ({self.descents} descents from hot chains)"
        return modes if self.is_regular or self.modes > 1 else f"{modes}, which curvature does not describe"

    def __str__(self) -> str:
        head = f"{'seconds':>10} {'rows':>9} {'effective':>10}  sampler"
        lines = [self._title, head]
        for option in self.options:
            lines.append(f"{option.seconds:>10.3g} {option.rows:>9.2g} {_effective(option):>10}  {option.name}")
            lines += [f"{'':>32} against it: {sentence}" for sentence in option.against]
        return "\n".join([*lines, *self.sentences])

    def _repr_html_(self) -> Html:
        head = ("sampler", "seconds", "rows", "effective draws", "against it")
        rows = [
            (
                element("code", option.name),
                f"{option.seconds:.3g}",
                f"{option.rows:.2g}",
                _effective(option),
                listed(option.against) if option.against else "",
            )
            for option in self.options
        ]
        sentences = joined(element("div", sentence) for sentence in self.sentences)
        return card(self._title, table(head, rows), sentences, tone="bad" if self.best.against else "plain")

    @property
    def _title(self) -> str:
        parameters = "parameter" if self.dim == 1 else "parameters"
        return f"n = {self.n:,}, {self.dim} {parameters}, draws={self.draws}, chains={self.chains}"

    @property
    def _measured(self) -> dict[str, Any]:
        """What the trial on batches found, if there was one."""
        trials = (option.trial.attrs for option in self.options if option.trial is not None)
        return next((dict(attrs) for attrs in trials if "residual_noise" in attrs), {})

    def noise(self, batch_sizes: Any) -> np.ndarray:
        """Log-ratio noise at T = 1 on batches of these sizes, after what an expansion knows; NaN if not measured."""
        sizes = check.array("batch_sizes", batch_sizes, dims=(1,))
        if not self._measured:
            return np.full(len(sizes), np.nan)
        m, noise = self._measured["batch_size"], self._measured["residual_noise"]
        scale = noise / (1 / m - 1 / self.n) if m < self.n else np.nan
        return np.asarray(scale * (1 / sizes - 1 / self.n))

    def plot(self) -> Any:
        """Log-ratio noise against batch size; returns the figure."""
        figure, axes = new_figure(figsize=(6, 3.5))
        sizes = np.unique(np.geomspace(min(10, self.n), self.n, 60).astype(int))[:-1]
        noise = self.noise(sizes)
        if np.isfinite(noise).any():
            axes.loglog(sizes, noise)
            axes.axhline(1.0, color="0.6", linewidth=1)
            axes.text(sizes[-1], 1.1, "noise 1: acceptance suffers above", ha="right", va="bottom", fontsize=8)
            size = self._measured["batch_size"]
            axes.plot(size, self.noise([size])[0], "o", label=f"comfortable: {size:,} rows")
            axes.legend()
        else:
            axes.text(0.5, 0.5, "no batches: all data are read", ha="center", transform=axes.transAxes)
        axes.set(xlabel="batch size", ylabel="log-ratio noise at T = 1")
        return figure


def _effective(option: Option) -> str:
    return f"{option.effective:,.0f}" if option.trial is not None else "not tried"


def _seconds(number: float) -> str:
    """Seconds as one would say them.

    Examples
    --------
    >>> _seconds(0.246), _seconds(90), _seconds(600), _seconds(86400)
    ('0.2 s', '90 s', '10 min', '24 h')
    """
    if number < 1:
        return f"{max(number, 0.1):.1f} s"
    if number < 120:
        return f"{number:,.0f} s"
    return f"{number / 60:,.0f} min" if number < 7200 else f"{number / 3600:,.0f} h"
