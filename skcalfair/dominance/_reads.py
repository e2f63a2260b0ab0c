"""From a table of reads, or of published points, to a dominance table."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from .. import _files as files
from ._dominance_table import DominanceTable


def fit_reads(
    frame: pd.DataFrame,
    *,
    target: str,
    models: Sequence[str],
    readers: Sequence[str],
    positive: str | None = None,
    cluster: str | None = None,
    weight: str | None = None,
    **params: Any,
) -> DominanceTable:
    """Fit a table to named columns; a reader is COL, or COL=THRESHOLD for ratings."""
    thresholds = dict(_reader(text, list(frame.columns)) for text in readers)
    given = [target, *models, *[_reader(r, list(frame.columns))[0] for r in readers]]
    _check_distinct([*given, *([] if weight is None else [weight])])
    outcome, label = files.target(frame, target, positive)
    columns = {name: files.numeric(frame, name) for name in models}
    columns |= {name: _calls(frame, name, outcome) for name in thresholds}
    table = DominanceTable(readers=thresholds, pos_label=label, **params)
    return table.fit(
        pd.DataFrame(columns),
        outcome,
        None if weight is None else files.weights(frame, weight),
        clusters=None if cluster is None else files.cluster(frame, cluster),
    )


def _reader(text: str, columns: Sequence[str]) -> tuple[str, float | None]:
    """Name and threshold; a column whose name holds "=" goes before."""
    name, mark, value = text.rpartition("=")
    if text in columns or not mark:
        return text, None
    try:
        return name, float(value)
    except ValueError:
        raise files.InputError(
            f"--reader {text!r}: {value!r} is no number; give COL, or COL=THRESHOLD "
            "for ratings"
        ) from None


def _check_distinct(names: Sequence[str]) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise files.InputError(
            f"column {twice!r} is named twice; truth, models, readers and weight are "
            "different columns"
        )


def _calls(frame: pd.DataFrame, name: str, outcome: pd.Series) -> pd.Series:
    """Calls of a reader: numbers, or the labels of the outcome."""
    values = files.column(frame, name)
    known = values.dropna()
    if not len(known):
        raise files.InputError(f"column {name!r} is empty: the reader read no case")
    if pd.api.types.is_numeric_dtype(values):
        return values
    strange = known[~known.isin(pd.unique(outcome))]
    if len(strange):
        labels = ", ".join(sorted(map(str, pd.unique(outcome))))
        raise files.InputError(
            f"column {name!r} must hold calls (0 and 1, or {labels}) or ratings; data "
            f"row {int(strange.index[0]) + 1} holds {strange.iloc[0]!r}"
        )
    return values


def points_table(frame: pd.DataFrame, **params: Any) -> DominanceTable:
    """Table of published points."""
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise files.InputError(f"several columns are named {twice[0]!r}")
    return DominanceTable.from_operating_points(frame, **params)
