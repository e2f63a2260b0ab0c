"""What displays share about tables: where results hold them, summaries, labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..metrics._registry import METRICS

# Statistics of the values behind one box or point, besides their number and mean.
QUANTILES = {"low": 0.05, "q1": 0.25, "median": 0.5, "q3": 0.75, "high": 0.95}


def table_of(result: Any, *names: str, columns: Sequence[str]) -> pd.DataFrame:
    """First attribute of a result that is a table with these columns."""
    for name in names:
        table = getattr(result, name, None)
        if isinstance(table, pd.DataFrame) and set(columns) <= set(table.columns):
            return table
    raise ValueError(
        f"result must have a table {' or '.join(names)} with the columns "
        f"{list(columns)}; {type(result).__name__} has none"
    )


def check_columns(frame: Any, columns: Sequence[str], name: str) -> pd.DataFrame:
    """Refuse a table without the columns that are drawn."""
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"{name} must be a DataFrame; got {type(frame).__name__}")
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise ValueError(
            f"{name} must have the columns {list(columns)}; {missing[0]!r} is missing"
        )
    return frame.reset_index(drop=True)


def chosen(
    frame: pd.DataFrame, column: str, wanted: Sequence[Any] | None, name: str
) -> pd.DataFrame:
    """Rows with the values that were asked for, in that order; all by default."""
    if wanted is None:
        return frame
    known = list(dict.fromkeys(frame[column]))
    unknown = [value for value in wanted if value not in known]
    if unknown or not len(wanted):
        raise ValueError(
            f"{name} must be among {known}; got {unknown[0] if unknown else 'none'!r}"
        )
    return pd.concat([frame[frame[column] == v] for v in wanted], ignore_index=True)


def summarise(frame: pd.DataFrame, by: Sequence[str], unit: str) -> pd.DataFrame:
    """Number of values, their mean and quantiles, in the order of first appearance."""
    known = frame[np.isfinite(frame["value"].to_numpy(dtype=np.float64))]
    grouped = known.groupby(list(by), sort=False)["value"]
    table = pd.DataFrame({f"n_{unit}": grouped.size(), "mean": grouped.mean()})
    for name, quantile in QUANTILES.items():
        table[name] = grouped.quantile(quantile)
    # What has no value at all stays, with none.
    cells = pd.MultiIndex.from_frame(frame[list(by)].drop_duplicates())
    table = table.reindex(cells if len(by) > 1 else cells.get_level_values(0))
    table[f"n_{unit}"] = table[f"n_{unit}"].fillna(0).astype(np.int64)
    return table.reset_index()


def metric_label(name: str) -> str:
    """Short name of a metric for an axis."""
    return METRICS[name].label if name in METRICS else str(name)


def group_label(group: Any) -> str:
    """Name of a group; for an intersection its parts."""
    return " & ".join(map(str, group)) if isinstance(group, tuple) else str(group)


def levels(frame: pd.DataFrame, column: str) -> list[Any]:
    """Distinct values in the order of first appearance."""
    return list(dict.fromkeys(frame[column]))
