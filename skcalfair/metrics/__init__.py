"""Calibration and discrimination metrics, and scorers for model selection."""

from ._calibration_error import (
    adaptive_calibration_error,
    expected_calibration_error,
    kernel_calibration_error,
    maximum_calibration_error,
    squared_calibration_error,
)
from ._calibration_loss import (
    CalibrationDecomposition,
    calibration_decomposition,
    calibration_loss,
)
from ._calibration_slope import (
    CalibrationSlopeIntercept,
    calibration_slope_intercept,
)
from ._corp import CorpDecomposition, corp_decomposition
from ._discrimination import (
    balanced_accuracy_at_threshold,
    normalized_average_precision,
    precision_recall_gain_auc_score,
)
from ._group_scorers import make_group_scorer
from ._proper import brier_score_loss, log_loss
from ._registry import metric_table
from ._reliability import ReliabilityCurve, reliability_curve
from ._scorers import get_scorer, get_scorer_names

__all__ = [
    "CalibrationDecomposition",
    "CalibrationSlopeIntercept",
    "CorpDecomposition",
    "ReliabilityCurve",
    "adaptive_calibration_error",
    "balanced_accuracy_at_threshold",
    "brier_score_loss",
    "calibration_decomposition",
    "calibration_loss",
    "calibration_slope_intercept",
    "corp_decomposition",
    "expected_calibration_error",
    "get_scorer",
    "get_scorer_names",
    "kernel_calibration_error",
    "log_loss",
    "make_group_scorer",
    "maximum_calibration_error",
    "metric_table",
    "normalized_average_precision",
    "precision_recall_gain_auc_score",
    "reliability_curve",
    "squared_calibration_error",
]
