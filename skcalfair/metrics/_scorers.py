"""Scorers for `cross_validate`, `GridSearchCV` and the like.

scikit-learn's `make_scorer` does not tell a probability metric which label its column
belongs to unless the label is spelled out; these scorers take it from the estimator.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics._scorer import _BaseScorer

from ._registry import METRICS, check_parameters

Floats = NDArray[np.float64]

SCORERS = {m.scorer_name: m for m in METRICS.values() if m.function is not None}


class _ProbabilityScorer(_BaseScorer):
    """Scorer that calls ``function(y, p, pos_label=..., **parameters)``.

    scikit-learn's base class supplies the call, the request of metadata, and, when
    several scorers run together, one shared call of `predict_proba`.
    """

    def __init__(
        self,
        title: str,
        function: Callable,
        *,
        greater_is_better: bool,
        pos_label: Any = None,
        **parameters: Any,
    ) -> None:
        super().__init__(
            function,
            1 if greater_is_better else -1,
            parameters,
            response_method="predict_proba",
        )
        self.title = title
        self.pos_label = pos_label

    def __repr__(self) -> str:
        return self.title

    def _column(self, estimator: Any) -> tuple[Any, int]:
        """Positive label, and the column of `predict_proba` that belongs to it."""
        classes = getattr(estimator, "classes_", None)
        labels = [] if classes is None else np.asarray(classes).tolist()
        if len(labels) != 2:
            found = f"classes_ {labels}" if labels else "no classes_"
            raise ValueError(
                f"{self!r} needs a fitted binary classifier; "
                f"{type(estimator).__name__} has {found}"
            )
        positive = labels[1] if self.pos_label is None else self.pos_label
        if positive not in labels:
            raise ValueError(
                f"pos_label={positive!r} is not among the classes {labels}"
            )
        return positive, labels.index(positive)

    def _probability(
        self, method_caller: Callable, estimator: Any, X: Any, column: int
    ) -> Floats:
        """Column of `predict_proba`, shared by the scorers that run together."""
        # The cache of scikit-learn keeps one column a method: the one that the first
        # scorer asked for, whatever its pos_label. Each column has its own key here.
        method = ("predict_proba",) * (1 + column)
        label = estimator.classes_[column]
        p: Floats = method_caller(estimator, method, X, pos_label=label)
        return p

    def _score(
        self,
        method_caller: Callable,
        estimator: Any,
        X: Any,
        y_true: ArrayLike,
        **kwargs: Any,
    ) -> float:
        positive, column = self._column(estimator)
        p = self._probability(method_caller, estimator, X, column)
        options = {**self._kwargs, **kwargs, "pos_label": positive}
        return self._sign * float(self._score_func(y_true, p, **options))


def call_text(function: str, name: str, options: dict[str, Any]) -> str:
    """A call as one would type it."""
    shown = "".join(f", {key}={value!r}" for key, value in options.items())
    return f"{function}({name!r}{shown})"


def get_scorer_names() -> list[str]:
    """
    List the names that `get_scorer` knows.

    Returns
    -------
    list of str
        Sorted names; those of errors and losses start with ``neg_``.

    See Also
    --------
    get_scorer : Make one of them.

    Examples
    --------
    >>> from skcalfair.metrics import get_scorer_names
    >>> "neg_squared_calibration_error" in get_scorer_names()
    True
    """
    return sorted(SCORERS)


def get_scorer(scoring: str, *, pos_label: Any = None, **parameters: Any) -> Callable:
    """
    Make a scorer by name, to pass as ``scoring=`` to scikit-learn.

    Parameters
    ----------
    scoring : str
        Name, see `get_scorer_names`.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; by default the second of ``estimator.classes_``.
    **parameters : dict
        Parameters of the metric, for example ``n_bins=10``.

    Returns
    -------
    callable
        A scorer ``scorer(estimator, X, y, sample_weight=None)``; higher is better.

    Raises
    ------
    ValueError
        For a name that is not known, or parameters that the metric refuses.

    See Also
    --------
    make_group_scorer : Compares groups.
    sklearn.metrics.get_scorer : The scorers of scikit-learn.

    Notes
    -----
    Scorers that run together, as a dict in `cross_validate` or a search, share one
    call of `predict_proba`.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from skcalfair.metrics import get_scorer
    >>> X, y = make_classification(random_state=0)
    >>> scorer = get_scorer("neg_expected_calibration_error", n_bins=5)
    >>> cross_val_score(LogisticRegression(), X, y, scoring=scorer).shape
    (5,)
    """
    if scoring not in SCORERS:
        raise ValueError(
            f"{scoring!r} is not a scorer of skcalfair{_hint(scoring)}; choose one of "
            f"{get_scorer_names()}"
        )
    metric = SCORERS[scoring]
    check_parameters(metric, parameters)
    options = dict(parameters)
    if pos_label is not None:
        options["pos_label"] = pos_label
    return _ProbabilityScorer(
        call_text("get_scorer", scoring, options),
        metric.function,  # type: ignore[arg-type]
        greater_is_better=metric.greater_is_better,
        pos_label=pos_label,
        **{**dict(metric.parameters), **parameters},
    )


def _hint(scoring: Any) -> str:
    """What may have been meant by an unknown name."""
    if f"neg_{scoring}" in SCORERS:
        return f" (an error or loss is negated: 'neg_{scoring}')"
    metric = METRICS.get(scoring) if isinstance(scoring, str) else None
    if metric is not None:  # one of those that scikit-learn has
        return f" (scikit-learn has one: scoring={metric.name!r})"
    return ""
