"""Scorers that compare groups: the gap, or the worst group, at matched sizes."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics._scorer import _cached_call
from sklearn.utils._metadata_requests import MetadataRequest

from .._random import RandomStateLike, child_seeds, seed_sequence
from .._sorted_scores import SortedScores
from .._validation import (
    ScoredRows,
    as_probabilities,
    check_scored_rows,
    encode_groups,
)
from ..exceptions import GroupScoringError, NotEstimableError
from ._as_metric import as_metric
from ._evaluate import pairs, two_classes
from ._registry import Metric
from ._scorers import _ProbabilityScorer, call_text
from ._subsampled import subsample_values

Floats = NDArray[np.float64]

AGGREGATES = ("difference", "ratio", "min", "max")
MISSING = ("raise", "own_group", "drop")


class _GroupScorer(_ProbabilityScorer):
    """Scorer of a metric's difference, ratio, minimum or maximum over groups."""

    def __init__(self, title: str, metric: Metric, **options: Any) -> None:
        super().__init__(
            title,
            metric.function or metric.kernel,
            greater_is_better=metric.greater_is_better,
            pos_label=options["pos_label"],
        )
        self.metric = metric
        self.options = options
        routed = options["sensitive_features"] is None
        self._requests: dict[str, Any] = {
            "sensitive_features": True if routed else None,
            "sample_weight": None,
        }

    def _accept_sample_weight(self) -> bool:
        return True

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y_true: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        sensitive_features: Any = None,
    ) -> float:
        """Score of a fitted estimator; higher is better."""
        return self._score(
            partial(_cached_call, None),
            estimator,
            X,
            y_true,
            sample_weight=sample_weight,
            sensitive_features=sensitive_features,
        )

    def set_score_request(self, **requests: Any) -> "_GroupScorer":
        """Set which metadata the scorer receives, see scikit-learn's user guide."""
        unknown = sorted(set(requests) - set(self._requests))
        if unknown:
            raise TypeError(
                f"{self!r} takes no metadata {unknown}, only {list(self._requests)}"
            )
        self._requests.update(requests)
        return self

    def _get_metadata_request(self) -> MetadataRequest:
        request = MetadataRequest(owner=repr(self))
        for param, alias in self._requests.items():
            request.score.add_request(param=param, alias=alias)
        return request

    def _score(  # type: ignore[override]
        self,
        method_caller: Callable,
        estimator: Any,
        X: Any,
        y_true: ArrayLike,
        sample_weight: ArrayLike | None = None,
        sensitive_features: Any = None,
    ) -> float:
        with _same_for_all_candidates(self):
            positive, column = self._column(estimator)
            features = self._features(X, sensitive_features)
        p = as_probabilities(self._probability(method_caller, estimator, X, column))
        with _same_for_all_candidates(self):
            rows = check_scored_rows(
                y_true, p, pos_label=positive, sample_weight=sample_weight
            )
            groups = self._groups(rows, features, len(p))
        return self._aggregate(self._values(groups, rows.weights_are_counts))

    def _features(self, X: Any, sensitive_features: Any) -> Any:
        """Groups of the rows: routed, or columns of X."""
        named = self.options["sensitive_features"]
        if sensitive_features is not None:
            return sensitive_features
        if named is None:
            raise ValueError(
                "no sensitive_features arrived: enable scikit-learn's metadata routing "
                "and pass them through params=, or name a column of a DataFrame X by "
                "make_group_scorer(..., sensitive_features='column')"
            )
        present = list(getattr(X, "columns", []))
        absent = [c for c in named if c not in present]
        if absent:
            what = f"columns {present}" if present else "no named columns"
            raise ValueError(
                f"sensitive_features={named} must name columns of a DataFrame X; "
                f"{absent} not found, the {type(X).__name__} has {what}"
            )
        return {c: X[c] for c in named}

    def _groups(self, rows: ScoredRows, features: Any, n: int) -> dict[Any, ScoredRows]:
        """Rows of each group that can be compared, by label."""
        groups = encode_groups(features, n, missing=self.options["missing"])
        codes = groups.codes_of(rows)
        found = {
            label: rows.take(np.flatnonzero(codes == c))
            for c, label in enumerate(groups.labels)
        }
        counts = rows.weights_are_counts
        problems = {label: self._problem(part, counts) for label, part in found.items()}
        usable = {k: part for k, part in found.items() if problems[k] is None}
        expected = self.options["labels"]
        if expected is not None:
            bad = {k: problems.get(k, "absent") for k in expected if k not in usable}
            if bad:
                raise ValueError(
                    f"groups that labels= expects cannot be used: {bad}; the groups "
                    f"found are {list(found)}"
                )
            usable = {k: usable[k] for k in expected}
        if len(usable) < 2:
            reasons = {k: v for k, v in problems.items() if v}
            why = f"; not estimable: {reasons}" if reasons else ""
            raise ValueError(
                f"fewer than two groups can be estimated (found {list(found)}{why}). "
                "Use a splitter that is stratified by group, fewer folds, or a lower "
                "min_group_size"
            )
        return usable

    def _problem(self, rows: ScoredRows, counts: bool) -> str | None:
        """Reason in the data, the same for every candidate, not to use a group."""
        if len(rows) < self.options["min_group_size"]:
            return (
                f"{len(rows)} rows, fewer than "
                f"min_group_size={self.options['min_group_size']}"
            )
        requirement = self.metric.requirement
        if requirement is None:
            return None
        scores = SortedScores.from_rows(rows, frequency=counts)
        return pairs(scores) if requirement is pairs else two_classes(scores)

    def _values(self, groups: dict[Any, ScoredRows], counts: bool) -> Floats:
        """Metric of each group; `counts` says whether weights count rows."""
        smallest = min(len(rows) for rows in groups.values())
        seeds = child_seeds(self.options["random_state"], len(groups))
        values = []
        for (label, rows), seed in zip(groups.items(), seeds, strict=True):
            scores = SortedScores.from_rows(rows, frequency=counts)
            size = smallest if self.options["size_matched"] else len(rows)
            value = self._group_value(scores, size, seed, label)
            if np.isnan(value):
                requirement = self.metric.requirement
                reason = requirement(scores) if requirement else None
                raise NotEstimableError(
                    f"{self!r}: not estimable in group {label!r}: "
                    f"{reason or 'undefined for these scores'}"
                )
            values.append(value)
        return np.array(values)

    def _group_value(
        self, scores: SortedScores, size: int, seed: np.random.SeedSequence, label: Any
    ) -> float:
        """Metric on all rows, or its mean over subsamples; NaN if scores forbid it."""
        kernels = {"value": self.metric.kernel, "classes": _classes}
        if size == len(scores):
            found = {name: kernel(scores) for name, kernel in kernels.items()}
        else:
            found = subsample_values(
                scores,
                kernels,
                size,
                self.options["n_resamples"],
                random_state=np.random.default_rng(seed),
            )
        values = found["value"]
        if not np.isnan(values).all():
            return float(np.nanmean(values))
        if (found["classes"] < 2).all():
            raise GroupScoringError(
                f"{self!r}: group {label!r} has rows of one class only in all "
                f"{len(values)} subsamples of {size} rows; use fewer folds, or raise "
                "n_resamples"
            )
        return np.nan

    def _aggregate(self, values: Floats) -> float:
        aggregate = self.options["aggregate"]
        low, high = float(values.min()), float(values.max())
        if aggregate == "difference":
            return low - high
        if aggregate == "ratio":
            if low < 0 or high == 0:
                raise NotEstimableError(
                    f"{self!r}: the ratio of {low:g} and {high:g} has no meaning; use "
                    "aggregate='difference'"
                )
            return low / high
        return self._sign * (low if aggregate == "min" else high)


@contextmanager
def _same_for_all_candidates(scorer: _GroupScorer) -> Iterator[None]:
    """Make an error that every candidate of a search would meet stop the search."""
    try:
        yield
    except ValueError as error:
        raise GroupScoringError(f"{scorer!r}: {error}") from error


def _classes(scores: SortedScores) -> Floats:
    """Number of classes in each replicate."""
    positive = scores.positive_total
    return (positive > 0).astype(float) + (positive < scores.total)


def make_group_scorer(
    metric: str | Callable,
    *,
    aggregate: str = "difference",
    size_matched: bool = True,
    labels: Iterable[Any] | None = None,
    min_group_size: int = 10,
    sensitive_features: str | list[str] | None = None,
    missing: str = "raise",
    n_resamples: int = 200,
    random_state: RandomStateLike = 0,
    pos_label: Any = None,
    greater_is_better: bool | None = None,
    **parameters: Any,
) -> Callable:
    """
    Make a scorer that compares a metric between groups.

    Parameters
    ----------
    metric : str or callable
        Name of a built-in metric (see `metric_table`), its function, or any callable
        ``metric(y_true, y_prob)`` with y_true in {0, 1}; one with a `sample_weight`
        parameter receives weights.
    aggregate : {"difference", "ratio", "min", "max"}, default="difference"
        "difference": minus the largest difference between groups. "ratio": smallest
        over largest value. "min" and "max": the smallest or largest value, negated for
        errors; the worst group is "min" of a score and "max" of an error.
    size_matched : bool, default=True
        Evaluate larger groups on subsamples as large as the smallest group, so that a
        difference is not only one of sample size.
    labels : list, default=None
        Groups that must be there (tuples for several features); others are left out.
        By default those found, at least two.
    min_group_size : int, default=10
        Groups with fewer rows are not estimable.
    sensitive_features : str or list of str, default=None
        Column(s) of a DataFrame X that hold the groups; several columns intersect. By
        default they are passed as metadata named ``sensitive_features``, which the
        scorer requests (scikit-learn's metadata routing must be enabled).
    missing : {"raise", "own_group", "drop"}, default="raise"
        What to do with rows whose group is missing.
    n_resamples : int, default=200
        Subsamples of each larger group.
    random_state : int, Generator, RandomState or None, default=0
        Seed of the subsamples; the default makes the scorer a deterministic function.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; by default the second of ``estimator.classes_``.
    greater_is_better : bool, default=None
        Direction of a callable metric, which needs it; known for built-in ones.
    **parameters : dict
        Parameters of the metric, for example ``n_bins=10``.

    Returns
    -------
    callable
        A scorer ``scorer(estimator, X, y, *, sample_weight=None,
        sensitive_features=None)``; higher is better.

    Raises
    ------
    ValueError
        For parameters that do not fit.

    See Also
    --------
    get_scorer : Scorers without groups.

    Notes
    -----
    The scorer raises `skcalfair.exceptions.GroupScoringError` when fewer than two
    groups (or not all of `labels`) can be estimated from the rows of a split. A search
    cannot turn that error into NaN, by design: the rows are the same for all
    candidates, so all would be NaN and the first would win. Where only the scores of
    one candidate make a metric inestimable (constant or separable scores),
    `NotEstimableError` is raised and that candidate ranks last.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from skcalfair.metrics import make_group_scorer
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame(
    ...     {"marker": rng.normal(size=400), "old": np.arange(400) % 4 < 1}
    ... )
    >>> y = (rng.normal(size=400) < X["marker"]).astype(int)
    >>> scorer = make_group_scorer(
    ...     "squared_calibration_error", aggregate="max", sensitive_features="old"
    ... )
    >>> cross_val_score(LogisticRegression(), X, y, scoring=scorer).shape
    (5,)
    """
    options = {
        "aggregate": aggregate,
        "size_matched": size_matched,
        "labels": _check_labels(labels),
        "min_group_size": min_group_size,
        "sensitive_features": _check_columns(sensitive_features),
        "missing": missing,
        "n_resamples": n_resamples,
        "random_state": random_state,
        "pos_label": pos_label,
    }
    _check_options(options)
    found = as_metric(metric, greater_is_better, parameters)
    given = options | {"sensitive_features": sensitive_features}
    shown = {k: v for k, v in given.items() if v is not DEFAULTS[k]} | parameters
    title = call_text("make_group_scorer", found.name, shown)
    return _GroupScorer(title, found, **options)


DEFAULTS = {
    name: parameter.default
    for name, parameter in inspect.signature(make_group_scorer).parameters.items()
}


def _check_options(options: dict[str, Any]) -> None:
    for name, choices in (("aggregate", AGGREGATES), ("missing", MISSING)):
        if options[name] not in choices:
            raise ValueError(f"{name} must be one of {choices}; got {options[name]!r}")
    for name in ("min_group_size", "n_resamples"):
        value = options[name]
        integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not integer or value < 1:
            raise ValueError(f"{name} must be a positive integer; got {value!r}")
    if not isinstance(options["size_matched"], (bool, np.bool_)):
        raise ValueError(
            f"size_matched must be True or False; got {options['size_matched']!r}"
        )
    seed_sequence(deepcopy(options["random_state"]))


def _check_labels(labels: Iterable[Any] | None) -> list[Any] | None:
    if labels is None:
        return None
    if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
        raise ValueError(f"labels must be a list of groups; got {labels!r}")
    groups = [tuple(k) if isinstance(k, list) else k for k in labels]
    if len(set(groups)) < 2:
        raise ValueError(f"labels must name two groups or more; got {groups}")
    return list(dict.fromkeys(groups))


def _check_columns(columns: Any) -> list[Any] | None:
    if columns is None:
        return None
    if isinstance(columns, (list, tuple)) and columns:
        return list(columns)
    if isinstance(columns, (str, int)):
        return [columns]
    raise ValueError(
        "sensitive_features must be a column name or a list of names (the values "
        f"themselves go with the data); got {columns!r}"
    )
