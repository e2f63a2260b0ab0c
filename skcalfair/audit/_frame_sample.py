"""The rows of a metric frame, and metrics evaluated on parts of them."""

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._sorted_scores import SortedScores
from .._validation import (
    ScoredRows,
    as_1d,
    check_frequencies,
    check_scored_rows,
    encode_labels,
)
from ._fairlearn import AnnotatedMetricFunction
from ._frame_features import Cells
from ._frame_metrics import FrameMetric

Rows = NDArray[np.intp]
NO_ROWS = "no row has a positive weight"


@dataclass(frozen=True)
class Weighting:
    """Outcomes and probabilities under one set of weights, rows in the given order.

    Rows of weight zero are kept in place here and left out of every evaluation.
    """

    rows: ScoredRows
    counts: bool

    def take(self, positions: Rows) -> ScoredRows:
        """Rows of positive weight among some."""
        w = self.rows.sample_weight
        if w is not None:
            positions = positions[w[positions] > 0]
        return self.rows.take(positions)

    def scores(self, positions: Rows, *, keep_order: bool = False) -> SortedScores:
        """Sorted rows among some; there must be one of positive weight."""
        return SortedScores.from_rows(
            self.take(positions), frequency=self.counts, keep_order=keep_order
        )


@dataclass
class Sample:
    """Everything a metric may need to know about the rows.

    `raw` holds y_true, y_pred and the sample parameters as columns, for callables;
    `weightings` has an entry for each set of weights, -1 being none at all.
    """

    metrics: list[FrameMetric]
    raw: dict[str, Any]
    annotated: dict[str, AnnotatedMetricFunction]
    weightings: dict[int, Weighting]
    clusters: Rows | None
    cells: Cells
    pos_label: Any = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.raw["y_true"])

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Columns as fairlearn hands them to a metric function."""
        columns = {name: self.raw[name] for name in self.raw}
        for name in ("y_true", "y_pred"):
            columns[name] = list(columns[name])
        return pd.DataFrame(columns)

    @cached_property
    def columns(self) -> dict[str, NDArray]:
        """The same columns as arrays, made once for many calls."""
        found = {name: self.frame[name].to_numpy() for name in self.frame}
        return {
            name: np.stack(column) if column.dtype == object else column
            for name, column in found.items()
        }

    def __getstate__(self) -> dict[str, Any]:
        lazy = ("frame", "columns")
        return {k: value for k, value in self.__dict__.items() if k not in lazy}

    @cached_property
    def outcome(self) -> NDArray[np.uint8] | None:
        """Outcomes as 0 and 1, if there are two classes."""
        if -1 in self.weightings:
            return self.weightings[-1].rows.y
        try:
            return encode_labels(as_1d(self.raw["y_true"], "y_true"), self.pos_label)[0]
        except ValueError:
            found = list(self.weightings.values())
            return found[0].rows.y if found else None

    def picklable(self) -> "Sample":
        """Return the sample without the functions that cannot be pickled."""
        lost = {name for name, f in self.annotated.items() if not _pickles(f.func)}
        if not lost:
            return self
        metrics = [
            replace(m, function=_Lost(m.name)) if m.name in lost else m
            for m in self.metrics
        ]
        annotated = {
            name: AnnotatedMetricFunction(
                func=_Lost(name),
                name=name,
                positional_argument_names=f.postional_argument_names,
                kw_argument_mapping=f.kw_argument_mapping,
            )
            if name in lost
            else f
            for name, f in self.annotated.items()
        }
        return replace(self, metrics=metrics, annotated=annotated)

    def call(self, metric: FrameMetric, rows: Rows | None) -> Any:
        """Value of a callable as fairlearn computes it; None stands for all rows."""
        frame = self.frame if rows is None else self.frame.iloc[rows]
        return self.annotated[metric.name](frame)

    def call_again(self, metric: FrameMetric, rows: Rows) -> Any:
        """The same for one of many resamples, without fairlearn's overhead."""
        annotated, columns = self.annotated[metric.name], self.columns
        names = annotated.kw_argument_mapping.items()
        return annotated.func(
            *(columns[name][rows] for name in annotated.postional_argument_names),
            **{parameter: columns[name][rows] for parameter, name in names},
        )

    def values(self, rows: Rows | None) -> dict[str, Any]:
        """Every metric on some rows."""
        scores: dict[int, SortedScores | None] = {}
        positions = np.arange(self.n) if rows is None else rows
        out = {}
        for metric in self.metrics:
            if metric.built_in is None:
                out[metric.name] = self.call(metric, rows)
                continue
            if metric.weights not in scores:
                scores[metric.weights] = self._scores(metric, positions)
            out[metric.name] = self._kernel_value(metric, scores[metric.weights], rows)
        return out

    def _scores(self, metric: FrameMetric, positions: Rows) -> SortedScores | None:
        weighting = self.weightings[metric.weights]
        part = weighting.take(positions)
        if not len(part):
            return None
        return SortedScores.from_rows(part, frequency=weighting.counts)

    def _kernel_value(
        self, metric: FrameMetric, scores: SortedScores | None, rows: Rows | None
    ) -> float:
        if scores is None:
            return np.nan
        value = np.float64(metric.built_in.kernel(scores)[0])  # type: ignore[union-attr]
        if np.isnan(value) and metric.keeps_own_value:
            return np.float64(self.call(metric, rows))
        return value

    def reason(self, metric: FrameMetric, rows: Rows) -> str | None:
        """Why a built-in metric cannot be estimated from some rows, or None."""
        if metric.built_in is None:
            return None
        scores = self._scores(metric, rows)
        if scores is None:
            return NO_ROWS
        requirement = metric.built_in.requirement
        return requirement(scores) if requirement else None


def make_weightings(
    metrics: list[FrameMetric],
    raw: Mapping[str, Any],
    clusters: Rows | None,
    pos_label: Any,
) -> tuple[list[FrameMetric], dict[int, Weighting]]:
    """Validate the rows for each set of weights that a kernel is to use.

    A function whose kernel the rows do not suit is called as fairlearn calls it, and
    raises its own errors; a name has only its kernel.
    """
    arrays: list[Any] = []
    weightings: dict[int, Weighting | ValueError] = {}
    out = []
    for metric in metrics:
        if metric.built_in is None:
            out.append(metric)
            continue
        weights = metric.params.get("sample_weight")
        key = -1 if weights is None else _position(weights, arrays)
        if key not in weightings:
            weightings[key] = _weighting(raw, weights, clusters, pos_label)
        found = weightings[key]
        problem = found if isinstance(found, ValueError) else _unfit(metric, found, raw)
        if problem is None:
            out.append(metric.weighted_by(key))
        elif metric.function is None:
            raise problem
        else:
            out.append(metric.without_kernel())
    used = {metric.weights for metric in out if metric.built_in is not None}
    return out, {k: w for k, w in weightings.items() if k in used}  # type: ignore[misc]


def _position(weights: NDArray, arrays: list[Any]) -> int:
    """Place of equal weights in the list, which gains them where they are new."""
    for i, known in enumerate(arrays):
        if known is weights or np.array_equal(known, weights):
            return i
    arrays.append(weights)
    return len(arrays) - 1


def _weighting(
    raw: Mapping[str, Any], weights: Any, clusters: Rows | None, pos_label: Any
) -> Weighting | ValueError:
    try:
        rows = check_scored_rows(
            raw["y_true"],
            raw["y_pred"],
            pos_label=pos_label,
            sample_weight=weights,
            names=("y_true", "y_pred"),
        )
    except ValueError as error:
        return error
    counts = rows.weights_are_counts
    if rows.kept is None:
        y, p, w = rows.y, rows.p, rows.sample_weight
    else:
        n = len(raw["y_true"])
        y, p, w = np.zeros(n, dtype=np.uint8), np.zeros(n), np.zeros(n)
        y[rows.kept], p[rows.kept], w[rows.kept] = rows.y, rows.p, rows.sample_weight
    return Weighting(ScoredRows(y, p, w, clusters, rows.pos_label), counts)


def _unfit(
    metric: FrameMetric, found: Weighting, raw: Mapping[str, Any]
) -> ValueError | None:
    """Why a function must be called although the rows are what kernels take."""
    if metric.is_sklearn and np.ndim(raw["y_pred"]) > 1:
        return ValueError("y_pred must be one-dimensional for scikit-learn's functions")
    if metric.function is not None and metric.reads_counts:
        try:
            check_frequencies(found.rows.sample_weight, "frequency")
        except ValueError as error:
            return error
    return None


def _pickles(function: Any) -> bool:
    try:
        pickle.dumps(function)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True


@dataclass(frozen=True)
class _Lost:
    """In place of a function that could not be pickled."""

    name: str

    def __call__(self, *args: Any, **options: Any) -> float:
        raise RuntimeError(
            f"the function of the metric {self.name!r} could not be pickled and is "
            "gone, so nothing new can be computed from it; define it in a module"
        )
