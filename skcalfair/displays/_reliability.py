"""Reliability diagrams by group."""

from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from .._validation import as_1d, check_same_length, encode_groups
from ..metrics import reliability_curve
from ._style import (
    REFERENCE,
    despine,
    grid_of_axes,
    label,
    literal,
    series_style,
    wrapped,
    wrapped_after,
)
from ._tables import check_columns, group_label, levels

Floats = NDArray[np.float64]

COLUMNS = ("group", "mean_predicted", "observed", "count")
_TITLE_WIDTH = 26
BARS = ("consistency", "interval")


class ReliabilityDisplay:
    """Reliability diagram of each group, with consistency bars.

    Parameters
    ----------
    curves : DataFrame
        One row per group and bin: `group`, `mean_predicted`, `observed`, `count`, and
        for the bars ``consistency_lower``, ``consistency_upper``, `lower` and `upper`.
        `from_predictions` makes it.

    Attributes
    ----------
    curves : DataFrame
        The table.
    axes_ : ndarray of matplotlib Axes
        What was drawn on; after `plot`.
    figure_ : matplotlib Figure
        Their figure; after `plot`.

    See Also
    --------
    skcalfair.metrics.reliability_curve : The numbers of one curve.

    Notes
    -----
    A consistency bar [1]_ is the range in which the observed frequency of a bin falls
    with the stated probability if the scores are calibrated: binomial quantiles at the
    mean prediction and the number of rows. A point outside its bar speaks against
    calibration in that bin, but of ten bins at 95 % some point is outside in up to two
    of five diagrams of calibrated scores. Small groups have long bars, which is why a
    ragged curve alone says nothing.

    References
    ----------
    .. [1] J. Bröcker and L. A. Smith, "Increasing the reliability of reliability
       diagrams", Weather and Forecasting 22(3), 2007.

    Examples
    --------
    >>> from skcalfair.datasets import make_skin_tone_cohort
    >>> from skcalfair.displays import ReliabilityDisplay
    >>> cohort = make_skin_tone_cohort()
    >>> display = ReliabilityDisplay.from_predictions(
    ...     cohort["malignant"],
    ...     cohort["score"],
    ...     sensitive_features=cohort["skin_tone"],
    ...     n_bins=5,
    ... )
    >>> columns = ["group", "count", "observed", "consistency_upper"]
    >>> display.frame()[columns].head(2).round(2)
      group  count  observed  consistency_upper
    0  dark     17       0.0               0.18
    1  dark      9       0.0               0.56
    """

    def __init__(self, curves: pd.DataFrame) -> None:
        self.curves = check_columns(curves, COLUMNS, "curves")

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        sensitive_features: Any = None,
        n_bins: int = 10,
        strategy: str = "uniform",
        confidence_level: float = 0.95,
        missing: str = "raise",
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Compute the curve of each group.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels of two classes.
        y_prob : array-like of shape (n_samples,)
            Probabilities of the positive class in [0, 1].
        sensitive_features : array-like, Series, dict or DataFrame, default=None
            Group of each row; several columns intersect. By default all rows are one
            group, "all".
        n_bins : int, default=10
            Bins of each curve; empty ones are left out.
        strategy : {"uniform", "quantile"}, default="uniform"
            Bins of equal width, or of equal mass.
        confidence_level : float, default=0.95
            Level of the bars, between 0 and 1.
        missing : {"raise", "own_group", "drop"}, default="raise"
            What to do with rows whose group is missing.
        pos_label : int, float, bool or str, default=None
            Label of the positive class; needed for text labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Numbers of repetitions of the rows.

        Returns
        -------
        ReliabilityDisplay
            The display, not yet drawn.
        """
        y, p = as_1d(y_true, "y_true"), as_1d(y_prob, "y_prob")
        check_same_length(("y_true", y), ("y_prob", p))
        if pos_label is None and set(np.unique(y).tolist()) <= {0, 1, -1}:
            pos_label = 1  # a group may hold one class only
        if sensitive_features is None:
            codes, labels = np.zeros(len(y), dtype=np.intp), ["all"]
        else:
            groups = encode_groups(sensitive_features, len(y), missing=missing)
            codes, labels = groups.codes, groups.labels
        weights = None if sample_weight is None else np.asarray(sample_weight)
        parts = []
        for code, level in enumerate(labels):
            rows = codes == code
            curve = reliability_curve(
                y[rows],
                p[rows],
                n_bins=n_bins,
                strategy=strategy,
                confidence_level=confidence_level,
                pos_label=pos_label,
                sample_weight=None if weights is None else weights[rows],
            ).frame()
            low, high = consistency(
                curve["mean_predicted"], curve["count"], confidence_level
            )
            curve["consistency_lower"], curve["consistency_upper"] = low, high
            curve.insert(0, "group", [group_label(level)] * len(curve))
            parts.append(curve)
        return cls(pd.concat(parts, ignore_index=True))

    def frame(self) -> pd.DataFrame:
        """Return the numbers that are drawn.

        Returns
        -------
        DataFrame
            One row per group and bin.
        """
        return self.curves.copy()

    def plot(self, ax: Any = None, *, bars: str = "consistency") -> Self:
        """Draw one diagram for each group.

        Parameters
        ----------
        ax : matplotlib Axes or array of them, default=None
            One for each group, or one for all together. By default a new figure with
            one for each.
        bars : {"consistency", "interval"}, default="consistency"
            Bars on the diagonal that say where calibrated scores would be, or exact
            confidence intervals of the observed frequencies.

        Returns
        -------
        ReliabilityDisplay
            The display itself.
        """
        if bars not in BARS:
            raise ValueError(f"bars must be one of {list(BARS)}; got {bars!r}")
        groups = levels(self.curves, "group")
        together = ax is not None and np.asarray(ax, dtype=object).size == 1
        n_panels = 1 if together else len(groups)
        axes = grid_of_axes(ax, 1, n_panels, panel_size=(3.2, 3.4))[0]
        for number, group in enumerate(groups):
            panel = axes[0] if together else axes[number]
            # Bars of several groups in one place stand beside each other.
            shift = 0.008 * (number - (len(groups) - 1) / 2) if together else 0.0
            name = self._draw(panel, number, group, bars, shift)
            if not together and len(groups) > 1:
                panel.set_title(literal(name))
        for panel in axes:
            panel.plot([0, 1], [0, 1], color=REFERENCE, linewidth=1, zorder=0)
            panel.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
            panel.set_xlabel("mean predicted probability")
        if together and len(groups) > 1:
            axes[0].legend(frameon=False)
        axes[0].set_ylabel("observed frequency")
        despine(axes)
        self.axes_, self.figure_ = axes, axes[0].figure
        return self

    def _draw(
        self, panel: Any, number: int, group: Any, bars: str, shift: float
    ) -> str:
        """Draw a group; return what it is called."""
        curve = self.curves[self.curves["group"] == group]
        style = series_style(number)
        x = curve["mean_predicted"]
        if bars == "consistency":
            low, high = curve["consistency_lower"], curve["consistency_upper"]
        else:
            low, high = curve["lower"], curve["upper"]
        panel.vlines(x + shift, low, high, color=style["color"], alpha=0.35, lw=5)
        size = f"(n = {curve['count'].sum():,})"
        name = wrapped_after(wrapped(group, _TITLE_WIDTH), size, _TITLE_WIDTH)
        panel.plot(x, curve["observed"], label=label(name), **style)
        return name


def consistency(
    predicted: ArrayLike, count: ArrayLike, confidence_level: float
) -> tuple[Floats, Floats]:
    """Range of the observed frequency of calibrated scores, by binomial quantiles."""
    n, p = np.asarray(count, dtype=np.float64), np.asarray(predicted)
    tail = (1.0 - confidence_level) / 2.0
    return binom.ppf(tail, n, p) / n, binom.ppf(1.0 - tail, n, p) / n
