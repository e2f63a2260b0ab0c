"""An audit in words, for a terminal."""

import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._text import join, plural, shorten, table

# Lines wider than this make names of groups be cut, and numbered.
WIDTH = 100
FULL_NAME_WIDTH = 34
CUT_NAME_WIDTH = 14

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
    "size": "sample size",
    "chance": "chance",
    "remains": "gap remains",
    "reverses": "reverses",
    "size, untested": "mostly size",
    "untested": "untested",
    "not matched": "not matched",
    "not estimable": "no estimate",
}

SENTENCES = {
    "size": (
        "sample size explains the {gap}. {metrics} on the number of rows: with equally "
        "many rows most of {each} is gone, and the rest is within chance."
    ),
    "chance": (
        "no difference is shown. The {interval} of what remains {includes} 0, and "
        "{say} how large a difference the data allow."
    ),
    "remains": (
        "a difference remains that sample size and chance do not explain: the "
        "{interval} {excludes} 0."
    ),
    "reverses": (
        "at equal size the difference has the other sign, and the {interval} "
        "{excludes} 0: on all rows, sample size hides it."
    ),
    "size, untested": (
        "with equally many rows most of {each} is gone. The rest was not tested: "
        "{reason}."
    ),
    "untested": "not tested: {reason}.",
    "not matched": "groups were compared on all their rows only. {unequal}",
    "not estimable": "no comparison: {reason}.",
}
# The same for runs, whose gaps have p-values and no intervals.
OVER_RUNS = {
    "chance": "no difference is shown: over the runs, p is above .05.",
    "remains": (
        "a difference remains that sample size and chance do not explain: over the "
        "runs, p is at most .05."
    ),
    "reverses": (
        "at equal size the difference has the other sign, and over the runs p is at "
        "most .05: on all rows, sample size hides it."
    ),
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
        parts += [_gaps(result, names), _test(result), _sentences(result, names)]
    else:
        which = "only one group" if usable else "no group"
        parts.append(f"There is nothing to compare: {which} can be used.")
    return "\n\n".join(parts)


def _share(part: int, whole: int) -> str:
    return f"{part:,} ({part / whole:.1%})".replace("%", " %")


def _groups(result: Any, names: Names) -> str:
    total, positives = (result.groups[c].sum(skipna=False) for c in ("n", "positives"))
    # With more than two classes there are no positives.
    shares = "" if positives is pd.NA else f", {_share(positives, total)} positive"
    title = f"{plural(total, 'row')}{shares}, by {join(result.features)}"
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
                "" if row.positives is pd.NA else _share(row.positives, row.n),
                "" if row.clusters is pd.NA else f"{row.clusters:,}",
                f"not used: {row.reason}" if row.reason else "",
            ]
        )
    return title + "\n\n" + table(rows, left={0, 4})


def _labels(result: Any) -> dict[str, str]:
    """Label of each metric."""
    return dict(zip(result.metrics["metric"], result.metrics["label"], strict=True))


def _kinds(result: Any) -> dict[str, Any]:
    """Built-in metric that each metric is, under whatever name."""
    return dict(zip(result.metrics["metric"], result.metrics["built_in"], strict=True))


def _values(result: Any, names: Names) -> str:
    """Table of each metric in each group that can be used."""
    usable = result.groups.loc[result.groups["reason"].isna(), "group"]
    cells = {(v.metric, v.sampling, v.group): v for v in result.values.itertuples()}
    ranges = "95 % interval" if result.runs is None else "95 % of runs"
    header = ["metric", "group", "all rows", ranges]
    if result.matched_size:
        header += [plural(result.matched_size, "row"), "95 % of subsamples"]
    elif (result.values["sampling"] == "size_matched").any():
        header += ["equal size", ranges]
    rows, notes, kinds = [header], dict[str, int](), _kinds(result)
    for metric, label in _labels(result).items():
        for group in usable:
            naive = cells[metric, "naive", group]
            row = [label, names.cut[group], number(naive.value, kinds[metric])]
            row.append(spread(naive, kinds[metric]))
            label = ""
            matched = cells.get((metric, "size_matched", group))
            if matched is not None:
                kind = kinds[metric]
                row += [number(matched.value, kind), spread(matched, kind)]
            note = naive.reason or (matched.reason if matched is not None else None)
            if note:
                row.append(f"({notes.setdefault(note, len(notes) + 1)})")
            rows.append(row)
    footer = [f"({i}) {note}" for note, i in notes.items()]
    naive = result.values[result.values["sampling"] == "naive"]
    ece = naive["metric"].map(kinds) == "expected_calibration_error"
    if result.runs is None and naive.loc[ece, "low"].notna().any():
        footer.append("The interval of ECE is that of its value in endless data.")
    return "\n".join([table(rows, left={0, 1, len(header)}), *footer])


def _gaps(result: Any, names: Names) -> str:
    """Table of the differences between groups."""
    labels = _labels(result)
    between = [
        f"{names.brief[gap.group]} - {names.brief.get(gap.reference, 'rest')}"
        for gap in result.gaps.itertuples()
    ]
    one = len(set(between)) == 1
    # A single comparison names the table and needs no column.
    title = [between[0], ""] if one else ["gap", "between"]
    header = [*title, "all rows", "by size", "remains", "95 % interval", "p", "reading"]
    rows, last = [header], None
    robust = dict(
        zip(result.metrics["metric"], result.metrics["size_robust"], strict=True)
    )
    kinds = _kinds(result)
    for gap, pair in zip(result.gaps.itertuples(), between, strict=True):
        label = "" if gap.metric == last else labels[gap.metric]
        last, kind = gap.metric, kinds[gap.metric]
        left = gap.naive if robust[gap.metric] else gap.size_matched
        row = [label, "" if one else pair, number(gap.naive, kind)]
        biased = np.isfinite(gap.explained_by_size) and not robust[gap.metric]
        row.append(number(gap.explained_by_size, kind) if biased else "")
        row.append(number(left, kind) if np.isfinite(left) else "")
        p = gap.p_value if np.isnan(gap.p_adjusted) else gap.p_adjusted
        row += [spread(gap, kind), p_text(p), READINGS[gap.reading]]
        rows.append(row)
    return table(rows, left={0, 1, 7})


def p_text(p: float) -> str:
    """P-value with three decimals, empty where there is none."""
    if np.isnan(p):
        return ""
    return "<.001" if p < 0.001 else f"{p:.3f}".lstrip("0")


def _test(result: Any) -> str:
    """What the test of equal calibration says."""
    if result.test is None:
        why = f"Equal calibration was not tested: {result.test_reason}"
        return textwrap.fill(why, 88)
    lines = result.test.summary().splitlines()
    return "\n".join(textwrap.fill(x, 88, subsequent_indent="  ") for x in lines)


def _sentences(result: Any, names: Names) -> str:
    """What the table of gaps says, one sentence a kind of reading."""
    lines, labels = [], _labels(result)
    for kind, sentence in SENTENCES.items():
        gaps = result.gaps[result.gaps["reading"] == kind]
        if result.runs is not None:
            sentence = OVER_RUNS.get(kind, sentence)
        quoted = "{reason}" in sentence
        reasons = [_plain_reason(r) if quoted else "" for r in gaps["reason"]]
        for reason in dict.fromkeys(reasons):
            alike = gaps[[r == reason for r in reasons]]
            about = [
                _about(gap, labels, names, len(result.gaps) > len(labels))
                for gap in alike.itertuples()
            ]
            forms = _forms(result, alike, labels) | {"reason": reason}
            text = sentence.format(**forms)
            lines.append(f"- {join(list(dict.fromkeys(about)))}: {text}")
    few = _few_events(result, names)
    if few:
        have, them = ("has", "it") if len(few) == 1 else ("have", "them")
        lines.append(
            f"- {join(few)} {have} fewer than {EVENTS} rows of one class: little can "
            f"be said of {them}."
        )
    lines.append(_about_p_values(result, labels))
    if result.matched_size:
        lines.append(
            "- Subsamples show how far groups of this size scatter; their range is no "
            "confidence interval."
        )
    return "\n".join(textwrap.fill(line, 88, subsequent_indent="  ") for line in lines)


def _plain_reason(reason: Any) -> str:
    """Reason without the group it is about, which the sentence names."""
    if not isinstance(reason, str):
        return "" if reason is None else "no valid interval is known"
    return reason.rpartition(": ")[2]


def _about(gap: Any, labels: dict[str, str], names: Names, several: bool) -> str:
    """Metric of a gap, and the group where there are several comparisons."""
    label, group = labels[gap.metric], str(names.brief[gap.group])
    if not several:
        return label
    return f"{label} {group}" if group.startswith("[") else f"{label} ({group})"


def _about_p_values(result: Any, labels: dict[str, str]) -> str:
    """Which p-values may be read as tests."""
    first = labels[result.metrics["metric"].iloc[0]]
    n = len(result.gaps) // max(len(labels), 1)
    family = f", adjusted by Holm for its {n} comparisons" * (n > 1)
    return (
        f"- The p-value of {first} is the one to test by{family}. Those of the other "
        "metrics are exploratory: with many of them, some fall below .05 by chance."
    )


def _few_events(result: Any, names: Names) -> list[str]:
    """Names of the groups whose calibration rests on too few rows of a class."""
    return [
        names.full[row.group]
        for row in result.groups.itertuples()
        if not row.reason
        and row.positives is not pd.NA
        and min(row.positives, row.n - row.positives) < EVENTS
    ]


def _forms(result: Any, gaps: pd.DataFrame, labels: dict[str, str]) -> dict[str, str]:
    """Words of a sentence that depend on how many gaps it is about."""
    one = len(gaps) == 1
    about = result.metrics[result.metrics["metric"].isin(gaps["metric"])]
    biased = about.loc[~about["size_robust"].astype(bool), "label"].tolist()
    unequal = ""
    if biased:
        verb = "depends" if len(biased) == 1 else "depend"
        unequal = (
            f"{join(biased)} {verb} on the number of rows: where the groups differ in "
            "size, so would equally calibrated ones."
        )
    return {
        "gap": "gap" if one else "gaps",
        "each": "it" if one else "each",
        "metrics": "This metric depends" if len(about) == 1 else "These metrics depend",
        "interval": "95 % interval" if one else "95 % intervals",
        "includes": "includes" if one else "include",
        "excludes": "excludes" if one else "exclude",
        "say": "says" if one else "say",
        "unequal": unequal,
    }


def number(value: float, metric: str) -> str:
    """Value of a metric; a space stands for a decimal not shown, to align points."""
    if not np.isfinite(value):
        return "inf" if np.isinf(value) else "n/a"
    decimals = 4 if metric in FOUR_DECIMALS else 3
    # Adding 0 turns -0.000 into 0.000.
    text = f"{round(value, decimals) + 0.0:.{decimals}f}"
    return text if decimals == 4 else text + " "


def spread(cell: Any, metric: str) -> str:
    """Range over subsamples, empty where there is none."""
    if not np.isfinite(cell.low) or cell.low == cell.high:
        return ""
    ends = cell.low, cell.high
    low, high = (number(value, metric).strip() for value in ends)
    if (cell.low > 0.0 and not float(low)) or (cell.high < 0.0 and not float(high)):
        # A limit that is only just on its side of 0 must not be rounded to it.
        low, high = (f"{value:.{len(low.partition('.')[2]) + 1}f}" for value in ends)
    return f"{low} to {high}"
