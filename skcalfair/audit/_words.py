"""An audit in words, for a terminal."""

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..metrics._registry import METRICS

# Lines wider than this make names of groups be cut, and numbered.
WIDTH = 100
FULL_NAME_WIDTH = 34
CUT_NAME_WIDTH = 22

# With fewer rows of a class there is no honest interval of a calibration error.
EVENTS = 20

# These metrics are differences or squares; their values are small.
FOUR_DECIMALS = {
    "squared_calibration_error",
    "kernel_calibration_error",
    "calibration_loss_log_loss",
    "calibration_loss_brier",
}

READINGS = {
    "size": "explained by size",
    "chance": "within chance",
    "remains": "more than size",
    "reverses": "reverses",
    "equal size": "sizes too close",
    "not matched": "",
    "not estimable": "not estimable",
}

SENTENCES = {
    "size": (
        "sample size alone explains the {gap}. {metrics} on the number of rows: with "
        "{size} in each group most of {it} is gone, and the rest is within chance."
    ),
    "chance": (
        "the {gap} {is} within what chance makes of {size}; that neither shows nor "
        "excludes a true difference."
    ),
    "remains": (
        "the {gap} {is} there with {size} in each group too, and the range of chance "
        "excludes 0: sample size does not explain {it}, but scores that are spread "
        "differently can."
    ),
    "reverses": (
        "with {size} in each group the difference has the other sign, and the range of "
        "chance excludes 0: on all rows, sample size hides it."
    ),
    "equal size": (
        "the groups are so close in size that sample size hardly matters, and that "
        "subsamples cannot show how much is chance."
    ),
    "not matched": "groups were compared on all their rows only. {unequal}",
    "not estimable": "no comparison at equal size; the tables say why.",
}


@dataclass(frozen=True)
class Names:
    """Names of the groups: as they are, for a table, and for a table of pairs."""

    full: dict[Any, str]
    cut: dict[Any, str]
    brief: dict[Any, str]


def summary(result: Any) -> str:
    """Tables and sentences of an `AuditResult`."""
    names = {label: str(label) for label in result.groups["group"]}
    text = _compose(result, Names(names, names, names))
    if max(map(len, text.splitlines())) <= WIDTH:
        return text
    brief = {label: f"[{i}]" for i, label in enumerate(names, 1)}
    numbered = {label: f"{brief[label]} {name}" for label, name in names.items()}
    return _compose(
        result,
        Names(
            {label: shorten(name, FULL_NAME_WIDTH) for label, name in numbered.items()},
            {label: shorten(name, CUT_NAME_WIDTH) for label, name in numbered.items()},
            brief,
        ),
    )


def _compose(result: Any, names: Names) -> str:
    usable = int(result.groups["reason"].isna().sum())
    parts = [_groups(result, names)]
    if usable:
        parts.append(_values(result, names))
    if usable > 1:
        parts += [_gaps(result, names), _sentences(result, names)]
    else:
        which = "only one group" if usable else "no group"
        parts.append(f"There is nothing to compare: {which} can be used.")
    return "\n\n".join(parts)


def shorten(text: str, width: int) -> str:
    """Text cut to a width, with dots in place of what is missing."""
    return text if len(text) <= width else text[: width - 3].rstrip() + "..."


def plural(n: int, noun: str) -> str:
    """Number and noun: 1 row, 1,494 rows."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def join(names: list[str]) -> str:
    """Names as in a sentence: a, b and c."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _share(part: int, whole: int) -> str:
    return f"{part:,} ({part / whole:.1%})".replace("%", " %")


def _groups(result: Any, names: Names) -> str:
    total, positives = (int(result.groups[c].sum()) for c in ("n", "positives"))
    title = (
        f"{plural(total, 'row')}, {_share(positives, total)} positive, by "
        f"{join(result.features)}"
    )
    if result.n_left_out:
        verb = "was" if result.n_left_out == 1 else "were"
        title += (
            f"\n{plural(result.n_left_out, 'row')} without a group or of weight zero "
            f"{verb} left out"
        )
    rows = [["group", "rows", "positive", "clusters", ""]]
    for row in result.groups.itertuples():
        rows.append(
            [
                names.full[row.group],
                f"{row.n:,}",
                _share(row.positives, row.n),
                "" if row.clusters is pd.NA else f"{row.clusters:,}",
                f"not used: {row.reason}" if row.reason else "",
            ]
        )
    return title + "\n\n" + table(rows, left={0, 4})


def _values(result: Any, names: Names) -> str:
    """Table of each metric in each group that can be used."""
    usable = result.groups.loc[result.groups["reason"].isna(), "group"]
    cells = {(v.metric, v.sampling, v.group): v for v in result.values.itertuples()}
    header = ["metric", "group", "all rows"]
    if result.matched_size:
        header += [plural(result.matched_size, "row"), "95 % of subsamples"]
    rows, notes = [header], dict[str, int]()
    for metric in result.gaps["metric"].unique():
        label = METRICS[metric].label
        for group in usable:
            found = [
                cells[metric, sampling, group]
                for sampling in ("naive", "size_matched")
                if (metric, sampling, group) in cells
            ]
            row = [label, names.cut[group], *(number(c.value, metric) for c in found)]
            label = ""
            if len(found) == 2:
                row.append(spread(found[1], metric))
            note = next((c.reason for c in found if c.reason), None)
            if note:
                row.append(f"({notes.setdefault(note, len(notes) + 1)})")
            rows.append(row)
    footer = [f"({i}) {note}" for note, i in notes.items()]
    return "\n".join([table(rows, left={0, 1, len(header)}), *footer])


def _gaps(result: Any, names: Names) -> str:
    """Table of the differences between the groups that are furthest apart."""
    sizes = result.gaps["size"].dropna().unique()
    header = ["gap", "between", "all rows"]
    if result.matched_size:
        equal = plural(sizes[0], "row") if len(sizes) == 1 else "equal size"
        header += [equal, "range of chance", "rows", "reading"]
    rows, last = [header], None
    for gap in result.gaps.itertuples():
        row = ["" if gap.metric == last else METRICS[gap.metric].label, "", ""]
        last = gap.metric
        if gap.lowest is not None:
            row[1] = f"{names.brief[gap.highest]} - {names.brief[gap.lowest]}"
            row[2] = number(gap.naive, gap.metric)
        if result.matched_size:
            matched = np.isfinite(gap.size_matched)
            row += [
                number(gap.size_matched, gap.metric) if matched else "",
                spread(gap, gap.metric),
                f"{gap.size:,}" if matched and len(sizes) > 1 else "",
                READINGS[gap.reading],
            ]
        rows.append(row)
    return table(rows, left={0, 1, 6})


def _sentences(result: Any, names: Names) -> str:
    """What the table of gaps says, one sentence a kind of reading."""
    lines = []
    for kind, sentence in SENTENCES.items():
        gaps = result.gaps[result.gaps["reading"] == kind]
        if len(gaps):
            labels = list(dict.fromkeys(METRICS[m].label for m in gaps["metric"]))
            text = sentence.format(**_forms(result, gaps))
            lines.append(f"- {join(labels)}: {text}")
    few = _few_events(result, names)
    if few:
        have, them = ("has", "it") if len(few) == 1 else ("have", "them")
        lines.append(
            f"- {join(few)} {have} fewer than {EVENTS} rows of one class: little can "
            f"be said of {them}."
        )
    if result.matched_size:
        lines.append(
            "- The ranges come from subsamples and show how far groups of this size "
            "scatter. They are not confidence intervals, and no test was made."
        )
    return "\n".join(textwrap.fill(line, 88, subsequent_indent="  ") for line in lines)


def _few_events(result: Any, names: Names) -> list[str]:
    """Names of the groups whose calibration rests on too few rows of a class."""
    return [
        names.full[row.group]
        for row in result.groups.itertuples()
        if not row.reason and min(row.positives, row.n - row.positives) < EVENTS
    ]


def _forms(result: Any, gaps: pd.DataFrame) -> dict[str, str]:
    """Words of a sentence that depend on how many metrics it is about."""
    one = len(gaps) == 1
    biased = list(
        dict.fromkeys(
            METRICS[m].label for m in gaps.loc[~gaps["size_robust"], "metric"]
        )
    )
    unequal = ""
    if biased:
        verb = "depends" if len(biased) == 1 else "depend"
        unequal = (
            f"{join(biased)} {verb} on the number of rows: where the groups differ in "
            "size, so would equally calibrated ones."
        )
    sizes = gaps["size"].dropna().unique()
    return {
        "gap": "gap" if one else "gaps",
        "is": "is" if one else "are",
        "it": "it" if one else "them",
        "metrics": "This metric depends" if one else "These metrics depend",
        "size": plural(sizes[0], "row") if len(sizes) == 1 else "equally many rows",
        "unequal": unequal,
    }


def number(value: float, metric: str) -> str:
    """Value of a metric; a space stands for a decimal not shown, to align points."""
    if not np.isfinite(value):
        return "inf" if np.isinf(value) else "not estimable"
    decimals = 4 if metric in FOUR_DECIMALS else 3
    # Adding 0 turns -0.000 into 0.000.
    text = f"{round(value, decimals) + 0.0:.{decimals}f}"
    return text if decimals == 4 else text + " "


def spread(cell: Any, metric: str) -> str:
    """Range over subsamples, empty where there is none."""
    if not np.isfinite(cell.low) or cell.low == cell.high:
        return ""
    low, high = (number(value, metric).strip() for value in (cell.low, cell.high))
    return f"{low} to {high}"


def table(rows: list[list[str]], left: Iterable[int] = ()) -> str:
    """Aligned columns under one header row; columns without content are left out."""
    left = set(left)
    width = max(len(row) for row in rows)
    padded = [[*row, *[""] * (width - len(row))] for row in rows]
    kept = [j for j in range(width) if any(row[j] for row in padded[1:])]
    sizes = {j: max(len(row[j]) for row in padded) for j in kept}
    lines = []
    for row in padded:
        cells = [
            row[j].ljust(sizes[j]) if j in left else row[j].rjust(sizes[j])
            for j in kept
        ]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "-" * max(len(line) for line in lines))
    return "\n".join(lines)
