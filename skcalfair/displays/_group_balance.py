"""How the classes and the groups of a data set are balanced."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from .._validation import as_1d, check_same_length, encode_groups, encode_labels
from ._style import cut, despine, fill_style, grid_of_axes, label, literal, wrapped
from ._tables import check_columns, group_label, table_of

COLUMNS = ("group", "n", "positives")
_NAME_WIDTH = 20  # characters beside a bar


class GroupBalanceDisplay:
    """Bars of the class balance, and of the groups with the classes in each.

    Parameters
    ----------
    counts : DataFrame
        One row a group: `group`, `n` rows and `positives` among them.
    class_names : tuple of (str, str), default=("negative", "positive")
        Names of the two classes in the legend.

    Attributes
    ----------
    counts : DataFrame
        The table.
    class_names : tuple of (str, str)
        Names of the two classes.
    axes_ : ndarray of matplotlib Axes
        Classes and groups; after `plot`.
    figure_ : matplotlib Figure
        Their figure; after `plot`.

    See Also
    --------
    GroupRunsDisplay : What is measured in the groups.

    Examples
    --------
    >>> from skcalfair.datasets import make_skin_tone_cohort
    >>> from skcalfair.displays import GroupBalanceDisplay
    >>> cohort = make_skin_tone_cohort()
    >>> display = GroupBalanceDisplay.from_labels(
    ...     cohort["malignant"], sensitive_features=cohort["skin_tone"]
    ... )
    >>> display.frame().round(2)
       group     n  positives  prevalence  share
    0   dark    71         32        0.45   0.05
    1  light  1423        685        0.48   0.95
    """

    def __init__(
        self,
        counts: pd.DataFrame,
        *,
        class_names: tuple[str, str] = ("negative", "positive"),
    ) -> None:
        self.counts = check_columns(counts, COLUMNS, "counts")
        self.class_names = class_names

    @classmethod
    def from_labels(
        cls,
        y: ArrayLike,
        *,
        sensitive_features: Any,
        missing: str = "own_group",
        pos_label: Any = None,
    ) -> Self:
        """Count the rows of each group and class.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Labels of two classes.
        sensitive_features : array-like, Series, dict or DataFrame
            Group of each row; several columns intersect.
        missing : {"raise", "own_group", "drop"}, default="own_group"
            What to do with rows whose group is missing: show them as "missing" by
            default.
        pos_label : int, float, bool or str, default=None
            Label of the positive class; needed for text labels.

        Returns
        -------
        GroupBalanceDisplay
            The display, not yet drawn.
        """
        labels = as_1d(y, "y")
        outcome, positive = encode_labels(labels, pos_label, "y")
        groups = encode_groups(sensitive_features, len(labels), missing=missing)
        check_same_length(("y", labels), ("sensitive_features", groups.codes))
        known = groups.codes >= 0
        n = np.bincount(groups.codes[known], minlength=len(groups.labels))
        positives = np.bincount(
            groups.codes[known], weights=outcome[known], minlength=len(groups.labels)
        )
        counts = pd.DataFrame(
            {
                "group": [group_label(label) for label in groups.labels],
                "n": n,
                "positives": positives.astype(np.int64),
            }
        )
        if pos_label is None:
            return cls(counts)
        others = [label for label in np.unique(labels).tolist() if label != positive]
        return cls(counts, class_names=(str((*others, "other")[0]), str(positive)))

    @classmethod
    def from_result(cls, result: Any) -> Self:
        """Take the groups of an audit or a study.

        Parameters
        ----------
        result : object
            Has them as `groups` (`skcalfair.audit.AuditResult`,
            `skcalfair.experiments.SubgroupStudyResult`) or `groups_`
            (`skcalfair.audit.SubgroupAuditor`).

        Returns
        -------
        GroupBalanceDisplay
            The display, not yet drawn.
        """
        return cls(table_of(result, "groups_", "groups", columns=COLUMNS))

    def frame(self) -> pd.DataFrame:
        """Return the numbers that are drawn.

        Returns
        -------
        DataFrame
            One row a group: `group`, `n`, `positives`, the `prevalence` in the group
            and its `share` of all rows.
        """
        table = self.counts[list(COLUMNS)].copy()
        table["prevalence"] = table["positives"] / table["n"]
        table["share"] = table["n"] / table["n"].sum()
        return table

    def plot(self, ax: Any = None) -> Self:
        """Draw the classes beside the groups.

        Parameters
        ----------
        ax : array of two matplotlib Axes, default=None
            For the classes and for the groups; by default a new figure.

        Returns
        -------
        GroupBalanceDisplay
            The display itself.
        """
        table = self.frame()
        height = 1.2 + 0.45 * max(2, len(table))
        axes = grid_of_axes(ax, 1, 2, panel_size=(4.2, height))[0]
        n, positives = table["n"].sum(), table["positives"].sum()
        for number, count in enumerate((n - positives, positives)):
            axes[0].barh(number, count, height=0.6, **fill_style(number, alpha=0.75))
            _write(axes[0], count, number, f"{count:,} ({count / n:.0%})")
        _name_bars(axes[0], self.class_names)
        axes[0].set(title="classes", xlabel="rows")
        self._draw_groups(axes[1], table)
        for panel in axes:
            panel.margins(x=0.5)
            panel.invert_yaxis()
        despine(axes)
        self.axes_, self.figure_ = axes, axes[0].figure
        return self

    def _draw_groups(self, panel: Any, table: pd.DataFrame) -> None:
        negatives = table["n"] - table["positives"]
        left: Any = 0
        for number, counts in enumerate((negatives, table["positives"])):
            panel.barh(
                np.arange(len(table)),
                counts,
                left=left,
                height=0.6,
                label=label(wrapped(self.class_names[number])),
                **fill_style(number, alpha=0.75),
            )
            left = counts
        for number, row in enumerate(table.itertuples()):
            text = f"{row.n:,}, {row.prevalence:.0%} {cut(self.class_names[1], 20)}"
            _write(panel, row.n, number, text)
        _name_bars(panel, [group_label(group) for group in table["group"]])
        panel.set(title="groups", xlabel="rows")


def _name_bars(panel: Any, names: Sequence[Any]) -> None:
    """Names beside the bars."""
    written = [literal(wrapped(name, _NAME_WIDTH)) for name in names]
    panel.set_yticks(range(len(names)), written)


def _write(panel: Any, x: float, y: float, text: str) -> None:
    """A few words at the end of a bar."""
    panel.annotate(
        literal(text), (x, y), xytext=(4, 0), textcoords="offset points", va="center",
        fontsize="small",
    )  # fmt: skip
