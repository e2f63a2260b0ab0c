"""The pooled hull: which point is best at which gradient, and who owns it."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from ._costs import normalized_expected_cost
from ._hull import common_denominator, on_hull, roc_vertices
from ._operating_points import OperatingPoints

Floats = NDArray[np.float64]

NEVER, ALWAYS = "never positive", "always positive"
TRIVIAL = (ALWAYS, NEVER)
# Costs this close are equal: gradients come as floats.
_TIE = 1e-12


def check_names(names: Iterable[str]) -> None:
    """Refuse a model or reader that is called like a trivial strategy."""
    for name in names:
        if name in TRIVIAL:
            raise ValueError(
                f"{name!r} is the name of a trivial strategy, which every table has; "
                "rename the model or reader"
            )


@dataclass(frozen=True)
class Vertex:
    """A point that is best for gradients between `cpg_from` and `cpg_to`.

    `points` are the positions of all points that coincide here; none for a strategy
    that nobody but the trivial one follows.
    """

    owners: tuple[str, ...]
    points: tuple[int, ...]
    tpr: float
    fpr: float
    cpg_from: float
    cpg_to: float


class PooledHull:
    """Upper hull of all operating points and the two trivial strategies."""

    def __init__(self, points: OperatingPoints) -> None:
        self.points = points
        x, self._x_unit = common_denominator(points.fp, points.negatives)
        y, self._y_unit = common_denominator(points.tp, points.positives)
        # The trivial strategies come last, so that a coinciding owner is found first.
        self._x, self._y = [*x, 0, self._x_unit], [*y, 0, self._y_unit]
        self._vertices = roc_vertices(self._x, self._y)

    @cached_property
    def slopes(self) -> list[float]:
        """Gradients at which one vertex gives way to the next, from low to high."""
        steps = [self._slope(a, b) for a, b in pairwise(self._vertices)]
        return steps[::-1]

    def _slope(self, a: int, b: int) -> float:
        rise = Fraction(self._y[b] - self._y[a], self._y_unit)
        run = Fraction(self._x[b] - self._x[a], self._x_unit)
        return float(rise / run)

    @cached_property
    def vertices(self) -> list[Vertex]:
        """Vertices from the low gradients (high sensitivity) to the high ones."""
        edges = [0.0, *self.slopes, np.inf]
        ranges = zip(self._vertices[::-1], pairwise(edges), strict=True)
        return [self._vertex(v, low, high) for v, (low, high) in ranges]

    def _vertex(self, position: int, low: float, high: float) -> Vertex:
        here = (self._x[position], self._y[position])
        n = len(self.points)
        same = self._positions_by_place[here]
        points = tuple(i for i in same if i < n)
        trivial = [(NEVER, ALWAYS)[i - n] for i in same if i >= n]
        owners = tuple(dict.fromkeys([*self.points.name[list(points)], *trivial]))
        return Vertex(
            owners,
            points,
            self._y[position] / self._y_unit,
            self._x[position] / self._x_unit,
            low,
            high,
        )

    @cached_property
    def _positions_by_place(self) -> dict[tuple[int, int], list[int]]:
        places: dict[tuple[int, int], list[int]] = {}
        for i, place in enumerate(zip(self._x, self._y, strict=True)):
            places.setdefault(place, []).append(i)
        return places

    @cached_property
    def runs(self) -> list[list[Vertex]]:
        """Vertices in maximal runs of the same owners."""
        return [list(run) for _, run in groupby(self.vertices, lambda v: v.owners)]

    @cached_property
    def owners(self) -> set[str]:
        """Everybody with a vertex."""
        return {owner for vertex in self.vertices for owner in vertex.owners}

    @cached_property
    def is_on(self) -> NDArray[np.bool_]:
        """Per point, whether it is on the hull: a vertex, or between two of them."""
        placed = on_hull(self._x, self._y, self._vertices)
        return np.array(placed[: len(self.points)], dtype=bool)

    def cost(self, cpg: Floats) -> Floats:
        """Normalised expected cost of the best decision at each gradient."""
        found = np.searchsorted(self.slopes, cpg)
        tpr = np.array([v.tpr for v in self.vertices])[found]
        fpr = np.array([v.fpr for v in self.vertices])[found]
        return normalized_expected_cost(tpr, fpr, cpg)

    def regret(
        self, cpg_range: tuple[float, float] = (0.0, np.inf)
    ) -> tuple[Floats, Floats]:
        """Per point the smallest extra cost over a range, and the gradient of it.

        The extra cost over one vertex is ``(a + b m) / (1 + m)``, monotone in m, so it
        is smallest where a vertex gives way to the next, or at an end of the range.
        """
        low, high = cpg_range
        inner = [m for m in self.slopes if low < m < high]
        at = np.array([low, *inner, high])
        best = self.cost(at)
        tpr, fpr = self.points.sensitivity, self.points.fpr
        extra = normalized_expected_cost(tpr[:, None], fpr[:, None], at) - best
        # Rounding may leave a point of the hull below it.
        extra = np.where(extra < _TIE, 0.0, extra)
        where = extra.argmin(axis=1)
        return extra[np.arange(len(where)), where], at[where]

    def dominating_names(self, position: int) -> tuple[str, ...]:
        """Whose single point is at least as good in both rates, and better in one."""
        px, py = self._x[position], self._y[position]
        names = [*self.points.name, NEVER, ALWAYS]
        places = zip(names, self._x, self._y, strict=True)
        over = [
            name for name, x, y in places if x <= px and y >= py and (x, y) != (px, py)
        ]
        return tuple(dict.fromkeys(over))

    def best(self, cpg: float) -> list[tuple[str, int | None]]:
        """Everybody with least cost at a gradient, each with the point (None: trivial).

        Ties within rounding are all named; of tied points of one owner the one of
        higher sensitivity is given.
        """
        costs = self.costs_by_name(cpg)
        least = min(cost for cost, _ in costs.values())
        return [(name, i) for name, (cost, i) in costs.items() if cost <= least + _TIE]

    def costs_by_name(self, cpg: float) -> dict[str, tuple[float, int | None]]:
        """Least normalised cost of each name at a gradient, and its point."""
        cost = normalized_expected_cost(self.points.sensitivity, self.points.fpr, cpg)
        found: dict[str, tuple[float, int | None]] = {}
        for i, (name, value) in enumerate(zip(self.points.name, cost, strict=True)):
            if name not in found or self._better(float(value), i, *found[name]):
                found[name] = (float(value), i)
        for name, tpr, fpr in ((ALWAYS, 1.0, 1.0), (NEVER, 0.0, 0.0)):
            found[name] = (float(normalized_expected_cost(tpr, fpr, cpg)), None)
        return found

    def _better(self, cost: float, i: int, other: float, j: int | None) -> bool:
        if abs(cost - other) > _TIE or j is None:
            return cost < other
        sensitivity = self.points.sensitivity
        return bool(sensitivity[i] > sensitivity[j])
