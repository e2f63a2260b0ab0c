"""Reliability curve: observed frequency against predicted probability, by bin."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta

from .._binning import check_n_bins
from .._sorted_scores import SortedScores
from ._evaluate import sorted_scores

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ReliabilityCurve:
    """Reliability curve over the bins that hold rows, the lowest scores first.

    Attributes
    ----------
    mean_predicted : ndarray of shape (n_bins_filled,)
        Weighted mean probability.
    observed : ndarray of shape (n_bins_filled,)
        Weighted frequency of the positive class.
    weight : ndarray of shape (n_bins_filled,)
        Sum of weights.
    count : ndarray of shape (n_bins_filled,)
        Number of observations: rows, or the sum of frequency weights.
    lower : ndarray of shape (n_bins_filled,)
        Lower end of the exact binomial interval of `observed`.
    upper : ndarray of shape (n_bins_filled,)
        Upper end of the exact binomial interval of `observed`.
    lowest : ndarray of shape (n_bins_filled,)
        Smallest probability in the bin.
    highest : ndarray of shape (n_bins_filled,)
        Largest probability in the bin.
    confidence_level : float
        Level of the intervals.

    Examples
    --------
    >>> from skcalfair.metrics import reliability_curve
    >>> reliability_curve([0, 1, 1], [0.1, 0.8, 0.9], n_bins=2).count
    array([1, 2])
    """

    mean_predicted: Floats
    observed: Floats
    weight: Floats
    count: NDArray[np.int64]
    lower: Floats
    upper: Floats
    lowest: Floats
    highest: Floats
    confidence_level: float

    def frame(self) -> pd.DataFrame:
        """
        Tidy table with one row a bin.

        Returns
        -------
        pandas.DataFrame
            The array attributes as columns.
        """
        columns = (
            "mean_predicted",
            "observed",
            "weight",
            "count",
            "lower",
            "upper",
            "lowest",
            "highest",
        )
        return pd.DataFrame({name: getattr(self, name) for name in columns})


def reliability_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    confidence_level: float = 0.95,
    weights: str = "frequency",
    pos_label: object = None,
    sample_weight: ArrayLike | None = None,
) -> ReliabilityCurve:
    """Observed frequency against predicted probability, with exact intervals.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels; text, bool, {0, 1} or {-1, 1}.
    y_prob : array-like of shape (n_samples,) or (n_samples, 2)
        Probabilities of the positive class in [0, 1], or `predict_proba` output.
    n_bins : int, default=15
        Number of bins, at least 1; empty ones are left out.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or of equal mass.
    confidence_level : float, default=0.95
        Level of the intervals, between 0 and 1.
    weights : {"frequency", "probability"}, default="frequency"
        Meaning of `sample_weight`: numbers of rows (integers), or survey and
        inverse-probability weights, whose intervals use the effective sample size.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; needed for text labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights.

    Returns
    -------
    ReliabilityCurve
        Frozen result; its `frame` method gives a table.

    Raises
    ------
    ValueError
        For input that does not fit; the message names the argument.

    See Also
    --------
    expected_calibration_error : Weighted mean of the differences.
    sklearn.calibration.calibration_curve : Without weights and intervals.

    Notes
    -----
    Intervals are Clopper and Pearson's [1]_. With probability weights the number of
    trials is Kish's effective size ``(sum w)^2 / sum w^2`` of the bin.

    References
    ----------
    .. [1] C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits
       illustrated in the case of the binomial", Biometrika 26(4), 1934.

    Examples
    --------
    >>> from skcalfair.metrics import reliability_curve
    >>> curve = reliability_curve([0, 1, 1, 0], [0.1, 0.8, 0.9, 0.7], n_bins=2)
    >>> curve.frame()[["mean_predicted", "observed", "count"]]
       mean_predicted  observed  count
    0             0.1  0.000000      1
    1             0.8  0.666667      3
    """
    check_n_bins(n_bins)
    if strategy not in ("uniform", "quantile"):
        raise ValueError(f"strategy must be 'uniform' or 'quantile'; got {strategy!r}")
    if not 0.0 < confidence_level < 1.0:
        raise ValueError(
            f"confidence_level must lie between 0 and 1; got {confidence_level!r}"
        )
    scores = sorted_scores(
        y_true,
        y_prob,
        weights=weights,
        pos_label=pos_label,
        sample_weight=sample_weight,
    )
    if strategy == "uniform":
        starts = scores.uniform_starts(n_bins)
    else:
        starts = scores.equal_mass_starts(n_bins)[0]
    return _curve(scores, starts, confidence_level)


def _curve(
    scores: SortedScores, starts: NDArray[np.intp], confidence_level: float
) -> ReliabilityCurve:
    stops = np.append(starts[1:], len(scores))
    starts, stops = starts[stops > starts][::-1], stops[stops > starts][::-1]
    ones = np.ones(len(scores))
    ascending = starts[::-1]
    sums = scores.segment_sums(ascending, [ones, scores.p, scores.y])[0, ::-1]
    mass, predicted, positive = sums.T
    observed = positive / mass
    trials = mass
    count = np.rint(mass)
    if not scores.frequency:
        squares = scores.segment_sums(ascending, [ones], squared_weights=True)
        count = stops - starts
        trials = mass if scores.weights is None else mass**2 / squares[0, ::-1, 0]
    lower, upper = _clopper_pearson(observed * trials, trials, confidence_level)
    return ReliabilityCurve(
        mean_predicted=predicted / mass,
        observed=observed,
        weight=mass,
        count=count.astype(np.int64),
        lower=lower,
        upper=upper,
        lowest=scores.p[stops - 1],
        highest=scores.p[starts],
        confidence_level=confidence_level,
    )


def _clopper_pearson(
    successes: Floats, trials: Floats, confidence_level: float
) -> tuple[Floats, Floats]:
    """Exact binomial interval; also for a fractional number of trials."""
    tail = (1.0 - confidence_level) / 2.0
    failures = trials - successes
    none, all_ = successes <= 0, failures <= 0
    a, b = np.where(none, 1.0, successes), np.where(all_, 1.0, failures)
    lower = np.where(none, 0.0, beta.ppf(tail, a, failures + 1.0))
    upper = np.where(all_, 1.0, beta.ppf(1.0 - tail, successes + 1.0, b))
    return lower, upper
