"""The result of an audit: tidy tables, and the same in words."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from . import _words


@dataclass(frozen=True)
class AuditResult:
    """Metrics by group, on all rows and at matched sizes.

    Attributes
    ----------
    groups : pandas.DataFrame
        One row a group: `group` (its label; for several features their values in one
        text, as in "female & over 60", and a column for each feature), `n`,
        `positives`, `clusters` and, where the group cannot be used, the `reason`.
    values : pandas.DataFrame
        One row per group, metric and sampling ("naive": all rows; "size_matched":
        subsamples of `matched_size` rows): `size` in rows, `value` (the mean over
        subsamples), `low` and `high` (their 2.5 and 97.5 % points), and the `reason`
        where the value is not estimable.
    gaps : pandas.DataFrame
        One row per metric and pair of groups: the pair `furthest` apart on "all rows"
        and that at "equal size", or the same at "both". The group that is `lowest` and
        the one that is `highest` on all rows; their difference there (`naive`) and at
        an equal `size` (`size_matched`), which is that of the smaller one of the two,
        or the one asked for; the range `low` to `high` that chance makes of it: that
        of 95 % of the subsamples, widened for the rows that they share. Whether the
        metric is `size_robust`, and the `reading` in a word: "size" (at least half of
        the gap goes away at equal size, and the range of the rest includes 0),
        "chance" (the range includes 0), "remains" (it does not), "reverses" (it does
        not, and the sign is the other one), "equal size" (the larger group has less
        than 1.25 times the matched size: its subsamples share too many rows to tell
        chance), "not matched" (for ``size_match=None``), or "not estimable".
    features : list of str
        Names of the sensitive features.
    matched_size : int or None
        Rows of the subsamples in `values`.
    n_resamples : int
        Subsamples of each larger group.
    n_left_out : int
        Rows that are in no group, because it is missing (``missing="drop"``) or
        because their weight is zero.

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
    n_left_out: int = 0

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
            "n_left_out": self.n_left_out,
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
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return None if value is pd.NA else str(value)
