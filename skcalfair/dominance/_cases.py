"""A reader study as arrays: the truth, each model's scores and each reader's calls."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._validation import Floats
from ._columns import Ints, Roles
from ._operating_points import OperatingPoints, concatenate
from ._roc import ModelScores, ScorePoints


@dataclass(frozen=True)
class Cases:
    """Validated cases.

    `scores` has a row for each model, `calls` one for each reader (1, 0, NaN where not
    read). `weights` are whole multiples of `unit`; None counts cases.
    """

    is_positive: NDArray[np.bool_]
    scores: list[Floats]
    calls: list[Floats]
    roles: Roles
    weights: Ints | None = None
    unit: float = 1.0
    clusters: NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return len(self.is_positive)

    @property
    def model_names(self) -> list[str]:
        return [self.roles.names[j] for j in self.roles.models]

    @property
    def reader_names(self) -> list[str]:
        return [self.roles.names[j] for j in self.roles.readers]

    @cached_property
    def prevalence(self) -> float:
        """Weighted share of positive cases."""
        if self.weights is None:
            return float(self.is_positive.mean())
        return float(self.weights[self.is_positive].sum() / self.weights.sum())

    @cached_property
    def pairing(self) -> pd.DataFrame:
        """How many cases each reader read."""
        read = [~np.isnan(calls) for calls in self.calls]
        positives = [int((r & self.is_positive).sum()) for r in read]
        counts = [int(r.sum()) for r in read]
        return pd.DataFrame(
            {
                "reader": self.reader_names,
                "n_read": counts,
                "n_unread": [len(self) - n for n in counts],
                "positives_read": positives,
                "negatives_read": [
                    n - p for n, p in zip(counts, positives, strict=True)
                ],
            }
        )

    def operating_points(self) -> OperatingPoints:
        """Points of the readers, and of each model those that can matter.

        For a model these are the vertices of its own hull, and the best thresholds at
        the specificity of each reader: any other is no better than one of them for any
        gradient, and dominates no reader that they do not dominate.
        """
        readers = [
            self._reader_point(name, calls)
            for name, calls in zip(self.reader_names, self.calls, strict=True)
        ]
        models = [
            self._model_points(name, scores, readers)
            for name, scores in zip(self.model_names, self.scores, strict=True)
        ]
        return concatenate([*models, *readers])

    def _reader_point(self, name: str, calls: Floats) -> OperatingPoints:
        tp, fn, fp, tn = self._cells(calls)
        if not tp + fn + fp + tn:
            raise ValueError(f"reader {name!r} read no case: leave this column out")
        for count, label in ((tp + fn, "positive"), (fp + tn, "negative")):
            if count == 0:
                raise ValueError(
                    f"reader {name!r} read no {label} case, so "
                    f"{'sensitivity' if label == 'positive' else 'specificity'} is not "
                    "defined: leave this column out"
                )
        threshold = self.roles.readers[self.roles.names.index(name)]
        return OperatingPoints(
            name=np.array([name], dtype=object),
            kind=np.array(["reader"], dtype=object),
            threshold=np.array([np.nan if threshold is None else threshold]),
            tp=np.array([tp]),
            positives=np.array([tp + fn]),
            fp=np.array([fp]),
            negatives=np.array([fp + tn]),
            unit=self.unit,
            unread={name: int(np.isnan(calls).sum())},
        )

    def _cells(self, calls: Floats) -> list[int]:
        """True positives, false negatives, false positives and true negatives."""
        y = self.is_positive
        if self.weights is None and not np.isnan(called := calls.sum()):
            # Sums of ones are exact.
            tp, positives = int(calls @ self._outcome), len(self.by_class[0])
            fp = int(called) - tp
            return [tp, positives - tp, fp, len(y) - positives - fp]
        return [
            self._total((calls == call) & (y == truth))
            for truth in (True, False)
            for call in (1.0, 0.0)
        ]

    @cached_property
    def _outcome(self) -> Floats:
        return self.is_positive.astype(np.float64)

    def _total(self, rows: NDArray[np.bool_]) -> int:
        return int(rows.sum() if self.weights is None else self.weights[rows].sum())

    @cached_property
    def by_class(self) -> tuple[Ints, Ints]:
        """Positions of the positive and of the negative cases."""
        return np.flatnonzero(self.is_positive), np.flatnonzero(~self.is_positive)

    def model_scores(self, scores: Floats) -> ModelScores:
        """Scores of a model, sorted by class."""
        positive, negative = self.by_class
        w = self.weights
        weights = (None, None) if w is None else (w[positive], w[negative])
        return ModelScores(scores[positive], scores[negative], weights)

    def _model_points(
        self, name: str, scores: Floats, readers: list[OperatingPoints]
    ) -> OperatingPoints:
        sorted_scores = self.model_scores(scores)
        totals = sorted_scores.positive.total, sorted_scores.negative.total
        found = sorted_scores.hull()
        if readers:
            fp = np.concatenate([r.fp for r in readers])
            negatives = np.concatenate([r.negatives for r in readers])
            matched = sorted_scores.matching(fp, negatives).threshold
            extra = np.setdiff1d(matched, found.threshold)
            found = sorted_scores.at(
                np.sort(np.concatenate([found.threshold, extra]))[::-1]
            )
        return _without_trivial(name, found, totals, self.unit)


def _without_trivial(
    name: str, found: ScorePoints, totals: tuple[int, int], unit: float
) -> OperatingPoints:
    positives, negatives = totals
    inner = np.flatnonzero((found.tp < positives) | (found.fp < negatives))
    n = len(inner)
    return OperatingPoints(
        name=np.full(n, name, dtype=object),
        kind=np.full(n, "model", dtype=object),
        threshold=found.threshold[inner],
        tp=found.tp[inner].astype(np.int64),
        positives=np.full(n, positives, dtype=np.int64),
        fp=found.fp[inner].astype(np.int64),
        negatives=np.full(n, negatives, dtype=np.int64),
        unit=unit,
    )
