"""Calibration loss: the part of a proper score that Platt recalibration removes."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from .._log_odds import EPS, fit_platt, log_odds, no_maximum, sigmoid
from .._random import RandomStateLike, generator
from .._sorted_scores import SortedScores
from .._validation import (
    ScoredRows,
    check_eps,
    check_frequencies,
    check_scored_rows,
)
from ..exceptions import SmallSampleWarning
from ._evaluate import platt_or_warn, recalibration, warn_undefined
from ._proper import brier_kernel, log_loss_kernel, log_loss_values
from ._recalibration import optimism, recalibrated_sums

Floats = NDArray[np.float64]

SCORES = ("log_loss", "brier")
MODES = ("held_out", "cross_fit", "in_sample", "corrected")
# Below this many rows of a class a residual bias of about +.001 was measured.
FEW_ROWS = 10
UNDETERMINED = "without one of the clusters the recalibration is not determined"


@dataclass(frozen=True)
class CalibrationDecomposition:
    """A proper score split into calibration and discrimination.

    Attributes
    ----------
    score : {"log_loss", "brier"}
        The proper scoring rule.
    recalibrate : {"held_out", "cross_fit", "in_sample", "corrected"}
        How the recalibrated scores were obtained.
    total : float
        The score of the probabilities as given.
    calibration : float
        Calibration loss: what recalibration removes. Small negative values occur.
    discrimination : float
        The rest: ``total = calibration + discrimination`` exactly.
    slope : float
        Platt slope on the log-odds (NaN for cross_fit, which has several).
    intercept : float
        Platt intercept on the log-odds (NaN for cross_fit).
    optimism : float
        Expected gain by chance, already subtracted from `calibration` (negative for
        cross_fit, where it was added back).
    reason : str or None
        Why the decomposition is not estimable (its parts are NaN then).

    Examples
    --------
    >>> from skcalfair.metrics import calibration_decomposition
    >>> y, p = [0, 1, 0, 1] * 10, [0.2, 0.3, 0.6, 0.7] * 10
    >>> parts = calibration_decomposition(y, p, score="brier")
    >>> parts.total == parts.calibration + parts.discrimination
    True
    """

    score: str
    recalibrate: str
    total: float
    calibration: float
    discrimination: float
    slope: float = np.nan
    intercept: float = np.nan
    optimism: float = 0.0
    reason: str | None = None


# -- kernels ------------------------------------------------------------------------


def total_kernel(scores: SortedScores, score: str, eps: float = EPS) -> Floats:
    """The proper score itself."""
    if score == "brier":
        return brier_kernel(scores)
    return log_loss_kernel(scores, eps)


def calibration_loss_kernel(
    scores: SortedScores, score: str, eps: float = EPS, corrected: bool = True
) -> Floats:
    """Calibration loss by the replicate's own fit, by default freed of optimism."""
    sums = recalibrated_sums(scores, eps)
    gain = total_kernel(scores, score, eps) - getattr(sums, score)
    return gain - optimism(scores, score, eps) if corrected else gain


def held_out_loss_kernel(
    scores: SortedScores,
    score: str,
    slope: float,
    intercept: float,
    eps: float = EPS,
) -> Floats:
    """Calibration loss by a given Platt map: a plain mean of differences."""

    def values() -> Floats:
        q = sigmoid(slope * scores.log_odds(eps) + intercept)
        return _score_values(scores.y, q, score, eps)

    key = ("held_out", score, slope, intercept, eps)
    recalibrated = scores.row_memo(key, values)
    return total_kernel(scores, score, eps) - scores.mean(recalibrated)


def _score_values(y: NDArray, p: Floats, score: str, eps: float) -> Floats:
    return (y - p) ** 2 if score == "brier" else log_loss_values(y, p, eps)


# -- the four modes -------------------------------------------------------------------


def _decompose(total: float, calibration: float, **rest: Any) -> Any:
    discrimination = total - calibration
    # Stated so that the two parts add up to the last bit.
    return CalibrationDecomposition(
        total=calibration + discrimination,
        calibration=calibration,
        discrimination=discrimination,
        **rest,
    )


def _by_own_fit(
    scores: SortedScores, score: str, mode: str, eps: float
) -> CalibrationDecomposition:
    total = float(total_kernel(scores, score, eps)[0])
    corrected = mode == "corrected"
    reason = recalibration(scores, eps, clustered=corrected)
    subtracted = 0.0
    if corrected and reason is None:
        subtracted = float(optimism(scores, score, eps)[0])
        reason = UNDETERMINED if np.isnan(subtracted) else None
    if reason:
        return CalibrationDecomposition(
            score, mode, total, np.nan, np.nan, optimism=np.nan, reason=reason
        )
    fit = platt_or_warn(scores, eps)
    gain = calibration_loss_kernel(scores, score, eps, corrected=False)
    return _decompose(
        total,
        float(gain[0]) - subtracted,
        score=score,
        recalibrate=mode,
        slope=float(fit.slope[0]),
        intercept=float(fit.intercept[0]),
        optimism=subtracted,
    )


def _held_out(
    scores: SortedScores, validation: ScoredRows, score: str, eps: float
) -> CalibrationDecomposition:
    if not 0 < validation.y.sum() < len(validation):
        raise ValueError(
            "y_val holds one class only: no calibrator can be fitted to it"
        )
    x = log_odds(validation.p, eps=eps)
    fit = fit_platt(x, validation.y, validation.sample_weight)
    slope, intercept = float(fit.slope), float(fit.intercept)
    loss = held_out_loss_kernel(scores, score, slope, intercept, eps)
    return _decompose(
        float(total_kernel(scores, score, eps)[0]),
        float(loss[0]),
        score=score,
        recalibrate="held_out",
        slope=slope,
        intercept=intercept,
    )


def _cross_fit(
    rows: ScoredRows,
    scores: SortedScores,
    score: str,
    eps: float,
    n_folds: int,
    random_state: RandomStateLike,
) -> CalibrationDecomposition:
    total = float(total_kernel(scores, score, eps)[0])
    undefined = CalibrationDecomposition(
        score, "cross_fit", total, np.nan, np.nan, optimism=np.nan
    )
    reason = recalibration(scores, eps)
    if reason is None and min(np.bincount(rows.y, minlength=2)) < n_folds:
        reason = f"a class has fewer rows than the {n_folds} folds"
    if reason:
        return replace(undefined, reason=reason)
    x, w = log_odds(rows.p, eps=eps), rows.sample_weight
    q = np.empty(len(rows))
    for train, test in _folds(rows, n_folds, random_state):
        part = None if w is None else w[train]
        stacked = None if part is None else part[np.newaxis]
        if no_maximum(x[train], rows.y[train], stacked)[0]:
            return replace(undefined, reason="a training fold is separable")
        fit = fit_platt(x[train], rows.y[train], part)
        q[test] = sigmoid(fit.slope * x[test] + fit.intercept)
    recalibrated = np.average(_score_values(rows.y, q, score, eps), weights=w)
    excess = float(optimism(scores, score, eps, out_of_fold=True)[0])
    if np.isnan(excess):
        return replace(undefined, reason=UNDETERMINED)
    excess *= n_folds / (
        n_folds - 1
    )  # the maps saw (n_folds - 1) / n_folds of the rows
    return _decompose(
        total,
        total - float(recalibrated) + excess,
        score=score,
        recalibrate="cross_fit",
        optimism=-excess,
    )


def _folds(rows: ScoredRows, n_folds: int, random_state: RandomStateLike) -> Any:
    seed = int(generator(random_state).integers(2**31))
    options: dict[str, Any] = {"n_splits": n_folds, "shuffle": True}
    if rows.clusters is None:
        return StratifiedKFold(**options, random_state=seed).split(rows.p, rows.y)
    splitter = StratifiedGroupKFold(**options, random_state=seed)
    return splitter.split(rows.p, rows.y, rows.clusters)


# -- public functions ---------------------------------------------------------------


def calibration_decomposition(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    score: str = "log_loss",
    recalibrate: str | None = None,
    y_val: ArrayLike | None = None,
    p_val: ArrayLike | None = None,
    sample_weight_val: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    weights: str = "frequency",
    kind: str = "positive",
    labels: ArrayLike | None = None,
    n_folds: int = 5,
    random_state: RandomStateLike = None,
    eps: float = EPS,
    pos_label: object = None,
    sample_weight: ArrayLike | None = None,
) -> CalibrationDecomposition:
    """Split a proper score into calibration and discrimination.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels; text, bool, {0, 1} or {-1, 1}.
    y_prob : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]: of the positive class, or `predict_proba` output.
    score : {"log_loss", "brier"}, default="log_loss"
        Proper scoring rule: cross-entropy in nats, or Brier score.
    recalibrate : {"held_out", "cross_fit", "in_sample", "corrected"}, default=None
        How the recalibrated scores q are obtained:

        - "held_out": Platt fit to `y_val`, `p_val`; the default when these are given.
          It measures what *that* map gains on these rows. For a group under a map
          fitted to everyone this is not the group's own calibration loss, and it can
          be negative.
        - "corrected": Platt fit to the rows themselves, minus its expected optimism;
          the default otherwise, and robust to sample size.
        - "in_sample": the same without the correction, biased upwards.
        - "cross_fit": Platt fit to the other folds, plus what the smaller fit costs.
    y_val : array-like of shape (n_validation,), default=None
        Labels of the validation rows.
    p_val : array-like of shape (n_validation,) or (n_validation, 2), default=None
        Probabilities of the validation rows.
    sample_weight_val : array-like of shape (n_validation,), default=None
        Weights of the validation rows.
    clusters : array-like of shape (n_samples,), default=None
        Cluster of each row, for example the patient: the correction then allows for
        correlated rows, and folds keep clusters whole.
    weights : {"frequency", "probability"}, default="frequency"
        Meaning of `sample_weight` for the correction: numbers of rows (integers), or
        survey and inverse-probability weights.
    kind : {"positive", "confidence"}, default="positive"
        Ask whether the positive class occurred, or whether the most probable class
        did (any number of classes).
    labels : array-like of shape (n_classes,), default=None
        Labels of the columns of `y_prob`; needed when some do not occur in `y_true`.
    n_folds : int, default=5
        Folds for "cross_fit".
    random_state : int, Generator, RandomState or None, default=None
        Seed of the folds for "cross_fit".
    eps : float, default=1e-12
        Probabilities are clipped to [eps, 1 - eps], before and after recalibration.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; needed for text labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights.

    Returns
    -------
    CalibrationDecomposition
        Frozen result with ``total = calibration + discrimination``. Where the
        recalibration does not exist (one class, separable data, constant scores) its
        parts are NaN and `reason` says why.

    Raises
    ------
    ValueError
        For input that does not fit; the message names the argument.

    Warns
    -----
    SmallSampleWarning
        When a class has fewer than 10 rows and the correction is used.

    See Also
    --------
    calibration_loss : The calibration part alone.
    corp_decomposition : The same with isotonic recalibration; not size-robust.

    Notes
    -----
    ``PSR(p) - PSR(q)`` is the calibration loss of [1]_. The in-sample gain exceeds it
    by about ``tr(H^-1 J) / (2 n)`` for cross-entropy and ``tr(H^-1 C) / (2 n)`` for the
    Brier score, with ``H = mean v x x'``, ``J = mean (q - y)^2 x x'``,
    ``C = 2 mean v^2 x x'``, ``v = q (1 - q)`` and ``x = (log-odds, 1)``. For scores
    with log-odds slope 0.6 the in-sample loss is .0339 at 100 rows and .0245 at 5,000;
    the corrected one is .024 at both.

    References
    ----------
    .. [1] L. Ferrer, "Analysis and comparison of classification metrics",
       arXiv:2209.05355, 2022.

    Examples
    --------
    >>> from skcalfair.metrics import calibration_decomposition
    >>> y, p = [0, 1, 0, 1] * 10, [0.2, 0.3, 0.6, 0.7] * 10
    >>> parts = calibration_decomposition(y, p)
    >>> round(parts.total, 3), round(parts.calibration, 3)
    (0.675, -0.003)
    """
    check_eps(eps)
    if n_folds < 2:
        raise ValueError(f"n_folds must be at least 2; got {n_folds!r}")
    mode = _check_mode(score, recalibrate, y_val, p_val)
    rows = check_scored_rows(
        y_true,
        y_prob,
        kind=kind,
        labels=labels,
        pos_label=pos_label,
        sample_weight=sample_weight,
        clusters=clusters,
    )
    if mode in ("corrected", "cross_fit"):
        check_frequencies(rows.sample_weight, weights)
        _warn_few_rows(rows, weights)
    scores = SortedScores.from_rows(rows, frequency=weights != "probability")
    if mode == "held_out":
        validation = check_scored_rows(
            y_val,  # type: ignore[arg-type]
            p_val,  # type: ignore[arg-type]
            kind=kind,
            labels=labels,
            pos_label=pos_label,
            sample_weight=sample_weight_val,
            names=("y_val", "p_val"),
        )
        return _held_out(scores, validation, score, eps)
    if mode == "cross_fit":
        return _cross_fit(rows, scores, score, eps, n_folds, random_state)
    return _by_own_fit(scores, score, mode, eps)


def _check_mode(
    score: str,
    recalibrate: str | None,
    y_val: ArrayLike | None,
    p_val: ArrayLike | None,
) -> str:
    if score not in SCORES:
        raise ValueError(f"score must be 'log_loss' or 'brier'; got {score!r}")
    if (y_val is None) != (p_val is None):
        raise ValueError("y_val and p_val must be given together")
    given = y_val is not None
    mode = recalibrate or ("held_out" if given else "corrected")
    if mode not in MODES:
        options = ", ".join(repr(option) for option in MODES)
        raise ValueError(f"recalibrate must be one of {options}; got {recalibrate!r}")
    if given != (mode == "held_out"):
        raise ValueError(
            "recalibrate='held_out' needs y_val and p_val"
            if not given
            else f"recalibrate={mode!r} does not use y_val and p_val; leave them out"
        )
    return mode


def _warn_few_rows(rows: ScoredRows, weights: str) -> None:
    counts = rows.sample_weight if weights == "frequency" else None
    by_class = np.bincount(rows.y, weights=counts, minlength=2)
    if 0 < by_class.min() < FEW_ROWS:
        warnings.warn(
            f"the rarer class has {by_class.min():g} rows; below {FEW_ROWS} the "
            "corrected calibration loss keeps a small upward bias",
            SmallSampleWarning,
            stacklevel=3,
        )


def calibration_loss(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    score: str = "log_loss",
    recalibrate: str | None = None,
    y_val: ArrayLike | None = None,
    p_val: ArrayLike | None = None,
    sample_weight_val: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    weights: str = "frequency",
    kind: str = "positive",
    labels: ArrayLike | None = None,
    n_folds: int = 5,
    random_state: RandomStateLike = None,
    eps: float = EPS,
    pos_label: object = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Calibration loss: how much a proper score gains by Platt recalibration.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels; text, bool, {0, 1} or {-1, 1}.
    y_prob : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]: of the positive class, or `predict_proba` output.
    score : {"log_loss", "brier"}, default="log_loss"
        Proper scoring rule: cross-entropy in nats, or Brier score.
    recalibrate : {"held_out", "cross_fit", "in_sample", "corrected"}, default=None
        How the recalibrated scores are obtained, see `calibration_decomposition`:
        "held_out" when `y_val` and `p_val` are given, else "corrected". With one map
        for everyone, "held_out" measures what that map gains for a group, not the
        group's own calibration loss, and it can be negative.
    y_val : array-like of shape (n_validation,), default=None
        Labels of the validation rows.
    p_val : array-like of shape (n_validation,) or (n_validation, 2), default=None
        Probabilities of the validation rows.
    sample_weight_val : array-like of shape (n_validation,), default=None
        Weights of the validation rows.
    clusters : array-like of shape (n_samples,), default=None
        Cluster of each row, for example the patient.
    weights : {"frequency", "probability"}, default="frequency"
        Meaning of `sample_weight` for the correction: numbers of rows (integers), or
        survey and inverse-probability weights.
    kind : {"positive", "confidence"}, default="positive"
        Ask whether the positive class occurred, or whether the most probable class
        did (any number of classes).
    labels : array-like of shape (n_classes,), default=None
        Labels of the columns of `y_prob`; needed when some do not occur in `y_true`.
    n_folds : int, default=5
        Folds for "cross_fit".
    random_state : int, Generator, RandomState or None, default=None
        Seed of the folds for "cross_fit".
    eps : float, default=1e-12
        Probabilities are clipped to [eps, 1 - eps], before and after recalibration.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; needed for text labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights.

    Returns
    -------
    float
        Calibration loss; 0 for calibrated scores up to noise, lower is better, and
        small negative values occur. NaN, with a warning that gives the reason, for one
        class, separable data or constant scores.

    Raises
    ------
    ValueError
        For input that does not fit; the message names the argument.

    Warns
    -----
    SmallSampleWarning
        When a class has fewer than 10 rows and the correction is used.

    See Also
    --------
    calibration_decomposition : All parts, the Platt map and the formulas.

    Examples
    --------
    >>> from skcalfair.metrics import calibration_loss
    >>> y, p = [0, 1, 0, 1] * 10, [0.2, 0.3, 0.6, 0.7] * 10
    >>> round(calibration_loss(y, p, recalibrate="in_sample"), 3)
    0.019
    """
    parts = calibration_decomposition(
        y_true,
        y_prob,
        score=score,
        recalibrate=recalibrate,
        y_val=y_val,
        p_val=p_val,
        sample_weight_val=sample_weight_val,
        clusters=clusters,
        weights=weights,
        kind=kind,
        labels=labels,
        n_folds=n_folds,
        random_state=random_state,
        eps=eps,
        pos_label=pos_label,
        sample_weight=sample_weight,
    )
    if parts.reason:
        warn_undefined("calibration_loss", parts.reason)
    return parts.calibration
