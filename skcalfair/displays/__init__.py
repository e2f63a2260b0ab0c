"""Displays: numbers in, a tidy frame and a figure out.

A display stores numbers when it is made; ``frame()`` returns them and ``plot()`` draws
them. Only drawing needs matplotlib (the extra ``plot``).
"""

from ._dominance import DominanceDisplay
from ._roc_readers import RocReadersDisplay

__all__ = ["DominanceDisplay", "RocReadersDisplay"]
