"""Influence of each row on metrics that are smooth in the rows' distribution.

The influence values of a metric sum to zero, and to first order its estimate is the
truth plus their sum: squares of their cluster sums give its variance. For the AUC this
is the estimator of DeLong et al. (1988), and with clusters that of Obuchowski (1997).
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .._sorted_scores import SortedScores
from ..metrics._discrimination import roc_auc_kernel
from ..metrics._proper import log_loss_values

Floats = NDArray[np.float64]


def roc_auc_influence(scores: SortedScores) -> Floats:
    """Placement of each row among those of the other class, about their mean."""
    y = scores.y.astype(np.float64)
    auc = float(roc_auc_kernel(scores)[0])
    # Rows of the other class above a row, ties counting half.
    above_positive = _above(scores, y)
    above_negative = _above(scores, 1.0 - y)
    n_positive, n_negative = y.sum(), (1.0 - y).sum()
    placement = np.where(
        y == 1, 1.0 - above_negative / n_negative, above_positive / n_positive
    )
    return (placement - auc) / np.where(y == 1, n_positive, n_negative)


def _above(scores: SortedScores, column: Floats) -> Floats:
    """Sum of a column over the rows with higher scores, and half of it over ties."""
    ends = np.cumsum(column)
    starts = scores.tie_starts
    if starts is None:
        return ends - column / 2.0
    upto = ends[np.append(starts[1:], len(column)) - 1]
    before = np.append(0.0, upto[:-1])
    return np.repeat((before + upto) / 2.0, np.diff(starts, append=len(column)))


def balanced_accuracy_influence(scores: SortedScores) -> Floats:
    """Half of each class's centred hits."""
    y = scores.y == 1
    hit = ((scores.p >= 0.5) == y).astype(np.float64)
    share = np.where(y, hit[y].mean(), hit[~y].mean())
    return (hit - share) / np.where(y, y.sum(), (~y).sum()) / 2.0


def brier_influence(scores: SortedScores) -> Floats:
    """Centred squared errors."""
    return _centred(scores.residual**2)


def log_loss_influence(scores: SortedScores) -> Floats:
    """Centred cross-entropies."""
    return _centred(log_loss_values(scores.y, scores.p))


def _centred(values: Floats) -> Floats:
    return (values - values.mean()) / len(values)


INFLUENCES: dict[str, Callable[[SortedScores], Floats]] = {
    "roc_auc": roc_auc_influence,
    "balanced_accuracy_at_threshold": balanced_accuracy_influence,
    "brier_score_loss": brier_influence,
    "log_loss": log_loss_influence,
}
# These lie in [0, 1] and are estimated on the logit scale.
ON_LOGIT_SCALE = {"roc_auc", "balanced_accuracy_at_threshold"}


def variance(scores: SortedScores, influence: Floats) -> float:
    """Variance of the metric by squared cluster sums."""
    if scores.clusters is not None:
        sums = np.bincount(
            np.unique(scores.clusters, return_inverse=True)[1], weights=influence
        )
        return float(sums @ sums) * len(sums) / (len(sums) - 1.0)
    positive = scores.y == 1
    n_positive, n_negative = positive.sum(), (~positive).sum()
    classes = [influence[positive], influence[~positive]]
    if min(n_positive, n_negative) > 1 and all(abs(c.sum()) < 1e-9 for c in classes):
        # Estimated within each class, as DeLong does.
        return sum(float(c @ c) * len(c) / (len(c) - 1.0) for c in classes)
    n = len(influence)
    return float(influence @ influence) * n / (n - 1.0)
