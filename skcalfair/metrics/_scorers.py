"""Scorers for `cross_validate`, `GridSearchCV` and the like.

scikit-learn's `make_scorer` does not tell a probability metric which label its column
belongs to unless the label is spelled out; these scorers take it from the estimator.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics._scorer import _BaseScorer

from ._registry import METRICS

Floats = NDArray[np.float64]

SCORERS = {m.scorer_name: m for m in METRICS.values() if m.function is not None}


class _ProbabilityScorer(_BaseScorer):
    """Scorer that calls ``function(y, p, pos_label=..., **parameters)``.

    scikit-learn's base class supplies the call, the request of metadata, and, when
    several scorers run together, one shared call of `predict_proba`.
    """

    def __init__(
        self,
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
        self.pos_label = pos_label

    def _positive(
        self, method_caller: Callable, estimator: Any, X: Any
    ) -> tuple[Any, Floats]:
        """Positive label and its predicted probability."""
        classes = getattr(estimator, "classes_", None)
        if classes is None or len(classes) != 2:
            found = "no classes_" if classes is None else f"classes_ {list(classes)}"
            raise ValueError(
                f"{self!r} needs a fitted binary classifier; "
                f"{type(estimator).__name__} has {found}"
            )
        positive = classes[1] if self.pos_label is None else self.pos_label
        if positive not in list(classes):
            raise ValueError(
                f"pos_label={positive!r} is not among the classes {list(classes)}"
            )
        return positive, method_caller(
            estimator, "predict_proba", X, pos_label=positive
        )

    def _score(
        self,
        method_caller: Callable,
        estimator: Any,
        X: Any,
        y_true: ArrayLike,
        **kwargs: Any,
    ) -> float:
        positive, p = self._positive(method_caller, estimator, X)
        options = {**self._kwargs, **kwargs, "pos_label": positive}
        return self._sign * self._score_func(y_true, p, **options)

    def __repr__(self) -> str:
        return f"<scorer {self._title()}>"

    def _title(self) -> str:
        name = getattr(self._score_func, "__name__", repr(self._score_func))
        options = dict(self._kwargs)
        if self.pos_label is not None:
            options["pos_label"] = self.pos_label
        text = "".join(f", {key}={value!r}" for key, value in options.items())
        return ("" if self._sign > 0 else "neg_") + name.lstrip("_") + text


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
        For a name that is not known.

    See Also
    --------
    make_group_scorer : Compares groups.
    sklearn.metrics.get_scorer : The scorers of scikit-learn.

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
            f"{scoring!r} is not a scorer of skcalfair; choose one of "
            f"{get_scorer_names()}"
        )
    metric = SCORERS[scoring]
    return _ProbabilityScorer(
        metric.function,  # type: ignore[arg-type]
        greater_is_better=metric.greater_is_better,
        pos_label=pos_label,
        **{**dict(metric.parameters), **parameters},
    )
