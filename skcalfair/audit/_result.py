"""The result of an audit: tidy tables, and the same in words."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from . import _words


@dataclass(frozen=True)
class AuditResult:
    """Metrics by group, on all rows and at equal size, with intervals and tests.

    Attributes
    ----------
    groups : pandas.DataFrame
        One row a group: `group` (its label; for several features their values in one
        text, as in "female & over 60", and a column for each feature), `n`,
        `positives`, `clusters` and, where the group cannot be used, the `reason`.
    metrics : pandas.DataFrame
        One row a metric: its name, its `label` in the text, whether it is
        `size_robust` (its expectation hardly depends on the number of rows), and the
        name of the `built_in` metric that it is.
    values : pandas.DataFrame
        One row per group, metric and sampling ("naive": all rows; "size_matched":
        subsamples of `matched_size` rows): `size` in rows, `value` (for subsamples
        their mean), `low` and `high`, the `method` of that range (a 95 % confidence
        interval for all rows; for subsamples their 2.5 and 97.5 % points, which are
        none), and the `reason` where there is no value or no interval. The interval of
        ECE is that of its value in infinitely many rows.
    gaps : pandas.DataFrame
        One row per metric and comparison, `group` minus `reference`: on all rows
        (`naive`), at an equal `size` (`size_matched`, for metrics with a size bias
        only), the part `explained_by_size`,
        and the 95 % confidence interval `low` to `high` of what remains: of the gap at
        equal size for metrics with a size bias, of that on all rows for the others.
        `p_value` is that of no such gap; `p_adjusted` is Holm's over the comparisons of
        the first metric; those of other metrics are `exploratory`. The `reading` in a
        word: "size" (at least half of the gap goes away at equal size, and the interval
        of the rest includes 0), "chance" (the interval includes 0), "remains" (it does
        not), "reverses" (it does not, and the sign is the other one), "size, untested"
        and "untested" (no interval is known for the metric), "not matched" (for
        ``size_match=None``), or "not estimable".
    test : EqualCalibrationResult or None
        Test of whether the groups have one calibration curve.
    features : list of str
        Names of the sensitive features.
    matched_size : int or None
        Rows of the subsamples in `values`.
    n_resamples : int
        Subsamples of each larger group.
    n_left_out : int
        Rows that are in no group, because it is missing (``missing="drop"``) or
        because their weight is zero.
    test_reason : str or None
        Why there is no test.
    runs : pandas.DataFrame or None
        For scores of several runs: one row per run, group, metric and sampling, as in
        `SubgroupAuditor`. `values` then holds means over the runs with the range of
        95 % of them, and `gaps` mean gaps from the `reference`, by default the largest
        group, with the p-values of `run_tests` and no intervals.
    run_tests : pandas.DataFrame or None
        Tests over the runs, as in `SubgroupAuditor.compare`.

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
    metrics: pd.DataFrame
    values: pd.DataFrame
    gaps: pd.DataFrame
    test: Any
    features: list[str]
    matched_size: int | None
    n_resamples: int
    n_left_out: int = 0
    test_reason: str | None = None
    runs: pd.DataFrame | None = None
    run_tests: pd.DataFrame | None = None

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
            "metrics": _records(self.metrics),
            "values": _records(self.values),
            "gaps": _records(self.gaps),
            "test": None if self.test is None else self.test.to_dict(),
            "test_reason": self.test_reason,
            "runs": None if self.runs is None else _records(self.runs),
            "run_tests": None if self.run_tests is None else _records(self.run_tests),
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
