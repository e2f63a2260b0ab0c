"""Groups of a metric frame: features as codes, their intersections as cells."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length

from ._fairlearn import FEATURE_HAS_MISSING_VALUES

Codes = NDArray[np.intp]
MISSING_LABEL = "missing"


@dataclass(frozen=True)
class Feature:
    """A named column: sorted levels and the code of each row, -1 without a value."""

    name: str
    levels: list[Any]
    codes: Codes

    def index(self) -> pd.Index:
        """Levels as an index, typed as fairlearn's would be."""
        return pd.Index(self.levels, name=self.name)


@dataclass(frozen=True)
class Cells:
    """The intersections of control and sensitive features that have rows.

    `keys[c]` holds the level codes of cell c, control features first, in sorted order;
    `order` lists the rows cell by cell, and `starts` where each cell begins there.
    """

    features: list[Feature]
    n_controls: int
    keys: Codes
    codes: Codes
    order: Codes
    starts: Codes

    def __len__(self) -> int:
        return len(self.keys)

    def rows(self, cell: int) -> Codes:
        """Rows of a cell, ascending."""
        return self.order[self.starts[cell] : self.starts[cell + 1]]

    def labels(self, cell: int) -> tuple[Any, ...]:
        """Values of the features in a cell, control features first."""
        pairs = zip(self.features, self.keys[cell], strict=True)
        return tuple(feature.levels[code] for feature, code in pairs)

    def strata(self) -> list[Codes]:
        """Cells of each control level; all cells where nothing is controlled for."""
        keys = self.keys[:, : self.n_controls]
        _, which = np.unique(keys, axis=0, return_inverse=True)
        which = which.ravel()
        return [np.flatnonzero(which == s) for s in range(which.max(initial=-1) + 1)]


def read_features(
    process: Callable, base: str, features: Any, y: NDArray, missing: str
) -> list[Feature]:
    """Encode features; `process` is fairlearn's reader, which names and checks them."""
    features = _as_pandas(features)
    columns = _columns(process, base, features, y)
    return [_encode(name, column, missing) for name, column in columns]


def _as_pandas(features: Any) -> Any:
    """Frames and columns of other libraries as pandas', with their names."""
    if isinstance(features, (pd.DataFrame, pd.Series)):
        return features
    found = nw.from_native(features, pass_through=True, allow_series=True)
    if isinstance(found, nw.DataFrame):
        return pd.DataFrame({c: _values(found.get_column(c)) for c in found.columns})
    if isinstance(found, nw.Series):
        return pd.Series(_values(found), name=found.name or None)
    return features


def _values(column: Any) -> NDArray:
    # Integers with gaps would turn into floats.
    if column.null_count():
        return np.array(column.to_list(), dtype=object)
    return np.asarray(column.to_numpy())


def _columns(
    process: Callable, base: str, features: Any, y: NDArray
) -> list[tuple[str, Any]]:
    """Name and values of each feature; fairlearn names them and refuses bad ones."""
    columns: list[Any]
    if isinstance(features, list):
        if not all(pd.api.types.is_scalar(value) for value in features):
            process(base, features, y)  # raises
        empty: Any = []
        columns = [_object_array(features)]
    elif isinstance(features, pd.Series):
        empty, columns = features.iloc[:0], [features]
    elif isinstance(features, dict):
        empty = {name: as_array(column)[:0] for name, column in features.items()}
        process(base, empty, y[:0])
        frame = pd.DataFrame.from_dict(features)
        columns = [frame.iloc[:, j] for j in range(frame.shape[1])]
    elif isinstance(features, pd.DataFrame):
        empty = features.iloc[:0]
        columns = [features.iloc[:, j] for j in range(features.shape[1])]
    else:
        array = as_array(features)
        if array.ndim > 2:
            process(base, features, y)  # raises
        if array.ndim == 2 and 1 in array.shape:
            array = array.ravel()
        array = np.atleast_1d(array)
        empty = array[:0].astype(object)
        columns = [array] if array.ndim == 1 else list(array.T)
    # Nobody reads a million values to learn the names: fairlearn gets no rows.
    names = [feature.name_ for feature in process(base, empty, y[:0])]
    for column in columns:
        check_consistent_length(column, y)
    return list(zip(names, columns, strict=True))


def as_array(values: Any) -> NDArray:
    """Array in which missing values and mixed types stay what they are."""
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "to_numpy"):
        return np.asarray(values.to_numpy())
    return np.asarray(values, dtype=object)


def _object_array(values: list) -> NDArray:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _encode(name: str, column: Any, missing: str) -> Feature:
    codes, found = pd.factorize(column)
    levels = list(found)
    absent = codes < 0
    if absent.any():
        if missing == "raise":
            raise ValueError(FEATURE_HAS_MISSING_VALUES.format(name))
        if missing == "own_group":
            if MISSING_LABEL not in levels:
                levels.append(MISSING_LABEL)
            codes = np.where(absent, levels.index(MISSING_LABEL), codes)
    rank = np.empty(len(levels) + 1, dtype=np.intp)
    order = _sorted_positions(levels)
    rank[order] = np.arange(len(levels))
    rank[-1] = -1
    return Feature(name, [levels[i] for i in order], rank[codes])


def _sorted_positions(levels: list[Any]) -> list[int]:
    """Order of the levels; where types are mixed, numbers come before text."""
    positions = range(len(levels))
    try:
        return sorted(positions, key=lambda i: levels[i])
    except TypeError:
        pass
    try:
        return sorted(positions, key=lambda i: (isinstance(levels[i], str), levels[i]))
    except TypeError:
        return sorted(positions, key=lambda i: str(levels[i]))


def with_values(features: list[Feature]) -> NDArray[np.bool_] | None:
    """Rows that have a value of every feature; None when all have."""
    kept = np.all([feature.codes >= 0 for feature in features], axis=0)
    return None if kept.all() else kept


def take_rows(feature: Feature, kept: NDArray) -> Feature:
    """Feature of some rows, without the levels that are gone."""
    codes = feature.codes[kept]
    left, codes = np.unique(codes, return_inverse=True)
    return Feature(feature.name, [feature.levels[i] for i in left], codes)


def find_cells(controls: list[Feature], sensitive: list[Feature]) -> Cells:
    """Intersect features; cells without rows are left out."""
    features = [*controls, *sensitive]
    shape = tuple(len(feature.levels) for feature in features)
    n, product = len(features[0].codes), int(np.prod(shape, dtype=object))
    if product > np.iinfo(np.intp).max:
        names = [feature.name for feature in features]
        raise ValueError(f"the features {names} have too many combinations: {product}")
    flat = features[0].codes
    if len(features) > 1:
        flat = np.ravel_multi_index([f.codes for f in features], shape)
    if product <= 4 * n + 1024:
        counts = np.bincount(flat, minlength=product)
        present = np.flatnonzero(counts)
        rank = np.zeros(product, dtype=np.intp)
        rank[present] = np.arange(len(present))
        codes = flat if len(present) == product else rank[flat]
        sizes = counts[present]
    else:
        present, codes, sizes = np.unique(flat, return_inverse=True, return_counts=True)
    keys = np.stack(np.unravel_index(present, shape), axis=1)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
    return Cells(
        features, len(controls), keys, codes, _sort_by_code(codes, len(keys)), starts
    )


def _sort_by_code(codes: Codes, n_cells: int) -> Codes:
    # numpy sorts short integers by radix.
    small = codes.astype(np.uint16) if n_cells <= 2**16 else codes
    return np.argsort(small, kind="stable")
