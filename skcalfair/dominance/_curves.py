"""ROC curves as drawn: straight between points, with heights and areas."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import auc, roc_curve

from ._cases import Cases
from ._operating_points import OperatingPoints
from ._pooled import PooledHull

Floats = NDArray[np.float64]
Curve = tuple[Floats, Floats]

# Rates this close are equal: weighted sums are rounded.
TIE = 1e-10


def model_curve(cases: Cases) -> Curve:
    """False and true positive rates of the first model at every threshold."""
    fpr, tpr, _ = roc_curve(
        cases.is_positive,
        cases.scores[0],
        sample_weight=cases.weights,
        drop_intermediate=False,
    )
    return fpr, tpr


def hull_curve(points: OperatingPoints, kind: str) -> Curve:
    """Corners of the upper hull of the points of a kind with (0, 0) and (1, 1)."""
    own = points.kind == kind
    columns = ("name", "kind", "threshold", "tp", "positives", "fp", "negatives")
    part = replace(points, **{c: getattr(points, c)[own] for c in columns})
    corners = PooledHull(part).vertices[::-1]
    fpr = [0.0, *(v.fpr for v in corners), 1.0]
    tpr = [0.0, *(v.tpr for v in corners), 1.0]
    return np.array(fpr), np.array(tpr)


def height(curve: Curve, fpr: ArrayLike) -> Floats:
    """Height of a curve, its upper end where it is vertical."""
    x, y = curve
    at = np.asarray(fpr, dtype=np.float64)
    # A rate that is only rounding left of a step belongs to it.
    left = np.searchsorted(x, at + TIE, side="right") - 1
    right = np.minimum(left + 1, len(x) - 1)
    width = x[right] - x[left]
    share = np.divide(
        np.maximum(at - x[left], 0.0), width, out=np.zeros_like(at), where=width > 0
    )
    found: Floats = y[left] + share * (y[right] - y[left])
    return found


def area(curve: Curve, low: float, high: float) -> float:
    """Area under a curve between two false positive rates."""
    x, y = curve
    if low == high:
        return 0.0
    inner = (x > low) & (x <= high)
    ends = height(curve, [low, high])
    # Where the curve is vertical at the upper end, its last point adds nothing.
    return float(auc([low, *x[inner], high], [ends[0], *y[inner], ends[1]]))
