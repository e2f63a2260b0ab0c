"""Metric against sample size, by decalibration; and the decalibration curves."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from ._style import (
    REFERENCE,
    despine,
    grid_of_axes,
    label,
    literal,
    new_axes,
    series_style,
    wrapped,
)
from ._tables import (
    check_columns,
    chosen,
    levels,
    metric_label,
    summarise,
    table_of,
)

COLUMNS = ("fraction", "metric", "value")
SCENARIO = "decalibration"
_TITLE_WIDTH = 22


class SampleSizeDisplay:
    """Metrics against the fraction of rows they see, one row of panels a scenario.

    Parameters
    ----------
    values : DataFrame
        One row per fraction, metric and split or run: `fraction`, `metric` and `value`,
        and `decalibration` where there are several scenarios.

    Attributes
    ----------
    values : DataFrame
        The table.
    axes_ : ndarray of matplotlib Axes, shape (n_scenarios, n_metrics)
        What was drawn on; after `plot`.
    figure_ : matplotlib Figure
        Their figure; after `plot`.

    See Also
    --------
    skcalfair.experiments.sample_size_study : Makes the values.
    DecalibrationDisplay : What the scenarios do to the scores.

    Notes
    -----
    The line is the mean over splits, and its points the median; the dark band holds the
    middle half of the splits and the light one 90 % of them.

    Examples
    --------
    >>> import pandas as pd
    >>> from skcalfair.displays import SampleSizeDisplay
    >>> values = pd.DataFrame(
    ...     {
    ...         "fraction": [0.5, 0.5, 1.0, 1.0],
    ...         "metric": "expected_calibration_error",
    ...         "value": [0.04, 0.06, 0.02, 0.04],
    ...     }
    ... )
    >>> SampleSizeDisplay(values).frame()[["fraction", "mean"]]
       fraction  mean
    0       0.5  0.05
    1       1.0  0.03
    """

    def __init__(self, values: pd.DataFrame) -> None:
        self.values = check_columns(values, COLUMNS, "values")

    @classmethod
    def from_result(
        cls,
        result: Any,
        *,
        metrics: Sequence[str] | None = None,
        decalibrations: Sequence[str] | None = None,
    ) -> Self:
        """Take the values of a study.

        Parameters
        ----------
        result : object
            Has them as `fractions` (`skcalfair.experiments.SubgroupStudyResult`) or
            `frame` (`skcalfair.experiments.SampleSizeResult`).
        metrics : sequence of str, default=None
            Metrics to draw, in this order; by default all.
        decalibrations : sequence of str, default=None
            Scenarios to draw, in this order; by default all.

        Returns
        -------
        SampleSizeDisplay
            The display, not yet drawn.
        """
        table = table_of(result, "fractions", "frame", columns=COLUMNS)
        table = chosen(table, "metric", metrics, "metrics")
        if decalibrations is not None:
            table = check_columns(table, (SCENARIO,), "the table of the result")
            table = chosen(table, SCENARIO, decalibrations, "decalibrations")
        return cls(table)

    @property
    def _by(self) -> list[str]:
        names = [SCENARIO] if SCENARIO in self.values else []
        return [*names, "metric", "fraction"]

    def frame(self) -> pd.DataFrame:
        """Return the statistics that are drawn.

        Returns
        -------
        DataFrame
            One row per scenario, metric and fraction: the number of `n_values`, their
            `mean`, and the quantiles `low` (5 %), `q1`, `median`, `q3` and `high`
            (95 %).
        """
        return summarise(self.values, self._by, "values")

    def plot(self, ax: Any = None) -> Self:
        """Draw one panel per scenario and metric.

        Parameters
        ----------
        ax : matplotlib Axes or array of them, default=None
            One for each panel, scenario by scenario; by default a new figure.

        Returns
        -------
        SampleSizeDisplay
            The display itself.
        """
        table = self.frame()
        if SCENARIO not in table:
            table[SCENARIO] = ""
        scenarios, metrics = levels(table, SCENARIO), levels(table, "metric")
        options: dict[str, Any] = {"sharex": True} if ax is None else {}
        axes = grid_of_axes(
            ax, len(scenarios), len(metrics), panel_size=(2.3, 2.1), **options
        )
        for i, scenario in enumerate(scenarios):
            for j, metric in enumerate(metrics):
                held = (table[SCENARIO] == scenario) & (table["metric"] == metric)
                _curve(axes[i, j], table[held].sort_values("fraction"), i)
                if i == 0:
                    title = literal(wrapped(metric_label(metric), _TITLE_WIDTH))
                    axes[i, j].set_title(title, fontsize="medium")
                if i == len(scenarios) - 1:
                    axes[i, j].set_xlabel("fraction of rows")
            axes[i, 0].set_ylabel(literal(wrapped(scenario, _TITLE_WIDTH)))
        despine(axes)
        self.axes_, self.figure_ = axes, axes[0, 0].figure
        return self


def _curve(panel: Any, table: pd.DataFrame, number: int) -> None:
    """Mean, median and bands of one metric in one scenario."""
    style = series_style(number)
    x, color = table["fraction"], style["color"]
    panel.fill_between(x, table["low"], table["high"], color=color, alpha=0.15, lw=0)
    panel.fill_between(x, table["q1"], table["q3"], color=color, alpha=0.35, lw=0)
    panel.plot(x, table["mean"], color=color, linestyle=style["linestyle"])
    panel.plot(x, table["median"], color=color, marker=style["marker"], ls="", ms=3)
    panel.ticklabel_format(axis="y", style="plain", useOffset=False)
    if table["low"].min() < 0 < table["high"].max():
        panel.axhline(0, color=REFERENCE, linewidth=0.8, zorder=0)


class DecalibrationDisplay:
    """What decalibrations do to probabilities.

    Parameters
    ----------
    curves : DataFrame
        One row per decalibration and point: `decalibration`, `probability` and
        `decalibrated`.

    Attributes
    ----------
    curves : DataFrame
        The table.
    ax_ : matplotlib Axes
        What was drawn on; after `plot`.
    figure_ : matplotlib Figure
        Its figure; after `plot`.

    See Also
    --------
    skcalfair.datasets.BetaDecalibrator : Decalibrates.
    SampleSizeDisplay : What it does to metrics.

    Examples
    --------
    >>> from skcalfair.datasets import BetaDecalibrator
    >>> from skcalfair.displays import DecalibrationDisplay
    >>> display = DecalibrationDisplay.from_transformers(
    ...     {"strong": BetaDecalibrator(3, 3)}, n_points=3
    ... )
    >>> display.frame()
      decalibration  probability  decalibrated
    0        strong          0.0           0.0
    1        strong          0.5           0.5
    2        strong          1.0           1.0
    """

    def __init__(self, curves: pd.DataFrame) -> None:
        columns = (SCENARIO, "probability", "decalibrated")
        self.curves = check_columns(curves, columns, "curves")

    @classmethod
    def from_result(cls, result: Any) -> Self:
        """Take the curves of a study of sample sizes.

        Parameters
        ----------
        result : object
            Has them as `curves`, as `skcalfair.experiments.SampleSizeResult` does.

        Returns
        -------
        DecalibrationDisplay
            The display, not yet drawn.
        """
        columns = (SCENARIO, "probability", "decalibrated")
        return cls(table_of(result, "curves", columns=columns))

    @classmethod
    def from_transformers(
        cls, transformers: Mapping[str, Any], *, n_points: int = 201
    ) -> Self:
        """Evaluate transformers of probabilities on a grid.

        Parameters
        ----------
        transformers : dict of str to transformer
            Name of each; ``fit_transform`` gets a column of probabilities.
        n_points : int, default=201
            Points of the grid from 0 to 1.

        Returns
        -------
        DecalibrationDisplay
            The display, not yet drawn.
        """
        grid = np.linspace(0.0, 1.0, n_points)
        parts = [
            pd.DataFrame(
                {
                    SCENARIO: str(name),
                    "probability": grid,
                    "decalibrated": np.asarray(how.fit_transform(grid[:, None]))[:, 0],
                }
            )
            for name, how in transformers.items()
        ]
        if not parts:
            raise ValueError("transformers must name at least one; got none")
        return cls(pd.concat(parts, ignore_index=True))

    def frame(self) -> pd.DataFrame:
        """Return the numbers that are drawn.

        Returns
        -------
        DataFrame
            One row per decalibration and point.
        """
        return self.curves.copy()

    def plot(self, ax: Any = None) -> Self:
        """Draw all curves on one axes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; by default a new figure.

        Returns
        -------
        DecalibrationDisplay
            The display itself.
        """
        ax = new_axes(ax, figsize=(4.2, 4.0))
        for number, name in enumerate(levels(self.curves, SCENARIO)):
            curve = self.curves[self.curves[SCENARIO] == name]
            every = max(1, len(curve) // 8)
            ax.plot(
                curve["probability"],
                curve["decalibrated"],
                label=label(wrapped(name, _TITLE_WIDTH)),
                markevery=(number * every // 4, every),
                markersize=5,
                **series_style(number),
            )
        ax.plot([0, 1], [0, 1], color=REFERENCE, linewidth=0.8, zorder=0)
        ax.set(xlabel="true probability", ylabel="score", aspect="equal")
        ax.legend(frameon=False)
        despine(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
