"""Boxplots over runs by group and metric: on all rows, beside equal size."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from .._optional import import_optional
from ._style import (
    despine,
    fill_style,
    grid_of_axes,
    label,
    legend_columns,
    literal,
    wrapped,
)
from ._tables import (
    check_columns,
    chosen,
    group_label,
    levels,
    metric_label,
    summarise,
    table_of,
)

COLUMNS = ("run", "group", "metric", "sampling", "value")
_TITLE_WIDTH = 24
_LEGEND_ROW = 0.22  # inches
_SMALL = 0.8  # width of a small character in those of this legend
SAMPLINGS = {"naive": "all rows", "size_matched": "equal size"}


class GroupRunsDisplay:
    """Values of each run by group and metric, on all rows beside equal size.

    Parameters
    ----------
    values : DataFrame
        One row per run, group, metric and sampling: `run`, `group`, `metric`,
        `sampling` ("naive" or "size_matched") and `value`.

    Attributes
    ----------
    values : DataFrame
        The table.
    axes_ : ndarray of matplotlib Axes
        What was drawn on, one a metric; after `plot`.
    figure_ : matplotlib Figure
        Their figure; after `plot`.

    See Also
    --------
    skcalfair.experiments.subgroup_study : Makes the values.

    Notes
    -----
    Boxes hold the middle half of the runs, with the median as a line and the mean as a
    white diamond; whiskers reach 1.5 times as far, and points are runs beyond. Runs
    that share test rows are not independent, so that boxes that do not overlap are no
    test.

    Examples
    --------
    >>> import pandas as pd
    >>> from skcalfair.displays import GroupRunsDisplay
    >>> values = pd.DataFrame(
    ...     {
    ...         "run": [0, 1, 0, 1],
    ...         "group": ["A", "A", "B", "B"],
    ...         "metric": "roc_auc",
    ...         "sampling": "naive",
    ...         "value": [0.8, 0.9, 0.7, 0.8],
    ...     }
    ... )
    >>> GroupRunsDisplay(values).frame()[["group", "n_runs", "mean", "median"]]
      group  n_runs  mean  median
    0     A       2  0.85    0.85
    1     B       2  0.75    0.75
    """

    def __init__(self, values: pd.DataFrame) -> None:
        self.values = check_columns(values, COLUMNS, "values")

    @classmethod
    def from_result(cls, result: Any, *, metrics: Sequence[str] | None = None) -> Self:
        """Take the values of a study or an audit over runs.

        Parameters
        ----------
        result : object
            Has them as `values` (`skcalfair.experiments.SubgroupStudyResult`),
            `results_` (`skcalfair.audit.SubgroupAuditor`) or `runs` (an audit of scores
            of several runs).
        metrics : sequence of str, default=None
            Metrics to draw, in this order; by default all.

        Returns
        -------
        GroupRunsDisplay
            The display, not yet drawn.
        """
        table = table_of(result, "results_", "values", "runs", columns=COLUMNS)
        return cls(chosen(table, "metric", metrics, "metrics"))

    def frame(self) -> pd.DataFrame:
        """Return the statistics behind the boxes.

        Returns
        -------
        DataFrame
            One row per metric, sampling and group: `n_runs` with a value, `mean`, and
            the quantiles `low` (5 %), `q1`, `median`, `q3` and `high` (95 %).
        """
        return summarise(self.values, ("metric", "sampling", "group"), "runs")

    def plot(self, ax: Any = None, *, n_columns: int = 4) -> Self:
        """Draw one panel a metric.

        Parameters
        ----------
        ax : matplotlib Axes or array of them, default=None
            One for each metric; by default a new figure.
        n_columns : int, default=4
            Panels in a row of a new figure.

        Returns
        -------
        GroupRunsDisplay
            The display itself.
        """
        metrics, groups = levels(self.values, "metric"), levels(self.values, "group")
        samplings = [s for s in SAMPLINGS if s in set(self.values["sampling"])]
        width = min(n_columns, len(metrics))
        height = -(-len(metrics) // width)
        if ax is None:
            size = (0.7 + 0.55 * len(groups) * len(samplings), 2.6)
            axes = grid_of_axes(None, height, width, panel_size=size).ravel()
        else:
            axes = grid_of_axes(ax, 1, len(metrics)).ravel()
        for panel, metric in zip(axes, metrics, strict=False):
            self._draw(panel, metric, groups, samplings)
        for panel in axes[len(metrics) :]:
            panel.remove()
        axes = axes[: len(metrics)]
        handles = _handles(groups)
        if ax is None:
            _draw_legend(axes[0].figure, handles)
        else:
            axes[0].legend(handles=handles, frameon=False)
        despine(axes)
        self.axes_, self.figure_ = axes, axes[0].figure
        return self

    def _draw(
        self, panel: Any, metric: str, groups: list[Any], samplings: list[str]
    ) -> None:
        of_metric = self.values[self.values["metric"] == metric]
        step = 0.8 / len(groups)
        for s, sampling in enumerate(samplings):
            for g, group in enumerate(groups):
                held = (of_metric["sampling"] == sampling) & (
                    of_metric["group"] == group
                )
                values = of_metric["value"][held].dropna().to_numpy(dtype=np.float64)
                if len(values):
                    at = s + (g - (len(groups) - 1) / 2) * step
                    _box(panel, values, at, 0.8 * step, g)
        panel.set_xticks(range(len(samplings)), [SAMPLINGS[s] for s in samplings])
        panel.set_xlim(-0.55, len(samplings) - 0.45)
        title = wrapped(metric_label(metric), _TITLE_WIDTH)
        panel.set_title(literal(title), fontsize="medium")


def _box(panel: Any, values: Any, at: float, width: float, number: int) -> None:
    """One box with the mean as a white diamond."""
    drawn = panel.boxplot(
        values,
        positions=[at],
        widths=width,
        patch_artist=True,
        showmeans=True,
        manage_ticks=False,
        medianprops={"color": "0.1", "linewidth": 1.5},
        meanprops={
            "marker": "D", "markerfacecolor": "white", "markeredgecolor": "0.1",
            "markersize": 4,
        },
        flierprops={"marker": ".", "markersize": 3, "markeredgecolor": "0.4"},
    )  # fmt: skip
    drawn["boxes"][0].set(**fill_style(number, alpha=0.75))


def _draw_legend(figure: Any, handles: list[Any]) -> None:
    """Legend under the panels, in rows that fit; the figure grows by all but one."""
    names = [handle.get_label() for handle in handles]
    width = figure.get_figwidth() * _SMALL
    n_columns, height = legend_columns(names, width, len(names), _LEGEND_ROW)
    more = max(0.0, height - _LEGEND_ROW)
    figure.set_figheight(figure.get_figheight() + more)
    figure.legend(
        handles=handles, loc="outside lower center", ncols=n_columns, frameon=False
    )


def _handles(groups: list[Any]) -> list[Any]:
    """Legend of the groups."""
    patch = import_optional("matplotlib.patches", extra="plot").Patch
    return [
        patch(label=label(wrapped(group_label(group))), **fill_style(g, alpha=0.75))
        for g, group in enumerate(groups)
    ]
