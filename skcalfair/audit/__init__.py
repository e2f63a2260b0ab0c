"""Audits: a metric by group, on all rows and at matched sizes."""

from ._result import AuditResult
from ._scores import audit_scores

__all__ = ["AuditResult", "audit_scores"]
