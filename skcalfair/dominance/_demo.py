"""The worked example of the study that proposed these tables, in both conventions."""

from typing import Any

import pandas as pd

from .._text import table
from ._dominance_table import DominanceTable
from ._table import column_mark
from ._words import percent, span

PREVALENCES = (0.177, 0.41)

POINTS = [
    ("Model A", "model", 0.93, 0.60),
    ("Specialist A", "reader", 0.89, 0.73),
    ("Specialist B", "reader", 0.83, 0.85),
    ("Specialist C", "reader", 0.75, 0.92),
    ("Model B", "model", 0.62, 0.95),
]

INTRODUCTION = """\
The worked example of the study that proposed dominance tables for humans and machines:
two models and three specialists who look for diabetic retinopathy. On the left as
published, on the right by the expected cost. A row: who decides at the least expected
cost, and for which cost-prevalence gradients, CPG = (negatives per positive) * (cost of
a false positive / cost of a false negative)."""

ERRATUM = """\
Erratum: the published cost ratios are CPG * (1 - prevalence) / prevalence, where the
expected cost gives CPG * prevalence / (1 - prevalence), so that at 17.7 % and equal
costs Model B decides at the least expected cost, not Model A. The published PPV and NPV
are one step ahead of the (sensitivity, specificity) beside them, and there is no row
where calling everybody, or nobody, is best."""

# Prevalence, cost ratio, and whom the study names there.
STUDY = ((0.177, 1.0, "Model A"), (0.41, 5.0, "Specialist C"))


def worked_example(convention: str = "expected_cost") -> DominanceTable:
    """Table of the published points."""
    frame = pd.DataFrame(POINTS, columns=["name", "kind", "sensitivity", "specificity"])
    return DominanceTable.from_operating_points(frame, convention=convention)


Row = dict[str, Any]
Table = dict[str, Row]


def demo() -> str:
    """Both conventions side by side, the erratum, and the decisions of the study."""
    published, consistent = _rows("as_published"), _rows("expected_cost")
    parts = [INTRODUCTION, _side_by_side(published, consistent)]
    for prevalence in PREVALENCES:
        title = f"At a prevalence of {percent(prevalence)}:"
        parts.append(f"{title}\n\n{_at(published, consistent, prevalence)}")
    decisions = "\n".join(_decision(*said) for said in STUDY)
    return "\n\n".join([*parts, ERRATUM, decisions])


def _rows(convention: str) -> Table:
    """Rows of the table by owner."""
    frame = worked_example(convention).table(PREVALENCES)
    return {row["owner"]: row for row in frame.to_dict("records")}


def _two(value: float) -> str:
    return "n/a" if value != value else f"{value:.2f}"


def _ends(row: Row, column: str, mark: str = "") -> str:
    return span(row, column, _two, mark).replace(" to ", "-")


def _rates(row: Row) -> str:
    """(sensitivity, specificity) at both ends, once where they are the same."""
    ends = [
        f"({row[f'sensitivity_{end}']:.2f}, {row[f'specificity_{end}']:.2f})"
        for end in ("from", "to")
    ]
    return "-".join(dict.fromkeys(ends))


def _side_by_side(published: Table, consistent: Table) -> str:
    """CPG and rates; the published table has no rows for the trivial strategies."""
    rates = "(sensitivity, specificity)"
    rows = [["best", "CPG", rates, "|", "CPG", rates]]
    for owner, row in consistent.items():
        printed = published.get(owner)
        left = [_ends(printed, "cpg"), _rates(printed)] if printed else ["", ""]
        rows.append([owner, *left, "|", _ends(row, "cpg"), _rates(row)])
    return _headed(rows)


def _at(published: Table, consistent: Table, prevalence: float) -> str:
    mark = column_mark(prevalence)
    columns = ("cost_ratio", "ppv", "npv")
    names = ["cost ratio", "PPV", "NPV"]
    rows = [["best", *names, "|", *names]]
    for owner, row in consistent.items():
        printed = published.get(owner)
        left = [_ends(printed, c, mark) for c in columns] if printed else [""] * 3
        rows.append([owner, *left, "|", *[_ends(row, c, mark) for c in columns]])
    return _headed(rows)


def _headed(rows: list[list[str]]) -> str:
    """A table whose two halves have a title."""
    lines = table(rows, left=range(len(rows[0]))).splitlines()
    bar = lines[0].index("|")
    start = len(lines[0]) - len(lines[0][len("best") :].lstrip())
    title = " " * start + "as published"
    return "\n".join([title.ljust(bar) + "|  expected cost", *lines])


def _decision(prevalence: float, cost_ratio: float, study: str) -> str:
    """Who decides best where the study named somebody."""
    found = worked_example().at(prevalence, cost_ratio)
    best = found.table.set_index("name")["expected_cost"]
    winner = found.winners[0]
    return (
        f"- At {percent(prevalence)} and a cost ratio of {cost_ratio:g}, CPG "
        f"{found.cpg:.2f}: {winner}. The study names {study}.\n"
        "  Expected cost per 1,000 people, in false negatives: "
        f"{best[winner]:.1f} and {best[study]:.1f}."
    )
