"""The result of an audit: tidy tables, and the same in words."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..metrics._registry import METRICS
from . import _words


@dataclass(frozen=True)
class AuditResult:
    """Metrics by group, on all rows and at matched sizes.

    Attributes
    ----------
    groups : pandas.DataFrame
        One row a group: `group`, `n`, `positives`, `clusters` and, where the group
        cannot be used, the `reason`.
    values : pandas.DataFrame
        One row per group, metric and sampling ("naive": all rows; "size_matched":
        subsamples as large as the smallest group): `size` in rows, `value` (the mean
        over subsamples), `low` and `high` (their 2.5 and 97.5 % points), and the
        `reason` where the value is not estimable.
    gaps : pandas.DataFrame
        One row a metric: the `lowest` and `highest` group on all rows, their
        difference there (`naive`) and at matched sizes (`size_matched`, with the range
        `low` to `high` over subsamples), whether the metric is `size_robust`, and the
        `reading` in a word: "size" (at least half of the gap goes away at equal size,
        and the rest is within the range of subsamples), "chance" (within that range),
        "remains" (beyond it), "reverses" (beyond it with the other sign), "equal size"
        (the larger group has less than twice the matched size, so that its subsamples
        scatter too little to judge by), or "not estimable".
    features : list of str
        Names of the sensitive features.
    matched_size : int or None
        Rows of each group at matched sizes.
    n_resamples : int
        Subsamples of each larger group.

    Examples
    --------
    >>> from skcalfair.audit import audit_scores
    >>> result = audit_scores(
    ...     [0, 1] * 20, [0.2, 0.7] * 20, sensitive_features=["a"] * 25 + ["b"] * 15
    ... )
    >>> result.matched_size
    15
    """

    groups: pd.DataFrame
    values: pd.DataFrame
    gaps: pd.DataFrame
    features: list[str]
    matched_size: int | None
    n_resamples: int

    def summary(self) -> str:
        """
        Describe the audit in words and tables.

        Returns
        -------
        str
            Text for a terminal.
        """
        return _words.summary(self)

    def to_dict(self) -> dict[str, Any]:
        """
        Give every number as plain Python objects, ready for JSON.

        Returns
        -------
        dict
            The attributes; tables are lists of records, and NaN is None.
        """
        return {
            "features": self.features,
            "matched_size": self.matched_size,
            "n_resamples": self.n_resamples,
            "groups": _records(self.groups),
            "values": _records(self.values),
            "gaps": _records(self.gaps),
        }


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {str(key): _plain(value) for key, value in record.items()}
        for record in frame.to_dict("records")
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return None if value is pd.NA else str(value)


def reading(
    naive: float, matched: float, low: float, high: float, *, size_robust: bool
) -> str:
    """What a gap amounts to, in one word; see `AuditResult.gaps`."""
    if low > 0.0:
        return "remains"
    if high < 0.0:
        return "reverses"
    # What goes away at equal size was size; what stays but includes 0 may be chance.
    return "size" if matched <= naive / 2.0 and not size_robust else "chance"


def is_size_robust(metric: str) -> bool:
    """Whether groups of unequal size may be compared by a metric as they are."""
    return METRICS[metric].size_robust
