"""What the tables of audits share: cells, names of groups and columns."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

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


def feature_columns(features: list[str]) -> list[str]:
    """Columns that hold the parts of an intersection; none for a single feature."""
    if len(features) == 1:
        return []
    taken = {*VALUE_COLUMNS, *GROUP_COLUMNS}
    return [f"feature_{name}" if name in taken else name for name in features]
