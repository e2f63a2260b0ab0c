"""Curves of models and points of readers, taken from a dominance table."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import roc_curve

from .._validation import as_1d, check_sample_weight
from ._same_cases import SameCases

Floats = NDArray[np.float64]

_MOST_POINTS = 2000
CURVE_COLUMNS = ["name", "fpr", "tpr", "threshold"]
COUNT_COLUMNS = ["TP", "positives", "FP", "negatives"]
_READER_COLUMNS = ["name", "fpr", "tpr", *COUNT_COLUMNS]


def reader_points(points: Any) -> pd.DataFrame:
    frame = points.to_frame()
    frame = frame.assign(
        fpr=points.fpr,
        tpr=points.sensitivity,
        positives=frame["TP"] + frame["FN"],
        negatives=frame["FP"] + frame["TN"],
    )
    readers = frame[frame["kind"] == "reader"]
    return readers[_READER_COLUMNS].reset_index(drop=True)


def _model_names(table: Any) -> list[str]:
    """Models, those without a point of their own (a constant score) too."""
    kinds = dict(table.operating_points_.kinds)
    dominated = table.dominated_
    kinds |= dict(zip(dominated["name"], dominated["kind"], strict=True))
    return [name for name, kind in kinds.items() if kind == "model"]


def full_curves(table: Any, X: Any, y: Any, sample_weight: Any) -> pd.DataFrame:
    """Curves of the models on the cases that the table was fitted to."""
    if not hasattr(table, "classes_"):
        raise ValueError(
            "table was made of published points, which have no scores: leave X and y "
            "out"
        )
    labels = as_1d(y, "y")
    weights = check_sample_weight(sample_weight, len(labels))
    scores = {name: _column(table, X, name) for name in _model_names(table)}
    n = len(X) if hasattr(X, "__len__") else len(next(iter(scores.values())))
    if n != len(labels):
        raise ValueError(f"X must have a row for each of y; got {n} for {len(labels)}")
    cases = SameCases(table, labels, weights)
    cases.check_totals()
    _check_readers(table, X, cases)
    parts = []
    for name, values in scores.items():
        cases.check_model(name, values)
        fpr, tpr, threshold = roc_curve(
            labels, values, pos_label=table.pos_label_, sample_weight=weights
        )
        cases.check_curve(name, fpr, tpr)
        kept = np.unique(
            np.linspace(0, len(fpr) - 1, min(len(fpr), _MOST_POINTS)).astype(int)
        )
        parts.append(_curve(name, fpr[kept], tpr[kept], threshold[kept]))
    return _concatenated(parts)


def _check_readers(table: Any, X: Any, cases: SameCases) -> None:
    """Calls of the readers, if X has all columns that the table knows."""
    kinds = table.operating_points_.kinds
    readers = [name for name, kind in kinds.items() if kind == "reader"]
    names = getattr(table, "feature_names_in_", None)
    if names is None:
        X = np.asarray(X)
        names = [f"x{j}" for j in range(table.n_features_in_)]
    elif hasattr(X, "columns"):
        if not set(names) <= set(X.columns):
            return
        X = X[list(names)]
    else:
        X = pd.DataFrame(np.asarray(X), columns=names)
    if readers:
        calls = table.transform(X)
        for name in readers:
            cases.check_reader(name, calls[:, [str(c) for c in names].index(name)])


def _column(table: Any, X: Any, name: str) -> NDArray:
    """Scores of a model, by name where the table knows names, or else by position."""
    names = getattr(table, "feature_names_in_", None)
    if names is not None and hasattr(X, "columns"):
        if name not in X.columns:
            raise ValueError(f"X lacks the column of the model {name!r}")
        return np.asarray(X[name].to_numpy(), dtype=np.float64)
    if names is None:
        names = [f"x{j}" for j in range(table.n_features_in_)]
    values = np.asarray(X)
    if values.ndim != 2 or values.shape[1] != len(names):
        raise ValueError(
            f"X must have the {len(names)} columns that the table was fitted to; got "
            f"shape {values.shape}"
        )
    return np.asarray(values[:, list(names).index(name)], dtype=np.float64)


def own_hulls(table: Any) -> pd.DataFrame:
    points = table.operating_points_
    parts = []
    for name in _model_names(table):
        own = np.flatnonzero(points.name == name)
        fpr = np.concatenate(([0.0], points.fpr[own], [1.0]))
        tpr = np.concatenate(([0.0], points.sensitivity[own], [1.0]))
        threshold = np.concatenate(([np.inf], points.threshold[own], [-np.inf]))
        kept = _upper_hull(fpr, tpr)
        parts.append(_curve(name, fpr[kept], tpr[kept], threshold[kept]))
    return _concatenated(parts)


def _upper_hull(x: Floats, y: Floats) -> list[int]:
    """Positions of the vertices of the upper hull, by rising x; good for drawing."""
    chain: list[int] = []
    for i in np.lexsort((y, x)):
        while len(chain) > 1:
            a, b = chain[-2], chain[-1]
            if (y[b] - y[a]) * (x[i] - x[b]) > (y[i] - y[b]) * (x[b] - x[a]):
                break
            chain.pop()
        chain.append(i)
    return chain


def _curve(name: str, fpr: Floats, tpr: Floats, threshold: Floats) -> pd.DataFrame:
    values = {"name": name, "fpr": fpr, "tpr": tpr, "threshold": threshold}
    return pd.DataFrame(values, columns=CURVE_COLUMNS)


def _concatenated(parts: list[pd.DataFrame]) -> pd.DataFrame:
    if not parts:
        return pd.DataFrame(columns=CURVE_COLUMNS).astype({"fpr": float, "tpr": float})
    return pd.concat(parts, ignore_index=True)
