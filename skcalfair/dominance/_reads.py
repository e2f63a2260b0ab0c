"""From a table of reads, or of published points, to a dominance table."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from .. import _files as files
from .._validation import check_cost_ratio, check_prevalence
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
    columns |= {
        name: _calls(frame, name, outcome, t is not None)
        for name, t in thresholds.items()
    }
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


def _calls(
    frame: pd.DataFrame, name: str, outcome: pd.Series, is_rating: bool
) -> pd.Series:
    """Calls of a reader, or ratings, which are numbers."""
    values = files.column(frame, name)
    known = values.dropna()
    if not len(known):
        raise files.InputError(f"column {name!r} is empty: the reader read no case")
    if is_rating:
        _refuse_text(name, known)
        return values.astype(float)
    calls = [{0, 1}, set(pd.unique(outcome).tolist())]
    if not any(known.isin(kinds).all() for kinds in calls):
        labels = " or ".join(dict.fromkeys(map(_listing, calls)))
        shown = ", ".join(map(str, pd.unique(known)[:5]))
        more = ", ..." if known.nunique() > 5 else ""
        raise files.InputError(
            f"column {name!r} must hold calls ({labels}), but holds {shown}{more}; for "
            f"ratings say from which one on a case is positive: --reader "
            f"{name}=THRESHOLD"
        )
    return values


def _refuse_text(name: str, known: pd.Series) -> None:
    bad = known[pd.to_numeric(known, errors="coerce").isna()]
    if len(bad):
        raise files.InputError(
            f"column {name!r} must hold ratings in numbers; data row "
            f"{int(bad.index[0]) + 1} holds {bad.iloc[0]!r}"
        )


def _listing(labels: set[Any]) -> str:
    return " and ".join(sorted(map(str, labels)))


def check_assumptions(prevalences: Sequence[float], cost_ratio: float) -> None:
    """Refuse what cannot be assumed, before any work."""
    for prevalence in prevalences:
        check_prevalence(prevalence)
    check_cost_ratio(cost_ratio)


def points_table(frame: pd.DataFrame, **params: Any) -> DominanceTable:
    """Table of published points."""
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise files.InputError(f"several columns are named {twice[0]!r}")
    return DominanceTable.from_operating_points(frame, **params)
