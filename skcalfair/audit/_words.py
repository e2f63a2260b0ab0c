"""An audit in words, for a terminal."""

import textwrap
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from ..metrics._registry import METRICS


def summary(result: Any) -> str:
    """Tables and sentences of an `AuditResult`."""
    parts = [_groups(result), _values(result), _gaps(result), _sentences(result)]
    return "\n\n".join(part for part in parts if part)


def group_name(label: Any) -> str:
    """Readable name of a group; intersections are joined."""
    if isinstance(label, tuple):
        return " & ".join(str(part) for part in label)
    return str(label)


def _groups(result: Any) -> str:
    total = int(result.groups["n"].sum())
    positives = int(result.groups["positives"].sum())
    title = (
        f"{total:,} rows, {positives:,} positive ({positives / total:.1%}), by "
        f"{' and '.join(result.features)}"
    )
    header = ["group", "rows", "positive", "clusters", ""]
    rows = [
        [
            group_name(row.group),
            f"{row.n:,}",
            f"{row.positives:,} ({row.positives / row.n:.1%})",
            "" if row.clusters is pd.NA else f"{row.clusters:,}",
            f"not estimable: {row.reason}" if row.reason else "",
        ]
        for row in result.groups.itertuples()
    ]
    return title + "\n" + table([header, *rows], left={0, 4})


def _values(result: Any) -> str:
    matched = result.matched_size
    header = ["metric", "group", "all rows", ""]
    if matched:
        header[3:] = [f"{matched:,} rows", "95 % of subsamples", ""]
    rows: list[list[str]] = [header]
    for (metric, _), part in result.values.groupby(["metric", "group"], sort=False):
        by_sampling = part.set_index("sampling")
        naive = by_sampling.loc["naive"]
        row = [
            METRICS[metric].label,
            group_name(naive["group"]),
            number(naive["value"]),
        ]
        note = naive["reason"]
        if matched and "size_matched" in by_sampling.index:
            cut = by_sampling.loc["size_matched"]
            spread = np.isfinite(cut["low"])
            row += [
                number(cut["value"]),
                f"{number(cut['low'])} to {number(cut['high'])}" if spread else "",
            ]
            note = note or cut["reason"]
        elif matched:
            row += ["", ""]
        rows.append([*row, f"({note})" if note else ""])
    order = {METRICS[m].label: i for i, m in enumerate(result.gaps["metric"])}
    rows[1:] = sorted(rows[1:], key=lambda row: order[row[0]])
    return table(_blank_repeats(rows), left={0, 1, len(header) - 1})


def _blank_repeats(rows: list[list[str]]) -> list[list[str]]:
    """Name a metric once, on its first row."""
    out, last = [], None
    for row in rows:
        out.append(row if row[0] != last else ["", *row[1:]])
        last = row[0]
    return out


def _gaps(result: Any) -> str:
    """Table of the differences between the groups that are furthest apart."""
    size = f"{result.matched_size or 0:,} rows"
    rows = [["gap", "between", "all rows", size, "95 % of subsamples", "reading"]]
    for gap in result.gaps.itertuples():
        row = [METRICS[gap.metric].label, "", "", "", "", "not estimable"]
        if gap.lowest is not None:
            names = f"{group_name(gap.highest)} - {group_name(gap.lowest)}"
            row[1:3] = [names, number(gap.naive)]
            row[5] = ""
        if gap.reading != "not estimable":
            row[3:5] = [
                number(gap.size_matched),
                f"{number(gap.low)} to {number(gap.high)}",
            ]
            row[5] = READINGS[gap.reading]
        rows.append(row)
    return table(rows, left={0, 1, 5})


READINGS = {
    "size": "only sample size",
    "chance": "within chance",
    "remains": "not explained by size",
    "reverses": "reversed at equal size",
    "equal size": "sizes too close to tell",
    "not estimable": "not estimable",
}

SENTENCES = {
    "size": (
        "the gap is only sample size. These metrics change with the number of rows; "
        "with {size:,} rows in each group the difference is no more than chance."
    ),
    "chance": (
        "the gap is within what chance makes of {size:,} rows; that neither shows nor "
        "excludes a true difference."
    ),
    "remains": (
        "the gap is there with {size:,} rows in each group too, beyond what "
        "subsampling makes of it: sample size does not explain it."
    ),
    "reverses": (
        "with {size:,} rows in each group the difference has the other sign, beyond "
        "what subsampling makes of it: on all rows, sample size hides it."
    ),
    "equal size": (
        "the groups are so close in size that sample size hardly matters, and that "
        "subsamples cannot show how much is chance."
    ),
    "not estimable": "no comparison at matched sizes; the tables give the reasons.",
}


def _sentences(result: Any) -> str:
    """What the table of gaps says, one sentence a kind of reading."""
    lines = []
    for kind, sentence in SENTENCES.items():
        gaps = result.gaps[result.gaps["reading"] == kind]
        if len(gaps):
            labels = join([METRICS[name].label for name in gaps["metric"]])
            lines.append(f"- {labels}: {sentence.format(size=result.matched_size)}")
    if result.matched_size:
        lines.append(
            "  A range over subsamples shows how far groups of this size scatter; it "
            "is not a confidence interval, and no test was made."
        )
    return "\n".join(textwrap.fill(line, 88, subsequent_indent="  ") for line in lines)


def join(names: list[str]) -> str:
    """Names as in a sentence: a, b and c."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def number(value: float) -> str:
    """Three significant digits of a metric's value, or the word for NaN."""
    if not np.isfinite(value):
        return "inf" if np.isinf(value) else "not estimable"
    # Adding 0 turns -0.0000 into 0.0000.
    return f"{round(value, 4) + 0.0:.4f}" if abs(value) < 0.0995 else f"{value:.3f}"


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
