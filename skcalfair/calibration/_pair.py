"""A fitted classifier with its calibrators, and the scores that link the two."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params

from .._log_odds import log_odds

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Response:
    """How a classifier is scored: by which method, and the clip of probabilities."""

    method: str
    eps: float

    def columns(self, estimator: Any, X: Any) -> Floats:
        """Log-odds or decision scores: one column for two classes, else one a class."""
        response = np.asarray(getattr(estimator, self.method)(X), dtype=np.float64)
        n_classes = len(estimator.classes_)
        if self.method == "predict_proba":
            p = response[:, 1:] if n_classes == 2 else response
            return log_odds(p, eps=self.eps)
        if response.ndim == 1:
            return response[:, np.newaxis]
        if response.shape[1] != n_classes:
            raise ValueError(
                f"decision_function of {type(estimator).__name__} gives "
                f"{response.shape[1]} columns for {n_classes} classes; use "
                "response_method='predict_proba'"
            )
        return response


@dataclass(frozen=True)
class CalibratedPair:
    """A fitted classifier and its calibrators, one a score column."""

    estimator: Any
    calibrators: list[Any]
    response: Response

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of shape (n_samples, n_classes); rows sum to one."""
        scores = self.response.columns(self.estimator, X)
        columns = [
            _probabilities(calibrator, scores[:, [j]])
            for j, calibrator in enumerate(self.calibrators)
        ]
        if len(columns) == 1:
            return np.stack([1.0 - columns[0], columns[0]], axis=1)
        p = np.stack(columns, axis=1)
        sums = p.sum(axis=1, keepdims=True)
        uniform = np.full_like(p, 1.0 / p.shape[1])
        return np.divide(p, sums, out=uniform, where=sums > 0)


def fit_and_score(
    estimator: Any,
    X: Any,
    y: NDArray,
    train: NDArray[np.intp],
    test: NDArray[np.intp],
    fit_params: dict[str, Any],
    response: Response,
) -> tuple[Any, Floats]:
    """Fit to the training rows; scores of the others."""
    X_train, y_train = _safe_split(estimator, X, y, train)
    X_test, _ = _safe_split(estimator, X, y, test, train)
    estimator.fit(X_train, y_train, **_check_method_params(X, fit_params, train))
    return estimator, response.columns(estimator, X_test)


def _probabilities(calibrator: Any, column: Floats) -> Floats:
    """Output of a calibrator of shape (n,), whatever container it comes in."""
    p = np.asarray(calibrator.transform(column), dtype=np.float64).ravel()
    # Also false for NaN, which a calibrator may give outside the range it has seen.
    if len(p) != len(column) or not ((p >= 0) & (p <= 1)).all():
        raise ValueError(
            f"{type(calibrator).__name__}.transform must return one probability in "
            f"[0, 1] for each row; got {len(p)} values for {len(column)} rows, from "
            f"{p.min():g} to {p.max():g}"
        )
    return p
