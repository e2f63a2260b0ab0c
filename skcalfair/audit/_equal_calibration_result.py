"""The result of a test of equal calibration: numbers, tables, and words."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ._result import _plain, _records

GROUP_COLUMNS = ["group", "n", "positives", "clusters", "reason"]
COMPARISON_COLUMNS = [
    "group",
    "reference",
    "statistic",
    "df",
    "p_value",
    "p_adjusted",
    "method",
    "reason",
]
CORRECTION_NAMES = {"holm": "Holm", "fdr_bh": "Benjamini-Hochberg"}


@dataclass(frozen=True)
class EqualCalibrationResult:
    """Test of equal calibration of all groups, and of each comparison.

    Attributes
    ----------
    statistic : float
        Statistic of the global test; NaN where there is none.
    df : float
        Degrees of freedom; NaN for a test without.
    p_value : float
        P-value of the global test.
    method : str
        "score", "wald", "omnibus", "equal_amount" or "permutation".
    hypothesis : str
        What is tested, in words.
    reason : str or None
        Why the global test could not be made.
    groups : pandas.DataFrame
        One row a group: `group`, `n`, `positives`, `clusters` and, where the group is
        left out, the `reason`.
    comparisons : pandas.DataFrame
        One row a comparison: `group`, `reference` ("rest" or a group), `statistic`,
        `df`, `p_value`, `p_adjusted` (never below the global p-value), `method`, and
        the `reason` where it could not be made.
    n : int
        Rows used.
    n_clusters : int or None
        Clusters used.
    correction : str
        How the comparisons are adjusted.
    n_draws : int
        Draws of the global test; 0 where none were needed.

    Examples
    --------
    >>> from skcalfair.audit import equal_calibration_test
    >>> y, p = [0, 1, 1, 0, 1] * 20, [0.2, 0.7, 0.4, 0.5, 0.6] * 20
    >>> result = equal_calibration_test(
    ...     y, p, sensitive_features=["a"] * 50 + ["b"] * 50
    ... )
    >>> round(result.p_value, 3)
    1.0
    """

    statistic: float
    df: float
    p_value: float
    method: str
    hypothesis: str
    reason: str | None
    groups: pd.DataFrame
    comparisons: pd.DataFrame
    n: int
    n_clusters: int | None
    correction: str
    n_draws: int

    def summary(self) -> str:
        """
        Describe the test in words.

        Returns
        -------
        str
            A few lines for a terminal.
        """
        lines = [_head(self), f"Hypothesis: {self.hypothesis}.", _verdict(self)]
        lines += [_line(row, self) for row in self.comparisons.to_dict("records")]
        left_out = self.groups[self.groups["reason"].notna()]
        lines += [f"Left out: {g.group} ({g.reason})." for g in left_out.itertuples()]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """
        Give every number as plain Python objects, ready for JSON.

        Returns
        -------
        dict
            The attributes; tables are lists of records, and NaN is None.
        """
        plain = {
            name: _plain(getattr(self, name))
            for name in (
                "statistic",
                "df",
                "p_value",
                "method",
                "hypothesis",
                "reason",
                "n",
                "n_clusters",
                "correction",
                "n_draws",
            )
        }
        tables = {
            "groups": _records(self.groups),
            "comparisons": _records(self.comparisons),
        }
        return plain | tables


def _head(result: EqualCalibrationResult) -> str:
    used = int(result.groups["reason"].isna().sum())
    text = f"Equal calibration of {used} groups: {result.n:,} rows"
    if result.n_clusters is not None:
        text += f" in {result.n_clusters:,} clusters"
    return f'{text}, method "{result.method}".'


def _verdict(result: EqualCalibrationResult) -> str:
    if result.reason is not None:
        return f"Not tested: {result.reason}."
    p = _p(result.p_value)
    if result.p_value > 0.05:
        return (
            f"No difference is shown ({p}). That is not proof of equal calibration: "
            "small groups can hide large differences."
        )
    return (
        f"The groups are not equally calibrated ({p}): the same score does not mean "
        "the same risk for everyone."
        if result.method != "equal_amount"
        else f"The amounts of miscalibration differ ({p})."
    )


def _line(row: dict[str, Any], result: EqualCalibrationResult) -> str:
    what = f"  {row['group']} against {row['reference']}: "
    if row["reason"] is not None:
        return f"{what}not tested, {row['reason']}."
    if len(result.comparisons) == 1:
        return what + _p(row["p_value"]) + "."
    adjusted = f"{_p(row['p_adjusted'])} by {CORRECTION_NAMES[result.correction]}"
    return f"{what}{_p(row['p_value'])}; adjusted {adjusted}."


def _p(value: float) -> str:
    if np.isnan(value):
        return "p not known"
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"
