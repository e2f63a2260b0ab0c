"""Dominance tables: who decides better, at which cost and prevalence."""

from ._decision import OptimalDecision
from ._dominance_table import DominanceTable
from ._operating_points import OperatingPoints

__all__ = ["DominanceTable", "OperatingPoints", "OptimalDecision"]
