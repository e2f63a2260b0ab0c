"""A dominance table in words: paragraphs and small tables, for text and Markdown."""

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._text import join, plural, shorten, table
from ._costs import gradient as cost_gradient
from ._table import column_mark

# Columns of a terminal that is not wide.
WIDTH = 92
NAME_WIDTH = 30
# Fewer cases of a class say little of chance.
FEW = 20
# So many rows of a list are shown, then how many more there are.
MOST_ROWS = 12

SUPPORT_IS_NO_EVIDENCE = (
    "Bootstrap support is the share of {n} samples of the cases in which a name is "
    "best. It is no evidence: of two equal readers, one has more than 95 % in 8 % of "
    "studies."
)
PICKED = (
    "The best were picked on these cases, and do somewhat worse on others: the more "
    "so, the more readers and thresholds there were to pick from."
)
NO_COUNTS = (
    "Rates without counts: nothing can be said of chance. With TP, FN, FP and TN the "
    "change points would have intervals."
)
REGRET = (
    "Regret: the smallest extra expected cost over the best, over all CPG, as a share "
    "of that of being wrong in every case; in brackets the CPG of it."
)
LEGEND = (
    "Least expected cost, by the cost-prevalence gradient, CPG = (negatives per "
    "positive) * (cost of a false positive / cost of a false negative):"
)
PUBLISHED = (
    "Laid out as published: rates run from the row before, predictive values are one "
    "row ahead, and cost ratios are CPG * (1 - prevalence) / prevalence, which "
    "contradicts the expected cost. Decisions below go by the expected cost."
)


@dataclass(frozen=True)
class Rows:
    """A table under a title: its header, then its cells; `left` are flush left."""

    rows: list[list[str]]
    left: frozenset[int] = frozenset({0})
    title: str = ""


Block = str | Rows


def describe(
    dominance: Any,
    prevalences: Sequence[float] | None = None,
    cost_ratio: float | None = None,
) -> str:
    """Describe a fitted table, and who decides best at each assumed prevalence.

    By default the prevalence and the cost ratio are those of the table.
    """
    parts = []
    for block in blocks(dominance, prevalences, cost_ratio):
        if isinstance(block, Rows):
            title = f"{_wrap(block.title)}\n\n" if block.title else ""
            parts.append(title + table(block.rows, left=block.left))
        else:
            parts.append("\n".join(_wrap(line) for line in block.splitlines()))
    return "\n\n".join(parts)


def markdown(
    dominance: Any,
    prevalences: Sequence[float] | None = None,
    cost_ratio: float | None = None,
) -> str:
    """Describe it likewise, as Markdown."""
    parts = ["# Dominance table"]
    for block in blocks(dominance, prevalences, cost_ratio):
        if isinstance(block, Rows):
            parts += [_escaped(block.title)] if block.title else []
            parts.append(_pipes(block))
        else:
            parts.append("  \n".join(_escaped(line) for line in block.splitlines()))
    return "\n\n".join(parts) + "\n"


def blocks(
    dominance: Any,
    prevalences: Sequence[float] | None = None,
    cost_ratio: float | None = None,
) -> list[Block]:
    """What is said of a table, in order."""
    known = assumed_prevalences(dominance, prevalences)
    frame = dominance.table(known)
    found: list[Block] = [_title(dominance), _main(frame)]
    if dominance.convention == "as_published":
        found.append(PUBLISHED)
    for prevalence in known:
        found.append(_consequences(frame, prevalence))
        decision = dominance.at(prevalence, cost_ratio)
        found.append(decision.summary() + _support_at(dominance, decision.cpg))
    if not known:
        found.append(
            "No decision is named: published points do not say how common the "
            "condition is where the decision is used. Assume a prevalence."
        )
    found += _dominated(dominance.dominated_)
    found += _below_chance(dominance.operating_points_)
    found += _uncertainty(dominance)
    found += _pairing(dominance)
    return found


def assumed_prevalences(dominance: Any, given: Sequence[float] | None) -> list[float]:
    """Prevalences to decide at: those given, or else that of the table if known."""
    if given:
        return list(dict.fromkeys(given))
    own = getattr(dominance, "prevalence_", dominance.prevalence)
    return [] if own is None else [own]


# -- what was compared -----------------------------------------------------------------


def _title(dominance: Any) -> str:
    names: dict[str, list[str]] = {"model": [], "reader": []}
    for name, kind in dominance._kinds.items():
        names[kind].append(name)
    who = [
        f"{plural(len(group), kind)} ({_some(group)})"
        for kind, group in names.items()
        if group
    ]
    return f"{_size(dominance)}: {join(who)}."


def _size(dominance: Any) -> str:
    points = dominance.operating_points_
    if not hasattr(dominance, "prevalence_"):
        what = "with counts" if points.has_counts else "as rates"
        return f"{plural(len(points), 'operating point')} {what}"
    label = dominance.pos_label_
    named = "" if label in (1, True) else f" ({label!r})"
    return (
        f"{plural(dominance.n_cases_, 'case')}, "
        f"{percent(dominance.sample_prevalence_)} positive{named}"
    )


def _some(names: Sequence[str], most: int = 6) -> str:
    shown = [shorten(name, NAME_WIDTH) for name in names[:most]]
    more = len(names) - len(shown)
    return ", ".join([*shown, f"{more} more"] if more else shown)


def _below_chance(points: Any) -> list[Block]:
    """Say that all readers call the wrong way round, which is a matter of coding."""
    readers = points.kind == "reader"
    if not readers.any() or (points.sensitivity >= points.fpr)[readers].any():
        return []
    return [
        "Every reader does worse than chance: is the positive class the right one, and "
        "does a high rating mean positive?"
    ]


# -- the table -------------------------------------------------------------------------


def _main(frame: pd.DataFrame) -> Rows:
    rows = [["CPG", "best", "sensitivity", "specificity", "threshold"]]
    for row in frame.to_dict("records"):
        rows.append(
            [
                span(row, "cpg", gradient, always=True),
                owner_text(row["owners"]),
                span(row, "sensitivity", rate),
                span(row, "specificity", rate),
                span(row, "threshold", gradient),
            ]
        )
    return Rows(rows, frozenset({0, 1}), LEGEND)


def _consequences(frame: pd.DataFrame, prevalence: float) -> Rows:
    mark = column_mark(prevalence)
    rows = [["best", "cost ratio", "PPV", "NPV"]]
    for row in frame.to_dict("records"):
        rows.append(
            [
                owner_text(row["owners"]),
                span(row, "cost_ratio", gradient, mark, always=True),
                span(row, "ppv", rate, mark),
                span(row, "npv", rate, mark),
            ]
        )
    title = (
        f"At a prevalence of {percent(prevalence)}, by the cost ratio (cost of a false "
        "positive / cost of a false negative):"
    )
    return Rows(rows, frozenset({0, 1}), title)


def owner_text(owners: Sequence[str]) -> str:
    """Co-owners as "a = b", so many as fit."""
    names = [shorten(name, NAME_WIDTH) for name in owners]
    shown = names[:1]
    while len(shown) < len(names) and len(" = ".join(names[: len(shown) + 1])) <= 34:
        shown.append(names[len(shown)])
    more = len(names) - len(shown)
    return " = ".join(shown) + (f" = {more} more" if more else "")


def span(
    row: dict[str, Any],
    column: str,
    say: Callable[[float], str],
    mark: str = "",
    always: bool = False,
) -> str:
    """Both ends of a range of a row, or one where they are the same."""
    low, high = row[f"{column}_from{mark}"], row[f"{column}_to{mark}"]
    ends = say(low), say(high)
    if ends[0] == ends[1] and always and low != high:
        # A range must not look empty because its ends are rounded.
        ends = f"{low:.6g}", f"{high:.6g}"
    if ends[0] == ends[1] or "" in ends:
        return ends[0] or ends[1]
    return " to ".join(ends)


def rate(value: float) -> str:
    """Rate with three decimals; n/a for 0/0."""
    return "n/a" if np.isnan(value) else f"{value:.3f}"


def gradient(value: float) -> str:
    """Gradient or ratio with three digits; empty where there is none."""
    if np.isnan(value):
        return ""
    if np.isinf(value) or value == 0:
        return f"{value:g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def percent(value: float) -> str:
    """Share in percent, with three digits."""
    return f"{100 * value:.3g} %"


# -- who is dominated ------------------------------------------------------------------


def _dominated(frame: pd.DataFrame) -> list[Block]:
    if frame.empty:
        return ["Everybody is best at some CPG: nobody is dominated."]
    rows = [["best nowhere", "sensitivity", "specificity", "because of", "regret"]]
    ordered = frame.sort_values("regret", kind="stable", na_position="last")
    for row in ordered.head(MOST_ROWS).to_dict("records"):
        rates = [
            "" if np.isnan(row[c]) else rate(row[c])
            for c in ("sensitivity", "specificity")
        ]
        regret = ""
        if not np.isnan(row["regret"]):
            regret = f"{row['regret']:.4f} ({gradient(row['cpg'])})"
        rows.append([shorten(row["name"], NAME_WIDTH), *rates, _why(row), regret])
    more = len(frame) - MOST_ROWS
    note = f"And {more} more, with a greater regret. " if more > 0 else ""
    return [Rows(rows, frozenset({0, 3, 4})), note + REGRET]


def _why(row: dict[str, Any]) -> str:
    by = [shorten(name, 18) for name in row["by"]]
    names = [*by[:2], f"{len(by) - 2} more"] if len(by) > 2 else by
    if row["status"] == "pareto":
        return join(names)
    if row["status"] == "hull":
        return f"a mixture of {join(names)}"
    if row["status"] == "on an edge":
        return f"a tie with {join(names)}"
    return "a constant score"


# -- uncertainty -----------------------------------------------------------------------


def _uncertainty(dominance: Any) -> list[Block]:
    if not dominance.operating_points_.has_counts:
        return [NO_COUNTS]
    found = [*_breakpoints(getattr(dominance, "breakpoints_", None))]
    support = getattr(dominance, "support_", None)
    if support is not None:
        found += [_support(support)]
        found += [SUPPORT_IS_NO_EVIDENCE.format(n=f"{dominance.n_bootstrap:,}")]
    if hasattr(dominance, "prevalence_"):
        found += [*_few_cases(dominance), PICKED, *_cross_fitted(dominance)]
    return found


def _few_cases(dominance: Any) -> list[Block]:
    points = dominance.operating_points_
    if not len(points):
        return []
    for label, counts in (
        ("positive", points.positives),
        ("negative", points.negatives),
    ):
        n = counts.min() * points.unit
        if n < FEW:
            return [
                f"With {plural(round(n), f'{label} case')}, sets, ranges and shares "
                "are rough at best."
            ]
    return []


def _breakpoints(frame: pd.DataFrame | None) -> list[Block]:
    if frame is None or frame.empty:
        return []
    rows = [["from", "to", "at CPG", "95 % Fieller set", "95 % of samples"]]
    for row in frame.to_dict("records"):
        ends = [
            gradient(row.get(f"percentile_{end}", np.nan)) for end in ("low", "high")
        ]
        rows.append(
            [
                shorten(str(row["from_owner"]), NAME_WIDTH),
                shorten(str(row["to_owner"]), NAME_WIDTH),
                gradient(row["cpg"]),
                str(row["fieller"]) if isinstance(row["fieller"], str) else "",
                " to ".join(ends) if all(ends) else "",
            ]
        )
    title = "Where the best changes, the two points taken as given:"
    return [Rows(rows, frozenset({0, 1, 3, 4}), title)]


def _support(frame: pd.DataFrame) -> Rows:
    ordered = frame.sort_values("on_hull", ascending=False, kind="stable")
    rows = [["name", "best at some CPG"]]
    for row in ordered.head(MOST_ROWS).to_dict("records"):
        share = row["on_hull"]
        rows.append(
            [
                shorten(str(row["name"]), NAME_WIDTH),
                "" if np.isnan(share) else f"{100 * share:.1f} %",
            ]
        )
    return Rows(rows, frozenset({0}), "Bootstrap support:")


def _support_at(dominance: Any, cpg: float) -> str:
    """Support at the gradient of a decision."""
    if not hasattr(dominance, "support_"):
        return ""
    here = dominance.dominance_support(cpg)
    here = here.sort_values("support", ascending=False, kind="stable")
    named = [
        f"{shorten(str(row['name']), NAME_WIDTH)} {100 * row['support']:.0f} %"
        for row in here.head(4).to_dict("records")
        if row["support"] > 0
    ]
    return f"\nBootstrap support here: {', '.join(named)}." if named else ""


def _cross_fitted(dominance: Any) -> list[Block]:
    """What the best choice costs on other cases, at the table's own gradient."""
    frame = getattr(dominance, "cross_fit_", None)
    if frame is None:
        return []
    if frame["cross_fitted"].isna().all():
        return ["Too few cases of a class to judge the choice on others."]
    cpg = cost_gradient(dominance.prevalence_, dominance.cost_ratio)
    row = frame.iloc[(np.log(frame["cpg"]) - np.log(cpg)).abs().argmin()]
    parts = [
        f"{label} {row[f'{prefix}cross_fitted']:.3f} instead of "
        f"{row[f'{prefix}in_sample']:.3f}"
        for prefix, label in (("", "all"), ("model_", "models"), ("reader_", "readers"))
        if not np.isnan(row[f"{prefix}cross_fitted"])
    ]
    return [
        "Chosen on half of the cases and judged on the other half, the best of "
        f"{', of '.join(parts)} (normalised expected cost at "
        f"CPG {gradient(row['cpg'])})."
    ]


# -- cases not read --------------------------------------------------------------------


def _pairing(dominance: Any) -> list[Block]:
    frame = getattr(dominance, "pairing_", None)
    if frame is None:
        return []
    left_out = frame[frame["n_unread"] > 0]
    if left_out.empty:
        return []
    n = int(frame["n_read"].iloc[0] + frame["n_unread"].iloc[0])
    if len(left_out) <= MOST_ROWS // 2:
        who = [
            f"{shorten(row['reader'], NAME_WIDTH)} read {row['n_read']:,} "
            f"({row['positives_read']:,} of them positive)"
            for row in left_out.to_dict("records")
        ]
        text = f"Of {n:,} cases, {join(who)}."
    else:
        read, positive = left_out["n_read"], left_out["positives_read"]
        text = (
            f"{len(left_out)} of {plural(len(frame), 'reader')} left cases out: they "
            f"read {read.min():,} to {read.max():,} of {n:,} cases, {positive.min():,} "
            f"to {positive.max():,} of them positive."
        )
    return [
        f"{text} Points then rest on different cases: a reader of easier cases looks "
        "better."
    ]


# -- layout ----------------------------------------------------------------------------


def _wrap(line: str) -> str:
    return textwrap.fill(line, WIDTH, break_long_words=False, break_on_hyphens=False)


def _escaped(text: str) -> str:
    """Text in which no name or product is taken for markup."""
    for mark in "\\*_`|<>#":
        text = text.replace(mark, "\\" + mark)
    return text


def _pipes(block: Rows) -> str:
    """A Markdown table without the columns that are empty."""
    header, *cells = block.rows
    kept = [j for j in range(len(header)) if any(row[j] for row in cells)]
    lines = [[_escaped(row[j]) for j in kept] for row in block.rows]
    lines.insert(1, [":---" if j in block.left else "---:" for j in kept])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
