"""Interval of the difference of two paired proportions."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm


def paired_difference_interval(
    first: NDArray[np.bool_], second: NDArray[np.bool_], level: float
) -> tuple[float, float]:
    """Newcombe's method 10 for ``first.mean() - second.mean()`` on the same cases."""
    n = len(first)
    both, neither = int((first & second).sum()), int((~first & ~second).sum())
    only_first, only_second = int((first & ~second).sum()), int((~first & second).sum())
    p, q = (both + only_first) / n, (both + only_second) / n
    p_low, p_high = _wilson(p, n, level)
    q_low, q_high = _wilson(q, n, level)
    phi = _correlation(both, only_first, only_second, neither)
    down, up = (p - p_low, q_high - q), (p_high - p, q - q_low)
    return p - q - _length(down, phi), p - q + _length(up, phi)


def _length(parts: tuple[float, float], phi: float) -> float:
    a, b = parts
    return float(np.sqrt(max(a * a - 2.0 * phi * a * b + b * b, 0.0)))


def _correlation(both: int, only_first: int, only_second: int, neither: int) -> float:
    """Correlation of the two, made smaller by half a case where it is positive."""
    n = both + only_first + only_second + neither
    sides = (
        (both + only_first)
        * (both + only_second)
        * (only_second + neither)
        * (only_first + neither)
    )
    if sides == 0:
        return 0.0
    excess = float(both * neither - only_first * only_second)
    if excess > 0:
        excess = max(excess - n / 2.0, 0.0)
    return float(excess / np.sqrt(sides))


def _wilson(p: float, n: int, level: float) -> tuple[float, float]:
    """Wilson's interval of a proportion."""
    z = norm.ppf(0.5 + level / 2.0)
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return float(max(middle - half, 0.0)), float(min(middle + half, 1.0))
