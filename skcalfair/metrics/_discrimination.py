"""Discrimination: ranking of positives above negatives, and decisions at a threshold.

ROC AUC and average precision are scikit-learn's functions; their kernels here give the
same values for many replicates at once.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._sorted_scores import SortedScores
from ._evaluate import sorted_scores, two_classes, value_or_warn

Floats = NDArray[np.float64]


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Quotient that is NaN, silently, where the denominator is 0."""
    out = np.full(np.broadcast_shapes(numerator.shape, denominator.shape), np.nan)
    return np.divide(numerator, denominator, out=out, where=denominator > 0)


def _rank_metrics(scores: SortedScores) -> tuple[Floats, Floats]:
    """ROC AUC and average precision of every replicate."""

    def compute() -> tuple[Floats, Floats]:
        positive, negative = scores.positive_total, scores.total - scores.positive_total
        one_class = (positive <= 0) | (negative <= 0)
        pairs = np.where(one_class, np.nan, positive * negative)
        auc = np.full(scores.n_replicates, np.nan)
        average_precision = np.full(scores.n_replicates, np.nan)
        for rows, steps, tp, called, fp_before in scores.staircases():
            # A positive loses to the negatives above its group and to half of those
            # in it.
            lost = (called - tp) + fp_before
            auc[rows] = 1.0 - _row_dots(steps, lost) / 2.0 / pairs[rows]
            precision = np.divide(
                tp, called, out=np.zeros_like(steps), where=called > 0
            )
            average_precision[rows] = _row_dots(steps, precision)
        average_precision[one_class] = np.nan
        return auc, _ratio(average_precision, positive)

    return scores.memo("rank_metrics", compute)


def _row_dots(a: Floats, b: NDArray) -> Floats:
    """Dot product of each pair of rows, by BLAS."""
    columns = b.astype(np.float64, copy=False)[:, :, np.newaxis]
    dots: Floats = (a[:, np.newaxis] @ columns)[:, 0, 0]
    return dots


def roc_auc_kernel(scores: SortedScores) -> Floats:
    """Area under the ROC curve."""
    return _rank_metrics(scores)[0]


def average_precision_kernel(scores: SortedScores) -> Floats:
    """Average precision."""
    return _rank_metrics(scores)[1]


def normalized_average_precision_kernel(scores: SortedScores) -> Floats:
    """Average precision rescaled by the prevalence."""
    prevalence = scores.positive_total / scores.total
    return _ratio(average_precision_kernel(scores) - prevalence, 1.0 - prevalence)


def precision_recall_gain_auc_kernel(scores: SortedScores) -> Floats:
    """Area under the precision-recall-gain curve."""
    area = np.empty(scores.n_replicates)
    positive = scores.positive_total
    negative = scores.total - positive
    for rows, steps, tp, called, fp_before in scores.staircases():
        fp = called - tp
        p, n = positive[rows, np.newaxis], negative[rows, np.newaxis]
        # Each step runs in count space from (tp - steps, fp_before) to (tp, fp), and is
        # straight in gain space too; what lies left of recall gain 0, i.e. below
        # p / (p + n) of the positives, is cut off.
        first = p * p / (p + n)
        start = np.clip(first, tp - steps, tp)
        share = np.divide(
            start - (tp - steps), steps, out=np.zeros_like(steps), where=steps > 0
        )
        fp_start = fp_before + share * (fp - fp_before)
        odds = _ratio(p, n)
        kept = (tp > first) & (steps > 0)
        start, end = np.where(kept, start, 1.0), np.where(kept, tp, 1.0)
        width = odds * ((p - start) / start - (p - end) / end)
        height = 1.0 - odds * (fp_start / start + fp / end) / 2.0
        area[rows] = np.where(kept, width * height, 0.0).sum(axis=1)
    area[(positive <= 0) | (negative <= 0)] = np.nan
    return area


def balanced_accuracy_kernel(scores: SortedScores, threshold: float = 0.5) -> Floats:
    """Mean of sensitivity and specificity where p >= threshold is positive."""

    def compute() -> Floats:
        called = int(np.searchsorted(-scores.p, -threshold, side="right"))
        y = scores.y.astype(np.float64)
        starts = np.array([0, called], dtype=np.intp)
        sums = scores.segment_sums(starts, [y, 1.0 - y])
        true_positive, true_negative = sums[:, 0, 0], sums[:, 1, 1]
        negative = scores.total - scores.positive_total
        sensitivity = _ratio(true_positive, scores.positive_total)
        return (sensitivity + _ratio(true_negative, negative)) / 2.0

    return scores.memo(("balanced_accuracy", threshold), compute)


def normalized_average_precision(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    pos_label: object = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Average precision rescaled so that random guessing is 0 and perfection 1.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels; text, bool, {0, 1} or {-1, 1}.
    y_prob : array-like of shape (n_samples,) or (n_samples, 2)
        Probabilities of the positive class in [0, 1], or `predict_proba` output.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; needed for text labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights.

    Returns
    -------
    float
        At most 1; higher is better. NaN, with a warning, when only one class occurs.

    Raises
    ------
    ValueError
        For input that does not fit; the message names the argument.

    See Also
    --------
    precision_recall_gain_auc_score : Another quantity with a similar name.

    Notes
    -----
    ``(AP - pi) / (1 - pi)`` with the weighted prevalence pi, called AUC_PRG in [1]_.
    It still depends on the prevalence: the same scores give .71, .54 and .30 at
    prevalence .5, .2 and .05.

    References
    ----------
    .. [1] M. A. Ricci Lara, C. Mosquera, E. Ferrante and R. Echeveste, "Towards
       unraveling calibration biases in medical image analysis", 2023.

    Examples
    --------
    >>> from skcalfair.metrics import normalized_average_precision
    >>> normalized_average_precision([0, 1, 1, 0], [0.1, 0.9, 0.3, 0.4])
    0.666...
    """
    scores = sorted_scores(
        y_true, y_prob, pos_label=pos_label, sample_weight=sample_weight
    )
    value = normalized_average_precision_kernel(scores)
    return value_or_warn(value, scores, "normalized_average_precision", two_classes)


def precision_recall_gain_auc_score(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    pos_label: object = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Area under the precision-recall-gain curve of Flach and Kull.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels; text, bool, {0, 1} or {-1, 1}.
    y_prob : array-like of shape (n_samples,) or (n_samples, 2)
        Probabilities of the positive class in [0, 1], or `predict_proba` output.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; needed for text labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights.

    Returns
    -------
    float
        At most 1; 0 for a constant score; higher is better. NaN, with a warning, when
        only one class occurs.

    Raises
    ------
    ValueError
        For input that does not fit; the message names the argument.

    See Also
    --------
    normalized_average_precision : The rescaled area under the precision-recall curve.

    Notes
    -----
    With prevalence pi, precision gain is ``1 - pi / (1 - pi) * FP / TP`` and recall
    gain ``1 - pi / (1 - pi) * FN / TP``. Operating points are joined by straight lines,
    which in this space are exact, and the area is taken over recall gain 0 to 1 [1]_.

    References
    ----------
    .. [1] P. Flach and M. Kull, "Precision-recall-gain curves: PR analysis done right",
       Advances in Neural Information Processing Systems 28, 2015.

    Examples
    --------
    >>> from skcalfair.metrics import precision_recall_gain_auc_score
    >>> precision_recall_gain_auc_score([0, 1, 1, 0], [0.1, 0.9, 0.8, 0.4])
    1.0
    """
    scores = sorted_scores(
        y_true, y_prob, pos_label=pos_label, sample_weight=sample_weight
    )
    value = precision_recall_gain_auc_kernel(scores)
    return value_or_warn(value, scores, "precision_recall_gain_auc_score", two_classes)


def balanced_accuracy_at_threshold(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    threshold: float = 0.5,
    pos_label: object = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean of sensitivity and specificity when ``y_prob >= threshold`` is positive.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels; text, bool, {0, 1} or {-1, 1}.
    y_prob : array-like of shape (n_samples,) or (n_samples, 2)
        Probabilities of the positive class in [0, 1], or `predict_proba` output.
    threshold : float, default=0.5
        Smallest probability that is called positive.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; needed for text labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights.

    Returns
    -------
    float
        In [0, 1]; 0.5 for a constant score; higher is better. NaN, with a warning,
        when only one class occurs.

    Raises
    ------
    ValueError
        For input that does not fit; the message names the argument.

    See Also
    --------
    sklearn.metrics.balanced_accuracy_score : The same for decisions.

    Examples
    --------
    >>> from skcalfair.metrics import balanced_accuracy_at_threshold
    >>> balanced_accuracy_at_threshold([0, 1, 1, 0], [0.1, 0.9, 0.3, 0.5])
    0.5
    """
    if not np.isfinite(threshold):
        raise ValueError(f"threshold must be a finite number; got {threshold!r}")
    scores = sorted_scores(
        y_true, y_prob, pos_label=pos_label, sample_weight=sample_weight
    )
    value = balanced_accuracy_kernel(scores, float(threshold))
    return value_or_warn(value, scores, "balanced_accuracy_at_threshold", two_classes)
