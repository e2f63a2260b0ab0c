"""Operating points of a model's scores, without a curve of all thresholds.

Sorting each class by itself needs no argsort, and only thresholds at the score of a
positive case can be best at some gradient.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ._hull import Ints, upper_hull_positions

Floats = NDArray[np.float64]

# Thresholds that are tried or left out together.
BLOCK = 32


@dataclass(frozen=True)
class SortedClass:
    """Scores of one class in ascending order, with the weight of all above each."""

    scores: Floats
    at_least: Ints | None  # weight of this score and all above; None counts rows

    @classmethod
    def of(cls, scores: Floats, weights: Ints | None) -> "SortedClass":
        if weights is None:
            return cls(np.sort(scores), None)
        order = np.argsort(scores)
        above = np.zeros(len(scores) + 1, dtype=np.int64)
        above[:-1] = np.cumsum(weights[order][::-1])[::-1]
        return cls(scores[order], above)

    @property
    def total(self) -> int:
        return len(self.scores) if self.at_least is None else int(self.at_least[0])

    def weight_at_least(self, thresholds: Floats) -> Ints:
        """Weight of the cases with a score of at least each threshold."""
        below = np.searchsorted(self.scores, thresholds, side="left")
        return (
            len(self.scores) - below if self.at_least is None else self.at_least[below]
        )


@dataclass(frozen=True)
class ScorePoints:
    """Thresholds with their counts of true and false positives."""

    threshold: Floats
    tp: Ints
    fp: Ints


class ModelScores:
    """Scores of one model by class."""

    def __init__(
        self,
        positive: Floats,
        negative: Floats,
        weights: tuple[Ints | None, Ints | None] = (None, None),
    ) -> None:
        self.positive = SortedClass.of(positive, weights[0])
        self.negative = SortedClass.of(negative, weights[1])

    def at(self, thresholds: Floats) -> ScorePoints:
        """Counts at given thresholds."""
        return ScorePoints(
            thresholds,
            self.positive.weight_at_least(thresholds),
            self.negative.weight_at_least(thresholds),
        )

    def hull(self) -> ScorePoints:
        """The thresholds that are best at some gradient, highest first.

        The trivial strategies, which no score is needed for, are left out.
        """
        points = self.at(self._promising(self._positive_thresholds()))
        x = np.concatenate(([0], points.fp, [self.negative.total]))
        y = np.concatenate(([0], points.tp, [self.positive.total]))
        inner = upper_hull_positions(x, y)[1:-1] - 1
        return self._take(points, inner)

    def _promising(self, thresholds: Floats) -> Floats:
        """Thresholds without the blocks that cannot reach the hull of their ends.

        The points of a block are no further left than the end of the block before and
        no higher than its own end. Where that corner is below the hull, so are they.
        """
        if len(thresholds) < 16 * BLOCK:
            return thresholds
        ends = np.append(np.arange(BLOCK - 1, len(thresholds) - 1, BLOCK), -1)
        ends[-1] = len(thresholds) - 1
        coarse = self.at(thresholds[ends])
        x, y = np.append(0, coarse.fp), np.append(0, coarse.tp)
        vertices = upper_hull_positions(x, y)
        height = np.interp(x[:-1], x[vertices], y[vertices])
        # Only what rounding cannot have put below the hull goes.
        kept = y[1:] >= height * (1.0 - 1e-9)
        kept[np.maximum(vertices - 1, 0)] = True
        block = np.minimum(np.arange(len(thresholds)) // BLOCK, len(kept) - 1)
        return thresholds[kept[block]]

    def matching(self, fpr_numerators: Ints, fpr_denominators: Ints) -> ScorePoints:
        """The highest sensitivity at no more than each false positive rate.

        Of the thresholds that reach it, the one with the fewest false positives.
        """
        pairs = zip(fpr_numerators.tolist(), fpr_denominators.tolist(), strict=True)
        total = self.negative.total
        allowed = np.array([n * total // d for n, d in pairs], dtype=np.int64)
        thresholds = np.unique(self._positive_thresholds_within(allowed))
        return self.at(thresholds[np.isfinite(thresholds)])

    def _positive_thresholds(self) -> Floats:
        """Distinct scores of the positive cases, highest first."""
        ascending = self.positive.scores
        first = np.empty(len(ascending), dtype=bool)
        first[0] = True
        np.not_equal(ascending[1:], ascending[:-1], out=first[1:])
        return ascending[first][::-1]

    def _positive_thresholds_within(self, allowed: Ints) -> Floats:
        """Lowest score of a positive case with at most so many false positives."""
        scores, weights = self.negative.scores, self.negative.at_least
        # `highest`: the largest score of a negative case that must not be called.
        n_at_most = (
            allowed
            if weights is None
            else len(scores) - np.searchsorted(-weights, -allowed, side="left")
        )
        index = len(scores) - n_at_most - 1
        highest = np.where(index >= 0, scores[np.maximum(index, 0)], -np.inf)
        above = np.searchsorted(self.positive.scores, highest, side="right")
        padded = np.append(self.positive.scores, np.inf)
        return padded[above]

    @staticmethod
    def _take(points: ScorePoints, positions: Ints) -> ScorePoints:
        return ScorePoints(
            points.threshold[positions], points.tp[positions], points.fp[positions]
        )
