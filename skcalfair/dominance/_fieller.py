"""Fieller's set for the gradient at which two operating points cost the same."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FiellerSet:
    """Gradients that the data do not refute: one or two ranges within [0, inf].

    `low` and `high` are the ends of the one range. Of two, which leave out what lies
    between them, `low` is where the second begins and `high` where the first ends.
    """

    ranges: tuple[tuple[float, float], ...]

    @property
    def low(self) -> float:
        return self.ranges[-1][0] if self.ranges else np.nan

    @property
    def high(self) -> float:
        return self.ranges[0][1] if self.ranges else np.nan

    def __str__(self) -> str:
        if not self.ranges:
            return "not known"
        return " or ".join(_range(low, high) for low, high in self.ranges)


UNKNOWN = FiellerSet(())


def _range(low: float, high: float) -> str:
    return f"[{low:.3g}, {'inf)' if np.isinf(high) else f'{high:.3g}]'}"


def fieller_set(
    difference: Floats, covariance: Floats, *, confidence: float = 0.95
) -> FiellerSet:
    """Gradients m with ``(a - m b)^2 <= z^2 Var(a - m b)``, for m from 0 on.

    `difference` holds a, the difference of two true positive rates, and b, that of the
    false positive rates; `covariance` is theirs.
    """
    z2 = float(ndtri(0.5 + confidence / 2)) ** 2
    a, b = difference
    quadratic = b * b - z2 * covariance[1, 1]
    linear = -2 * (a * b - z2 * covariance[0, 1])
    constant = a * a - z2 * covariance[0, 0]
    return FiellerSet(tuple(_at_most_zero(quadratic, linear, constant)))


def _at_most_zero(q: float, b: float, c: float) -> list[tuple[float, float]]:
    """Where q m^2 + b m + c <= 0 on [0, inf]."""
    roots = _roots(q, b, c)
    edges = [0.0, *(m for m in roots if m > 0), np.inf]
    ranges: list[tuple[float, float]] = []
    for low, high in pairwise(edges):
        inner = (low + high) / 2 if np.isfinite(high) else 2 * low + 1
        if q * inner * inner + b * inner + c <= 0:
            if ranges and ranges[-1][1] == low:
                low = ranges.pop()[0]
            ranges.append((low, high))
    return ranges


def _roots(q: float, b: float, c: float) -> list[float]:
    if q == 0:
        return [] if b == 0 else [-c / b]
    discriminant = b * b - 4 * q * c
    if discriminant <= 0:
        return []
    # Without the cancellation of the textbook formula.
    s = -0.5 * (b + np.copysign(np.sqrt(discriminant), b))
    return sorted({float(s / q), float(c / s)} if s else {0.0})
