"""Whether cases are those that a dominance table was fitted to, by their counts."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Sums of weights are rounded, and the table cuts weights after some binary digits.
_TOLERANCE = 1e-9


class SameCases:
    """Counts of cases, to be compared with those of a table's operating points."""

    def __init__(self, table: Any, y: NDArray, sample_weight: Floats | None) -> None:
        self._points = table.operating_points_
        self._unread = self._points.unread
        is_positive = y == table.pos_label_
        weights = np.ones(len(y)) if sample_weight is None else sample_weight
        self._by_class = weights * is_positive, weights * ~is_positive
        self._has_weights = sample_weight is not None
        self._totals = self._counts(np.ones(len(y)))

    def check_totals(self) -> None:
        """Refuse other numbers of positive and negative cases."""
        for i, name in enumerate(self._points.name):
            if self._unread.get(name):
                continue
            known = self._in_cases(self._points.positives, self._points.negatives, i)
            if not _agree(known, self._totals, sum(known)):
                what = "y or sample_weight" if self._has_weights else "y"
                hint = "" if self._has_weights else " (or sample_weight is lacking)"
                raise ValueError(
                    f"{what} is not that of the table{hint}: it has "
                    f"{_pair(self._totals, 'positive', 'negative')} cases, and the "
                    f"table {_pair(known, 'positive', 'negative')}"
                )
            return

    def check_model(self, name: str, scores: Floats) -> None:
        """Refuse scores with other counts at the thresholds of a model."""
        if not np.isfinite(scores).all():
            return  # the curve refuses them
        own = np.flatnonzero(self._points.name == name)
        order = own[np.argsort(self._points.threshold[own])]
        # All thresholds at once: cases between two of them are counted together.
        place = np.searchsorted(self._points.threshold[order], scores, side="right")
        found = [
            np.bincount(place, weights, len(order) + 1)[:0:-1].cumsum()[::-1]
            for weights in self._by_class
        ]
        for k, i in enumerate(order):
            counts = float(found[0][k]), float(found[1][k])
            known = self._in_cases(self._points.tp, self._points.fp, i)
            if not _agree(known, counts, sum(self._totals)):
                at = f" at the threshold {self._points.threshold[i]:.6g}"
                self._refuse(f"model {name!r}{at}", counts, known)

    def check_curve(self, name: str, fpr: Floats, tpr: Floats) -> None:
        """Refuse a curve with a point where the table has none."""
        if not (self._points.name == name).any() and (tpr > fpr + _TOLERANCE).any():
            raise ValueError(
                f"X or y is not that of the table: the model {name!r} has thresholds "
                "better than chance, and none in the table"
            )

    def check_reader(self, name: str, calls: Floats) -> None:
        """Refuse calls with other counts; NaN is not read."""
        (i,) = np.flatnonzero(self._points.name == name)
        read = ~np.isnan(calls)
        known = self._in_cases(self._points.positives, self._points.negatives, i)
        totals = self._counts(read.astype(np.float64))
        counts = self._counts((calls == 1.0).astype(np.float64))
        points = self._in_cases(self._points.tp, self._points.fp, i)
        size = sum(known)
        if not _agree(known, totals, size):
            raise ValueError(
                f"X or y is not that of the table: reader {name!r} read "
                f"{_pair(totals, 'positive', 'negative')} cases, and in the table "
                f"{_pair(known, 'positive', 'negative')}"
            )
        if not _agree(points, counts, size):
            self._refuse(f"reader {name!r}", counts, points)

    def _counts(self, share: Floats) -> tuple[float, float]:
        """Weight of the positive and of the negative cases, by the share of each."""
        positive, negative = self._by_class
        return float(positive @ share), float(negative @ share)

    def _in_cases(self, first: Any, second: Any, i: Any) -> tuple[float, float]:
        unit = self._points.unit
        return float(first[i] * unit), float(second[i] * unit)

    @staticmethod
    def _refuse(
        who: str, found: tuple[float, float], known: tuple[float, float]
    ) -> None:
        kinds = "true", "false"
        raise ValueError(
            f"X, y or sample_weight is not that of the table: {who} has "
            f"{_pair(found, *kinds)} positives, and in the table {_pair(known, *kinds)}"
        )


def _agree(
    first: tuple[float, float], second: tuple[float, float], size: float
) -> bool:
    return bool(np.allclose(first, second, rtol=0.0, atol=_TOLERANCE * size))


def _pair(counts: tuple[float, float], *kinds: str) -> str:
    return " and ".join(
        f"{count:.10g} {kind}" for count, kind in zip(counts, kinds, strict=True)
    )
