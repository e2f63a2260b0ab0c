"""Inverting tests along Platt paths: true values that the data do not contradict."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ._path_statistics import PathStatistic

Floats = NDArray[np.float64]

# A limit is then known to some 1e-5 of the first step.
BISECTIONS = 16
DOUBLINGS = 60
# Points between two of the table where restricted estimates are looked for.
FINER = 41
# Estimates this close are equal.
ROUNDING = 1e-14


def p_value(
    redraws: Floats, observed: float, truth: float, *, equal_tailed: bool
) -> float:
    """Share of redraws that are at least as far from the truth as the estimate."""
    if not equal_tailed:
        far = np.abs(redraws - truth) >= abs(observed - truth) - ROUNDING
        return float(np.mean(far))
    below = float(np.mean(redraws <= observed + ROUNDING))
    above = float(np.mean(redraws >= observed - ROUNDING))
    return min(1.0, 2.0 * min(below, above))


def path_p_value(statistic: PathStatistic, reach: float) -> float:
    """How well the estimate agrees with the true value at a place of the path."""
    return p_value(
        statistic.redraws(reach),
        statistic.clipped,
        statistic.truth(reach),
        equal_tailed=statistic.equal_tailed,
    )


def path_limits(statistic: PathStatistic, alpha: float) -> tuple[float, float]:
    """Hull of the true values that the estimate does not contradict.

    Infinite where not even the end of the path is refuted.
    """

    def p_at(reach: float) -> float:
        return path_p_value(statistic, reach)

    best = statistic.reach(statistic.estimate)
    low = 0.0 if p_at(0.0) > alpha else _bisect(p_at, best, 0.0, alpha)
    high = _outward(p_at, best, max(best, 0.05), alpha)
    upper = statistic.truth(high) if np.isfinite(high) else np.inf
    return statistic.truth(low), upper


class Gap:
    """Difference of one metric between two groups without a cluster in common."""

    def __init__(self, first: PathStatistic, second: PathStatistic) -> None:
        self.first, self.second = first, second

    @property
    def estimate(self) -> float:
        """Difference of the most plausible true values."""
        return self.first.estimate - self.second.estimate

    def p_at(self, difference: float) -> float:
        """How well the estimates agree with a true difference."""
        observed, truth, redraws = 0.0, 0.0, np.zeros(())
        for statistic, value, sign in self._restricted(difference):
            reach = statistic.reach(value)
            observed += sign * statistic.clipped
            truth += sign * statistic.truth(reach)
            redraws = redraws + sign * statistic.redraws(reach)
        return p_value(redraws, observed, truth, equal_tailed=self.first.equal_tailed)

    def _restricted(
        self, difference: float
    ) -> list[tuple[PathStatistic, float, float]]:
        """True values with this difference that are closest to the estimates."""
        least = max(difference, 0.0)
        known = np.union1d(
            self.first.known_truths, self.second.known_truths + difference
        )
        values = np.append(least, known[known > least])
        for _ in range(2):
            distances = self.first.distance(values) ** 2
            distances += self.second.distance(values - difference) ** 2
            best = int(distances.argmin())
            ends = values[max(best - 1, 0)], values[min(best + 1, len(values) - 1)]
            value, values = values[best], np.linspace(*ends, FINER)
        return [(self.first, value, 1.0), (self.second, value - difference, -1.0)]

    def limits(self, alpha: float) -> tuple[float, float]:
        """Hull of the true differences that the estimates do not contradict.

        Infinite where not even the end of a path is refuted.
        """
        step = float(np.hypot(self.first.spread, self.second.spread))
        ends = -float(self.second.known_truths[-1]), float(self.first.known_truths[-1])
        start = min(max(self.estimate, ends[0]), ends[1])
        low = _outward(self.p_at, start, -step, alpha, ends[0])
        high = _outward(self.p_at, start, step, alpha, ends[1])
        return low, high


def _outward(
    p_at: Callable[[float], float],
    start: float,
    step: float,
    alpha: float,
    end: float = np.inf,
) -> float:
    """Last value that is not rejected, from one that is not; infinite beyond `end`."""
    end = float(np.copysign(end, step)) if np.isinf(end) else end
    inside, outside = start, start + step
    for _ in range(DOUBLINGS):
        at_end = abs(outside - start) >= abs(end - start)
        outside = end if at_end else outside
        if p_at(outside) <= alpha:
            return _bisect(p_at, inside, outside, alpha)
        if at_end:
            break
        step *= 2.0
        inside, outside = outside, outside + step
    return float(np.copysign(np.inf, step))


def _bisect(
    p_at: Callable[[float], float], inside: float, outside: float, alpha: float
) -> float:
    """Boundary between a value that is not rejected and one that is."""
    for _ in range(BISECTIONS):
        middle = (inside + outside) / 2.0
        if p_at(middle) > alpha:
            inside = middle
        else:
            outside = middle
    return inside
