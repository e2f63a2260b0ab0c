"""The dominance table and the list of who is dominated, as frames."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from ._costs import cost_ratio_at, predictive_values
from ._pooled import TRIVIAL, PooledHull, Vertex

CONVENTIONS = ("expected_cost", "as_published")


@dataclass(frozen=True)
class Row:
    """One row: an owner's range of gradients, and the vertices at its two ends.

    `ends` are those of the (sensitivity, specificity) columns, `predictive` those of
    the PPV and NPV columns; they differ only in the published layout.
    """

    owners: tuple[str, ...]
    cpg: tuple[float, float]
    ends: tuple[Vertex, Vertex]
    predictive: tuple[Vertex, Vertex]
    n_points: int


def table_rows(hull: PooledHull, convention: str) -> list[Row]:
    """Rows from the low to the high gradients."""
    if convention == "as_published":
        return _published_rows(hull)
    return [
        Row(
            run[0].owners,
            (run[0].cpg_from, run[-1].cpg_to),
            (run[0], run[-1]),
            (run[0], run[-1]),
            len(run),
        )
        for run in hull.runs
    ]


def _published_rows(hull: PooledHull) -> list[Row]:
    """As printed: a range of rates runs from the previous vertex to the row's own.

    The trivial strategies have no row; their gradients fall to their neighbours. The
    predictive values are one vertex ahead of the rates beside them.
    """
    inner = [run for run in hull.runs if not set(run[0].owners) & set(TRIVIAL)]
    if not inner:
        return table_rows(hull, "expected_cost")
    first, last = hull.vertices[0], hull.vertices[-1]
    rows = []
    for i, run in enumerate(inner):
        is_first, is_last = i == 0, i == len(inner) - 1
        before = first if is_first else inner[i - 1][-1]
        after = last if is_last else inner[i + 1][0]
        low = 0.0 if is_first else run[0].cpg_from
        high = np.inf if is_last else run[-1].cpg_to
        rates = (before, last if is_last else run[-1])
        predictive = (first if is_first else run[0], after)
        rows.append(Row(run[0].owners, (low, high), rates, predictive, len(run)))
    return rows


def table_frame(
    hull: PooledHull, convention: str, prevalences: Sequence[float]
) -> pd.DataFrame:
    """The table, with further columns for each assumed prevalence."""
    rows = table_rows(hull, convention)
    frame = pd.DataFrame(
        {
            "cpg_from": [row.cpg[0] for row in rows],
            "cpg_to": [row.cpg[1] for row in rows],
            "owner": [_joined(row.owners) for row in rows],
            "owners": [row.owners for row in rows],
            "n_points": [row.n_points for row in rows],
        }
    )
    for end, side in enumerate(("from", "to")):
        vertices = [row.ends[end] for row in rows]
        frame[f"sensitivity_{side}"] = [v.tpr for v in vertices]
        frame[f"specificity_{side}"] = [1.0 - v.fpr for v in vertices]
        frame[f"threshold_{side}"] = [_threshold(hull, v) for v in vertices]
    for prevalence in prevalences:
        _add_prevalence(frame, rows, prevalence, convention)
    return frame


def hull_frame(hull: PooledHull) -> pd.DataFrame:
    """A row for each vertex, from low to high gradients."""
    vertices = hull.vertices
    return pd.DataFrame(
        {
            "cpg_from": [v.cpg_from for v in vertices],
            "cpg_to": [v.cpg_to for v in vertices],
            "owner": [_joined(v.owners) for v in vertices],
            "owners": [v.owners for v in vertices],
            "threshold": [_threshold(hull, v) for v in vertices],
            "sensitivity": [v.tpr for v in vertices],
            "specificity": [1.0 - v.fpr for v in vertices],
        }
    )


def _joined(owners: tuple[str, ...]) -> str:
    return " = ".join(owners)


def _threshold(hull: PooledHull, vertex: Vertex) -> float:
    """Score threshold of a model's vertex; NaN for calls and trivial strategies."""
    known = hull.points.threshold[list(vertex.points)]
    known = known[~np.isnan(known)]
    return float(known[0]) if len(known) else np.nan


def column_mark(prevalence: float) -> str:
    """End of the names of the columns for a prevalence, which no other shares."""
    return f"@{float(prevalence)!r}"


def _add_prevalence(
    frame: pd.DataFrame, rows: list[Row], prevalence: float, convention: str
) -> None:
    mark = column_mark(prevalence)
    for side in ("from", "to"):
        frame[f"cost_ratio_{side}{mark}"] = cost_ratio_at(
            frame[f"cpg_{side}"].to_numpy(), prevalence, convention
        )
    for end, side in enumerate(("from", "to")):
        vertices = [row.predictive[end] for row in rows]
        ppv, npv = predictive_values(
            [v.tpr for v in vertices], [1.0 - v.fpr for v in vertices], prevalence
        )
        if convention == "as_published":
            # Printed as the limit along the curve, where 0/0 is not defined.
            ppv = np.where([v.tpr == v.fpr == 0 for v in vertices], 1.0, ppv)
            npv = np.where([v.tpr == v.fpr == 1 for v in vertices], 1.0, npv)
        frame[f"ppv_{side}{mark}"], frame[f"npv_{side}{mark}"] = ppv, npv


DOMINATED_COLUMNS = [
    "name",
    "kind",
    "sensitivity",
    "specificity",
    "status",
    "by",
    "regret",
    "cpg",
]


def dominated_frame(
    hull: PooledHull, names: dict[str, str], cpg_range: tuple[float, float]
) -> pd.DataFrame:
    """A row for each name without a vertex: how far it is from the hull, and why."""
    regret, cpg = hull.regret(cpg_range)
    rows: list[dict[str, Any]] = []
    for name, kind in names.items():
        if name in hull.owners:
            continue
        own = np.flatnonzero(hull.points.name == name)
        if not len(own):
            # A model whose scores are constant has only the trivial strategies.
            rows.append({"name": name, "kind": kind, "status": "no point of its own"})
            continue
        i = int(own[regret[own].argmin()])
        status, by = _why(hull, i)
        rows.append(
            {
                "name": name,
                "kind": kind,
                "sensitivity": hull.points.sensitivity[i],
                "specificity": hull.points.specificity[i],
                "status": status,
                "by": by,
                "regret": regret[i],
                "cpg": cpg[i],
            }
        )
    frame = pd.DataFrame(rows, columns=DOMINATED_COLUMNS)
    frame["by"] = [by if isinstance(by, tuple) else () for by in frame["by"]]
    return frame


def _why(hull: PooledHull, position: int) -> tuple[str, tuple[str, ...]]:
    """Status of a point without a vertex, and the names responsible."""
    if hull.is_on[position]:
        status = "on an edge"
    else:
        over = hull.dominating_names(position)
        if over:
            return "pareto", over
        status = "hull"
    # The mixture above the point is of the two vertices around it.
    x = hull.points.fpr[position]
    right, left = next(
        (right, left) for right, left in pairwise(hull.vertices) if left.fpr <= x
    )
    return status, tuple(dict.fromkeys((*right.owners, *left.owners)))
