"""Proper scoring rules: cross-entropy and the Brier score."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._log_odds import EPS
from .._sorted_scores import SortedScores
from .._validation import check_eps
from ._evaluate import sorted_scores

Floats = NDArray[np.float64]


def log_loss_values(y: NDArray, p: Floats, eps: float = EPS) -> Floats:
    """Cross-entropy of each row, probabilities clipped to [eps, 1 - eps]."""
    return -np.log(np.clip(np.where(y == 1, p, 1.0 - p), eps, 1.0 - eps))


def brier_kernel(scores: SortedScores) -> Floats:
    """Mean squared residual."""
    return scores.memo("brier", lambda: scores.mean(scores.residual**2))


def log_loss_kernel(scores: SortedScores, eps: float = EPS) -> Floats:
    """Mean cross-entropy."""

    def compute() -> Floats:
        values = scores.row_memo(
            ("log_loss_values", eps), lambda: log_loss_values(scores.y, scores.p, eps)
        )
        return scores.mean(values)

    return scores.memo(("log_loss", eps), compute)


def brier_score_loss(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    kind: str = "positive",
    labels: ArrayLike | None = None,
    pos_label: object = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Brier score: mean squared difference of probability and outcome.

    For ``kind="positive"`` the value of :func:`sklearn.metrics.brier_score_loss`;
    here it shares this package's input rules and its replicate engine.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels; text, bool, {0, 1} or {-1, 1}.
    y_prob : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]: of the positive class, or `predict_proba` output.
    kind : {"positive", "confidence"}, default="positive"
        Ask whether the positive class occurred, or whether the most probable class
        did (any number of classes).
    labels : array-like of shape (n_classes,), default=None
        Labels of the columns of `y_prob`; needed when some do not occur in `y_true`.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; needed for text labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights.

    Returns
    -------
    float
        Brier score in [0, 1]; lower is better.

    Raises
    ------
    ValueError
        For input that does not fit; the message names the argument.

    See Also
    --------
    log_loss : Cross-entropy.
    calibration_decomposition : The part of it that recalibration removes.

    Examples
    --------
    >>> from skcalfair.metrics import brier_score_loss
    >>> brier_score_loss([0, 1, 1, 0], [0.1, 0.9, 0.8, 0.4])
    0.055...
    """
    scores = sorted_scores(
        y_true,
        y_prob,
        kind=kind,
        labels=labels,
        pos_label=pos_label,
        sample_weight=sample_weight,
    )
    return float(brier_kernel(scores)[0])


def log_loss(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    kind: str = "positive",
    labels: ArrayLike | None = None,
    eps: float = EPS,
    pos_label: object = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Cross-entropy: mean negative log-probability of what happened, in nats.

    For ``kind="positive"`` the value of :func:`sklearn.metrics.log_loss`, apart from
    the clip of probabilities 0 and 1.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels; text, bool, {0, 1} or {-1, 1}.
    y_prob : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]: of the positive class, or `predict_proba` output.
    kind : {"positive", "confidence"}, default="positive"
        Ask whether the positive class occurred, or whether the most probable class
        did (any number of classes).
    labels : array-like of shape (n_classes,), default=None
        Labels of the columns of `y_prob`; needed when some do not occur in `y_true`.
    eps : float, default=1e-12
        Probabilities are clipped to [eps, 1 - eps], as in the log-odds.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; needed for text labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights.

    Returns
    -------
    float
        Cross-entropy, at least 0; lower is better.

    Raises
    ------
    ValueError
        For input that does not fit; the message names the argument.

    See Also
    --------
    brier_score_loss : Squared instead of logarithmic.
    calibration_decomposition : The part of it that recalibration removes.

    Examples
    --------
    >>> from skcalfair.metrics import log_loss
    >>> log_loss([0, 1, 1, 0], [0.1, 0.9, 0.8, 0.4])
    0.236...
    """
    check_eps(eps)
    scores = sorted_scores(
        y_true,
        y_prob,
        kind=kind,
        labels=labels,
        pos_label=pos_label,
        sample_weight=sample_weight,
    )
    return float(log_loss_kernel(scores, eps)[0])
