"""Columns of a reader study: which are scores, which are calls, and who read what."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._validation import as_1d, as_floats, unique_labels

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Binary digits of fractional weights, from that of their sum on.
_WEIGHT_BITS = 52


@dataclass(frozen=True)
class Roles:
    """Position of each model's and reader's column; readers with their threshold."""

    names: list[str]
    models: list[int]
    readers: dict[int, float | None]

    @property
    def kinds(self) -> dict[str, str]:
        """``"model"`` or ``"reader"`` for each name, in column order."""
        return {
            name: "reader" if j in self.readers else "model"
            for j, name in enumerate(self.names)
        }


def text_labels(y: Any, pos_label: Any) -> tuple[NDArray, Any]:
    """Labels that calls may be given as, and the positive one, before validation."""
    labels = unique_labels(as_1d(y, "y"), "y")
    return labels, labels[-1] if pos_label is None else pos_label


def may_hold_text(X: Any) -> bool:
    """Whether calls may be given as labels in text."""
    return hasattr(X, "columns") or not (
        isinstance(X, np.ndarray) and X.dtype.kind in "fiubc"
    )


def encode_text_calls(X: Any, classes: NDArray, pos_label: Any) -> Any:
    """Replace calls given as class labels in text by 0 and 1; other input as it came.

    Frames come back as pandas frames of numbers, under their own column names.
    """
    if not hasattr(X, "columns") or not hasattr(X, "shape"):
        return _encode_text_array(X, classes, pos_label)
    names = list(X.columns)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"X has the column {twice!r} twice")
    if isinstance(X, pd.DataFrame) and all(
        isinstance(dtype, np.dtype) and dtype.kind in "fiub" for dtype in X.dtypes
    ):
        return X  # numbers already, which need no copy
    columns = {
        name: _numeric_column(np.asarray(X[name].to_numpy()), name, classes, pos_label)
        for name in names
    }
    return pd.DataFrame(columns, columns=X.columns, index=getattr(X, "index", None))


def _encode_text_array(X: Any, classes: NDArray, pos_label: Any) -> Any:
    """Likewise for lists and arrays; those without text are left to validation."""
    if isinstance(X, np.ndarray) and X.dtype.kind not in "OUS":
        return X
    if not isinstance(X, (list, tuple, np.ndarray)):
        return X
    try:
        cells = np.array(X, dtype=object)
    except ValueError:
        return X
    if cells.ndim != 2 or not any(isinstance(value, str) for value in cells.flat):
        return X
    columns = []
    for j in range(cells.shape[1]):
        values = cells[:, j]
        if not any(isinstance(value, str) for value in values):
            values = as_floats(values, f"column {j} of X")
        elif not set(values.tolist()) & set(classes.tolist()):
            # Numbers that stand as text beside the calls.
            values = as_floats(pd.to_numeric(values), f"column {j} of X")
        columns.append(_numeric_column(values, j, classes, pos_label))
    return np.column_stack(columns)


def _numeric_column(
    values: NDArray, name: Any, classes: NDArray, pos_label: Any
) -> NDArray:
    if values.dtype.kind in "fiub":
        return values
    missing = np.asarray(pd.isna(values), dtype=bool)
    known = set(np.asarray(values, dtype=object)[~missing].tolist())
    if any(isinstance(value, str) for value in known):
        strange = [value for value in known if value not in set(classes.tolist())]
        if strange:
            raise ValueError(
                f"column {name!r} of X holds text that is no label of y: "
                f"{strange[0]!r} is not among {classes.tolist()}; scores must be "
                "numbers"
            )
        return np.where(missing, np.nan, values == pos_label).astype(np.float64)
    return as_floats(values, f"column {name!r} of X")


def find_roles(
    X: Floats, names: list[str], readers: Any, classes: NDArray, given_names: bool
) -> Roles:
    """Tell readers from models, and take the readers' thresholds."""
    if readers is None:
        found: dict[int, float | None] = {
            j: None for j in range(X.shape[1]) if is_binary(X[:, j], classes)
        }
    else:
        found = _named_readers(readers, names, given_names)
    models = [j for j in range(X.shape[1]) if j not in found]
    return Roles(names, models, found)


def _numeric(classes: NDArray) -> NDArray:
    """The labels, where they are numbers."""
    return classes if classes.dtype.kind in "fiub" else np.array([])


def is_binary(values: Floats, classes: NDArray) -> bool:
    """Whether a column holds calls: 0 and 1, -1 and 1, or the labels of y."""
    codings = ({0.0, 1.0}, {-1.0, 1.0}, set(_numeric(classes).tolist()))
    # Scores show in their first few rows; all rows of a million cost more.
    return all(
        any(distinct_values(rows) <= codes for codes in codings)
        for rows in (values[:256], values)
    )


def _named_readers(
    readers: Any, names: list[str], given_names: bool
) -> dict[int, float | None]:
    if isinstance(readers, (str, int, np.integer)):
        readers = [readers]
    thresholds = readers if isinstance(readers, Mapping) else dict.fromkeys(readers)
    found: dict[int, float | None] = {}
    for reader, threshold in thresholds.items():
        position = _position(reader, names, given_names)
        if position in found:
            raise ValueError(f"readers names {reader!r} twice")
        found[position] = None if threshold is None else _number(reader, threshold)
    return found


def _position(reader: Any, names: list[str], given_names: bool) -> int:
    if reader in names:
        return names.index(reader)
    is_position = isinstance(reader, (int, np.integer)) and not given_names
    if is_position and -len(names) <= reader < len(names):
        return int(reader) % len(names)
    raise ValueError(
        f"readers names {reader!r}, which is not a column of X: {', '.join(names[:8])}"
        + (", ..." if len(names) > 8 else "")
    )


def _number(reader: Any, threshold: Any) -> float:
    try:
        value = float(threshold)
    except (TypeError, ValueError):
        value = np.nan
    if not np.isfinite(value):
        raise ValueError(
            f"the threshold of reader {reader!r} must be a finite number; got "
            f"{threshold!r}"
        )
    return value


def check_scores(X: Floats, roles: Roles, rows: NDArray | None = None) -> None:
    """Refuse infinity everywhere, and missing values in the columns of models.

    `rows` are the numbers of the rows where some were left out before.
    """

    def first(is_bad: NDArray) -> int:
        return int(is_bad.argmax() if rows is None else rows[is_bad.argmax()])

    for j, name in enumerate(roles.names):
        column = X[:, j]
        total = column.sum()
        if np.isfinite(total):
            continue
        if np.isinf(column).any():
            raise ValueError(
                f"X contains infinity in column {name!r} at row "
                f"{first(np.isinf(column))}: scores and calls must be finite"
            )
        if j not in roles.readers and np.isnan(column).any():
            raise ValueError(
                f"X contains NaN (missing) in column {name!r} at row "
                f"{first(np.isnan(column))}: only a reader may leave cases out, a "
                "model needs a score for each (name the readers by readers=)"
            )


def find_codings(
    X: Floats, roles: Roles, classes: NDArray, pos_label: Any
) -> dict[int, float]:
    """Value of each reader's column that is a positive call.

    Decided once, for later rows may not show both values. A column of ones alone can be
    a label or a yes, and goes by the other readers.
    """
    found: dict[int, float] = {}
    unclear = []
    labels = set(_numeric(classes).tolist())
    codings = [({0.0, 1.0}, 1.0), ({-1.0, 1.0}, 1.0)]
    if labels:
        codings.insert(0, (labels, float(pos_label)))
    for j, threshold in roles.readers.items():
        known = set() if threshold is not None else distinct_values(X[:, j])
        if not known:
            continue
        fits = [positive for codes, positive in codings if known <= codes]
        if not fits:
            _refuse_ratings(sorted(known), roles.names[j])
        if len(set(fits)) == 1 or labels in ({0.0, 1.0}, {-1.0, 1.0}):
            # The labels go first: truth in 0 and 1 leaves no doubt.
            found[j] = fits[0]
        else:
            unclear.append(j)
    others = set(found.values())
    for j in unclear:
        if len(others) != 1:
            raise ValueError(
                f"reader {roles.names[j]!r} has only the value 1, which can be the "
                f"label 1 of y or a positive call: code the calls as y, "
                f"{_numeric(classes).tolist()}"
            )
        found[j] = next(iter(others))
    return found


def check_calls(X: Floats, roles: Roles, classes: NDArray) -> None:
    """Refuse what is no call in later rows: it would be read as a negative one."""
    for j, threshold in roles.readers.items():
        if threshold is None and not is_binary(X[:, j], classes):
            _refuse_ratings(sorted(distinct_values(X[:, j])), roles.names[j])


def distinct_values(values: Floats) -> set[float]:
    """Distinct values that are not missing; calls without a sort."""
    low, high = np.fmin.reduce(values), np.fmax.reduce(values)
    if np.isnan(low):
        return set()
    if not ((values > low) & (values < high)).any():
        return {float(low), float(high)}
    return set(np.unique(values[~np.isnan(values)]).tolist())


def reader_calls(values: Floats, roles: Roles, j: int, coding: float | None) -> Floats:
    """Calls as 1 (positive), 0 and NaN (not read)."""
    threshold = roles.readers[j]
    if threshold is None and coding == 1.0 and distinct_values(values) <= {0.0, 1.0}:
        return values
    positive = values == coding if threshold is None else values >= threshold
    return np.where(np.isnan(values), np.nan, positive.astype(np.float64))


def _refuse_ratings(known: list[float], name: str) -> NoReturn:
    shown = ", ".join(f"{value:g}" for value in known[:5])
    raise ValueError(
        f"reader {name!r} does not hold calls of two kinds but {shown}"
        f"{', ...' if len(known) > 5 else ''}: state from which rating on a case is "
        f"called positive, readers={{{name!r}: threshold}}"
    )


def whole_weights(sample_weight: Floats | None) -> tuple[Ints | None, float]:
    """Weights as whole multiples of a unit, so that their sums are exact.

    Multiples of the smallest weight (numbers of rows divided by something) keep their
    ties; other weights are cut after the last of so many binary digits.
    """
    if sample_weight is None:
        return None, 1.0
    if (sample_weight == np.floor(sample_weight)).all():
        unit = 1.0
    else:
        unit = float(sample_weight.min())
        ratios = sample_weight / unit
        if np.abs(ratios - np.rint(ratios)).max() > 1e-12 * ratios.max():
            unit = 0.0
    finest = 2.0 ** (np.ceil(np.log2(sample_weight.sum())) - _WEIGHT_BITS)
    unit = max(unit, finest)
    return np.rint(sample_weight / unit).astype(np.int64), unit
