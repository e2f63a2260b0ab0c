"""Columns of a reader study: which are scores, which are calls, and who read what."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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


def encode_text_calls(X: Any, classes: NDArray, pos_label: Any) -> Any:
    """Replace calls given as class labels in text by 0 and 1; other input as it came.

    Frames come back as pandas frames of numbers, under their own column names.
    """
    if not hasattr(X, "columns") or not hasattr(X, "shape"):
        return X
    names = list(X.columns)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"X has the column {twice!r} twice")
    columns = {
        name: _numeric_column(np.asarray(X[name].to_numpy()), name, classes, pos_label)
        for name in names
    }
    return pd.DataFrame(columns, columns=X.columns, index=getattr(X, "index", None))


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
                f"{strange[0]!r} is not among {classes.tolist()}"
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
    """Whether a column holds calls: 0 and 1, or the labels of y."""
    # Scores show in their first few rows; all rows of a million cost more.
    for rows in (values[:256], values):
        known = rows[~np.isnan(rows)]
        numeric = _numeric(classes)
        if not any(np.isin(known, codes).all() for codes in ([0.0, 1.0], numeric)):
            return False
    return True


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


def check_scores(X: Floats, roles: Roles) -> None:
    """Refuse infinity everywhere, and missing values in the columns of models."""
    for j, name in enumerate(roles.names):
        column = X[:, j]
        total = column.sum()
        if np.isfinite(total):
            continue
        if np.isinf(column).any():
            row = int(np.isinf(column).argmax())
            raise ValueError(
                f"X contains infinity in column {name!r} at row {row}: scores and "
                "calls must be finite"
            )
        if j not in roles.readers and np.isnan(column).any():
            row = int(np.isnan(column).argmax())
            raise ValueError(
                f"X contains NaN (missing) in column {name!r} at row {row}: only a "
                "reader may leave cases out, a model needs a score for each (name "
                "the readers by readers=)"
            )


def reader_calls(
    values: Floats, name: str, threshold: float | None, classes: NDArray, pos_label: Any
) -> Floats:
    """Calls as 1 (positive), 0 and NaN (not read)."""
    unread = np.isnan(values)
    if threshold is not None:
        positive = values >= threshold
    else:
        known = values[~unread]
        numeric = _numeric(classes)
        if len(numeric) and np.isin(known, numeric).all():
            positive = values == pos_label
        elif np.isin(known, [0.0, 1.0]).all():
            positive = values == 1.0
        else:
            distinct = np.unique(known)
            shown = ", ".join(f"{value:g}" for value in distinct[:5])
            raise ValueError(
                f"reader {name!r} does not hold calls of two kinds but {shown}"
                f"{', ...' if len(distinct) > 5 else ''}: state from which rating on a "
                f"case is called positive, readers={{{name!r}: threshold}}"
            )
    return np.where(unread, np.nan, positive.astype(np.float64))


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
