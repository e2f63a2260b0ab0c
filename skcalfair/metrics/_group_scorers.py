"""Scorers that compare groups: the gap, or the worst group, at matched sizes."""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._metadata_requests import MetadataRequest

from .._random import RandomStateLike
from .._sorted_scores import SortedScores
from .._validation import ScoredRows, check_scored_rows, encode_groups
from ..exceptions import GroupScoringError, NotEstimableError
from ..resampling import subsample_counts
from ._evaluate import pairs, two_classes
from ._registry import METRICS, Metric
from ._resampled import replicate_values
from ._scorers import _ProbabilityScorer

Floats = NDArray[np.float64]

AGGREGATES = ("difference", "ratio", "min", "max")


class _GroupScorer(_ProbabilityScorer):
    """Scorer of a metric's difference, ratio, minimum or maximum over groups."""

    def __init__(self, metric: Metric, **options: Any) -> None:
        self.options = options
        super().__init__(
            metric.function or metric.kernel,
            greater_is_better=metric.greater_is_better,
            pos_label=options["pos_label"],
        )
        self.metric = metric
        column = options["sensitive_features"]
        self._requests: dict[str, Any] = {
            "sensitive_features": True if column is None else None,
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
            _uncached,
            estimator,
            X,
            y_true,
            sample_weight=sample_weight,
            sensitive_features=sensitive_features,
        )

    def set_score_request(self, **requests: Any) -> "_GroupScorer":
        """Set which metadata the scorer receives, see scikit-learn's user guide."""
        unknown = set(requests) - set(self._requests)
        if unknown:
            raise TypeError(f"unexpected metadata: {sorted(unknown)}")
        self._requests.update(requests)
        return self

    def _get_metadata_request(self) -> MetadataRequest:
        request = MetadataRequest(owner=repr(self))
        for param, alias in self._requests.items():
            request.score.add_request(param=param, alias=alias)
        return request

    def _title(self) -> str:
        shown = {k: v for k, v in self.options.items() if v is not None}
        text = "".join(f", {key}={value!r}" for key, value in shown.items())
        return f"make_group_scorer({self.metric.name!r}{text})"

    def _score(  # type: ignore[override]
        self,
        method_caller: Callable,
        estimator: Any,
        X: Any,
        y_true: ArrayLike,
        sample_weight: ArrayLike | None = None,
        sensitive_features: Any = None,
    ) -> float:
        positive, p = self._positive(method_caller, estimator, X)
        try:
            features = self._features(X, sensitive_features)
            groups = self._groups(y_true, p, positive, sample_weight, features)
        except ValueError as error:
            raise GroupScoringError(f"{self!r}: {error}") from error
        values = self._values(groups)
        return self._aggregate(values)

    def _features(self, X: Any, sensitive_features: Any) -> Any:
        """Groups of the rows: routed, or a column of X."""
        column = self.options["sensitive_features"]
        if sensitive_features is not None:
            return sensitive_features
        if column is None:
            raise ValueError(
                "no sensitive_features arrived: enable scikit-learn's metadata routing "
                "and pass them through params=, or name a column of a DataFrame X by "
                "make_group_scorer(..., sensitive_features='column')"
            )
        columns = [column] if isinstance(column, str) else list(column)
        absent = [c for c in columns if c not in getattr(X, "columns", [])]
        if absent:
            raise ValueError(
                f"sensitive_features={column!r} must name columns of a DataFrame X; "
                f"{absent} not found in {type(X).__name__}"
            )
        return {c: X[c] for c in columns}

    def _groups(
        self,
        y_true: ArrayLike,
        p: Floats,
        positive: Any,
        sample_weight: ArrayLike | None,
        features: Any,
    ) -> dict[Any, ScoredRows]:
        """Rows of each group that can be compared, by label."""
        rows = check_scored_rows(
            y_true, p, pos_label=positive, sample_weight=sample_weight
        )
        groups = encode_groups(
            features, len(np.asarray(p)), missing=self.options["missing"]
        )
        codes = groups.codes if rows.kept is None else groups.codes[rows.kept]
        found = {
            label: rows.take(np.flatnonzero(codes == c))
            for c, label in enumerate(groups.labels)
        }
        problems = {label: self._problem(part) for label, part in found.items()}
        usable = {k: part for k, part in found.items() if problems[k] is None}
        expected = self.options["labels"]
        if expected is not None:
            wanted = list(expected)
            bad = {k: problems.get(k, "absent") for k in wanted if k not in usable}
            if bad:
                raise ValueError(f"groups that labels= expects cannot be used: {bad}")
            usable = {k: usable[k] for k in wanted}
        if len(usable) < 2:
            reasons = {k: v for k, v in problems.items() if v}
            raise ValueError(
                f"fewer than two groups can be estimated (found "
                f"{list(found)}; not estimable: {reasons}). Use a splitter that is "
                "stratified by group, fewer folds, or a lower min_group_size"
            )
        return usable

    def _problem(self, rows: ScoredRows) -> str | None:
        """Reason in the data, the same for every candidate, not to use a group."""
        if len(rows) < self.options["min_group_size"]:
            return (
                f"{len(rows)} rows, fewer than "
                f"min_group_size={self.options['min_group_size']}"
            )
        if self.metric.requirement in (None, pairs):
            return None
        return two_classes(SortedScores.from_rows(rows))

    def _values(self, groups: dict[Any, ScoredRows]) -> Floats:
        smallest = min(len(rows) for rows in groups.values())
        values = []
        for label, rows in groups.items():
            scores = SortedScores.from_rows(rows, frequency=rows.weights_are_counts)
            size = smallest if self.options["size_matched"] else len(rows)
            value = self._group_value(scores, size)
            if np.isnan(value):
                reason = self.metric.requirement and self.metric.requirement(scores)
                raise NotEstimableError(
                    f"{self!r}: not estimable in group {label!r}: "
                    f"{reason or 'undefined for these scores'}"
                )
            values.append(value)
        return np.array(values)

    def _group_value(self, scores: SortedScores, size: int) -> float:
        if size == len(scores):
            return float(self.metric.kernel(scores)[0])
        draws = replicate_values(
            scores,
            {"value": self.metric.kernel},
            partial(_draw, len(scores), size),
            self.options["n_resamples"],
            random_state=self.options["random_state"],
        )["value"]
        return float(np.nanmean(draws)) if np.isfinite(draws).any() else np.nan

    def _aggregate(self, values: Floats) -> float:
        aggregate = self.options["aggregate"]
        low, high = float(values.min()), float(values.max())
        if aggregate == "difference":
            return -(high - low)
        if aggregate == "ratio":
            if low < 0 or high == 0:
                raise NotEstimableError(
                    f"{self!r}: the ratio of {low:g} and {high:g} has no meaning; use "
                    "aggregate='difference'"
                )
            return low / high
        return self._sign * (low if aggregate == "min" else high)


def _draw(n: int, size: int, n_replicates: int, rng: np.random.Generator) -> NDArray:
    return subsample_counts(n, size, n_replicates, random_state=rng)


def _uncached(estimator: Any, method: str, X: Any, pos_label: Any) -> Floats:
    """Probability of `pos_label`, without the cache of a multimetric scorer."""
    column = list(estimator.classes_).index(pos_label)
    p: Floats = np.asarray(getattr(estimator, method)(X))[:, column]
    return p


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
    labels : iterable, default=None
        Groups that must be there (tuples for several features). By default those
        found, at least two.
    min_group_size : int, default=10
        Groups with fewer rows are not estimable.
    sensitive_features : str or list of str, default=None
        Column(s) of a DataFrame X that hold the groups. By default they are passed as
        metadata named ``sensitive_features``, which the scorer requests (scikit-learn's
        metadata routing must be enabled).
    missing : {"raise", "own_group", "drop"}, default="raise"
        What to do with rows whose group is missing.
    n_resamples : int, default=200
        Subsamples of each larger group.
    random_state : int, Generator, RandomState or None, default=0
        Seed of the subsamples; the default makes the scorer a deterministic function.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; by default the second of ``estimator.classes_``.
    greater_is_better : bool, default=None
        Direction of a callable metric; known for built-in ones.
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
    if aggregate not in AGGREGATES:
        raise ValueError(f"aggregate must be one of {AGGREGATES}; got {aggregate!r}")
    for name, value in (
        ("min_group_size", min_group_size),
        ("n_resamples", n_resamples),
    ):
        if not isinstance(value, (int, np.integer)) or value < 1:
            raise ValueError(f"{name} must be a positive integer; got {value!r}")
    return _GroupScorer(
        _as_metric(metric, greater_is_better, parameters),
        parameters=parameters or None,
        aggregate=aggregate,
        size_matched=size_matched,
        labels=None if labels is None else list(labels),
        min_group_size=min_group_size,
        sensitive_features=sensitive_features,
        missing=missing,
        n_resamples=n_resamples,
        random_state=random_state,
        pos_label=pos_label,
    )


def _as_metric(
    metric: str | Callable, greater_is_better: bool | None, parameters: dict[str, Any]
) -> Metric:
    """Built-in metric, or a callable dressed as one."""
    functions = {m.function: m for m in reversed(METRICS.values()) if m.function}
    found = METRICS.get(metric) if isinstance(metric, str) else functions.get(metric)
    if found is not None:
        if parameters:
            kernel = partial(found.kernel, **parameters)
            inspect.signature(found.kernel).bind(None, **parameters)
            found = replace(found, kernel=kernel)
        return found
    if not callable(metric):
        raise ValueError(
            f"metric must be callable or one of {sorted(METRICS)}; got {metric!r}"
        )
    if greater_is_better is None:
        raise ValueError(
            "greater_is_better must be given for a metric that is not built in"
        )
    name = getattr(metric, "__name__", repr(metric))
    kernel = partial(callable_kernel, function=metric, parameters=parameters)
    return Metric(name, name, kernel, greater_is_better, False, "both", metric)


def callable_kernel(
    scores: SortedScores, function: Callable, parameters: dict[str, Any]
) -> Floats:
    """Any ``function(y_true, y_prob)`` as a kernel: one call a replicate."""
    weighted = "sample_weight" in inspect.signature(function).parameters
    out = np.empty(scores.n_replicates)
    for r in range(scores.n_replicates):
        if scores.weights is None:
            out[r] = function(scores.y, scores.p, **parameters)
            continue
        w = scores.weights[r]
        rows = np.flatnonzero(w)
        y, p, w = scores.y[rows], scores.p[rows], w[rows].astype(np.float64)
        if weighted:
            out[r] = function(y, p, sample_weight=w, **parameters)
            continue
        if (w != np.floor(w)).any():
            raise ValueError(f"{function!r} takes no sample_weight, but weights came")
        repeats = w.astype(np.intp)
        out[r] = function(np.repeat(y, repeats), np.repeat(p, repeats), **parameters)
    return out
