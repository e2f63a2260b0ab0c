"""Upper convex hulls in the ROC plane, decided by integers.

A float slope cannot tell three points on one line from three that nearly are; cross
products of counts can.
"""

from bisect import bisect_left
from collections.abc import Sequence
from math import lcm

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

# Products of two differences below this bound are exact in int64.
_EXACT = 2**31
# A pass that removes fewer points than this share leaves the rest to the plain loop.
_WORTHWHILE = 0.02


def upper_hull_positions(x: Ints, y: Ints) -> Ints:
    """Positions of the strict vertices of the upper hull; x and y do not decrease.

    Both end points are kept; of equal points only the first.
    """
    kept = _first_of_equal(x, y)
    while len(kept) > 64:
        convex = _locally_convex(x[kept], y[kept])
        n_before = len(kept)
        # A vertex of the hull is strictly above the chord of any two points around
        # it, so all points below the chord of their neighbours can go at once.
        kept = kept[convex]
        if len(kept) > (1 - _WORTHWHILE) * n_before:
            break
    chain = monotone_chain(x[kept].tolist(), y[kept].tolist())
    return kept[np.array(chain, dtype=np.intp)]


def _first_of_equal(x: NDArray, y: NDArray) -> NDArray[np.intp]:
    """Positions that differ from the one before: two equal points hide each other."""
    moves = np.ones(len(x), dtype=bool)
    moves[1:] = (x[1:] != x[:-1]) | (y[1:] != y[:-1])
    return np.flatnonzero(moves)


def _locally_convex(x: Ints, y: Ints) -> NDArray[np.bool_]:
    """Whether each point may be above the chord of its two neighbours."""
    dx, dy = np.diff(x), np.diff(y)
    convex = np.ones(len(x), dtype=bool)
    if max(x[-1] - x[0], y[-1] - y[0]) < _EXACT:
        convex[1:-1] = dy[:-1] * dx[1:] > dy[1:] * dx[:-1]
        return convex
    left = dy[:-1].astype(np.float64) * dx[1:]
    right = dy[1:].astype(np.float64) * dx[:-1]
    # Only what rounding cannot have turned may go.
    convex[1:-1] = left - right > -8 * np.finfo(np.float64).eps * (left + right)
    return convex


def monotone_chain(x: Sequence[int], y: Sequence[int]) -> list[int]:
    """Positions of the strict vertices of the upper hull of points sorted by x, y."""
    chain: list[int] = []
    for i in range(len(x)):
        while len(chain) > 1:
            a, b = chain[-2], chain[-1]
            rise = (y[b] - y[a]) * (x[i] - x[b])
            if rise > (y[i] - y[b]) * (x[b] - x[a]):
                break
            chain.pop()
        chain.append(i)
    return chain


def common_denominator(numerator: Ints, denominator: Ints) -> tuple[list[int], int]:
    """Python integers over one denominator for fractions over several."""
    distinct = np.unique(denominator).tolist()
    common = lcm(*distinct)
    factor = {d: common // d for d in distinct}
    pairs = zip(numerator.tolist(), denominator.tolist(), strict=True)
    return [n * factor[d] for n, d in pairs], common


def roc_vertices(x: Sequence[int], y: Sequence[int]) -> list[int]:
    """Positions, by rising x, of the points that some positive gradient makes optimal.

    Of equal points the first is returned. Unlike the vertices of the hull, these leave
    out (0, 0) below another point with x = 0, and (1, 1) right of one with y = 1.
    """
    order = sorted(range(len(x)), key=lambda i: (x[i], -y[i], i))
    staircase: list[int] = []
    for i in order:
        if not staircase or y[i] > y[staircase[-1]]:
            staircase.append(i)
    chain = monotone_chain([x[i] for i in staircase], [y[i] for i in staircase])
    return [staircase[i] for i in chain]


def on_hull(x: Sequence[int], y: Sequence[int], vertices: Sequence[int]) -> list[bool]:
    """Whether each point is a vertex or lies between two."""
    vx = [x[v] for v in vertices]
    vy = [y[v] for v in vertices]
    return [_is_on(px, py, vx, vy) for px, py in zip(x, y, strict=True)]


def _is_on(px: int, py: int, vx: list[int], vy: list[int]) -> bool:
    right = bisect_left(vx, px)
    if right == len(vx):
        # Right of the last vertex, which is as high as a point can be.
        return False
    if vx[right] == px or right == 0:
        return vx[right] == px and vy[right] == py
    rise = (vy[right] - vy[right - 1]) * (px - vx[right - 1])
    return (py - vy[right - 1]) * (vx[right] - vx[right - 1]) == rise


def segment_hulls(
    x: NDArray, y: NDArray, segment: NDArray[np.intp], *, tolerance: float = 1e-9
) -> NDArray[np.intp]:
    """Positions of the hull vertices of many curves at once, one after another.

    `segment` numbers the curves; in each, x and y do not decrease. Rates are floats
    here: turns weaker than the tolerance, relative to their two products, count as
    straight.
    """
    kept = _first_of_equal(x, y + 2.0 * segment)
    while True:
        dx, dy, of = np.diff(x[kept]), np.diff(y[kept]), segment[kept]
        left, right = dy[:-1] * dx[1:], dy[1:] * dx[:-1]
        convex = np.ones(len(kept), dtype=bool)
        convex[1:-1] = left - right > tolerance * (left + right)
        ends = of[1:] != of[:-1]
        convex[:-1] |= ends
        convex[1:] |= ends
        if convex.all():
            return kept
        kept = kept[convex]
