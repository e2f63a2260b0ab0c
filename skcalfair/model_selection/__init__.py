"""Splitters: patient-level folds, stratified by target and sensitive feature."""

from ._nested import NestedStratifiedGroupKFold

__all__ = ["NestedStratifiedGroupKFold"]
