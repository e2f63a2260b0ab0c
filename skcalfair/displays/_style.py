"""What all displays share: a colour-blind safe style, and axes to draw on.

Colour never carries a difference alone: each series also has its own marker, line
style or hatch, by the same number.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._optional import import_optional

# The colours of Okabe and Ito (2008), the ones that stand out on white first.
PALETTE = (
    "#0072B2",  # blue
    "#D55E00",  # vermilion
    "#009E73",  # green
    "#CC79A7",  # purple
    "#E69F00",  # orange
    "#56B4E9",  # sky blue
    "#000000",  # black
    "#F0E442",  # yellow
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINESTYLES: tuple[Any, ...] = (
    "-",
    "--",
    "-.",
    ":",
    (0, (5, 1)),
    (0, (3, 1, 1, 1)),
    (0, (1, 1)),
    (0, (7, 2, 1, 2)),
)
HATCHES = ("", "///", "...", "\\\\\\", "xxx", "---", "ooo", "+++")
REFERENCE = "0.35"  # grey of reference lines: diagonals, zeros, chance


def series_style(i: int) -> dict[str, Any]:
    """Colour, marker and line style of series i, to pass on to `Axes.plot`."""
    return {
        "color": PALETTE[i % len(PALETTE)],
        "marker": MARKERS[i % len(MARKERS)],
        "linestyle": LINESTYLES[i % len(LINESTYLES)],
    }


def fill_style(i: int, *, alpha: float = 1.0) -> dict[str, Any]:
    """Face colour and hatch of bar, box or band i, to pass on to a patch."""
    return {
        "facecolor": (*_rgb(PALETTE[i % len(PALETTE)]), alpha),
        "hatch": HATCHES[i % len(HATCHES)],
        "edgecolor": "0.2",
    }


def _rgb(color: str) -> tuple[float, ...]:
    """Red, green and blue in [0, 1] of a hexadecimal colour."""
    return tuple(int(color[k : k + 2], 16) / 255 for k in (1, 3, 5))


def new_axes(ax: Any = None, *, figsize: tuple[float, float] = (6.4, 4.8)) -> Any:
    """Return the axes given, or those of a new figure."""
    if ax is not None:
        return ax
    pyplot = import_optional("matplotlib.pyplot", extra="plot")
    return pyplot.subplots(figsize=figsize, layout="constrained")[1]


def grid_of_axes(
    ax: Any,
    n_rows: int,
    n_columns: int,
    *,
    panel_size: tuple[float, float] = (3.0, 2.6),
    **subplots: Any,
) -> NDArray:
    """Array (n_rows, n_columns) of axes: those given, or those of a new figure.

    One axes is enough for one panel; otherwise an array of n_rows * n_columns of them.
    """
    n = n_rows * n_columns
    if ax is None:
        pyplot = import_optional("matplotlib.pyplot", extra="plot")
        width, height = panel_size
        return pyplot.subplots(
            n_rows,
            n_columns,
            figsize=(width * n_columns, height * n_rows),
            layout="constrained",
            squeeze=False,
            **subplots,
        )[1]
    given = np.asarray(ax, dtype=object).ravel()
    if len(given) != n:
        raise ValueError(
            f"ax must hold one axes for each of the {n} panels ({n_rows} rows of "
            f"{n_columns}); got {len(given)}"
        )
    return given.reshape(n_rows, n_columns)


def despine(axes: Any) -> None:
    """Remove the upper and right frame lines of one axes or an array of them."""
    for ax in np.asarray(axes, dtype=object).ravel():
        ax.spines[["top", "right"]].set_visible(False)
