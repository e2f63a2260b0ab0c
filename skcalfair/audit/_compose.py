"""From a metric frame to an audit: what is left of each gap at equal size."""

from typing import Any

import numpy as np
import pandas as pd

from ..metrics._registry import METRICS
from ._frame_matched import Part, total
from ._frame_metrics import FrameMetric
from ._frame_tables import FrameTables
from ._result import AuditResult
from ._tables import VALUE_COLUMNS, tidy

# A gap this small is none: it comes from the order of floating-point sums.
ROUNDING = 1e-12
ALPHA = 0.05


def compose(frame: Any, reference: Any = None) -> AuditResult:
    """Make the audit of a frame without control features."""
    if frame._cf_names:
        raise ValueError(
            "a summary compares groups as a whole; leave control_features out, or read "
            "gaps() and to_frame(), which keep their levels apart"
        )
    tables = frame._tables
    parts = [part for stratum in tables.strata for part in stratum]
    metrics = about_metrics(tables)
    robust = dict(zip(metrics["metric"], metrics["size_robust"], strict=True))
    values = frame.to_frame()
    size = tables.matcher.size_of(parts)
    if reference is None and len(parts) > 2:
        reference = "rest"
    gaps = frame.gaps(reference)
    gaps.insert(6, "explained_by_size", explained(gaps, robust))
    gaps["reading"] = [
        reading(gap, size_robust=robust[gap.metric]) for gap in gaps.itertuples()
    ]
    test, reason = _test(frame)
    return AuditResult(
        about_parts(frame),
        metrics,
        values[list(VALUE_COLUMNS)],
        gaps,
        test,
        list(frame._sf_names),
        None if size is None else total(size),
        tables.matcher.n_resamples,
        test_reason=reason,
    )


def about_metrics(tables: FrameTables) -> pd.DataFrame:
    """Name, label and size bias of every metric."""
    return tidy([_about(metric) for metric in tables.sample.metrics])


def about_parts(frame: Any) -> pd.DataFrame:
    """Counts of every group, and why it cannot be used."""
    tables = frame._tables
    groups = tidy([_group(tables, p) for stratum in tables.strata for p in stratum])
    # A single feature is the column of groups.
    features = tables.columns() if len(frame._sf_names) == 1 else []
    kept = [c for c in groups if c != "group" and c not in features]
    return groups[["group", *kept]]


def _group(tables: FrameTables, part: Part) -> dict[str, Any]:
    """Counts of a group, and why it cannot be used."""
    return tables.about(part) | {"reason": tables.matcher.problem(part)}


def _about(metric: FrameMetric) -> dict[str, Any]:
    """Name, label and size bias of a metric."""
    known = METRICS.get(metric.standard or "")
    named = known is not None and metric.name == known.name
    return {
        "metric": metric.name,
        "label": known.label if known is not None and named else metric.name,
        "size_robust": metric.size_robust,
        "built_in": metric.standard,
    }


def explained(gaps: pd.DataFrame, robust: dict[str, bool]) -> pd.Series:
    """What goes away at equal size; 0 for metrics whose size does not matter."""
    gone = gaps["naive"] - gaps["size_matched"]
    unbiased = gaps["metric"].map(robust).astype(bool) & gaps["naive"].notna()
    return gone.mask(unbiased, 0.0)


def remaining(gap: Any, *, size_robust: bool) -> float:
    """What is left of a gap when size is accounted for."""
    return float(gap.naive if size_robust else gap.size_matched)


def reading(gap: Any, *, size_robust: bool) -> str:
    """What a gap amounts to, in a word; see `AuditResult.gaps`."""
    left = remaining(gap, size_robust=size_robust)
    if np.isnan(gap.naive):
        return "not estimable"
    if np.isnan(left):
        return "not matched"
    if max(abs(gap.naive), abs(left)) <= ROUNDING:
        return "chance"
    mostly_size = not size_robust and abs(left) <= abs(gap.naive) / 2.0
    if np.isnan(gap.low) and np.isnan(gap.p_value):
        return "size, untested" if mostly_size else "untested"
    # One of several comparisons is judged by its adjusted p-value.
    p = gap.p_value if np.isnan(gap.p_adjusted) else gap.p_adjusted
    adjusted = not np.isnan(gap.p_adjusted) and gap.p_adjusted > gap.p_value
    by_p = np.isnan(gap.low) or adjusted
    if p > ALPHA if by_p else gap.low <= 0.0 <= gap.high:
        return "size" if mostly_size else "chance"
    return "remains" if left * gap.naive > 0.0 else "reverses"


def _test(frame: Any) -> tuple[Any, str | None]:
    """Test of equal calibration, or the reason why there is none."""
    try:
        result = frame.equal_calibration_test()
    except ValueError as error:
        return None, str(error)
    return result, None
