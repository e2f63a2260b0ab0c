"""A log axis of cost-prevalence gradients that shows 0 and infinity at its ends."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._optional import import_optional

Floats = NDArray[np.float64]

_CAP = 0.07  # share of the axis that each end cap takes
_CHARACTER = 0.085  # width of a character of a tick label, in inches
_INFINITY = "\N{INFINITY}"


@dataclass(frozen=True)
class GradientAxis:
    """Gradients between `low` and `high` to scale, all others in a cap at either end.

    0 lies at the left end of the left cap, infinity at the right end of the right one.
    """

    low: float
    high: float

    @classmethod
    def around(cls, wanted: ArrayLike, useful: ArrayLike = ()) -> "GradientAxis":
        """An axis with all of `wanted`, and of `useful` what is a decade around."""
        inner = _inner(wanted)
        low, high = (inner.min(), inner.max()) if inner.size else (1.0, 1.0)
        near = _inner(useful)
        near = near[(near >= low / 10) & (near <= high * 10)]
        low, high = min(low, *near, low), max(high, *near, high)
        pad = max(2.0, np.sqrt(10.0 * low / high))
        return cls(float(low / pad), float(high * pad))

    @property
    def ends(self) -> tuple[float, float]:
        """Where 0 and infinity are drawn."""
        cap = (self.high / self.low) ** (_CAP / (1.0 - 2.0 * _CAP))
        return self.low / cap, self.high * cap

    def place(self, cpg: ArrayLike) -> Floats:
        """Where gradients are drawn: in a cap only its end is to scale with nothing."""
        left, right = self.ends
        cpg = np.asarray(cpg, dtype=np.float64)
        placed = np.clip(cpg, np.sqrt(left * self.low), np.sqrt(right * self.high))
        return np.where(cpg == 0, left, np.where(np.isposinf(cpg), right, placed))

    def share(self, placed: ArrayLike) -> Floats:
        """Drawn places as shares of the length of the axis."""
        left, right = self.ends
        places = np.asarray(placed, dtype=np.float64)
        return np.log(places / left) / np.log(right / left)

    def draw(self, ax: Any) -> None:
        """Scale the x axis of `ax` and mark where it is cut."""
        ax.set_xscale("log")
        ax.set_xlim(*self.ends)
        ax.minorticks_off()
        ax.plot(
            [self.low, self.high],
            [0, 0],
            transform=ax.get_xaxis_transform(),
            marker=[(-0.6, -1), (0.6, 1)],
            markersize=9,
            linestyle="none",
            color="black",
            clip_on=False,
            zorder=5,
            label="_cut",
        )

    def set_ticks(self, axis: Any, values: Floats, labels: Iterable[str]) -> None:
        """Ticks at gradients, and at both ends; labels only where they have room."""
        left, right = self.ends
        width = axis.axes.get_position().width * axis.figure.get_figwidth()
        character = _CHARACTER / width
        shown = [(0.0, 1), (1.0, 1)]  # place and length of the labels there are
        kept = []
        for place, label in zip(self.share(values), labels, strict=True):
            has_room = all(
                abs(place - other) > character * (1.0 + (len(label) + length) / 2)
                for other, length in shown
            )
            kept.append(label if has_room else "")
            if has_room:
                shown.append((float(place), len(label)))
        # Fixed ones: a log axis makes up others as soon as it is drawn.
        ticker = import_optional("matplotlib.ticker", extra="plot")
        axis.set_major_locator(ticker.FixedLocator([left, *values, right]))
        axis.set_major_formatter(ticker.FixedFormatter(["0", *kept, _INFINITY]))
        axis.set_minor_locator(ticker.NullLocator())

    def decades(self, factor: float = 1.0) -> tuple[Floats, list[str]]:
        """Gradients that are powers of ten times `factor`, and the powers' names."""
        first = np.ceil(np.log10(self.low / factor) - 1e-9)
        last = np.floor(np.log10(self.high / factor) + 1e-9)
        step = max(1.0, np.ceil((last - first) / 10))
        powers = 10.0 ** np.arange(first, last + 1, step)
        names = [f"{power:g}" if power >= 1 else f"1/{1 / power:g}" for power in powers]
        return powers * factor, names


def _inner(cpg: ArrayLike) -> Floats:
    """Gradients that are positive and finite."""
    values = np.asarray(cpg, dtype=np.float64).ravel()
    return values[np.isfinite(values) & (values > 0)]
