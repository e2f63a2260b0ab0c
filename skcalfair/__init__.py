"""Audit whether a classifier is equally calibrated for every group.

The package answers four questions about a classifier's scores: is it calibrated,
is it equally calibrated for everyone, is a difference real or only the size of the
small group, and where would a person still decide better.

Subpackages are imported when they are first used, so that ``import skcalfair``
stays cheap and free of side effects.
"""

from importlib import import_module
from types import ModuleType

__version__ = "0.1.0"

__all__ = [
    "__version__",
    "audit",
    "calibration",
    "datasets",
    "displays",
    "dominance",
    "exceptions",
    "experiments",
    "keras",
    "metrics",
    "model_selection",
    "resampling",
]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
