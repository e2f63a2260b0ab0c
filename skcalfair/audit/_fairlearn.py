"""Everything private of fairlearn that `GroupMetricFrame` leans on, in this one place.

Imported: the names below. Called: ``MetricFrame._get_annotated_metric_functions``,
``_process_features``, ``_populate_results`` and ``_extract_result``. Set, because the
inherited methods read them: ``_result_cache`` (with its ``*_ci`` entries),
``_sf_names``, ``_cf_names``, ``_ci_quantiles``, ``_n_boot`` and
``_user_supplied_callable``.
"""

from typing import Any

import numpy as np
import pandas as pd
from fairlearn.metrics._annotated_metric_function import AnnotatedMetricFunction
from fairlearn.metrics._bootstrap import BOOTSTRAP_QUANTILE_ERROR
from fairlearn.metrics._disaggregated_result import DisaggregatedResult
from fairlearn.metrics._group_feature import _FEATURE_HAS_MISSING_VALUES
from fairlearn.metrics._metric_frame import (
    _BOOTSTRAP_CI_INVALID,
    _BOOTSTRAP_N_BOOT_INT_GT_ZERO,
    _BOOTSTRAP_NEED_N_AND_CI,
    _COMPARE_METHODS,
    _DUPLICATE_FEATURE_NAME,
)
from fairlearn.utils._input_manipulations import _convert_to_ndarray_and_squeeze

COMPARE_METHODS = tuple(_COMPARE_METHODS)
DUPLICATE_FEATURE_NAME = _DUPLICATE_FEATURE_NAME
FEATURE_HAS_MISSING_VALUES = _FEATURE_HAS_MISSING_VALUES
NEED_N_AND_CI = _BOOTSTRAP_NEED_N_AND_CI
N_BOOT_INVALID = _BOOTSTRAP_N_BOOT_INT_GT_ZERO
CI_INVALID = _BOOTSTRAP_CI_INVALID
QUANTILE_ERROR = BOOTSTRAP_QUANTILE_ERROR

__all__ = [
    "CI_INVALID",
    "COMPARE_METHODS",
    "DUPLICATE_FEATURE_NAME",
    "FEATURE_HAS_MISSING_VALUES",
    "NEED_N_AND_CI",
    "N_BOOT_INVALID",
    "QUANTILE_ERROR",
    "AnnotatedMetricFunction",
    "DisaggregatedResult",
    "GroupResult",
    "as_squeezed_array",
]


def as_squeezed_array(values: Any) -> Any:
    """Array of labels or predictions as fairlearn takes them."""
    return _convert_to_ndarray_and_squeeze(values)


class GroupResult(DisaggregatedResult):
    """fairlearn's result, in which one estimable group is no comparison.

    `present` tells which rows of `by_group` belong to groups that have rows.
    """

    def __init__(self, overall: Any, by_group: pd.DataFrame, present: Any) -> None:
        super().__init__(overall, by_group)
        self._present = pd.Series(np.asarray(present), index=by_group.index)

    def difference(self, control_feature_names: Any = None, **options: Any) -> Any:
        """Largest difference; NaN where fewer than two groups can be estimated."""
        found = super().difference(control_feature_names, **options)
        return self._without_lone_groups(found, control_feature_names)

    def ratio(self, control_feature_names: Any = None, **options: Any) -> Any:
        """Smallest ratio; NaN where fewer than two groups can be estimated."""
        found = super().ratio(control_feature_names, **options)
        return self._without_lone_groups(found, control_feature_names)

    def _without_lone_groups(self, found: Any, controls: Any) -> Any:
        estimable, present = self.by_group.notna(), self._present
        if controls is None:
            lone = (estimable.sum() < 2) & (present.sum() >= 2)
        else:
            several = present.groupby(level=controls).sum() >= 2
            lone = (estimable.groupby(level=controls).sum() < 2).mul(several, axis=0)
            lone = lone.reindex_like(found)
        return found.mask(lone.to_numpy(dtype=bool)) if lone.to_numpy().any() else found
