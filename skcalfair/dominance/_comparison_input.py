"""Input of the three common comparisons: truth, scores of one model, readers' calls."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from .._validation import (
    as_1d,
    as_floats,
    check_same_length,
    check_sample_weight,
    encode_labels,
    unique_labels,
)
from ._cases import Cases
from ._columns import (
    Roles,
    find_codings,
    is_binary,
    reader_calls,
    whole_weights,
)
from ._pooled import check_names

Floats = NDArray[np.float64]

MODEL = "model"


def check_comparison(
    y_true: ArrayLike, y_score: ArrayLike, calls: Any, pos_label: Any, weight: Any
) -> Cases:
    """One model and its readers as validated cases, those of zero weight left out."""
    y, scores = as_1d(y_true, "y_true"), as_floats(as_1d(y_score, "y_score"), "y_score")
    frame = _as_frame(calls)
    check_same_length(("y_true", y), ("y_score", scores))
    positions = np.arange(len(y))
    if len(frame) != len(y):
        raise ValueError(
            f"reader_calls must have a row for each case; got {len(frame)} for "
            f"{len(y)} cases"
        )
    weights = check_sample_weight(weight, len(y))
    if weights is not None:
        positions = np.flatnonzero(weights)
        y, scores, weights = y[positions], scores[positions], weights[positions]
        frame = frame.iloc[positions]
    classes, outcome, positive = _two_classes(y, pos_label)
    _check_model_scores(scores, positions)
    columns = np.column_stack(
        [scores]
        + [
            _numbers(frame.iloc[:, j].to_numpy(), name, classes, positive, positions)
            for j, name in enumerate(frame.columns)
        ]
    )
    names = [_model_name(y_score, frame.columns), *frame.columns]
    check_names(names)
    roles = Roles(names, [0], dict.fromkeys(range(1, len(names))))
    codings = find_codings(columns, roles, classes, positive)
    read = [
        reader_calls(columns[:, j], roles, j, codings.get(j)) for j in roles.readers
    ]
    whole, unit = whole_weights(weights)
    return Cases(outcome == 1, [scores], read, roles, whole, unit)


def _two_classes(y: NDArray, pos_label: Any) -> tuple[NDArray, NDArray, Any]:
    """Labels, outcome (0/1) and positive label, which text must state."""
    classes = unique_labels(y)
    outcome, positive = encode_labels(y, pos_label, "y_true")
    if len(classes) < 2:
        raise ValueError(
            "y_true must hold two classes (in rows of positive weight); got only one "
            f"class: {classes.tolist()[0]!r}"
        )
    return classes, outcome, positive


def _model_name(y_score: Any, readers: Any) -> str:
    """Name of a Series, unless a reader has it."""
    name = getattr(y_score, "name", None)
    if isinstance(name, str) and name and name not in readers:
        return name
    if MODEL in readers:
        raise ValueError(
            f"a reader is named {MODEL!r}, which is what the model is called: rename "
            "the column of reader_calls, or pass y_score as a Series with another name"
        )
    return MODEL


def _check_model_scores(scores: Floats, positions: NDArray[np.intp]) -> None:
    """Refuse scores that are missing or infinite."""
    bad = np.flatnonzero(~np.isfinite(scores))
    if bad.size:
        what = "NaN (missing)" if np.isnan(scores[bad[0]]) else "infinity"
        raise ValueError(
            f"y_score contains {what} at row {positions[bad[0]]}: the model needs a "
            "finite score for each case; leave the case out, or give it a weight of 0"
        )


def _numbers(
    values: NDArray,
    name: str,
    classes: NDArray,
    positive: Any,
    positions: NDArray[np.intp],
) -> Floats:
    """Calls of one reader as numbers of two kinds, and NaN (not read)."""
    where = f"column {name!r} of reader_calls"
    if values.dtype.kind not in "fiub":
        missing = np.asarray(pd.isna(values), dtype=bool)
        known = list(dict.fromkeys(values[~missing].tolist()))
        if any(isinstance(value, str) for value in known):
            strange = [value for value in known if value not in classes.tolist()]
            if strange:
                raise ValueError(
                    f"{where} holds text that is no label of y_true: {strange[0]!r} is "
                    f"not among {classes.tolist()}"
                )
            return np.where(missing, np.nan, values == positive).astype(np.float64)
    numbers = as_floats(values, where)
    if np.isinf(numbers).any():
        row = positions[int(np.isinf(numbers).argmax())]
        raise ValueError(
            f"{where} contains infinity at row {row}: a call is 0 or 1, or NaN where "
            "the case was not read"
        )
    if not is_binary(numbers, classes):
        kinds = np.unique(numbers[~np.isnan(numbers)])
        shown = ", ".join(f"{value:g}" for value in kinds[:5])
        more = ", ..." if len(kinds) > 5 else ""
        raise ValueError(
            f"{where} does not hold calls of two kinds but {shown}{more}: turn ratings "
            "into calls, for example ratings >= 3, with NaN where a case was not read"
        )
    return numbers


def _as_frame(calls: Any) -> pd.DataFrame:
    """Calls as a table with a named column for each reader."""
    if hasattr(calls, "columns"):
        names = [str(name) for name in calls.columns]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ValueError(f"reader_calls has the column {twice[0]!r} twice")
        frame = pd.DataFrame({str(c): calls[c].to_numpy() for c in calls.columns})
    else:
        values = np.asarray(calls)
        if values.ndim != 2:
            raise ValueError(
                "reader_calls must have a row for each case and a column for each "
                f"reader; got an array of shape {values.shape}"
            )
        frame = pd.DataFrame(values)
        frame.columns = pd.Index([f"reader{j}" for j in range(values.shape[1])])
    if not frame.shape[1]:
        raise ValueError("reader_calls has no column: at least one reader is needed")
    return frame
