"""Audit of scores that already exist."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from tqdm.auto import tqdm

from .._random import RandomStateLike, child_seeds
from .._sorted_scores import SortedScores
from .._validation import (
    Groups,
    ScoredRows,
    as_1d,
    check_scored_rows,
    encode_groups,
)
from ..metrics._registry import METRICS
from ..metrics._resampled import replicate_values
from ..resampling import subsample_clusters, subsample_counts
from ._result import AuditResult, is_size_robust, reading

Floats = NDArray[np.float64]

DEFAULT_METRICS = (
    "roc_auc",
    "average_precision",
    "brier_score_loss",
    "log_loss",
    "expected_calibration_error",
    "maximum_calibration_error",
    "adaptive_calibration_error",
    "squared_calibration_error",
    "calibration_loss_log_loss",
    "calibration_loss_brier",
)


def audit_scores(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sensitive_features: Any,
    metrics: Sequence[str] | None = None,
    clusters: ArrayLike | None = None,
    size_match: str | int | None = "smallest",
    n_resamples: int = 1000,
    min_group_size: int = 10,
    missing: str = "raise",
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
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
        Names from `skcalfair.metrics.metric_table`; by default ten of them.
    clusters : array-like of shape (n_samples,), default=None
        Cluster of each row, for example the patient: clusters are then subsampled
        whole, and the size-robust metrics leave pairs within a cluster out.
    size_match : "smallest", int or None, default="smallest"
        Number of rows at which groups are compared: that of the smallest group that
        can be used, a number, or no comparison at matched sizes.
    n_resamples : int, default=1000
        Subsamples of each larger group.
    min_group_size : int, default=10
        Groups with fewer rows are reported as not estimable.
    missing : {"raise", "own_group", "drop"}, default="raise"
        What to do with rows whose group is missing.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; needed for text labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights; whole numbers are read as numbers of rows, others as
        survey weights. Sizes are matched by rows, not by weight.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the subsamples.
    n_jobs : int, default=None
        Workers; the result does not depend on it.
    progress : bool, default=None
        Whether to show a progress bar; by default only in a terminal.

    Returns
    -------
    AuditResult
        Frozen result with the tables `groups`, `values` and `gaps`, and `summary()`.

    Raises
    ------
    ValueError
        For input that does not fit; the message names the argument.

    See Also
    --------
    skcalfair.metrics.make_group_scorer : The same as a scorer for a search.

    Notes
    -----
    Larger groups are subsampled without replacement, `n_resamples` times, and the mean
    is reported. The range over subsamples is not a confidence interval: it shows what
    the larger group would look like if it were small. A gap whose range includes 0 is
    what sample size and chance make of equally calibrated groups [1]_.

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
    _check_counts(size_match, n_resamples, min_group_size)
    rows = check_scored_rows(
        y_true,
        y_prob,
        pos_label=pos_label,
        sample_weight=sample_weight,
        clusters=clusters,
    )
    n_given = len(as_1d(y_true, "y_true"))
    groups = encode_groups(sensitive_features, n_given, missing=missing)
    parts = _split(rows, groups)
    group_table = _group_table(parts, min_group_size)
    usable = [k for k, r in zip(parts, group_table["reason"], strict=True) if not r]
    smallest = min((len(parts[k]) for k in usable), default=0)
    size = smallest if size_match == "smallest" else size_match
    matched_size = int(size) if size and len(usable) > 1 else None
    draws, values = {}, []
    seeds = child_seeds(random_state, len(parts))
    bar = tqdm(parts.items(), desc="groups", disable=_quiet(progress), leave=False)
    for (label, part), seed, reason in zip(
        bar, seeds, group_table["reason"], strict=True
    ):
        naive, matched, records = _audit_group(
            part, names, matched_size, n_resamples, seed, reason, n_jobs
        )
        draws[label] = naive, matched
        values += [{"group": label, **record} for record in records]
    sizes = {label: len(part) for label, part in parts.items()}
    gaps = [_gap(name, draws, sizes, matched_size) for name in names]
    return AuditResult(
        group_table,
        pd.DataFrame(values),
        pd.DataFrame(gaps),
        groups.names,
        matched_size,
        n_resamples,
    )


def _check_metrics(metrics: Sequence[str] | None) -> list[str]:
    names = list(DEFAULT_METRICS if metrics is None else metrics)
    if isinstance(metrics, str):
        names = [metrics]
    unknown = [name for name in names if name not in METRICS]
    if unknown or not names:
        raise ValueError(
            f"metrics must be names of built-in metrics; got {unknown or names}. "
            f"Known are {sorted(METRICS)}"
        )
    return names


def _check_counts(
    size_match: str | int | None, n_resamples: int, min_group_size: int
) -> None:
    named = {"n_resamples": n_resamples, "min_group_size": min_group_size}
    if isinstance(size_match, str) and size_match != "smallest":
        raise ValueError(
            f"size_match must be 'smallest', an int or None; got {size_match!r}"
        )
    if size_match is not None and not isinstance(size_match, str):
        named["size_match"] = size_match
    for name, value in named.items():
        if not isinstance(value, (int, np.integer)) or value < 1:
            raise ValueError(f"{name} must be a positive integer; got {value!r}")


def _quiet(progress: bool | None) -> bool | None:
    # None lets tqdm find out whether it writes to a terminal.
    return None if progress is None else not progress


def _split(rows: ScoredRows, groups: Groups) -> dict[Any, ScoredRows]:
    """Rows of each group, by label."""
    codes = groups.codes if rows.kept is None else groups.codes[rows.kept]
    parts = {
        label: rows.take(np.flatnonzero(codes == c))
        for c, label in enumerate(groups.labels)
    }
    return {label: part for label, part in parts.items() if len(part)}


def _group_table(parts: dict[Any, ScoredRows], min_group_size: int) -> pd.DataFrame:
    records = []
    for label, part in parts.items():
        reason = None
        if len(part) < min_group_size:
            reason = f"fewer than {min_group_size} rows"
        elif part.clusters is not None and len(np.unique(part.clusters)) < 2:
            reason = "one cluster only"
        records.append(
            {
                "group": label,
                "n": len(part),
                "positives": int(part.y.sum()),
                "clusters": None
                if part.clusters is None
                else len(np.unique(part.clusters)),
                "reason": reason,
            }
        )
    return pd.DataFrame(records).astype({"clusters": "Int64", "reason": object})


def _audit_group(
    part: ScoredRows,
    names: list[str],
    matched_size: int | None,
    n_resamples: int,
    seed: np.random.SeedSequence,
    reason: str | None,
    n_jobs: int | None,
) -> tuple[dict[str, float], dict[str, Floats], list[dict[str, Any]]]:
    """Values of a group on all rows, on every subsample, and as table rows."""
    kernels = {name: METRICS[name].kernel for name in names}
    if reason:
        undefined = dict.fromkeys(names, np.nan)
        return (
            undefined,
            {},
            [
                _record(name, "naive", len(part), np.array([np.nan]), reason)
                for name in names
            ],
        )
    scores = SortedScores.from_rows(part, frequency=part.weights_are_counts)
    naive = {name: kernel(scores) for name, kernel in kernels.items()}
    records = [
        _record(name, "naive", len(part), naive[name], _reason(name, scores))
        for name in names
    ]
    matched: dict[str, Floats] = {}
    if matched_size is not None and matched_size < len(part):
        matched = replicate_values(
            scores,
            kernels,
            partial(_draw, scores, matched_size),
            n_resamples,
            random_state=np.random.default_rng(seed),
            n_jobs=n_jobs,
        )
    elif matched_size is not None:
        matched = naive
    records += [
        _record(name, "size_matched", matched_size or 0, draws, _reason(name, scores))
        for name, draws in matched.items()
    ]
    return {name: float(v[0]) for name, v in naive.items()}, matched, records


def _draw(
    scores: SortedScores, size: int, n_replicates: int, rng: np.random.Generator
) -> NDArray:
    if scores.clusters is None:
        return subsample_counts(len(scores), size, n_replicates, random_state=rng)
    _, codes = np.unique(scores.clusters, return_inverse=True)
    return subsample_clusters(codes, size, n_replicates, random_state=rng)


def _reason(name: str, scores: SortedScores) -> str | None:
    requirement = METRICS[name].requirement
    return requirement(scores) if requirement else None


def _record(
    name: str, sampling: str, size: int, draws: Floats, reason: str | None
) -> dict[str, Any]:
    estimable = draws[np.isfinite(draws)]
    several = len(draws) > 1
    if not estimable.size:
        reason = reason or "not estimable in any subsample"
    elif several and len(estimable) < len(draws):
        reason = f"estimable in {len(estimable)} of {len(draws)} subsamples only"
    else:
        reason = None
    low, high = (
        np.quantile(estimable, [0.025, 0.975])
        if several and estimable.size
        else (
            np.nan,
            np.nan,
        )
    )
    return {
        "metric": name,
        "sampling": sampling,
        "size": size,
        "value": float(estimable.mean()) if estimable.size else np.nan,
        "low": float(low),
        "high": float(high),
        "reason": reason,
    }


def _gap(
    name: str,
    draws: dict[Any, tuple[dict[str, float], dict[str, Floats]]],
    sizes: dict[Any, int],
    matched_size: int | None,
) -> dict[str, Any]:
    """Difference between the groups that are furthest apart on all rows."""
    naive = {k: v[0][name] for k, v in draws.items() if np.isfinite(v[0][name])}
    record: dict[str, Any] = {
        "metric": name,
        "lowest": None,
        "highest": None,
        "naive": np.nan,
        "size_matched": np.nan,
        "low": np.nan,
        "high": np.nan,
        "size_robust": is_size_robust(name),
        "reading": "not estimable",
    }
    if len(naive) < 2:
        return record
    lowest, highest = (
        min(naive, key=naive.__getitem__),
        max(naive, key=naive.__getitem__),
    )
    record |= {
        "lowest": lowest,
        "highest": highest,
        "naive": naive[highest] - naive[lowest],
    }
    top, bottom = draws[highest][1].get(name), draws[lowest][1].get(name)
    if matched_size is None or top is None or bottom is None:
        return record
    difference = top - bottom
    difference = difference[np.isfinite(difference)]
    if difference.size:
        low, high = np.quantile(difference, [0.025, 0.975])
        matched = float(difference.mean())
        record |= {"size_matched": matched, "low": low, "high": high}
        # Subsamples scatter like fresh samples only while they leave most rows out.
        if max(sizes[lowest], sizes[highest]) < 2 * matched_size:
            record["reading"] = "equal size"
        else:
            record["reading"] = reading(
                record["naive"],
                matched,
                low,
                high,
                size_robust=record["size_robust"],
            )
    return record
