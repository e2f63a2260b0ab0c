"""Calibration slope and intercepts: logistic recalibration as a description."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from .._log_odds import EPS, sigmoid
from .._sorted_scores import SortedScores
from .._validation import check_eps
from ._evaluate import (
    platt_or_warn,
    recalibration,
    sorted_scores,
    warn_undefined,
)


@dataclass(frozen=True)
class CalibrationSlopeIntercept:
    """Logistic recalibration of the log-odds.

    Attributes
    ----------
    slope : float
        1 for calibrated scores; below 1 they are over-confident, above 1
        under-confident.
    intercept : float
        Intercept fitted together with the slope; 0 for calibrated scores.
    intercept_at_unit_slope : float
        Calibration-in-the-large: the intercept with the slope held at 1. Positive:
        the scores are too low on average.

    Examples
    --------
    >>> from skcalfair.metrics import calibration_slope_intercept
    >>> y, p = [0, 1, 0, 1] * 5, [0.2, 0.3, 0.6, 0.7] * 5
    >>> round(calibration_slope_intercept(y, p).slope, 2)
    0.62
    """

    slope: float
    intercept: float
    intercept_at_unit_slope: float


def calibration_slope_intercept(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    eps: float = EPS,
    pos_label: object = None,
    sample_weight: ArrayLike | None = None,
) -> CalibrationSlopeIntercept:
    """Calibration slope, intercept and calibration-in-the-large.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels; text, bool, {0, 1} or {-1, 1}.
    y_prob : array-like of shape (n_samples,) or (n_samples, 2)
        Probabilities of the positive class in [0, 1], or `predict_proba` output.
    eps : float, default=1e-12
        Probabilities are clipped to [eps, 1 - eps] before taking log-odds.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; needed for text labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights.

    Returns
    -------
    CalibrationSlopeIntercept
        Frozen result. NaN, with a warning that gives the reason, for one class,
        separable data or constant scores.

    Raises
    ------
    ValueError
        For input that does not fit; the message names the argument.

    See Also
    --------
    calibration_loss : What this recalibration gains.
    skcalfair.calibration.PlattCalibrator : The same map as a transformer.

    Notes
    -----
    Unpenalised logistic regression of the outcome on the log-odds of the score [1]_.

    References
    ----------
    .. [1] B. Van Calster, D. J. McLernon, M. van Smeden, L. Wynants and
       E. W. Steyerberg, "Calibration: the Achilles heel of predictive analytics",
       BMC Medicine 17:230, 2019.

    Examples
    --------
    >>> from skcalfair.metrics import calibration_slope_intercept
    >>> y, p = [0, 1, 0, 1] * 5, [0.2, 0.3, 0.6, 0.7] * 5
    >>> result = calibration_slope_intercept(y, p)
    >>> round(result.slope, 2), round(result.intercept_at_unit_slope, 2)
    (0.62, 0.24)
    """
    check_eps(eps)
    scores = sorted_scores(
        y_true, y_prob, pos_label=pos_label, sample_weight=sample_weight
    )
    reason = recalibration(scores, eps)
    if reason:
        warn_undefined("calibration_slope_intercept", reason)
        return CalibrationSlopeIntercept(np.nan, np.nan, np.nan)
    fit = platt_or_warn(scores, eps)
    return CalibrationSlopeIntercept(
        float(fit.slope[0]), float(fit.intercept[0]), _at_unit_slope(scores, eps)
    )


def _at_unit_slope(scores: SortedScores, eps: float) -> float:
    """Shift of the log-odds that makes the mean prediction the prevalence."""
    x = scores.log_odds(eps)

    def excess(shift: float) -> float:
        return float(
            (scores.sums([sigmoid(x + shift)])[0, 0] - scores.positive_total)[0]
        )

    # Log-odds lie within +- log(1 / eps); so does any shift that is needed, up to the
    # log-odds of the prevalence.
    reach = 2.0 * abs(np.log(eps)) + 50.0
    return float(brentq(excess, -reach, reach, xtol=1e-13, rtol=1e-14))
