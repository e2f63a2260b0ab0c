"""Dominance tables: who decides better, at which cost and prevalence."""

from ._comparison_results import (
    MatchedComparison,
    MeanReaderComparison,
    ReaderHullComparison,
)
from ._comparisons import (
    compare_mean_reader,
    matched_operating_point,
    reader_hull_auc,
)
from ._decision import OptimalDecision
from ._dominance_table import DominanceTable
from ._operating_points import OperatingPoints

__all__ = [
    "DominanceTable",
    "MatchedComparison",
    "MeanReaderComparison",
    "OperatingPoints",
    "OptimalDecision",
    "ReaderHullComparison",
    "compare_mean_reader",
    "matched_operating_point",
    "reader_hull_auc",
]
