"""The tables of an audit: values by group, and the gaps between groups."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..metrics._registry import METRICS

Floats = NDArray[np.float64]
Pair = tuple[Any, Any]

VALUE_COLUMNS = (
    "group",
    "metric",
    "sampling",
    "size",
    "value",
    "low",
    "high",
    "reason",
)
# Subsamples that leave fewer rows out than this no longer tell what chance makes.
LEAST_RATIO = 1.25
GROUP_COLUMNS = ("group", "n", "positives", "clusters", "reason")
# Text or None: pandas must not turn None into NaN.
OBJECTS = ("reason", "lowest", "highest")


@dataclass(frozen=True)
class Cell:
    """A metric of a group on all rows (one draw) or on subsamples (many)."""

    draws: Floats
    reason: str | None = None

    @property
    def estimable(self) -> Floats:
        """The draws that are numbers."""
        return self.draws[np.isfinite(self.draws)]

    @property
    def value(self) -> float:
        """Mean over the draws."""
        return float(self.estimable.mean()) if self.estimable.size else np.nan

    @property
    def range(self) -> tuple[float, float]:
        """Range of 95 % of the draws, NaN for a single one."""
        if len(self.draws) < 2 or not self.estimable.size:
            return np.nan, np.nan
        low, high = np.quantile(self.estimable, [0.025, 0.975])
        return float(low), float(high)

    @property
    def note(self) -> str | None:
        """Why the value is missing, or is of a part of the subsamples."""
        n, estimable = len(self.draws), len(self.estimable)
        if not estimable:
            return self.reason or (
                "not estimable in any subsample" if n > 1 else "undefined"
            )
        if estimable < n:
            return f"estimable in {estimable:,} of {n:,} subsamples only"
        return None


@dataclass
class Evaluated:
    """What was estimated in a group of n rows, by the size of its subsamples.

    ``at[n]`` is of all rows. Nothing is estimated when there is a reason not to.
    """

    n: int
    reason: str | None = None
    at: dict[int, dict[str, Cell]] = field(default_factory=dict)

    def value(self, metric: str, size: int) -> float:
        """Mean over the subsamples of a size; NaN where there are none."""
        cells = self.at.get(size, {})
        return cells[metric].value if metric in cells else np.nan


# A gap this small is none: it comes from the order of floating-point sums.
ROUNDING = 1e-12


def tidy(records: list[dict[str, Any]]) -> pd.DataFrame:
    """Table of records in which None stays None."""
    return pd.DataFrame(
        {
            key: pd.Series(
                [record[key] for record in records],
                dtype=object if key in OBJECTS else None,
            )
            for key in records[0]
        }
    )


def group_names(labels: list[Any]) -> dict[Any, Any]:
    """Label of each group; for an intersection, its parts in one text."""
    joined = {label: _joined(label, str) for label in labels}
    if len(set(joined.values())) < len(labels):
        return {label: _joined(label, repr) for label in labels}
    return joined


def _joined(label: Any, as_text: Any) -> Any:
    if isinstance(label, tuple):
        return " & ".join(as_text(part) for part in label)
    return label


def feature_columns(features: list[str]) -> list[str]:
    """Columns that hold the parts of an intersection; none for a single feature."""
    if len(features) == 1:
        return []
    taken = {*VALUE_COLUMNS, *GROUP_COLUMNS}
    return [f"group_{name}" if name in taken else name for name in features]


def value_table(
    metrics: list[str],
    groups: dict[Any, Evaluated],
    shown: dict[Any, Any],
    size: int | None,
) -> pd.DataFrame:
    """One row per group, metric and sampling."""
    records = []
    for label, group in groups.items():
        nothing = Cell(np.array([np.nan]), group.reason)
        samplings = {"naive": group.n}
        if size is not None and group.at:
            samplings["size_matched"] = size
        for sampling, rows in samplings.items():
            for metric in metrics:
                cell = group.at[rows][metric] if group.at else nothing
                values = (cell.value, *cell.range, cell.note)
                row = (shown[label], metric, sampling, rows, *values)
                records.append(dict(zip(VALUE_COLUMNS, row, strict=True)))
    return tidy(records)


def furthest_apart(
    metric: str, groups: dict[Any, Evaluated], size: int | None
) -> dict[Pair, str]:
    """Pairs (lowest, highest) on all rows and at equal size, by where they are it."""
    naive = {k: g.value(metric, g.n) for k, g in groups.items()}
    matched = {k: g.value(metric, size) for k, g in groups.items() if size}
    first, second = _extremes(naive), _extremes(matched)
    if first is None:
        return {}
    if second is None:
        return {first: "all rows"}
    if set(first) == set(second):
        return {first: "both"}
    # Gaps are signed as they are on all rows.
    second = second if naive[second[0]] <= naive[second[1]] else second[::-1]
    return {first: "all rows", second: "equal size"}


def gap_table(
    pairs: dict[str, dict[Pair, str]],
    groups: dict[Any, Evaluated],
    shown: dict[Any, Any],
    sizes: dict[Pair, int],
) -> pd.DataFrame:
    """One row per metric and pair of groups, which are compared at the pair's size."""
    records = []
    for metric, its_pairs in pairs.items():
        for pair, furthest in its_pairs.items():
            names = {"lowest": shown[pair[0]], "highest": shown[pair[1]]}
            lowest, highest = (groups[label] for label in pair)
            gap = _gap(metric, lowest, highest, sizes.get(pair))
            records.append({"metric": metric} | names | {"furthest": furthest} | gap)
        if not its_pairs:
            empty = {"metric": metric, "lowest": None, "highest": None, "furthest": ""}
            records.append(empty | _no_gap(metric, "not estimable"))
    return tidy(records).astype({"size": "Int64"})


def _extremes(values: dict[Any, float]) -> Pair | None:
    finite = {k: v for k, v in values.items() if np.isfinite(v)}
    if len(finite) < 2:
        return None
    lowest = min(finite, key=finite.__getitem__)
    del finite[lowest]
    return lowest, max(finite, key=finite.__getitem__)


def _gap(
    metric: str, lowest: Evaluated, highest: Evaluated, size: int | None
) -> dict[str, Any]:
    """Difference of two groups, on all rows and at equal size."""
    record = _no_gap(metric, "not matched" if size is None else "not estimable")
    record["naive"] = highest.value(metric, highest.n) - lowest.value(metric, lowest.n)
    if size is None:
        return record
    record["size"] = size
    draws = Cell(highest.at[size][metric].draws - lowest.at[size][metric].draws)
    if not draws.estimable.size:
        return record
    matched = draws.value
    if max(lowest.n, highest.n) < LEAST_RATIO * size:
        return record | {"size_matched": matched, "reading": "equal size"}
    factor = widening(size / lowest.n, size / highest.n)
    low, high = (matched + factor * (end - matched) for end in draws.range)
    record |= {"size_matched": matched, "low": low, "high": high}
    robust = record["size_robust"]
    word = reading(record["naive"], matched, low, high, size_robust=robust)
    return record | {"reading": word}


def widening(share: float, other: float) -> float:
    """Factor from the scatter of subsamples to that of the gap between two groups.

    `share` and `other` are the parts of the groups' rows that a subsample holds. In
    units of the variance at the matched size, subsamples of the same rows have the
    variance 1 - share (they overlap), and what they have in common has `share`.
    """
    subsampling, sampling = 2.0 - share - other, share + other
    return max(1.0, float(np.sqrt(sampling / subsampling)))


def _no_gap(metric: str, why: str) -> dict[str, Any]:
    return {
        "naive": np.nan,
        "size": pd.NA,
        "size_matched": np.nan,
        "low": np.nan,
        "high": np.nan,
        "size_robust": METRICS[metric].size_robust,
        "reading": why,
    }


def reading(
    naive: float, matched: float, low: float, high: float, *, size_robust: bool
) -> str:
    """What a gap amounts to, in one word; see `AuditResult.gaps`."""
    if max(abs(naive), abs(matched)) <= ROUNDING:
        return "chance"
    if low > 0.0:
        return "remains"
    if high < 0.0:
        return "reverses"
    # What goes away at equal size was size; what stays but includes 0 may be chance.
    return "size" if matched <= naive / 2.0 and not size_robust else "chance"
