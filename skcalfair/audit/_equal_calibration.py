"""Are all groups equally calibrated? One test for all, then each comparison."""

import math
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from .._random import RandomStateLike, child_seeds
from .._validation import ScoredRows, as_1d, check_scored_rows, encode_groups
from ._curve_tests import METHODS, Found, run_method
from ._equal_calibration_result import (
    COMPARISON_COLUMNS,
    GROUP_COLUMNS,
    EqualCalibrationResult,
)
from ._multiplicity import adjust
from ._tables import group_names

Floats = NDArray[np.float64]

COMPARISONS = ("rest", "pairs", None)
CORRECTIONS = ("holm", "fdr_bh")
# Level that the number of draws must be able to reach after correction.
LEVEL = 0.05


def equal_calibration_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sensitive_features: Any,
    clusters: ArrayLike | None = None,
    method: str = "auto",
    comparisons: str | None = "rest",
    correction: str = "holm",
    missing: str = "raise",
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    min_group_size: int = 30,
    n_draws: int = 1999,
    random_state: RandomStateLike = None,
) -> EqualCalibrationResult:
    """
    Test whether all groups have one calibration curve.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels; text, bool, {0, 1} or {-1, 1}.
    y_prob : array-like of shape (n_samples,) or (n_samples, 2)
        Probabilities of the positive class in [0, 1], or `predict_proba` output.
    sensitive_features : array-like, Series, dict or DataFrame
        Group of each row; several columns intersect.
    clusters : array-like of shape (n_samples,), default=None
        Cluster of each row, for example the patient; a cluster may have rows in
        several groups.
    method : str, default="auto"
        "score" (what "auto" means) asks whether some group's curve is shifted or
        turned, "wald" asks the same by a fit of every group, "permutation" by
        permuting groups among rows of nearly equal scores; "omnibus" looks for any
        difference of the curves, and "equal_amount" compares the squared calibration
        errors. See Notes. With fractional weights "auto" means "wald".
    comparisons : {"rest", "pairs"} or None, default="rest"
        What is compared after the global test: each group with the rest, all pairs of
        groups, or nothing.
    correction : {"holm", "fdr_bh"}, default="holm"
        How the p-values of the comparisons are adjusted: Holm's method, or that of
        Benjamini and Hochberg.
    missing : {"raise", "own_group", "drop"}, default="raise"
        What to do with rows whose group is missing.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; needed for text labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights. Whole numbers are read as numbers of rows, others as
        survey weights, which only "wald" can take.
    min_group_size : int, default=30
        Groups with fewer rows are left out.
    n_draws : int, default=1999
        Redraws or permutations of the methods that need them. More are made where a
        family of comparisons could otherwise not be rejected at 5 %.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draws. "wald" makes none, and "score" only where a group has few
        outcomes.

    Returns
    -------
    EqualCalibrationResult
        Frozen result: the global test, the table `groups` of who took part, the table
        `comparisons`, and `summary()`.

    Raises
    ------
    ValueError
        For input that does not fit, for "permutation" with clusters, and for
        fractional weights with a method that cannot take them.

    See Also
    --------
    audit_scores : Metrics by group, on all rows and at matched sizes.

    Notes
    -----
    The default asks whether the outcome is independent of the group *given the score*.
    A natural cubic spline in the log-odds x of the score, with 5 knots, is the curve
    common to all groups; scores that more than 5 % of the rows share, and all scores
    when there are no more than ten, have a level of their own instead. Terms for the
    group and for group by x, 2 (G - 1) in all, are tested by their efficient score:
    only the common curve is fitted, so that a group of one class can take part. The
    sizes of the groups and the distributions of their scores do not matter, other than
    for the difference of any calibration metric. Where the outcomes of a group have a
    variance below 5 in sum (fewer than about five outcomes of the rarer class are
    expected), the p-value comes from outcomes redrawn from the common curve, otherwise
    from chi-square.

    With clusters, the variance of the score takes the correlation of two outcomes of a
    cluster, given their scores, from the errors: one for each group, and one for rows
    of different groups. In simulations it holds its level from 10 clusters in a group,
    where a covariance that is estimated cluster by cluster does not. "wald" is the
    latter kind: a joint model with the covariance of Mancl and DeRouen [1]_ and an F
    distribution, from 25 clusters in each group; it cannot use a group of one class.

    "omnibus" tests the group by spline terms, 5 (G - 1) in all, by their score; its
    p-value comes from outcomes redrawn from the common curve, and with clusters it
    needs 60 of them in each group. It has less power for a shift or a different slope.
    "equal_amount" compares the gap of CE2 with redraws in which the errors of each
    cluster from the common curve change their sign together; it needs 20 rows of each
    class, and 25 clusters, in each group. It is blind to
    miscalibration of equal amount in opposite directions: one group over-confident and
    another one as much under-confident passes. "permutation" is for independent rows
    only.

    The comparisons are made only after the global test: no adjusted p-value is below
    that of the global test. They form one family, for one feature and one method.

    References
    ----------
    .. [1] L. A. Mancl and T. A. DeRouen, "A covariance estimator for GEE with improved
       small-sample properties", Biometrics 57, 2001.

    Examples
    --------
    >>> from skcalfair.audit import equal_calibration_test
    >>> from skcalfair.datasets import make_subgroup_scores
    >>> cohort = make_subgroup_scores(random_state=0).frame
    >>> result = equal_calibration_test(
    ...     cohort["outcome"], cohort["score"], sensitive_features=cohort["group"]
    ... )
    >>> result.p_value > 0.05
    True
    """
    rows = check_scored_rows(
        y_true,
        y_prob,
        pos_label=pos_label,
        sample_weight=sample_weight,
        clusters=clusters,
    )
    n_given = len(as_1d(y_true, "y_true"))
    groups = encode_groups(sensitive_features, n_given, missing=missing)
    codes = groups.codes_of(rows)
    return equal_calibration(
        rows,
        codes,
        groups.labels,
        method=method,
        comparisons=comparisons,
        correction=correction,
        min_group_size=min_group_size,
        n_draws=n_draws,
        random_state=random_state,
    )


def equal_calibration(
    rows: ScoredRows,
    codes: NDArray[np.intp],
    labels: list[Any],
    *,
    method: str = "auto",
    comparisons: str | None = "rest",
    correction: str = "holm",
    min_group_size: int = 30,
    n_draws: int = 1999,
    random_state: RandomStateLike = None,
) -> EqualCalibrationResult:
    """Test validated rows; the group coded c is `labels[c]`, and -1 is none."""
    _check_options(method, comparisons, correction, min_group_size, n_draws)
    name = _chosen(method, rows)
    rows, codes = _repeated(rows, codes)
    table = _group_table(rows, codes, labels, name, min_group_size)
    used = np.flatnonzero(table["reason"].isna())
    rows, codes = _only(rows, codes, used)
    family = _family(comparisons, len(used))
    draws = _enough_draws(n_draws, METHODS[name].tails, len(family))
    seeds = child_seeds(random_state, 1 + len(family))
    if len(used) < 2:
        overall = Found(reason="fewer than two groups can be used")
    else:
        overall = run_method(name, rows, codes, len(used), draws, _rng(seeds[0]))
    # Comparisons are made only after the global test; with two groups they are it.
    found = [
        overall if len(used) == 2 else _compare(name, rows, codes, pair, draws, seed)
        for pair, seed in zip(family, seeds[1:], strict=True)
        if overall.reason is None
    ]
    shown = table["group"].iloc[used].tolist()
    return EqualCalibrationResult(
        statistic=overall.statistic,
        df=overall.df,
        p_value=overall.p_value,
        method=name,
        hypothesis=METHODS[name].hypothesis,
        reason=overall.reason,
        groups=table,
        comparisons=_comparison_table(
            family, found, shown, overall.p_value, name, correction
        ),
        n=len(rows),
        n_clusters=None if rows.clusters is None else len(np.unique(rows.clusters)),
        correction=correction,
        n_draws=overall.n_draws,
    )


def _check_options(
    method: str,
    comparisons: str | None,
    correction: str,
    min_group_size: int,
    n_draws: int,
) -> None:
    choices: list[tuple[str, Any, tuple]] = [
        ("method", method, ("auto", *METHODS)),
        ("comparisons", comparisons, COMPARISONS),
        ("correction", correction, CORRECTIONS),
    ]
    for name, given, allowed in choices:
        if given not in allowed:
            raise ValueError(f"{name} must be one of {allowed}; got {given!r}")
    for name, number in (("min_group_size", min_group_size), ("n_draws", n_draws)):
        integer = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
        if not integer or number < 1:
            raise ValueError(f"{name} must be an integer of at least 1; got {number!r}")


def _chosen(method: str, rows: ScoredRows) -> str:
    """Name of the method, if it can take these rows."""
    if method == "auto":
        return "score" if rows.weights_are_counts else "wald"
    if method == "permutation" and rows.clusters is not None:
        raise ValueError(
            "method='permutation' is for independent rows: rows of one cluster are not "
            "exchangeable; with clusters use method='auto'"
        )
    if method != "wald" and not rows.weights_are_counts:
        raise ValueError(
            f"method={method!r} cannot take fractional weights (sample_weight); use "
            "method='wald'"
        )
    return method


def _repeated(
    rows: ScoredRows, codes: NDArray[np.intp]
) -> tuple[ScoredRows, NDArray[np.intp]]:
    """Rows with a group; a row whose weight is a number of rows is repeated."""
    kept = np.flatnonzero(codes >= 0)
    w = rows.sample_weight
    if w is None or not rows.weights_are_counts:
        return rows.take(kept), codes[kept]
    kept = np.repeat(kept, w[kept].astype(np.intp))
    return replace(rows.take(kept), sample_weight=None), codes[kept]


def _group_table(
    rows: ScoredRows,
    codes: NDArray[np.intp],
    labels: list[Any],
    name: str,
    min_group_size: int,
) -> pd.DataFrame:
    """Size of each group, and why it is left out if it is."""
    shown, method = group_names(labels), METHODS[name]
    records = []
    for code, label in enumerate(labels):
        here = np.flatnonzero(codes == code)
        positives = int(rows.y[here].sum())
        clusters = None
        if rows.clusters is not None:
            clusters = len(np.unique(rows.clusters[here]))
        reason = None
        if len(here) < min_group_size:
            reason = f"fewer than {min_group_size} rows"
        elif clusters is not None and clusters < method.fewest_clusters:
            few = f"{method.fewest_clusters} clusters"
            reason = f'fewer than {few}, too few for method "{name}"'
        elif min(positives, len(here) - positives) < method.fewest_outcomes:
            few = f"{method.fewest_outcomes} rows of a class"
            reason = f'fewer than {few}, too few for method "{name}"'
        records.append((shown[label], len(here), positives, clusters, reason))
    table = pd.DataFrame(records, columns=GROUP_COLUMNS)
    return table.astype({"clusters": "Int64", "reason": object}).replace(
        {"reason": {np.nan: None}}
    )


def _only(
    rows: ScoredRows, codes: NDArray[np.intp], used: NDArray[np.intp]
) -> tuple[ScoredRows, NDArray[np.intp]]:
    """Rows of some groups, which are coded anew from 0."""
    position = np.full(int(codes.max(initial=0)) + 1, -1, dtype=np.intp)
    position[used] = np.arange(len(used))
    kept = np.flatnonzero(position[codes] >= 0)
    return rows.take(kept), position[codes[kept]]


def _family(comparisons: str | None, n_groups: int) -> list[tuple[int, int]]:
    """Pairs of groups compared; -1 stands for all others."""
    if comparisons is None or n_groups < 2:
        return []
    if comparisons == "pairs" or n_groups == 2:
        return list(combinations(range(n_groups), 2))
    return [(group, -1) for group in range(n_groups)]


def _enough_draws(n_draws: int, tails: int, family: int) -> int:
    """Draws such that the least p-value can pass the strictest correction."""
    least = math.floor(tails * max(family, 1) / LEVEL)
    return max(n_draws, least)


def _rng(seed: np.random.SeedSequence) -> np.random.Generator:
    return np.random.default_rng(seed)


def _compare(
    name: str,
    rows: ScoredRows,
    codes: NDArray[np.intp],
    pair: tuple[int, int],
    n_draws: int,
    seed: np.random.SeedSequence,
) -> Found:
    """Test one group against another, or against all others."""
    group, reference = pair
    new = np.where(codes == group, 0, np.where(codes == reference, 1, -1))
    if reference < 0:
        new = (codes != group).astype(np.intp)
    kept = np.flatnonzero(new >= 0)
    return run_method(name, rows.take(kept), new[kept], 2, n_draws, _rng(seed))


def _comparison_table(
    family: list[tuple[int, int]],
    found: list[Found],
    shown: list[Any],
    overall: float,
    name: str,
    correction: str,
) -> pd.DataFrame:
    p = np.array([test.p_value for test in found], dtype=float)
    # No comparison can be more certain than that there is any difference.
    adjusted = np.maximum(adjust(p, correction), overall)
    records = [
        (
            shown[group],
            "rest" if reference < 0 else shown[reference],
            test.statistic,
            test.df,
            test.p_value,
            value,
            name,
            test.reason,
        )
        for (group, reference), test, value in zip(
            family, found, adjusted, strict=False
        )
    ]
    table = pd.DataFrame(records, columns=COMPARISON_COLUMNS)
    return table.astype({"reason": object})
