"""A ladder: rungs of rising temperature and falling batch size, rung 0 the target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mintmc import check

MOST_RUNGS = 10_000
"""Far more than anyone could run."""
_TOLERATED = 0.1


@dataclass(frozen=True)
class Ladder:
    """Temperatures and batch sizes of the rungs, the target (T = 1) first.

    Parameters
    ----------
    temperatures
        Strictly increasing, the first 1.
    batch_sizes
        Rows that a step of each rung reads at a time, None for all data; never more on a hotter rung than on a colder.
        Leave it out for full batches everywhere.

    Examples
    --------
    >>> import mintmc
    >>> mintmc.Ladder([1, 3, 9], [None, None, 500])
    Ladder(temperatures=(1.0, 3.0, 9.0), batch_sizes=(None, None, 500))
    """

    temperatures: Sequence[float]
    batch_sizes: Sequence[int | None] | None = None

    def __post_init__(self) -> None:
        listed = check.listed("temperatures", self.temperatures)
        temperatures = tuple(check.number("temperatures", t, 0) for t in listed)
        if len(temperatures) < 2:
            raise ValueError(f"temperatures must have at least two rungs, got {temperatures}")
        if temperatures[0] != 1 or any(b <= a for a, b in pairwise(temperatures)):
            raise ValueError(f"temperatures must increase strictly from 1, got {temperatures}")
        sizes = self.batch_sizes
        sizes = (None,) * len(temperatures) if sizes is None else check.listed("batch_sizes", sizes)
        sizes = tuple(size if size is None else check.integer("batch_sizes", size, 2) for size in sizes)
        if len(sizes) != len(temperatures):
            raise ValueError(f"batch_sizes must have one entry for each of {len(temperatures)} rungs, got {sizes}")
        rows = [float("inf") if size is None else size for size in sizes]
        if any(b > a for a, b in pairwise(rows)):
            raise ValueError(f"batch_sizes must not increase with temperature, got {sizes}")
        object.__setattr__(self, "temperatures", temperatures)
        object.__setattr__(self, "batch_sizes", sizes)

    @classmethod
    def mint(cls, n: int, smallest_batch: int, growth: float, alpha: float, rungs: int | None = None) -> Ladder:
        """The paper's ladder: batches m, m g, m g^2, ... at T = n^(1 - alpha log m / log n), and T = 1 on all data.

        The paper stops after ``rungs`` = 7 of them and leaves a gap below. Without ``rungs`` it goes on as long as
        batches are smaller than n, and from there to T = 1 with rungs on all data, in ratios of about ``growth``.

        Examples
        --------
        >>> import mintmc
        >>> ladder = mintmc.Ladder.mint(100_000, smallest_batch=1000, growth=1.4, alpha=0.995, rungs=7)
        >>> [round(temperature, 2) for temperature in ladder.temperatures]
        [1.0, 19.41, 27.13, 37.93, 53.02, 74.06, 103.51]
        >>> ladder.batch_sizes
        (None, 5378, 3841, 2743, 1959, 1400, 1000)
        >>> ladder = mintmc.Ladder.mint(100_000, smallest_batch=10_000, growth=2.0, alpha=0.9)
        >>> [round(temperature, 2) for temperature in ladder.temperatures], ladder.batch_sizes
        ([1.0, 1.97, 3.87, 7.21, 13.46, 25.12], (None, None, 80000, 40000, 20000, 10000))
        """
        n = check.integer("n", n, 3)
        smallest_batch = check.integer("smallest_batch", smallest_batch, 2, n - 1, "n - 1")
        growth = check.number("growth", growth, 1)
        alpha = check.number("alpha", alpha, 0, 1)
        most = rungs if rungs is None else check.integer("rungs", rungs, 2, most=MOST_RUNGS)
        sizes = [smallest_batch]
        # Rounded down in floating point, as the paper's were: 1000 * 1.4^2 is 1959 there.
        while (rows := smallest_batch * growth ** len(sizes)) < n and (most is None or len(sizes) < most - 1):
            sizes.append(int(rows))
            if len(sizes) == MOST_RUNGS:
                raise ValueError(f"growth must be so large that {MOST_RUNGS} rungs reach n={n}, got {growth}")
        if most is not None and len(sizes) < most - 1:
            raise ValueError(f"rungs must be at most {len(sizes) + 1} for batches smaller than n, got {rungs}")
        sizes.reverse()
        temperatures = [n / size**alpha for size in sizes]
        if any(b <= a for a, b in pairwise([1.0, *temperatures])):
            got = f"growth={growth:g} and alpha={alpha:g} from smallest_batch={smallest_batch} on"
            raise ValueError(f"growth and alpha must be so large that temperatures differ, got {got}")
        # A ratio that is a little larger than the others is no gap.
        steps = math.ceil(math.log(temperatures[0]) / math.log(growth) - _TOLERATED) if most is None else 1
        below = [temperatures[0] ** (step / steps) for step in range(1, steps)]
        return cls([1.0, *below, *temperatures], [None, *[None] * len(below), *sizes])

    @classmethod
    def geometric(cls, hottest: float, rungs: int) -> Ladder:
        """Full batches at temperatures in equal ratios from 1 to ``hottest``.

        Examples
        --------
        >>> import mintmc
        >>> mintmc.Ladder.geometric(hottest=8, rungs=4).temperatures
        (1.0, 2.0, 4.0, 8.0)
        """
        hottest = check.number("hottest", hottest, 1)
        rungs = check.integer("rungs", rungs, 2, most=MOST_RUNGS)
        return cls([float(f"{t:.12g}") for t in np.geomspace(1.0, hottest, rungs)])

    def __len__(self) -> int:
        return len(self.temperatures)

    def check_against(self, n: int) -> None:
        """Refuse batches that are larger than the data."""
        for size in self.batch_sizes or ():
            if size is None:
                continue
            if n == 0:
                raise ValueError(f"batch_sizes must be None for a density without data, got {size}")
            check.integer("batch_sizes", size, 2, n, "n")

    def outline(self, n: int) -> str:
        """A few words about it, for n observations."""
        on_all = sum(size == n for size in self.rows(n))
        rungs = f"{len(self)} rungs from T = 1 to {self.temperatures[-1]:.4g}"
        return rungs if on_all == len(self) else f"{rungs} ({on_all} on all data)"

    def rows(self, n: int) -> tuple[int, ...]:
        """Rows that a step of each rung reads at a time."""
        return tuple(n if size is None else size for size in self.batch_sizes or ())
