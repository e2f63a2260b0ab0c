"""Confidence intervals of a metric in one group, and of its gap between two.

Every metric has the one construction whose coverage was found to hold by simulation
(`benchmarks/validity.py`), or none.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import t as student

from .._random import RandomStateLike, seed_sequence
from .._sorted_scores import SortedScores
from .._validation import ScoredRows
from ..metrics._evaluate import recalibration
from ..metrics._registry import METRICS
from ._influence import INFLUENCES, ON_LOGIT_SCALE, variance
from ._inversion import Gap, path_limits, path_p_value
from ._matched import matched_redraws
from ._path_statistics import STATISTICS, PathStatistic
from ._platt_path import PlattPath

Floats = NDArray[np.float64]

# Redraws of the outcomes.
N_DRAWS = 1_999
# Fewer rows of a class than this give no interval of a calibration error.
FEWEST_EVENTS = 20
# Fewer clusters give none either: of 15, intervals held the truth in 88 to 93 %.
FEWEST_DRAWN = 25
# Fewer rows of a class, or clusters, give no interval at all.
FEWEST_ROWS = 5
FEWEST_CLUSTERS = 10

WILD = "wild test inversion"
UNLIMITED = "these rows set no limit to it"
NO_METHOD = "no interval with the stated coverage is known for this metric"


@dataclass(frozen=True)
class Interval:
    """A value with its confidence interval.

    `p_value` is that of the true value 0: of calibrated scores for a calibration error,
    of no difference for a gap. Limits are NaN where there is a `reason`.
    """

    value: float
    low: float = np.nan
    high: float = np.nan
    p_value: float = np.nan
    method: str = ""
    reason: str | None = None


class GroupRows:
    """Rows of one group, prepared for intervals; what metrics share is kept.

    Parameters
    ----------
    rows : ScoredRows
        Rows of the group.
    counts : bool, default=None
        Whether weights are numbers of rows; by default if all of them can be.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the redraws.
    n_draws : int, default=1999
        Number of redraws.
    level : float, default=0.95
        Confidence level.
    """

    def __init__(
        self,
        rows: ScoredRows,
        *,
        counts: bool | None = None,
        random_state: RandomStateLike = None,
        n_draws: int = N_DRAWS,
        level: float = 0.95,
    ) -> None:
        self.rows, self.n_draws, self.level = rows, n_draws, level
        self.counts = rows.weights_are_counts if counts is None else counts
        self.seed = seed_sequence(random_state)
        self._statistics: dict[str, PathStatistic] = {}
        self._errors: dict[str, float] = {}

    @property
    def alpha(self) -> float:
        """Error probability."""
        return 1.0 - self.level

    @cached_property
    def scores(self) -> SortedScores:
        """Sorted rows, each as often as its weight says."""
        rows = self.rows
        if rows.sample_weight is not None and self.counts:
            counts = rows.sample_weight.astype(np.intp)
            rows = rows.take(np.repeat(np.arange(len(rows)), counts))
            rows = ScoredRows(rows.y, rows.p, None, rows.clusters, rows.pos_label)
        return SortedScores.from_rows(rows)

    @property
    def _fractional(self) -> bool:
        """Whether there are weights that are no numbers of rows."""
        return self.rows.sample_weight is not None and not self.counts

    @cached_property
    def path(self) -> PlattPath:
        """Path along which the outcomes are redrawn."""
        return PlattPath(self.scores, self.n_draws, self.seed)

    @cached_property
    def n_clusters(self) -> int | None:
        """Number of clusters, None where rows are independent."""
        clusters = self.rows.clusters
        return None if clusters is None else len(np.unique(clusters))

    def value(self, metric: str) -> float:
        """Estimate of a metric."""
        if self._fractional:
            scores = SortedScores.from_rows(self.rows, frequency=False)
            return float(METRICS[metric].kernel(scores)[0])
        return float(METRICS[metric].kernel(self.scores)[0])

    def statistic(self, metric: str) -> PathStatistic:
        """A calibration metric along the path."""
        if metric not in self._statistics:
            self._statistics[metric] = STATISTICS[metric](self.path)
        return self._statistics[metric]

    def reason(self, metric: str) -> str | None:
        """Why there is no interval, or None."""
        if metric not in STATISTICS and metric not in INFLUENCES:
            return NO_METHOD
        if self._fractional:
            return "no interval is offered with fractional weights"
        requirement = METRICS[metric].requirement
        missing = requirement(self.scores) if requirement else None
        if missing:
            return missing
        fewest = FEWEST_DRAWN if metric in STATISTICS else FEWEST_CLUSTERS
        if self.n_clusters is not None and self.n_clusters < fewest:
            return f"fewer than {fewest} clusters"
        if metric in STATISTICS:
            return self._no_path()
        if self._rarer_class < FEWEST_ROWS:
            return f"fewer than {FEWEST_ROWS} rows of one class"
        if not self.standard_error(metric) > 0.0:
            return "the estimated standard error is 0"
        return None

    def _no_path(self) -> str | None:
        if self._rarer_class < FEWEST_EVENTS:
            return f"fewer than {FEWEST_EVENTS} rows of one class"
        return recalibration(self.scores)

    @property
    def _rarer_class(self) -> int:
        positive = int(self.scores.positive_total[0])
        return min(positive, len(self.scores) - positive)

    # -- metrics that are smooth in the rows' distribution ---------------------------

    def standard_error(self, metric: str) -> float:
        """Standard error by influence values."""
        if metric not in self._errors:
            influence = INFLUENCES[metric](self.scores)
            self._errors[metric] = float(np.sqrt(variance(self.scores, influence)))
        return self._errors[metric]

    def degrees_of_freedom(self) -> float:
        """Degrees of freedom of the standard error."""
        units = len(self.scores) if self.n_clusters is None else self.n_clusters
        return units - 1.0

    def smooth_limits(self, metric: str, alpha: float) -> tuple[float, float]:
        """Limits by the standard error, on the logit scale for shares."""
        value, error = self.value(metric), self.standard_error(metric)
        reach = float(student.isf(alpha / 2.0, self.degrees_of_freedom()))
        if metric not in ON_LOGIT_SCALE:
            return value - reach * error, value + reach * error
        half = reach * error / (value * (1.0 - value))
        low, high = expit(logit(value) + np.array([-half, half]))
        return float(low), float(high)

    # -- ------------------------------------------------------------------------------

    def interval(self, metric: str) -> Interval:
        """Confidence interval of a metric.

        Parameters
        ----------
        metric : str
            Name of a built-in metric.

        Returns
        -------
        Interval
            Value and limits, or the reason why there are none.
        """
        value, reason = self.value(metric), self.reason(metric)
        if reason:
            return Interval(value, reason=reason)
        if metric in STATISTICS:
            statistic = self.statistic(metric)
            low, high = path_limits(statistic, self.alpha)
            if not np.isfinite(high):
                return Interval(value, reason=UNLIMITED)
            p = self._monte_carlo(path_p_value(statistic, 0.0))
            return Interval(value, low, high, p, WILD)
        low, high = self.smooth_limits(metric, self.alpha)
        return Interval(value, low, high, method=self._smooth_method(metric))

    def _smooth_method(self, metric: str) -> str:
        if metric == "roc_auc":
            return "DeLong, logit scale"
        if metric in ON_LOGIT_SCALE:
            return "standard error, logit scale"
        return "t interval"

    def _monte_carlo(self, p: float) -> float:
        # The data are one more draw under the hypothesis.
        return (p * self.n_draws + 1.0) / (self.n_draws + 1.0)


def gap_interval(first: GroupRows, second: GroupRows, metric: str) -> Interval:
    """Confidence interval of a metric's difference between two groups.

    Parameters
    ----------
    first, second : GroupRows
        The groups; the gap is the first one's value minus the second one's.
    metric : str
        Name of a built-in metric.

    Returns
    -------
    Interval
        Gap, limits and the p-value of no gap, or the reason why there are none. For
        metrics with a size bias (ECE) the limits are those of the gap between
        infinitely large samples, which the observed gap need not lie in.
    """
    value = first.value(metric) - second.value(metric)
    reason = _gap_reason(first, second, metric)
    if reason:
        return Interval(value, reason=reason)
    if metric in STATISTICS:
        gap = Gap(first.statistic(metric), second.statistic(metric))
        low, high = gap.limits(first.alpha)
        if not np.isfinite([low, high]).all():
            return Interval(value, reason=UNLIMITED)
        return Interval(value, low, high, first._monte_carlo(gap.p_at(0.0)), WILD)
    if metric in ON_LOGIT_SCALE:
        return _mover(first, second, metric, value)
    return _welch(first, second, metric, value)


def _gap_reason(first: GroupRows, second: GroupRows, metric: str) -> str | None:
    reason = first.reason(metric) or second.reason(metric)
    if reason or first.rows.clusters is None or second.rows.clusters is None:
        return reason
    if np.intersect1d(first.rows.clusters, second.rows.clusters).size:
        return "clusters have rows in both groups"
    return None


def _welch(first: GroupRows, second: GroupRows, metric: str, value: float) -> Interval:
    variances = np.array([g.standard_error(metric) ** 2 for g in (first, second)])
    freedom = np.array([g.degrees_of_freedom() for g in (first, second)])
    df = variances.sum() ** 2 / (variances**2 / freedom).sum()
    error = float(np.sqrt(variances.sum()))
    half = float(student.isf(first.alpha / 2.0, df)) * error
    p = 2.0 * float(student.sf(abs(value) / error, df))
    return Interval(value, value - half, value + half, p, "Welch t")


def _mover(first: GroupRows, second: GroupRows, metric: str, value: float) -> Interval:
    """Limits of a difference from those of its parts (MOVER)."""

    def limits(alpha: float) -> tuple[float, float]:
        (a, b), (c, d) = (g.smooth_limits(metric, alpha) for g in (first, second))
        one, other = first.value(metric), second.value(metric)
        return (
            value - float(np.hypot(one - a, d - other)),
            value + float(np.hypot(b - one, other - c)),
        )

    low, high = limits(first.alpha)
    # The p-value is the level at which the limits meet 0.
    inside, outside = 0.0, 1.0
    for _ in range(60):
        middle = (inside + outside) / 2.0
        bounds = limits(middle)
        if bounds[0] <= 0.0 <= bounds[1]:
            inside = middle
        else:
            outside = middle
    return Interval(value, low, high, inside, "MOVER of logit intervals")


def matched_gap_interval(
    first: GroupRows,
    second: GroupRows,
    metric: str,
    *,
    size: int,
    value: float | None = None,
    random_state: RandomStateLike = None,
) -> Interval:
    """Confidence interval of the expected gap between samples of equal size.

    Parameters
    ----------
    first, second : GroupRows
        The groups.
    metric : {"expected_calibration_error"}
        Name of the metric; others need no matching, or have no interval.
    size : int
        Rows that both groups are subsampled to.
    value : float, default=None
        Gap at that size if it is known, else it is estimated.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the subsamples.

    Returns
    -------
    Interval
        Gap, limits and the p-value of no gap, or the reason why there are none.
    """
    reason = _gap_reason(first, second, metric)
    if reason is None and metric != "expected_calibration_error":
        reason = NO_METHOD
    if reason:
        return Interval(np.nan if value is None else value, reason=reason)
    seeds = seed_sequence(random_state).spawn(2)
    (a, drawn_a), (b, drawn_b) = (
        matched_redraws(group.path, size, seed)
        for group, seed in zip((first, second), seeds, strict=True)
    )
    value = a - b if value is None else value
    deviates = drawn_a - drawn_b
    deviates -= deviates.mean()
    high, low = value - np.quantile(deviates, [first.alpha / 2, 1 - first.alpha / 2])
    below, above = np.mean(deviates <= value), np.mean(deviates >= value)
    p = first._monte_carlo(min(1.0, 2.0 * float(min(below, above))))
    return Interval(value, float(low), float(high), p, "wild redraws at equal size")
