"""Checks of a metric frame's options."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._frame_sample import Sample

# The 2.5 and 97.5 % points of fewer subsamples would be their extremes.
FEWEST_RESAMPLES = 40
# The 2.5 and 97.5 % points of fewer subsamples would be their extremes.
FEWEST_RESAMPLES = 40


def check_frame_options(
    size_match: Any, match_on: Any, n_resamples: Any, min_group_size: Any, missing: Any
) -> None:
    """Refuse options that mean nothing."""
    if isinstance(size_match, str) and size_match != "smallest":
        raise ValueError(
            f"size_match must be 'smallest', an int or None; got {size_match!r}"
        )
    _check_integer("n_resamples", n_resamples, FEWEST_RESAMPLES)
    _check_integer("min_group_size", min_group_size, 1)
    if size_match is not None and not isinstance(size_match, str):
        _check_integer("size_match", size_match, 1)
    for name, value, choices in (
        ("match_on", match_on, ("rows", "classes")),
        ("missing", missing, ("raise", "own_group", "drop")),
    ):
        if value not in choices:
            raise ValueError(f"{name} must be one of {choices}; got {value!r}")


def _check_integer(name: str, value: Any, least: int) -> None:
    integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not integer or value < least:
        raise ValueError(
            f"{name} must be an integer of at least {least}; got {value!r}"
        )


def check_match_on(match_on: str, sample: Sample) -> None:
    """Refuse to match classes where that changes what a metric measures."""
    if match_on == "rows":
        return
    if sample.outcome is None:
        raise ValueError(
            "match_on='classes' needs y_true of two classes, and pos_label where they "
            "are not 0 and 1"
        )
    if sample.clusters is not None:
        raise ValueError(
            "match_on='classes' draws single rows and cannot keep clusters whole; use "
            "match_on='rows' with clusters"
        )
    refused = [m.name for m in sample.metrics if not m.matches_classes()]
    if refused:
        raise ValueError(
            "match_on='classes' is for AUC, sensitivity and specificity only; it "
            "changes the prevalence, and with it calibration and every other metric: "
            f"{refused}"
        )


def check_fractions(fractions: ArrayLike) -> list[float]:
    """Parts of the rows above 0 and up to 1."""
    values = [float(fraction) for fraction in np.ravel(fractions)]
    if not values or not all(0.0 < value <= 1.0 for value in values):
        raise ValueError(f"fractions must lie above 0 and up to 1; got {fractions!r}")
    return values


def check_sizes(size_match: Any, n_resamples: Any, min_group_size: Any) -> None:
    """Refuse sizes and numbers that mean nothing."""
    named = [
        ("n_resamples", n_resamples, FEWEST_RESAMPLES),
        ("min_group_size", min_group_size, 1),
    ]
    if isinstance(size_match, str) and size_match != "smallest":
        raise ValueError(
            f"size_match must be 'smallest', an int or None; got {size_match!r}"
        )
    if size_match is not None and not isinstance(size_match, str):
        named.append(("size_match", size_match, 1))
    for name, value, least in named:
        integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not integer or value < least:
            raise ValueError(
                f"{name} must be an integer of at least {least}; got {value!r}"
            )
