"""Displays: numbers in, a tidy frame and a figure out.

A display stores numbers when it is made; ``frame()`` returns them and ``plot()`` draws
them. Only drawing needs matplotlib (the extra ``plot``).
"""

from ._dominance import DominanceDisplay
from ._group_balance import GroupBalanceDisplay
from ._group_runs import GroupRunsDisplay
from ._reliability import ReliabilityDisplay
from ._roc_readers import RocReadersDisplay
from ._sample_size import DecalibrationDisplay, SampleSizeDisplay

__all__ = [
    "DecalibrationDisplay",
    "DominanceDisplay",
    "GroupBalanceDisplay",
    "GroupRunsDisplay",
    "ReliabilityDisplay",
    "RocReadersDisplay",
    "SampleSizeDisplay",
]
