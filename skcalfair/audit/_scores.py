"""Audit of scores that already exist."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
from ._result import AuditResult
from ._tables import (
    Cell,
    Evaluated,
    Pair,
    feature_columns,
    furthest_apart,
    gap_table,
    group_names,
    tidy,
    value_table,
)

# The 2.5 and 97.5 % points of fewer subsamples would be their extremes.
FEWEST_RESAMPLES = 40

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
    what sample size and chance can make of equally calibrated groups [1]_; that does
    not exclude a true difference. Two groups are compared at the size of the smaller
    one of the two, even where a third group is smaller still.

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
    _check_options(size_match, n_resamples, min_group_size)
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
    reasons = {k: _unusable(part, min_group_size) for k, part in parts.items()}
    size = _matched_size(size_match, parts, reasons)
    samplers = {
        label: _Sampler(
            SortedScores.from_rows(part, frequency=rows.weights_are_counts),
            n_resamples,
            seed,
            n_jobs,
        )
        for (label, part), seed in zip(
            parts.items(), child_seeds(random_state, len(parts)), strict=True
        )
    }
    evaluated = {label: Evaluated(len(p), reasons[label]) for label, p in parts.items()}
    usable = [label for label, reason in reasons.items() if reason is None]
    for label in tqdm(usable, desc="groups", disable=_quiet(progress), leave=False):
        group = evaluated[label]
        for rows_drawn in {group.n, size or group.n}:
            group.at[rows_drawn] = samplers[label].cells(names, rows_drawn)
    pairs = {name: furthest_apart(name, evaluated, size) for name in names}
    sizes = _pair_sizes(pairs, evaluated, size_match)
    _complete(pairs, sizes, evaluated, samplers)
    shown = group_names(list(parts))
    return AuditResult(
        _group_table(parts, reasons, shown, groups.names),
        value_table(names, evaluated, shown, size),
        gap_table(pairs, evaluated, shown, sizes),
        groups.names,
        size,
        n_resamples,
        n_given - sum(len(part) for part in parts.values()),
    )


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


def _check_options(
    size_match: str | int | None, n_resamples: int, min_group_size: int
) -> None:
    named = [
        ("n_resamples", n_resamples, FEWEST_RESAMPLES),
        ("min_group_size", min_group_size, 1),
    ]
    if isinstance(size_match, str) and size_match != "smallest":
        raise ValueError(
            f"size_match must be 'smallest', an int or None; got {size_match!r}"
        )
    if size_match is not None and not isinstance(size_match, str):
        named.append(("size_match", size_match, 1))
    for name, value, least in named:
        integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not integer or value < least:
            raise ValueError(
                f"{name} must be an integer of at least {least}; got {value!r}"
            )


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
    found = {label: part for label, part in parts.items() if len(part)}
    if not found:
        raise ValueError(
            "sensitive_features gives no row a group: all values are missing"
        )
    return found


def _unusable(part: ScoredRows, min_group_size: int) -> str | None:
    """Reason why nothing is estimated in a group, or None."""
    if len(part) < min_group_size:
        return f"fewer than {min_group_size} rows"
    if part.clusters is not None and len(np.unique(part.clusters)) < 2:
        return "one cluster only"
    return None


def _matched_size(
    size_match: str | int | None,
    parts: dict[Any, ScoredRows],
    reasons: dict[Any, str | None],
) -> int | None:
    if size_match is None:
        return None
    if not isinstance(size_match, str):
        return int(size_match)
    sizes = [len(part) for label, part in parts.items() if reasons[label] is None]
    return min(sizes) if len(sizes) > 1 else None


@dataclass(frozen=True)
class _Sampler:
    """Metrics on the subsamples of a group."""

    scores: SortedScores
    n_resamples: int
    seed: np.random.SeedSequence
    n_jobs: int | None

    def cells(self, names: Iterable[str], size: int) -> dict[str, Cell]:
        """Each metric on subsamples of `size` rows, or on all rows if they are it."""
        kernels = {name: METRICS[name].kernel for name in names}
        n = len(self.scores)
        if size > n:
            short = f"fewer than {size} rows"
            return {name: Cell(np.array([np.nan]), short) for name in kernels}
        if size == n:
            draws = {name: kernel(self.scores) for name, kernel in kernels.items()}
        else:
            draws = replicate_values(
                self.scores,
                kernels,
                partial(_draw, self.scores, size),
                self.n_resamples,
                random_state=np.random.default_rng(self.seed),
                n_jobs=self.n_jobs,
            )
        return {
            name: Cell(values, _reason(name, self.scores))
            for name, values in draws.items()
        }


def _pair_sizes(
    pairs: dict[str, dict[Pair, str]],
    groups: dict[Any, Evaluated],
    size_match: str | int | None,
) -> dict[Pair, int]:
    """Rows at which each pair is compared: those of its smaller group, or as given."""
    if size_match is None:
        return {}
    return {
        pair: min(groups[label].n for label in pair)
        if isinstance(size_match, str)
        else int(size_match)
        for its_pairs in pairs.values()
        for pair in its_pairs
    }


def _complete(
    pairs: dict[str, dict[Pair, str]],
    sizes: dict[Pair, int],
    groups: dict[Any, Evaluated],
    samplers: dict[Any, _Sampler],
) -> None:
    """Draw what the pairs need beyond the smallest group's size."""
    wanted: dict[tuple[Any, int], list[str]] = {}
    for name, its_pairs in pairs.items():
        for pair in its_pairs:
            size = sizes.get(pair)
            for label in pair:
                if size and name not in groups[label].at.get(size, {}):
                    wanted.setdefault((label, size), []).append(name)
    for (label, size), names in wanted.items():
        cells = samplers[label].cells(dict.fromkeys(names), size)
        groups[label].at.setdefault(size, {}).update(cells)


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


def _group_table(
    parts: dict[Any, ScoredRows],
    reasons: dict[Any, str | None],
    shown: dict[Any, Any],
    features: list[str],
) -> pd.DataFrame:
    columns = feature_columns(features)
    records = []
    for label, part in parts.items():
        levels = label if len(features) > 1 else ()
        clusters = pd.NA if part.clusters is None else len(np.unique(part.clusters))
        records.append(
            {"group": shown[label]}
            | dict(zip(columns, levels, strict=True))
            | {
                "n": len(part),
                "positives": int(part.y.sum()),
                "clusters": clusters,
                "reason": reasons[label],
            }
        )
    return tidy(records).astype({"clusters": "Int64"})
