"""Results of the three common comparisons of a model with readers."""

from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class MeanReaderComparison:
    """A model's ROC curve against the mean of the readers' points.

    Attributes
    ----------
    mean_sensitivity : float
        Mean of the readers' sensitivities, in [0, 1].
    mean_specificity : float
        Mean of their specificities.
    model_sensitivity : float
        Height of the model's ROC curve at the mean specificity.
    is_under_curve : bool
        Whether the mean reader lies under the model's curve: the usual claim that the
        model is better than the readers.
    readers : DataFrame
        A row for each reader: `reader`, `n_read`, `sensitivity`, `specificity`, the
        height of the model's curve at that specificity (`model_sensitivity`), and
        whether the reader lies above it (`is_above_curve`).
    table : DataFrame
        What to look at instead: the dominance table of the model and the readers.

    See Also
    --------
    compare_mean_reader : Returns this.

    Examples
    --------
    >>> from skcalfair.dominance import compare_mean_reader
    >>> result = compare_mean_reader(
    ...     [0, 0, 0, 1, 1, 1], [1, 2, 4, 3, 5, 6], [[0], [0], [0], [1], [1], [0]]
    ... )
    >>> result.readers_above
    ()
    """

    mean_sensitivity: float
    mean_specificity: float
    model_sensitivity: float
    is_under_curve: bool
    readers: pd.DataFrame
    table: pd.DataFrame

    @property
    def readers_above(self) -> tuple[str, ...]:
        """Readers above the model's ROC curve."""
        return tuple(self.readers.loc[self.readers["is_above_curve"], "reader"])

    @property
    def readers_best(self) -> tuple[str, ...]:
        """Readers who have the least expected cost at some gradient."""
        return _readers_best(self.table, self.readers["reader"])


@dataclass(frozen=True)
class ReaderHullComparison:
    """The area under the hull of the readers' points, beside that of a model.

    Attributes
    ----------
    reader_auc : float
        Area under the hull of the readers' points with (0, 0) and (1, 1).
    model_auc : float
        Area under the model's ROC curve.
    model_hull_auc : float
        Area under the hull of the model's ROC curve: like is compared with like.
    fpr_low : float
        Least false positive rate of a reader.
    fpr_high : float
        Greatest one: between them is the range in which readers decide.
    reader_area_inside : float
        The part of `reader_auc` within that range.
    model_area_inside : float
        The part of `model_auc`.
    model_hull_area_inside : float
        The part of `model_hull_auc`.
    share_outside : float
        Share of `reader_auc` outside of the range, where no reader decides and the hull
        is only a straight line to a corner.
    readers : DataFrame
        A row for each reader: `reader`, `n_read`, `sensitivity`, `specificity`.
    table : DataFrame
        What to look at instead: the dominance table of the model and the readers.

    See Also
    --------
    reader_hull_auc : Returns this.

    Examples
    --------
    >>> from skcalfair.dominance import reader_hull_auc
    >>> result = reader_hull_auc(
    ...     [0, 0, 0, 1, 1, 1], [1, 2, 4, 3, 5, 6], [[0], [0], [0], [1], [1], [0]]
    ... )
    >>> result.share_outside
    1.0
    """

    reader_auc: float
    model_auc: float
    model_hull_auc: float
    fpr_low: float
    fpr_high: float
    reader_area_inside: float
    model_area_inside: float
    model_hull_area_inside: float
    share_outside: float
    readers: pd.DataFrame
    table: pd.DataFrame

    @property
    def readers_best(self) -> tuple[str, ...]:
        """Readers who have the least expected cost at some gradient."""
        return _readers_best(self.table, self.readers["reader"])


@dataclass(frozen=True)
class MatchedComparison:
    """A model at one threshold against each reader.

    Attributes
    ----------
    matched : {"specificity", "sensitivity"}
        The rate at which the model was held.
    target : float or None
        The stated rate; None where the model was held at each reader's.
    readers : DataFrame
        A row for each reader: `reader`, `n_read`, the model's `threshold` and its
        `model_sensitivity` and `model_specificity` there, the reader's `sensitivity`
        and `specificity`, both differences (model minus reader, `_difference`) with
        their paired intervals (`_low`, `_high`), and the `reading`: "model" or "reader"
        (better in one rate and not worse in the other), "equal", or "trade-off": one
        point cannot tell.
    table : DataFrame
        What to look at instead: the dominance table of the model and the readers.

    See Also
    --------
    matched_operating_point : Returns this.

    Examples
    --------
    >>> from skcalfair.dominance import matched_operating_point
    >>> result = matched_operating_point(
    ...     [0, 0, 0, 1, 1, 1], [1, 2, 4, 3, 5, 6], [[0], [0], [0], [1], [1], [0]]
    ... )
    >>> result.readers["reading"].tolist()
    ['equal']
    """

    matched: str
    target: float | None
    readers: pd.DataFrame
    table: pd.DataFrame

    @property
    def readers_best(self) -> tuple[str, ...]:
        """Readers who have the least expected cost at some gradient."""
        return _readers_best(self.table, self.readers["reader"])


def _readers_best(table: pd.DataFrame, readers: pd.Series) -> tuple[str, ...]:
    """Readers among the owners of a table, in the order of its rows."""
    known = set(readers)
    owners = (owner for owners in table["owners"] for owner in owners)
    return tuple(dict.fromkeys(owner for owner in owners if owner in known))
