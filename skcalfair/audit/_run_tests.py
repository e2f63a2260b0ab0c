"""Tests of a difference between groups, over the runs of a study."""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from .._log_odds import EPS
from ..metrics._calibration_loss import _score_values
from ..metrics._registry import METRICS

Floats = NDArray[np.float64]

RUN_TESTS = ("pooled", "pooled_welch", "t_fold_means", "wilcoxon_as_published")
# With fewer rows of a class in a group, tests of pooled rows were seen to reject a
# true null in 6 to 14 % of studies at the level of 5 %.
FEWEST_ROWS = 20
POOLED = ("pooled", "pooled_welch")
COLUMNS = (
    "metric",
    "group",
    "reference",
    "sampling",
    "method",
    "unit",
    "n_units",
    "statistic",
    "p_value",
    "note",
)

GAP_COLUMNS = (
    "metric",
    "group",
    "reference",
    "naive",
    "size_matched",
    "n_naive",
    "n_size_matched",
    "size_robust",
)


def _gain(score: str) -> Callable[[NDArray, Floats, Floats], Floats]:
    def contributions(y: NDArray, p: Floats, q: Floats) -> Floats:
        return _score_values(y, p, score, EPS) - _score_values(y, q, score, EPS)

    return contributions


# Metrics that are a mean over rows: contribution of each, from (outcome, p, q).
CONTRIBUTIONS: dict[str, Callable[[NDArray, Floats, Floats], Floats]] = {
    "brier_score_loss": lambda y, p, q: _score_values(y, p, "brier", EPS),
    "log_loss": lambda y, p, q: _score_values(y, p, "log_loss", EPS),
    "calibration_loss_brier": _gain("brier"),
    "calibration_loss_log_loss": _gain("log_loss"),
}


@dataclass(frozen=True)
class TestOutcome:
    """Result of one test; NaN with a note where it cannot be made."""

    method: str
    unit: str
    n_units: int
    statistic: float = np.nan
    p_value: float = np.nan
    note: str | None = None

    __test__ = False  # no test of the suite, whatever its name


def run_tests(
    results: pd.DataFrame,
    predictions: pd.DataFrame,
    *,
    method: str = "pooled",
    reference: Any = None,
    clustered: bool = False,
    min_rows: int = 2,
) -> pd.DataFrame:
    """Test every metric of each group against the reference group.

    `results` and `predictions` are those of a `SubgroupAuditor`. The pooled methods
    fall back on "t_fold_means" where a metric is no mean over rows.
    """
    if method not in RUN_TESTS:
        raise ValueError(f"method must be one of {RUN_TESTS}; got {method!r}")
    runs = RunValues(results)
    reference = _reference(runs.groups, predictions, reference)
    by_row = _Rows(predictions, clustered, min_rows) if method in POOLED else None
    records = []
    for metric, samplings in runs.samplings.items():
        for group in runs.groups:
            if group == reference:
                continue
            if by_row is not None and metric in CONTRIBUTIONS:
                # Contributions of all rows serve every size.
                outcomes = {"naive": by_row.test(metric, group, reference, method)}
            else:
                outcomes = {
                    sampling: _over_runs(
                        runs.gaps(metric, sampling, group, reference),
                        runs.folds,
                        method,
                        _size_note(metric, sampling),
                    )
                    for sampling in samplings
                }
            for sampling, found in outcomes.items():
                pair = (metric, group, reference, sampling)
                test = (found.method, found.unit, found.n_units)
                numbers = (found.statistic, found.p_value, found.note)
                row = (*pair, *test, *numbers)
                records.append(dict(zip(COLUMNS, row, strict=True)))
    return _table(records)


class RunValues:
    """Values of the runs of a study, by metric, sampling, run and group."""

    def __init__(self, results: pd.DataFrame) -> None:
        kind, kinds = pd.factorize(
            pd.MultiIndex.from_frame(results[["metric", "sampling"]])
        )
        run, runs = pd.factorize(results["run"])
        group, groups = pd.factorize(results["group"])
        self.groups = groups.tolist()
        self.samplings: dict[str, list[str]] = {}
        for metric, sampling in kinds:
            self.samplings.setdefault(metric, []).append(sampling)
        self.folds = np.empty(len(runs), dtype=np.intp)
        self.folds[run] = results["fold"]
        values = np.full((len(kinds), len(runs), len(groups)), np.nan)
        values[kind, run, group] = results["value"]
        self._values = dict(zip(kinds, values, strict=True))

    def gaps(self, metric: str, sampling: str, group: Any, reference: Any) -> Floats:
        """Difference group - reference in each run; NaN where not estimable."""
        values = self._values[metric, sampling]
        one, other = self.groups.index(group), self.groups.index(reference)
        gaps: Floats = values[:, one] - values[:, other]
        return gaps


def gap_means(
    results: pd.DataFrame, groups: list[Any], size_robust: dict[str, bool]
) -> pd.DataFrame:
    """Mean gap over runs of every pair of groups; the earlier one is the reference."""
    runs = RunValues(results)
    records = []
    for metric, samplings in runs.samplings.items():
        for reference, group in combinations(groups, 2):
            record = dict(zip(GAP_COLUMNS, (metric, group, reference), strict=False))
            for sampling in ("naive", "size_matched"):
                gaps = np.empty(0)
                if sampling in samplings:
                    gaps = runs.gaps(metric, sampling, group, reference)
                gaps = gaps[np.isfinite(gaps)]
                record[sampling] = gaps.mean() if gaps.size else np.nan
                record[f"n_{sampling}"] = len(gaps)
            records.append(record | {"size_robust": size_robust[metric]})
    return pd.DataFrame(records, columns=list(GAP_COLUMNS))


def _table(records: Iterable[dict[str, Any]]) -> pd.DataFrame:
    rows = list(records)
    kinds: dict[str, Any] = {"n_units": np.int64, "statistic": float, "p_value": float}
    return pd.DataFrame(
        {
            name: pd.Series([row[name] for row in rows], dtype=kinds.get(name, object))
            for name in COLUMNS
        }
    )


def _reference(groups: list[Any], predictions: pd.DataFrame, reference: Any) -> Any:
    if reference is None:
        sizes = predictions.drop_duplicates("row")["group"].value_counts()
        return max(groups, key=lambda group: sizes.get(group, 0))
    if reference not in groups:
        raise ValueError(f"reference must be one of {groups}; got {reference!r}")
    return reference


# -- tests of the values of runs ------------------------------------------------------


def _over_runs(
    gaps: Floats, folds: NDArray[np.intp], method: str, note: str | None
) -> TestOutcome:
    known = np.isfinite(gaps)
    gaps, folds = gaps[known], folds[known]
    if method == "wilcoxon_as_published":
        return _wilcoxon(gaps, folds)
    return _t_fold_means(gaps, folds, note)


def _size_note(metric: str, sampling: str) -> str | None:
    found = METRICS.get(metric)
    if sampling != "naive" or (found is not None and found.size_robust):
        return None
    return (
        "the metric depends on the number of rows: a difference on all rows may be one "
        "of group size, see size_matched"
    )


def _t_fold_means(
    gaps: Floats, folds: NDArray[np.intp], note: str | None
) -> TestOutcome:
    """Student's t on the mean gap of each test fold."""
    _, fold = np.unique(folds, return_inverse=True)
    means = np.bincount(fold, gaps) / np.bincount(fold)
    n = len(means)
    if n < 2:
        return TestOutcome(
            "t_fold_means", "fold", n, note="not estimable: fewer than two test folds"
        )
    spread = float(means.std(ddof=1)) / np.sqrt(n)
    if spread <= _rounding(means):
        return TestOutcome(
            "t_fold_means", "fold", n, note="not estimable: all folds have the same gap"
        )
    t = float(means.mean()) / spread
    p = float(2.0 * stats.t.sf(abs(t), n - 1))
    return TestOutcome("t_fold_means", "fold", n, t, p, note)


def _wilcoxon(gaps: Floats, fold: NDArray[np.intp]) -> TestOutcome:
    """Wilcoxon's signed rank test with each run as a pair, as in the literature."""
    runs, folds = len(gaps), len(np.unique(fold))
    note = (
        f"pairs {runs} runs as if they were independent; runs of the same test fold "
        "share their rows, so that the test rejects too often"
    )
    if folds:
        least = 2.0 ** (1 - folds)
        note += f" ({folds} independent folds could not go below p = {least:.4g})"
    moved = gaps[np.abs(gaps) > _rounding(gaps)]
    if not len(moved):
        why = "not estimable: no run has a gap"
        return TestOutcome("wilcoxon_as_published", "run", runs, note=why)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sample size too small")
        found = stats.wilcoxon(moved)
    return TestOutcome(
        "wilcoxon_as_published",
        "run",
        runs,
        float(found.statistic),
        float(found.pvalue),
        note,
    )


def _rounding(values: Floats) -> float:
    """Differences up to this size come from the order of sums."""
    return 1e-12 * max(1.0, float(np.abs(values).max(initial=0.0)))


# -- tests of pooled rows -------------------------------------------------------------


class _Rows:
    """Out-of-fold rows, the contributions of their refits averaged."""

    def __init__(
        self, predictions: pd.DataFrame, clustered: bool, min_rows: int
    ) -> None:
        self.predictions, self.min_rows = predictions, min_rows
        self.unit = "cluster" if clustered else "row"
        self.code, rows = pd.factorize(predictions["row"])
        first = predictions.drop_duplicates("row")
        self.group = first["group"].to_numpy()
        self.outcome = first["outcome"].to_numpy(dtype=np.intp)
        self.cluster = first["cluster" if clustered else "row"].to_numpy()
        self.weight = first["sample_weight"].to_numpy(dtype=np.float64)
        self.n = len(rows)

    def contributions(self, metric: str) -> Floats:
        """Mean over its refits of what each row adds to a metric; NaN if unknown."""
        frame = self.predictions
        y = frame["outcome"].to_numpy()
        p, q = (frame[name].to_numpy() for name in ("score", "calibrated"))
        values = CONTRIBUTIONS[metric](y, p, q)
        known = np.isfinite(values)
        sums = np.bincount(self.code[known], values[known], self.n)
        counts = np.bincount(self.code[known], minlength=self.n)
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)

    def test(self, metric: str, group: Any, reference: Any, method: str) -> TestOutcome:
        """Welch's test of two group means by cluster, corrected for skewness or not."""
        values = self.contributions(metric)
        parts = [
            np.flatnonzero(np.isfinite(values) & (self.group == label))
            for label in (group, reference)
        ]
        used = np.concatenate(parts)
        n_units = len(np.unique(self.cluster[used]))
        for label, part in zip((group, reference), parts, strict=True):
            units = len(np.unique(self.cluster[part]))
            if len(part) < self.min_rows or units < 2:
                what = f"{len(part)} rows of {units} {self.unit}s"
                why = f"not estimable: group {label!r} has {what}"
                return TestOutcome(method, self.unit, n_units, note=why)
        means = [
            cluster_mean(values[part], self.weight[part], self.cluster[part])
            for part in parts
        ]
        difference = compare_means(*means)
        if difference.error <= _rounding(values[used]):
            why = "not estimable: the rows do not vary"
            return TestOutcome(method, self.unit, n_units, note=why)
        t = difference.corrected if method == "pooled" else difference.welch
        p = float(2.0 * stats.t.sf(abs(t), difference.df))
        return TestOutcome(method, self.unit, n_units, t, p, self._few_rows(parts))

    def _few_rows(self, parts: list[NDArray[np.intp]]) -> str | None:
        """Warning of a class too rare in a group for the test to be trusted."""
        rarest = min(
            np.bincount(self.outcome[part], minlength=2).min() for part in parts
        )
        if rarest >= FEWEST_ROWS:
            return None
        return (
            f"a group has {rarest} rows of a class only: with fewer than "
            f"{FEWEST_ROWS} the test may reject too often"
        )


@dataclass(frozen=True)
class ClusterMean:
    """Weighted mean, what each cluster adds to its error, and its degrees of freedom.

    `influence` is indexed by cluster; its squares add up to the variance.
    """

    value: float
    influence: pd.Series
    df: float

    @property
    def variance(self) -> float:
        """Variance of the mean."""
        return float((self.influence**2).sum())


def cluster_mean(values: Floats, weights: Floats, clusters: NDArray) -> ClusterMean:
    """Mean with the variance between clusters (Bell & McCaffrey's CR2).

    Clusters of equal weight give the variance of their means divided by their number,
    rows without clusters that of Student's test.
    """
    total = weights.sum()
    mean = float(weights @ values / total)
    code, labels = pd.factorize(clusters)
    share = np.bincount(code, weights) / total
    residual = np.bincount(code, weights * (values - mean)) / total
    influence = residual / np.sqrt(np.maximum(1.0 - share, np.finfo(float).tiny))
    # The number of clusters of equal weight that would be as informative, less one.
    df = 1.0 / float(share @ share) - 1.0
    return ClusterMean(mean, pd.Series(influence, index=labels), df)


@dataclass(frozen=True)
class Difference:
    """Difference of two means, its error, degrees of freedom and skewness."""

    value: float
    error: float
    df: float
    skewness: float

    @property
    def welch(self) -> float:
        """Difference in units of its error."""
        return self.value / self.error

    @property
    def corrected(self) -> float:
        """The same, freed of the skewness of a small group (Hall 1992).

        Squared errors are skew: a small group that happens to lack the large ones has
        a small mean and a small variance, and Welch's statistic rejects too often on
        that side and hardly ever on the other.
        """
        t, k = self.welch, self.skewness
        return t + k * t**2 / 3.0 + k**2 * t**3 / 27.0 + k / 6.0


def compare_means(one: ClusterMean, other: ClusterMean) -> Difference:
    """Difference of two means; clusters with rows in both are allowed for."""
    influence = one.influence.sub(other.influence, fill_value=0.0).to_numpy()
    variance = float(influence @ influence)
    v, w = one.variance, other.variance
    parts = v**2 / one.df + w**2 / other.df
    df = (v + w) ** 2 / parts if parts > 0 else np.inf
    skewness = float((influence**3).sum()) / variance**1.5 if variance > 0 else 0.0
    return Difference(one.value - other.value, np.sqrt(variance), df, skewness)
