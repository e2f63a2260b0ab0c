"""DominanceDisplay: who decides best, along the cost-prevalence gradient."""

from typing import Any, Self

import numpy as np
import pandas as pd

from .._validation import check_prevalence
from ._gradient_axis import GradientAxis
from ._owners import (
    OwnerStyles,
    check_has_hull,
    chosen_points,
    describe_pair,
    owner_segments,
)
from ._style import (
    LINESTYLES,
    despine,
    grid_of_axes,
    label,
    legend_columns,
    literal,
    wrapped,
    wrapped_after,
    wrapped_owners,
)

# More curves than this cannot be told apart; the others are drawn thin and grey.
_MOST_CURVES = 8
_LANE = 0.16  # height of the lane of one interval, in heights of the strip
_LANE_HEIGHT = 0.12  # inches that a figure grows for each lane
_NARROW = 20  # characters of a name in a narrow bar
_LEGEND_ROW = 0.18  # inches
_X_LABEL = "cost-prevalence gradient (CPG)"
_INTERVALS = ("fieller", "percentile")


class DominanceDisplay:
    """Who decides best, along the axis of cost-prevalence gradients.

    A strip shows whose decisions have the least expected cost at each gradient. Where
    the table has bootstrap samples, a second panel shows how often each name was best
    there.

    Parameters
    ----------
    segments : DataFrame
        Columns `owner`, `cpg_from` and `cpg_to`: a row for each range of gradients,
        from 0 to infinity.
    breakpoints : DataFrame, default=None
        Columns `from_owner`, `to_owner`, `cpg`, `low` and `high`: a row for each
        gradient at which the best changes, with its 95 % interval. NaN where there is
        none; `low` above `high` where the set is all outside of the two.
    support : DataFrame, default=None
        Columns `cpg`, `name` and `support`: the share of bootstrap samples, in [0, 1],
        in which a name is best at a gradient.
    chosen : DataFrame, default=None
        Columns `prevalence`, `cost_ratio`, `cpg` and `owner`: chosen points to mark.
    prevalence : float, default=None
        Prevalence, in (0, 1), at which a second axis says the cost ratio.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the strip.
    support_ax_ : matplotlib Axes or None
        Axes with the bootstrap support.
    figure_ : matplotlib Figure
        Figure with both.

    See Also
    --------
    RocReadersDisplay : The same owners in the plane of sensitivity and specificity.

    Notes
    -----
    The axis is logarithmic between two cuts, which are marked; its ends stand for 0 and
    infinity. Owners have a colour and a hatch, or a colour and a line style. Long names
    and lists of co-owners are cut; `frame` has them in full.

    Bootstrap support is no evidence: of two equal readers, one has more than .95 in 8 %
    of studies.

    Examples
    --------
    >>> import pandas as pd
    >>> from skcalfair.displays import DominanceDisplay
    >>> from skcalfair.dominance import DominanceTable
    >>> published = pd.DataFrame(
    ...     {"name": ["A", "B"], "sensitivity": [0.9, 0.6], "specificity": [0.6, 0.95]}
    ... )
    >>> table = DominanceTable.from_operating_points(published)
    >>> display = DominanceDisplay.from_table(table, points=[(0.2, 1.0)])
    >>> display.segments.round(2)
                 owner  cpg_from  cpg_to
    0  always positive      0.00    0.17
    1                A      0.17    0.86
    2                B      0.86   12.00
    3   never positive     12.00     inf
    >>> display.chosen[["cpg", "owner"]]
       cpg owner
    0  4.0     B
    """

    ax_: Any
    support_ax_: Any
    figure_: Any

    def __init__(
        self,
        *,
        segments: pd.DataFrame,
        breakpoints: pd.DataFrame | None = None,
        support: pd.DataFrame | None = None,
        chosen: pd.DataFrame | None = None,
        prevalence: float | None = None,
    ) -> None:
        self.segments = segments
        self.breakpoints = breakpoints
        self.support = support
        self.chosen = chosen
        self.prevalence = prevalence

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        prevalence: float | None = None,
        points: Any = None,
        interval: str = "fieller",
    ) -> Self:
        """
        Take the numbers from a dominance table.

        Parameters
        ----------
        table : DominanceTable
            A fitted table, or one made of published points.
        prevalence : float, default=None
            Prevalence, in (0, 1), at which a second axis says the cost ratio.
        points : list of (float, float), default=None
            Pairs of prevalence, in (0, 1), and cost ratio (false positive over false
            negative) to mark.
        interval : {"fieller", "percentile"}, default="fieller"
            Which 95 % interval of a breakpoint to show, if the table has it.

        Returns
        -------
        DominanceDisplay
            The display, not drawn yet.

        Raises
        ------
        ValueError
            If the table is not fitted, the prevalence or a pair is out of range, or the
            interval is unknown.
        """
        hull = check_has_hull(table)
        if prevalence is not None:
            prevalence = check_prevalence(prevalence)
        if interval not in _INTERVALS:
            raise ValueError(
                f"interval must be 'fieller' or 'percentile'; got {interval!r}"
            )
        segments = owner_segments(hull)
        chosen = chosen_points(hull, points)[
            ["prevalence", "cost_ratio", "cpg", "owner"]
        ]
        support = getattr(table, "dominance_support_", None)
        return cls(
            segments=segments,
            breakpoints=_breakpoints(table, segments, interval),
            support=None if support is None else support.reset_index(drop=True),
            chosen=chosen if len(chosen) else None,
            prevalence=prevalence,
        )

    def frame(self) -> pd.DataFrame:
        """
        List all numbers drawn, in one long table.

        Returns
        -------
        DataFrame
            Column `part`: "segment" (`name` is best from `cpg_from` to `cpg_to`),
            "breakpoint" (`cpg` with its interval `cpg_from` to `cpg_to`), "support"
            (share of bootstrap samples in `support`) or "chosen" (who is best at a
            chosen prevalence and cost ratio).
        """
        parts = [self.segments.rename(columns={"owner": "name"}).assign(part="segment")]
        if self.breakpoints is not None and len(self.breakpoints):
            b = self.breakpoints
            name = b["from_owner"] + " to " + b["to_owner"]
            columns = {"low": "cpg_from", "high": "cpg_to"}
            parts.append(b.assign(part="breakpoint", name=name).rename(columns=columns))
        if self.support is not None:
            parts.append(self.support.assign(part="support"))
        if self.chosen is not None:
            parts.append(
                self.chosen.rename(columns={"owner": "name"}).assign(part="chosen")
            )
        wanted = ["part", "name", "cpg", "cpg_from", "cpg_to", "support"]
        wanted += ["prevalence", "cost_ratio"]
        rows = [row for part in parts for row in part.to_dict("records")]
        return pd.DataFrame(rows, columns=wanted)

    def plot(self, ax: Any = None, *, intervals: bool = True) -> Self:
        """
        Draw the strip, and the bootstrap support under it.

        Parameters
        ----------
        ax : matplotlib Axes or array of two, default=None
            One axes takes the strip alone, two the strip and the support. By default a
            new figure is made.
        intervals : bool, default=True
            Whether to draw the intervals of the breakpoints. One that leaves the axis
            ends in an arrow.

        Returns
        -------
        DominanceDisplay
            The display itself.
        """
        axis = self._axis()
        styles = OwnerStyles([*self.segments["owner"], *self._names()])
        self.ax_, self.support_ax_ = self._axes(ax)
        self.figure_ = self.ax_.figure
        bars = self._draw_strip(axis, styles)
        if intervals:
            n_lanes = self._draw_intervals(axis)
            if ax is None:
                height = self.figure_.get_figheight()
                self.figure_.set_figheight(height + _LANE_HEIGHT * n_lanes)
        lines = self._draw_chosen(self.ax_, axis)
        if self.support_ax_ is not None:
            self._draw_support(axis, styles)
            self._draw_chosen(self.support_ax_, axis)
        if bars or lines:
            self._draw_legend(bars + lines, ax is None)
        return self

    def _axis(self) -> GradientAxis:
        wanted = self.segments["cpg_from"].tolist()
        if self.chosen is not None:
            wanted += self.chosen["cpg"].tolist()
        useful: list[float] = []
        if self.breakpoints is not None:
            useful = self.breakpoints[["low", "high"]].to_numpy().ravel().tolist()
        if self.support is not None:
            useful += self.support["cpg"].tolist()
        return GradientAxis.around(wanted, useful)

    def _names(self) -> list[str]:
        return [] if self.support is None else self.support["name"].unique().tolist()

    def _axes(self, ax: Any) -> tuple[Any, Any]:
        """Axes of the strip and of the support (or None)."""
        if ax is not None and np.size(ax) == 1:
            return np.ravel(np.asarray(ax, dtype=object))[0], None
        if self.support is None:
            size = (8.5, 1.9 + 0.35 * (self.prevalence is not None))
            return grid_of_axes(ax, 1, 1, panel_size=size)[0, 0], None
        axes = grid_of_axes(
            ax, 2, 1, panel_size=(8.5, 2.6), gridspec_kw={"height_ratios": [1, 1.8]}
        )
        return axes[0, 0], axes[1, 0]

    def _draw_strip(self, axis: GradientAxis, styles: OwnerStyles) -> list[Any]:
        """Bars; those whose names do not fit are returned for the legend."""
        ax = self.ax_
        axis.draw(ax)
        ax.set_ylim(0, 1)
        nameless: dict[str, Any] = {}
        named = set()
        for row in self.segments.itertuples():
            left, right = axis.place([row.cpg_from, row.cpg_to])
            bar = ax.barh(
                0.5, right - left, height=0.9, left=left, **styles.fill(row.owner)
            )
            if _write_name(ax, row.owner, left, right):
                named.add(row.owner)
            else:
                nameless.setdefault(row.owner, bar[0])
        ax.set_yticks([])
        despine(ax)
        ax.spines["left"].set_visible(False)
        ax.set(xlabel=_X_LABEL)
        changes = np.sort(self.segments["cpg_from"].to_numpy()[1:])
        axis.set_ticks(ax.xaxis, changes, [f"{cpg:.3g}" for cpg in changes])
        self._draw_cost_axis(axis)
        for owner, bar in nameless.items():
            bar.set_label(label(wrapped_owners(owner)))
        return [bar for owner, bar in nameless.items() if owner not in named]

    def _draw_cost_axis(self, axis: GradientAxis) -> None:
        if self.prevalence is None:
            return
        # One cost ratio is this gradient.
        factor = (1.0 - self.prevalence) / self.prevalence
        top = self.ax_.secondary_xaxis("top")
        axis.set_ticks(top.xaxis, *axis.decades(factor))
        top.set_xlabel(
            "cost of a false positive / false negative at a prevalence of "
            f"{100 * self.prevalence:.3g} %"
        )

    def _draw_intervals(self, axis: GradientAxis) -> int:
        """Intervals in as many lanes as they need; returned is how many."""
        if self.breakpoints is None:
            return 0
        known = self.breakpoints.dropna(subset=["low", "high"])
        lanes: list[float] = []
        for row in known.sort_values("cpg").itertuples():
            # A set outside of two bounds is two intervals, each with an open end.
            parts = (
                [(row.low, row.high)]
                if row.low <= row.high
                else [(0.0, row.high), (row.low, np.inf)]
            )
            start, end = axis.place([parts[0][0], parts[-1][1]])
            lane = next((i for i, last in enumerate(lanes) if start > last), len(lanes))
            lanes[lane : lane + 1] = [end]
            y = -_LANE * (lane + 0.6)
            for low, high in parts:
                _draw_interval(self.ax_, axis, y, low, high)
            self.ax_.plot(axis.place(row.cpg), y, "o", color="0.1", markersize=3.5)
        self.ax_.set_ylim(-_LANE * (len(lanes) + 0.3 * bool(lanes)), 1)
        return len(lanes)

    def _draw_chosen(self, ax: Any, axis: GradientAxis) -> list[Any]:
        """Vertical lines; returned for the legend."""
        if self.chosen is None:
            return []
        lines = []
        for i, row in enumerate(self.chosen.itertuples()):
            pair = f"{describe_pair(row.prevalence, row.cost_ratio)}:"
            named = wrapped_after(pair, wrapped_owners(row.owner), 48)
            line = ax.axvline(
                float(axis.place(row.cpg)),
                color="black",
                linewidth=1.8,
                linestyle=LINESTYLES[i % len(LINESTYLES)],
                label=label(named),
            )
            lines.append(line)
        return lines

    def _draw_support(self, axis: GradientAxis, styles: OwnerStyles) -> None:
        assert self.support is not None
        ax = self.support_ax_
        axis.draw(ax)
        # Readers who were resampled have no support of their own.
        known = self.support.dropna(subset="support")
        greatest = known.groupby("name", sort=False)["support"].max()
        shown = set(greatest.sort_values(ascending=False).index[:_MOST_CURVES])
        n_others = len(greatest) - len(shown)
        for name, rows in known.groupby("name", sort=False):
            rows = rows.sort_values("cpg")
            inside = rows["cpg"].between(axis.low, axis.high)
            rows = rows[inside | (rows["cpg"] == 0) | np.isposinf(rows["cpg"])]
            x = axis.place(rows["cpg"])
            if name in shown:
                style = styles.line(name) | {"label": label(wrapped(name))}
                ax.plot(x, rows["support"], lw=2, **style)
            else:
                others = f"{n_others} others" if n_others else None
                ax.plot(x, rows["support"], lw=0.7, color="0.7", label=others, zorder=1)
                n_others = 0
        ax.set(ylim=(-0.02, 1.02), ylabel="share of samples", xlabel=_X_LABEL)
        ax.set_title("bootstrap support: how often each is best", fontsize="medium")
        axis.set_ticks(ax.xaxis, *axis.decades())
        despine(ax)
        ax.legend(
            loc="upper left",
            bbox_to_anchor=(1.0, 1.0),
            frameon=False,
            fontsize="small",
            handlelength=3,
        )

    def _draw_legend(self, handles: list[Any], is_own: bool) -> None:
        n_columns, height = legend_columns(
            [handle.get_label() for handle in handles],
            self.figure_.get_figwidth(),
            2 if len(handles) < 5 else 3,
            _LEGEND_ROW,
        )
        place: dict[str, Any] = {"loc": "outside lower center"}
        if is_own:
            self.figure_.set_figheight(self.figure_.get_figheight() + height)
        else:
            # Below ticks and label, whatever the height of the axes.
            place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0)}
            place["borderaxespad"] = 4.5
        (self.figure_ if is_own else self.ax_).legend(
            handles=handles,
            ncols=n_columns,
            frameon=False,
            fontsize="small",
            handlelength=3,
            **place,
        )


def _breakpoints(table: Any, segments: pd.DataFrame, interval: str) -> pd.DataFrame:
    """Gradients at which the owner changes, with an interval where there is one."""
    known = getattr(table, "breakpoints_", None)
    if known is None:
        owners = segments["owner"]
        return pd.DataFrame(
            {
                "from_owner": owners.to_numpy()[:-1],
                "to_owner": owners.to_numpy()[1:],
                "cpg": segments["cpg_to"].to_numpy()[:-1],
                "low": np.nan,
                "high": np.nan,
            }
        )
    bounds = {f"{interval}_low": "low", f"{interval}_high": "high"}
    columns = ["from_owner", "to_owner", "cpg", *bounds]
    return known.reindex(columns=columns).rename(columns=bounds).reset_index(drop=True)


def _write_name(ax: Any, name: str, left: float, right: float) -> bool:
    """Write a name into a bar, on several lines if need be; say whether it fitted."""
    (start, low), (end, high) = ax.transData.transform([(left, 0.05), (right, 0.95)])
    by_owner = name.replace(" = ", " =\n")
    by_word = name.replace(" ", "\n").replace("\n=\n", " =\n")
    shorter = [wrapped_owners(name), wrapped_owners(name, _NARROW)]
    for written in dict.fromkeys([name, by_owner, by_word, *shorter]):
        text = ax.text(
            np.sqrt(left * right),
            0.5,
            literal(written),
            ha="center",
            va="center",
            fontsize="small",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.85},
        )
        # The layout may still take some of the width, and intervals of the height.
        box = text.get_window_extent()
        if box.width < 0.85 * (end - start) and box.height < 0.7 * (high - low):
            return True
        text.remove()
    return False


def _draw_interval(
    ax: Any, axis: GradientAxis, y: float, low: float, high: float
) -> None:
    """A horizontal line, each end a bar, or an arrow where it leaves the axis."""
    ends = axis.place([low, high])
    ax.plot(ends, [y, y], color="0.1", linewidth=1.2, solid_capstyle="butt")
    for value, place, arrow in ((low, ends[0], "<"), (high, ends[1], ">")):
        inside = axis.low <= value <= axis.high
        ax.plot(
            place,
            y,
            marker="|" if inside else arrow,
            color="0.1",
            markersize=6 if inside else 4,
            clip_on=False,
        )
