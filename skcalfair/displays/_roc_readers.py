"""RocReadersDisplay: models' curves and readers' points in the ROC plane."""

from typing import Any, Self

import numpy as np
import pandas as pd

from ._owners import (
    OwnerStyles,
    check_has_hull,
    chosen_points,
    describe_pair,
)
from ._roc_points import (
    COUNT_COLUMNS,
    CURVE_COLUMNS,
    full_curves,
    own_hulls,
    reader_points,
)
from ._style import (
    LINESTYLES,
    REFERENCE,
    despine,
    label,
    new_axes,
    wrapped_after,
    wrapped_owners,
)

# More names than this make a legend that nobody reads.
_MOST_NAMED = 10
_LEGEND_ROW = 0.19  # inches
_MOST_COUNTS = 3  # of readers at one place who read different cases
# Dashes of a broad line are long; on a short edge they must still be told apart.
_SHORT_DASHES: dict[Any, Any] = {
    "--": (0, (1.8, 0.7)),
    "-.": (0, (3.0, 0.7, 0.6, 0.7)),
    ":": (0, (0.6, 0.6)),
    (0, (5, 1)): (0, (3.5, 0.5)),
    (0, (3, 1, 1, 1)): (0, (1.8, 0.4, 0.6, 0.4)),
    (0, (1, 1)): (0, (0.9, 0.3)),
    (0, (7, 2, 1, 2)): (0, (3.0, 0.8, 1.0, 0.8)),
    (0, (1, 1.5)): (0, (0.5, 0.8)),
    (0, (4, 1.5)): (0, (2.0, 0.8)),
}


class RocReadersDisplay:
    """ROC curves of models, points of readers, and whose point is best where.

    Parameters
    ----------
    curves : DataFrame
        Columns `name`, `fpr`, `tpr` and `threshold`: the curve of each model, by rising
        false positive rate.
    readers : DataFrame
        Columns `name`, `fpr`, `tpr`, `TP`, `positives`, `FP` and `negatives`: a point
        for each reader; the counts are NaN where only rates are known.
    hull : DataFrame
        Columns `owner`, `fpr` and `tpr`: the vertices of the hull of all points.
    chosen : DataFrame, default=None
        Columns `prevalence`, `cost_ratio`, `cpg`, `owner`, `fpr` and `tpr`: chosen
        points with the vertex that is best there.
    is_full_curve : bool, default=True
        Whether the curves have all thresholds, or only the models' own hulls.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the curves.
    figure_ : matplotlib Figure
        Figure with the axes.

    See Also
    --------
    DominanceDisplay : The same owners along the cost-prevalence gradient.
    sklearn.metrics.RocCurveDisplay : The ROC curve of one model.

    Notes
    -----
    An iso-cost line joins points of equal expected cost, at a slope of the
    cost-prevalence gradient; it goes through the vertex that is best there, and no
    point lies above it.

    The cross is the mean of the readers' rates. It says nothing of any reader: it lies
    below the curve on which the readers are, so that a model above the cross may still
    be worse than every one of them.

    The legend cuts long names and lists of co-owners; `frame` has them in full.

    Examples
    --------
    >>> import pandas as pd
    >>> from skcalfair.displays import RocReadersDisplay
    >>> from skcalfair.dominance import DominanceTable
    >>> study = pd.DataFrame(
    ...     {
    ...         "model": [0.1, 0.2, 0.3, 0.4, 0.7, 0.35, 0.45, 0.5, 0.6, 0.9],
    ...         "reader": [0, 0, 0, 0, 0, 1, 1, 1, 1, 0],
    ...     }
    ... )
    >>> truth = [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
    >>> table = DominanceTable().fit(study, truth)
    >>> display = RocReadersDisplay.from_table(table, study, truth)
    >>> display.readers[["name", "fpr", "tpr"]]
         name  fpr  tpr
    0  reader  0.0  0.8
    >>> display.curves.head(3)
        name  fpr  tpr  threshold
    0  model  0.0  0.0        inf
    1  model  0.0  0.2        0.9
    2  model  0.2  0.2        0.7
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        *,
        curves: pd.DataFrame,
        readers: pd.DataFrame,
        hull: pd.DataFrame,
        chosen: pd.DataFrame | None = None,
        is_full_curve: bool = True,
    ) -> None:
        self.curves = curves
        self.readers = readers
        self.hull = hull
        self.chosen = chosen
        self.is_full_curve = is_full_curve

    @classmethod
    def from_table(
        cls,
        table: Any,
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: Any = None,
        points: Any = None,
    ) -> Self:
        """
        Take the numbers from a dominance table.

        Parameters
        ----------
        table : DominanceTable
            A fitted table, or one made of published points.
        X : array-like of shape (n_samples, n_features), default=None
            The columns that the table was fitted to, for the models' full ROC curves.
            Without them the hull of each model's own points is drawn.
        y : array-like of shape (n_samples,), default=None
            The truth that the table was fitted to; needed with `X`.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights: those that the table was fitted with.
        points : list of (float, float), default=None
            Pairs of prevalence, in (0, 1), and cost ratio (false positive over false
            negative) to draw iso-cost lines for.

        Returns
        -------
        RocReadersDisplay
            The display, not drawn yet. Of a long curve some 2,000 points are kept.

        Raises
        ------
        ValueError
            If the table is not fitted, only one of `X` and `y` is given, `X` lacks the
            column of a model, the table was made of published points although `X` is
            given, the counts at its points are not those of `X`, `y` and
            `sample_weight`, or a pair is out of range.
        """
        hull = check_has_hull(table)
        if (X is None) != (y is None):
            raise ValueError("X and y go together: give both, or none")
        curves = (
            own_hulls(table) if X is None else full_curves(table, X, y, sample_weight)
        )
        chosen = chosen_points(hull, points)
        return cls(
            curves=curves,
            readers=reader_points(table.operating_points_),
            hull=pd.DataFrame(
                {
                    "owner": hull["owner"],
                    "fpr": 1.0 - hull["specificity"],
                    "tpr": hull["sensitivity"],
                }
            )[::-1].reset_index(drop=True),
            chosen=chosen if len(chosen) else None,
            is_full_curve=X is not None,
        )

    @property
    def mean_reader(self) -> tuple[float, float]:
        """Means of the readers' false positive and true positive rates."""
        return float(self.readers["fpr"].mean()), float(self.readers["tpr"].mean())

    def frame(self) -> pd.DataFrame:
        """
        List all numbers drawn, in one long table.

        Returns
        -------
        DataFrame
            Columns `part` ("curve", "reader", "mean of readers", "hull" or "chosen"),
            `name`, `fpr`, `tpr`, and where they apply `threshold`, the counts `TP`,
            `positives`, `FP` and `negatives`, `prevalence`, `cost_ratio` and `cpg`.
        """
        mean = {"name": "", "fpr": self.mean_reader[0], "tpr": self.mean_reader[1]}
        parts = {
            "curve": self.curves,
            "reader": self.readers,
            "mean of readers": pd.DataFrame([mean] if len(self.readers) else []),
            "hull": self.hull.rename(columns={"owner": "name"}),
            "chosen": pd.DataFrame()
            if self.chosen is None
            else self.chosen.rename(columns={"owner": "name"}),
        }
        rows = [
            {"part": part, **row}
            for part, table in parts.items()
            for row in table.to_dict("records")
        ]
        columns = ["part", *CURVE_COLUMNS, *COUNT_COLUMNS]
        columns += ["prevalence", "cost_ratio", "cpg"]
        return pd.DataFrame(rows, columns=columns)

    def plot(
        self, ax: Any = None, *, max_fpr: float = 1.0, min_tpr: float = 0.0
    ) -> Self:
        """
        Draw curves, points, hull and iso-cost lines.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. By default a new figure is made. The legend is beside it.
        max_fpr : float, default=1.0
            False positive rate, in (0, 1], up to which to draw: where all readers have
            few false positives, only the corner tells them apart.
        min_tpr : float, default=0.0
            True positive rate, in [0, 1), from which to draw.

        Returns
        -------
        RocReadersDisplay
            The display itself.

        Raises
        ------
        ValueError
            If a rate is out of its range.
        """
        if not 0.0 < max_fpr <= 1.0:
            raise ValueError(f"max_fpr must lie in (0, 1]; got {max_fpr!r}")
        if not 0.0 <= min_tpr < 1.0:
            raise ValueError(f"min_tpr must lie in [0, 1); got {min_tpr!r}")
        self.ax_ = new_axes(ax, figsize=(9.0, 5.2))
        self.figure_ = self.ax_.figure
        self._set_plane(max_fpr, min_tpr)
        # From the low gradients on, as along the strip of DominanceDisplay.
        owners = self.hull["owner"].to_numpy()[::-1]
        styles = OwnerStyles(
            [*owners, *self.curves["name"].unique(), *self.readers["name"]]
        )
        self.ax_.plot([0, 1], [0, 1], color=REFERENCE, lw=0.8, ls=(0, (1, 3)))
        entries: dict[str, list[Any]] = {owner: [] for owner in owners}
        self._draw_hull(styles, entries)
        self._draw_curves(styles, entries)
        labels = self._draw_readers(styles, entries)
        self._draw_chosen(entries, labels)
        drawn = [
            (label(labels.get(key, wrapped_owners(key))), tuple(handles))
            for key, handles in entries.items()
            if handles
        ]
        self._draw_legend(drawn, ax is None)
        return self

    def _draw_hull(self, styles: OwnerStyles, entries: dict[str, list[Any]]) -> None:
        """A broad line; between two owners each has the half next to its vertex."""
        x, y = self.hull["fpr"].to_numpy(), self.hull["tpr"].to_numpy()
        owners = self.hull["owner"].to_numpy()
        starts = np.flatnonzero(np.append(True, owners[1:] != owners[:-1]))
        for start, end in zip(starts, [*starts[1:], len(owners)], strict=True):
            px, py = x[start:end].tolist(), y[start:end].tolist()
            if start > 0:
                px.insert(0, (x[start - 1] + x[start]) / 2)
                py.insert(0, (y[start - 1] + y[start]) / 2)
            if end < len(owners):
                px.append((x[end - 1] + x[end]) / 2)
                py.append((y[end - 1] + y[end]) / 2)
            style = styles.line(owners[start])
            style["linestyle"] = _SHORT_DASHES.get(style["linestyle"], "-")
            entries[owners[start]][:1] = self.ax_.plot(
                px,
                py,
                linewidth=5,
                alpha=0.4,
                solid_capstyle="butt",
                dash_capstyle="butt",
                zorder=2,
                **style,
            )

    def _draw_curves(self, styles: OwnerStyles, entries: dict[str, list[Any]]) -> None:
        names = self.curves["name"].unique()
        others = [name for name in names if name not in entries][_MOST_NAMED:]
        for name in names:
            rows = self.curves[self.curves["name"] == name]
            style = styles.line(name) | {"linewidth": 1.4, "zorder": 3}
            if name in others:
                style = {"color": "0.75", "linewidth": 0.8, "zorder": 1}
            line = self.ax_.plot(rows["fpr"], rows["tpr"], **style)
            key = f"{len(others)} other models" if name in others else name
            entries.setdefault(key, [])
            entries[key] += [] if name in others and entries[key] else line

    def _draw_readers(
        self, styles: OwnerStyles, entries: dict[str, list[Any]]
    ) -> dict[str, str]:
        """Points; returned is how the legend calls each, with its counts."""
        owner_of = self._owner_of_readers()
        places = self.readers.groupby(["fpr", "tpr"], sort=False)
        others = [name for name in self.readers["name"] if name not in owner_of]
        is_few = len(places) <= _MOST_NAMED
        widest, lowest = self.ax_.get_xlim()[1], self.ax_.get_ylim()[0]
        labels = {}
        for (fpr, tpr), group in places:
            names = " = ".join(group["name"])
            key = owner_of.get(group["name"].iloc[0], names)
            style = {"markersize": 8, "markeredgecolor": "white", "zorder": 5}
            if is_few or key in owner_of.values():
                style |= styles.point(key if key in entries else group["name"].iloc[0])
                labels[key] = _with_counts(wrapped_owners(key), group)
            else:
                key = f"{len(others)} other readers"
                style = {"markersize": 6, "color": "0.5", "marker": ".", "zorder": 4}
            # A marker on the frame is drawn whole, one beyond it not at all.
            style["clip_on"] = fpr > widest or tpr < lowest
            point = self.ax_.plot(fpr, tpr, linestyle="none", **style)
            entries.setdefault(key, [])
            entries[key] += (
                [] if key.endswith("other readers") and entries[key] else point
            )
        if len(self.readers) > 1:
            entries["mean of the readers (misleading)"] = self.ax_.plot(
                *self.mean_reader,
                linestyle="none",
                marker="+",
                markersize=15,
                markeredgewidth=2.2,
                color="black",
                zorder=6,
            )
        return labels

    def _owner_of_readers(self) -> dict[str, str]:
        """For each reader on a vertex, how the owners of that vertex are called."""
        vertices = {
            (row.fpr, row.tpr): row.owner for row in self.hull.round(12).itertuples()
        }
        readers = self.readers.round({"fpr": 12, "tpr": 12})
        places = zip(readers["name"], readers["fpr"], readers["tpr"], strict=True)
        return {
            name: vertices[fpr, tpr]
            for name, fpr, tpr in places
            if (fpr, tpr) in vertices
        }

    def _draw_chosen(
        self, entries: dict[str, list[Any]], labels: dict[str, str]
    ) -> None:
        if self.chosen is None:
            return
        for i, row in enumerate(self.chosen.itertuples()):
            # Within the unit square: from the left or lower side to the upper one.
            left = max(0.0, row.fpr - row.tpr / row.cpg)
            right = min(1.0, row.fpr + (1.0 - row.tpr) / row.cpg)
            x = np.array([left, right])
            key = f"equal cost at {describe_pair(row.prevalence, row.cost_ratio)}"
            labels[key] = key
            entries[key] = self.ax_.plot(
                x,
                row.tpr + row.cpg * (x - row.fpr),
                color="black",
                linewidth=1.1,
                linestyle=LINESTYLES[i % len(LINESTYLES)],
                zorder=3,
            )

    def _set_plane(self, max_fpr: float, min_tpr: float) -> None:
        width, height = max_fpr, 1.0 - min_tpr
        self.ax_.set(
            xlim=(-0.01 * width, max_fpr + 0.01 * width),
            ylim=(min_tpr - 0.01 * height, 1.0 + 0.01 * height),
            aspect=width / height,
            xlabel="false positive rate (1 - specificity)",
            ylabel="true positive rate (sensitivity)",
        )
        self.ax_.locator_params(nbins=6)
        despine(self.ax_)

    def _draw_legend(self, entries: list[tuple[str, Any]], is_own: bool) -> None:
        title = "broad line: hull of all points, by owner"
        if self.readers["TP"].notna().any():
            title += "\ncounts: true positives, false positives"
        if not (self.is_full_curve or self.curves.empty):
            title += "\nthin line: a model's own hull"
        place: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.02, 0.5)}
        if is_own:
            place = {"loc": "outside right center"}
            n_rows = sum(text.count("\n") + 1 for text, _ in entries)
            n_rows += title.count("\n") + 2
            height = max(self.figure_.get_figheight(), _LEGEND_ROW * n_rows)
            self.figure_.set_figheight(height)
        (self.figure_ if is_own else self.ax_).legend(
            [handles for _, handles in entries],
            [text for text, _ in entries],
            frameon=False,
            fontsize="small",
            handlelength=3.2,
            title=title,
            title_fontsize="small",
            alignment="left",
            **place,
        )


def _with_counts(names: str, group: pd.DataFrame) -> str:
    """Names and counts of readers at the same place, if the counts are known."""
    counts = group[COUNT_COLUMNS].drop_duplicates()
    if counts["TP"].isna().any():
        return names
    written = [
        f"{tp:g}/{positives:g}, {fp:g}/{negatives:g}"
        for tp, positives, fp, negatives in counts.head(_MOST_COUNTS).values
    ]
    written += ["..."] if len(counts) > _MOST_COUNTS else []
    text = f"{names}:"
    for i, part in enumerate(written):
        text = wrapped_after(text, part + ";" * (i < len(written) - 1))
    return text
