"""What all displays share: a colour-blind safe style, and axes to draw on.

Colour never carries a difference alone: each series also has its own marker, line
style or hatch, by the same number.
"""

import textwrap
from collections.abc import Sequence
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
NAME_WIDTH = 34  # characters of a name on a line of a legend
_MOST_LINES = 2
_CHARACTER, _HANDLE = 0.075, 0.65  # inches in a small legend


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


def literal(text: Any) -> str:
    """Text that is drawn as it is: a dollar sign starts no mathematics."""
    return str(text).replace("$", r"\$")


def label(text: Any) -> str:
    """Text for a legend, which leaves out what begins with an underscore."""
    written = literal(text)
    return f" {written}" if written.startswith("_") else written


def cut(text: Any, width: int = NAME_WIDTH) -> str:
    """Text without its middle where it is too long: names often differ at the end."""
    written = " ".join(str(text).split())
    if len(written) <= width:
        return written
    end = (width - 3) // 3
    return f"{written[: width - 3 - end].rstrip()}...{written[-end:].lstrip()}"


def wrapped(text: Any, width: int = NAME_WIDTH) -> str:
    """Name on two or three lines where it is long, and cut where it is longer."""
    # Lines that end between words are not full.
    short = cut(text, _MOST_LINES * width - 8)
    return "\n".join(textwrap.wrap(short, width, break_on_hyphens=False))


def wrapped_owners(owner: str, width: int = NAME_WIDTH) -> str:
    """Co-owners "A = B = 6 more" on two lines, so many as fit."""
    names = owner.split(" = ")
    if len(names) == 1:
        return wrapped(owner, width)
    names = [cut(name, width - 2) for name in names]
    for n_shown in range(len(names), 0, -1):
        more = len(names) - n_shown
        shown = [*names[:n_shown], f"{more} more"] if more else names
        lines = _lines_of(shown, " = ", width)
        if len(lines) <= _MOST_LINES:
            break
    return "\n".join(lines)


def wrapped_after(text: str, after: str, width: int = NAME_WIDTH + 6) -> str:
    """Text and what comes after it, on a new line where it does not fit."""
    is_long = len(text.rpartition("\n")[2]) + len(after) >= width
    return f"{text}\n{after}" if is_long else f"{text} {after}"


def _lines_of(parts: Sequence[str], mark: str, width: int) -> list[str]:
    """Parts joined by a mark, which a new line begins with."""
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + len(mark) + len(part) <= width:
            lines[-1] += mark + part
        else:
            lines.append(mark.lstrip() + part)
    return lines


def legend_columns(
    labels: Sequence[str], width: float, most: int, row: float
) -> tuple[int, float]:
    """Columns of a small legend that fit into a width, and its height in inches."""
    longest = max(len(line) for text in labels for line in text.splitlines() or [""])
    n = int(np.clip(width / (_HANDLE + _CHARACTER * longest), 1, most))
    per_column = -(-len(labels) // n)
    heights = [
        sum(text.count("\n") + 1 for text in labels[k : k + per_column])
        for k in range(0, len(labels), per_column)
    ]
    return n, row * max(heights)


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
