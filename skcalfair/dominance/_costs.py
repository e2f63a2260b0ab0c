"""Expected cost and predictive values of operating points."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import check_prevalence

Floats = NDArray[np.float64]


def as_prevalences(prevalence: float | Iterable[float] | None) -> list[float]:
    """Prevalences of none, one or several."""
    if prevalence is None:
        return []
    if isinstance(prevalence, str) or not isinstance(prevalence, Iterable):
        prevalence = [prevalence]  # type: ignore[list-item]
    return [check_prevalence(value) for value in prevalence]


def gradient(prevalence: float, cost_ratio: float) -> float:
    """Cost-prevalence gradient: negatives per positive times the cost ratio."""
    m = (1.0 - prevalence) / prevalence * cost_ratio
    if not 0.0 < m < np.inf:
        raise ValueError(
            f"prevalence {prevalence!r} and cost_ratio {cost_ratio!r} are too extreme "
            f"together: their gradient is {m!r}"
        )
    return m


def cost_ratio_at(cpg: ArrayLike, prevalence: float, convention: str) -> Floats:
    """Cost ratio that has this gradient at a prevalence."""
    odds = prevalence / (1.0 - prevalence)
    factor = odds if convention == "expected_cost" else 1.0 / odds
    return np.asarray(cpg, dtype=np.float64) * factor


def expected_cost(
    sensitivity: ArrayLike, specificity: ArrayLike, prevalence: float, cost_ratio: float
) -> Floats:
    """Expected cost of a case, in costs of one false negative."""
    missed = 1.0 - np.asarray(sensitivity, dtype=np.float64)
    alarms = 1.0 - np.asarray(specificity, dtype=np.float64)
    return prevalence * missed + (1.0 - prevalence) * alarms * cost_ratio


def normalized_expected_cost(tpr: ArrayLike, fpr: ArrayLike, cpg: ArrayLike) -> Floats:
    """``[(1 - TPR) + m FPR] / (1 + m)``; FPR where the gradient m is infinite."""
    m = np.asarray(cpg, dtype=np.float64)
    missed, fpr = 1.0 - np.asarray(tpr, dtype=np.float64), np.asarray(fpr)
    # With u = 1 / (1 + m) both ends of the axis are ordinary numbers.
    u = 1.0 / (1.0 + m)
    return missed * u + fpr * (1.0 - u)


def predictive_values(
    sensitivity: ArrayLike, specificity: ArrayLike, prevalence: float
) -> tuple[Floats, Floats]:
    """Positive and negative predictive value; 0/0 is NaN."""
    sens = np.asarray(sensitivity, dtype=np.float64)
    spec = np.asarray(specificity, dtype=np.float64)
    tp, fn = prevalence * sens, prevalence * (1.0 - sens)
    tn, fp = (1.0 - prevalence) * spec, (1.0 - prevalence) * (1.0 - spec)
    with np.errstate(invalid="ignore", divide="ignore"):
        return tp / (tp + fp), tn / (tn + fn)
