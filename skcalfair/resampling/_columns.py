"""Data of any kind whose rows are taken, and single columns of it."""

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array
from sklearn.utils.validation import _num_samples

from .._validation import as_1d


def check_rows(X: Any) -> Any:
    """X itself where rows can be taken of it, else an array; refuses bad shapes."""
    if _num_samples(X) < 1:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={np.shape(X)}) while a minimum of 1 "
            "is required."
        )
    if hasattr(X, "columns"):
        return X
    if not issparse(X):
        array = np.asarray(X)
        # A single column of numbers is nearly always a mistake; paths are not.
        if array.ndim == 1 and array.dtype.kind not in "fiubc":
            return X if hasattr(X, "shape") else array
    return check_array(
        X,
        accept_sparse=("csr", "csc"),
        allow_nd=True,
        dtype=None,
        ensure_all_finite=False,
    )


def read_columns(X: Any, column: str | int | list | tuple) -> dict[str, NDArray]:
    """Columns of X by name or position."""
    keys = list(column) if isinstance(column, (list, tuple)) else [column]
    if not keys or not all(_is_key(key) for key in keys):
        raise ValueError(
            "column must be a name or a position of a column, or a list of these; got "
            f"{column!r}"
        )
    shape = getattr(X, "shape", ())
    if len(shape) != 2:
        raise ValueError(
            f"column={column!r} needs X of two dimensions, but X has shape {shape}; "
            "pass the groups as sensitive_features"
        )
    names = list(getattr(X, "columns", []))
    return {
        f"{key}": as_1d(_column(X, _position(key, names, X)), str(key)) for key in keys
    }


def _is_key(key: Any) -> bool:
    return isinstance(key, (str, Integral)) and not isinstance(key, bool)


def _position(key: str | int, names: list, X: Any) -> int:
    if isinstance(key, str):
        if key in names:
            return names.index(key)
        has = f"columns {names}" if names else "no named columns"
        raise ValueError(
            f"column {key!r} not found: X, a {type(X).__name__}, has {has}. In a "
            "pipeline, put the matcher before steps that drop columns or their names"
        )
    n_columns = X.shape[1]
    if not -n_columns <= key < n_columns:
        raise ValueError(f"column {key} is out of range: X has {n_columns} columns")
    return int(key) % n_columns


def _column(X: Any, position: int) -> Any:
    if issparse(X):
        return X[:, [position]].toarray().ravel()
    if hasattr(X, "iloc"):
        return X.iloc[:, position]
    if hasattr(X, "columns"):
        return X[X.columns[position]]
    return X[:, position]


def check_floats(values: NDArray, key: str, missing: str) -> None:
    """Refuse groups that are infinite, and NaN where missing groups are an error."""
    if values.dtype.kind != "f":
        return
    finite = np.isfinite(values) if missing == "raise" else ~np.isinf(values)
    if not finite.all():
        row = int(np.argmin(finite))
        raise ValueError(
            f"column {key!r} contains {'NaN' if np.isnan(values[row]) else 'inf'} at "
            f"row {row}, which is no group; for missing groups (NaN) there are "
            "missing='own_group' and missing='drop'"
        )
