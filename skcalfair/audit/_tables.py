"""What audits share: cells, names, tables of groups, and sizes to match."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._validation import ScoredRows

Floats = NDArray[np.float64]

VALUE_COLUMNS = (
    "group",
    "metric",
    "sampling",
    "size",
    "value",
    "low",
    "high",
    "method",
    "reason",
)
GROUP_COLUMNS = ("group", "n", "positives", "clusters", "reason")
# A feature of one of these names gets a column of another name.
TAKEN = {
    *VALUE_COLUMNS,
    *GROUP_COLUMNS,
    "reference",
    "fraction",
    "naive",
    "size_matched",
    "p_value",
    "p_adjusted",
    "exploratory",
}
# Text or None: pandas must not turn None into NaN.
OBJECTS = ("reason", "method", "built_in")


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


def feature_column(name: str) -> str:
    """Column that holds a feature."""
    return f"feature_{name}" if name in TAKEN else name


def group_table(
    parts: dict[Any, ScoredRows],
    reasons: dict[Any, str | None],
    features: list[str],
) -> pd.DataFrame:
    """Counts of every group, and why it cannot be used."""
    shown, records = group_names(list(parts)), []
    # A single feature is the column of groups.
    columns = [feature_column(name) for name in features] if len(features) > 1 else []
    for label, part in parts.items():
        levels = label if columns else ()
        clusters = pd.NA if part.clusters is None else len(np.unique(part.clusters))
        records.append(
            {"group": shown[label]}
            | dict(zip(columns, levels, strict=True))
            | {
                "n": len(part),
                "positives": int(part.y.sum()),
                "clusters": clusters,
                "reason": reasons[label],
            }
        )
    return tidy(records).astype({"clusters": "Int64"})


# -- sizes ----------------------------------------------------------------------------


def unusable(
    n_rows: int, clusters: NDArray[np.intp] | None, min_group_size: int
) -> str | None:
    """Reason why nothing is estimated in a group, or None."""
    if n_rows < min_group_size:
        return f"fewer than {min_group_size} rows"
    if clusters is not None and len(np.unique(clusters)) < 2:
        return "one cluster only"
    return None


def matched_size(size_match: str | int | None, usable: list[int]) -> int | None:
    """Rows at which groups are compared, from the sizes of those that can be used."""
    if size_match is None:
        return None
    if not isinstance(size_match, str):
        return int(size_match)
    return min(usable) if len(usable) > 1 else None


def quiet(progress: bool | None) -> bool | None:
    """What tqdm takes as `disable`; None lets it find out if it has a terminal."""
    return None if progress is None else not progress
