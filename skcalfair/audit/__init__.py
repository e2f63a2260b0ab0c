"""Audits: a metric by group, on all rows and at matched sizes."""

from ._auditor import SubgroupAuditor
from ._equal_calibration import equal_calibration_test
from ._equal_calibration_result import EqualCalibrationResult
from ._frame import GroupMetricFrame
from ._result import AuditResult
from ._scores import audit_scores

__all__ = [
    "AuditResult",
    "EqualCalibrationResult",
    "GroupMetricFrame",
    "SubgroupAuditor",
    "audit_scores",
    "equal_calibration_test",
]
