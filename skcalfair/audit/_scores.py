"""Audit of scores that already exist."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from .._random import RandomStateLike
from .._validation import (
    Groups,
    as_1d,
    check_scored_rows,
    encode_groups,
)
from ..metrics._registry import METRICS
from ._compose import compose
from ._frame import GroupMetricFrame
from ._frame_options import check_sizes
from ._result import AuditResult
from ._score_runs import audit_runs, encode_runs

# The first one is the primary metric.
DEFAULT_METRICS = (
    "calibration_loss_log_loss",
    "calibration_loss_brier",
    "squared_calibration_error",
    "expected_calibration_error",
    "maximum_calibration_error",
    "adaptive_calibration_error",
    "log_loss",
    "brier_score_loss",
    "roc_auc",
    "average_precision",
)


def audit_scores(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sensitive_features: Any,
    metrics: Sequence[str] | None = None,
    reference: Any = None,
    clusters: ArrayLike | None = None,
    size_match: str | int | None = "smallest",
    n_resamples: int = 1000,
    min_group_size: int = 10,
    missing: str = "raise",
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    run: ArrayLike | None = None,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> AuditResult:
    """Audit scores by group, on all rows and at matched sizes.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels; text, bool, {0, 1} or {-1, 1}.
    y_prob : array-like of shape (n_samples,) or (n_samples, 2)
        Probabilities of the positive class in [0, 1], or `predict_proba` output.
    sensitive_features : array-like, Series, dict or DataFrame
        Group of each row; several columns intersect.
    metrics : sequence of str, default=None
        Names from `skcalfair.metrics.metric_table`; by default ten of them. The first
        one is the primary metric, whose p-values are adjusted.
    reference : "rest" or a group, default=None
        Compare every group with all other rows, or with one of the groups. By default
        two groups are compared with each other, and several with the rest.
    clusters : array-like of shape (n_samples,), default=None
        Cluster of each row, for example the patient: clusters are then subsampled
        whole, and the size-robust metrics leave pairs within a cluster out.
    size_match : "smallest", int or None, default="smallest"
        Number of rows at which groups are compared: that of the smallest group that
        can be used, a number (smaller groups are then not compared), or no comparison
        at matched sizes.
    n_resamples : int, default=1000
        Subsamples of each larger group, at least 40.
    min_group_size : int, default=10
        Groups with fewer rows are reported as not estimable.
    missing : {"raise", "own_group", "drop"}, default="raise"
        What to do with rows whose group is missing.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; needed for text labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights; whole numbers are read as numbers of rows, others as
        survey weights. Sizes are matched by rows, not by weight.
    run : array-like of shape (n_samples,), default=None
        Run that each score comes from, for example of a repeated cross-validation:
        runs are audited one by one and then brought together. Cases that occur in
        several runs are to be named by `clusters`.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the subsamples, and of the redraws of intervals.
    n_jobs : int, default=None
        Workers; the result does not depend on it.
    progress : bool, default=None
        Whether to show a progress bar; by default only in a terminal.

    Returns
    -------
    AuditResult
        Frozen result with the tables `groups`, `metrics`, `values` and `gaps`, the
        `test` of equal calibration, and `summary()`.

    Raises
    ------
    ValueError
        For input that does not fit; the message names the argument.

    See Also
    --------
    GroupMetricFrame : The same by metric, for any callable, as a fairlearn MetricFrame.
    SubgroupAuditor : Trains, calibrates and audits a model over nested folds.

    Notes
    -----
    Larger groups are subsampled without replacement, `n_resamples` times, and the mean
    is reported. The range over subsamples is no confidence interval: it shows what the
    larger group would look like if it were small. Two groups are compared at the size
    of the smaller one of the two [1]_. Intervals, p-values and the test of equal
    calibration are those of :meth:`GroupMetricFrame.gaps` and
    :func:`equal_calibration_test`.

    References
    ----------
    .. [1] M. A. Ricci Lara, C. Mosquera, E. Ferrante and R. Echeveste, "Towards
       unraveling calibration biases in medical image analysis", 2023.

    Examples
    --------
    >>> from skcalfair.audit import audit_scores
    >>> from skcalfair.datasets import make_subgroup_scores
    >>> cohort = make_subgroup_scores(random_state=0).frame
    >>> result = audit_scores(
    ...     cohort["outcome"],
    ...     cohort["score"],
    ...     sensitive_features=cohort["group"],
    ...     metrics=["expected_calibration_error"],
    ...     random_state=0,
    ... )
    >>> result.gaps["reading"].tolist()
    ['size']
    """
    names = _check_metrics(metrics)
    check_sizes(size_match, n_resamples, min_group_size)
    rows = check_scored_rows(
        y_true,
        y_prob,
        pos_label=pos_label,
        sample_weight=sample_weight,
        clusters=clusters,
    )
    n_given = len(as_1d(y_true, "y_true"))
    groups = encode_groups(sensitive_features, n_given, missing=missing)
    kept = rows.kept
    codes = groups.codes_of(rows)
    in_group = np.flatnonzero(codes >= 0)
    if not in_group.size:
        raise ValueError(
            "sensitive_features gives no row a group: all values are missing"
        )
    rows = rows.take(in_group)
    features = _features(groups, codes[in_group])
    options: dict[str, Any] = {
        "metrics": {name: name for name in names},
        "size_match": size_match,
        "n_resamples": n_resamples,
        "min_group_size": min_group_size,
        "n_jobs": n_jobs,
    }
    runs = None
    if run is not None:
        run_codes, labels = encode_runs(run, n_given, kept)
        runs = run_codes[in_group], labels
    if runs is not None and len(np.unique(runs[0])) > 1:
        result = audit_runs(
            rows, features, runs, reference, options, random_state, progress
        )
    else:
        weights = rows.sample_weight
        frame = GroupMetricFrame(
            y_true=rows.y,
            y_pred=rows.p,
            sensitive_features=features,
            sample_params=None
            if weights is None
            else {name: {"sample_weight": weights} for name in names},
            clusters=rows.clusters,
            random_state=random_state,
            progress=progress,
            **options,
        )
        result = compose(frame, reference)
    return replace(result, n_left_out=n_given - len(rows))


def _features(groups: Groups, codes: NDArray[np.intp]) -> pd.DataFrame:
    """Columns of the features, one value a row."""
    levels = [label if len(groups.names) > 1 else (label,) for label in groups.labels]
    columns = {}
    for j, name in enumerate(groups.names):
        values = np.empty(len(levels), dtype=object)
        values[:] = [level[j] for level in levels]
        columns[name] = values[codes]
    return pd.DataFrame(columns)


def _check_metrics(metrics: Sequence[str] | None) -> list[str]:
    if isinstance(metrics, str):
        metrics = [metrics]
    names = list(dict.fromkeys(DEFAULT_METRICS if metrics is None else metrics))
    unknown = [name for name in names if name not in METRICS]
    if unknown or not names:
        raise ValueError(
            f"metrics must be names of built-in metrics; got {unknown or names}. "
            f"Known are {sorted(METRICS)}"
        )
    return names
