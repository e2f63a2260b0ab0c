"""From validated input to a kernel value: what every public metric does.

A kernel takes SortedScores and returns one float a replicate, NaN where the metric
cannot be estimated; a `Requirement` knows why.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning

from .._log_odds import EPS, PlattFit, is_constant, no_maximum
from .._sorted_scores import SortedScores
from .._validation import check_frequencies, check_scored_rows

Floats = NDArray[np.float64]
Kernel = Callable[[SortedScores], Floats]


def two_classes(scores: SortedScores) -> str | None:
    """Reason why a metric of both classes cannot be estimated, or None."""
    total, positive = float(scores.total[0]), float(scores.positive_total[0])
    if positive == 0:
        return "only one class is present (no positive rows)"
    if positive == total:
        return "only one class is present (no negative rows)"
    return None


def recalibration(
    scores: SortedScores, eps: float = EPS, *, clustered: bool = True
) -> str | None:
    """Reason why Platt recalibration cannot be estimated, or None.

    With ``clustered=False`` clusters do not matter, as without a correction.
    """
    reason = two_classes(scores)
    x = scores.log_odds(eps)  # scores that differ may be equal once clipped
    if reason is None and is_constant(x):
        reason = "the scores are constant"
    if reason is None and no_maximum(x, scores.y, scores.weights)[0]:
        reason = "the data are separable (a threshold splits the classes)"
    if reason is None and clustered and scores.clusters is not None:
        reason = pairs(scores)
    return reason


def pairs(scores: SortedScores) -> str | None:
    """Reason why a U-statistic over all pairs cannot be estimated, or None."""
    if scores.clusters is not None:
        few = len(np.unique(scores.clusters)) < 2
        return "fewer than two clusters" if few else None
    few = float(scores.total[0]) < 2 if scores.frequency else len(scores) < 2
    return "fewer than two rows" if few else None


def sorted_scores(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    weights: str | None = None,
    **options: Any,
) -> SortedScores:
    """Validate and sort; `weights` is None where their meaning makes no difference."""
    rows = check_scored_rows(y_true, y_prob, **options)
    if weights is not None:
        check_frequencies(rows.sample_weight, weights)
    return SortedScores.from_rows(rows, frequency=weights != "probability")


def value_or_warn(
    value: Floats,
    scores: SortedScores,
    name: str,
    requirement: Callable[[SortedScores], str | None] | None = None,
) -> float:
    """The only value as a float; NaN comes with an UndefinedMetricWarning."""
    result = float(value[0])
    if np.isnan(result):
        reason = requirement(scores) if requirement else None
        warn_undefined(name, reason or "it is undefined for these rows")
    return result


def platt_or_warn(scores: SortedScores, eps: float) -> PlattFit:
    """Platt fit to one sample; a ConvergenceWarning where it ran out of steps."""
    fit = scores.platt(eps)
    if not fit.converged[0]:
        warnings.warn(
            "Platt scaling did not converge: the data are almost separable",
            ConvergenceWarning,
            stacklevel=4,
        )
    return fit


def warn_undefined(name: str, reason: str) -> None:
    """Warn that a metric is NaN, and why."""
    warnings.warn(
        f"{name} is not estimable: {reason}; returning NaN",
        UndefinedMetricWarning,
        stacklevel=4,
    )
