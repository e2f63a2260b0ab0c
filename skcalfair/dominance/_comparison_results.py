"""Results of the three common comparisons of a model with readers."""

from dataclasses import dataclass, fields

import pandas as pd

from .._text import plural
from ._comparison_words import (
    AREA_IS_WRONG,
    MEAN_IS_WRONG,
    POINT_IS_WRONG,
    differences,
    dominance,
    paragraphs,
    readings,
    some,
    the_model,
)
from ._curves import TIE
from ._words import rate


class _ShortRepr:
    """Numbers and texts on a line, without the tables."""

    def __repr__(self) -> str:
        values = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        parts = [
            f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value!r}"
            for name, value in values.items()
            if not isinstance(value, pd.DataFrame)
        ]
        return f"{type(self).__name__}({', '.join(parts)})"


@dataclass(frozen=True, repr=False)
class MeanReaderComparison(_ShortRepr):
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
    model : str
        Name of the model in the table.
    readers_above : tuple of str
        Readers above the model's ROC curve.
    readers_best : tuple of str
        Readers who have the least expected cost at some gradient.

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
    >>> print(result.summary()[:67])
    The mean of 1 reader (sensitivity 0.667, specificity 1.000) lies on
    """

    mean_sensitivity: float
    mean_specificity: float
    model_sensitivity: float
    is_under_curve: bool
    readers: pd.DataFrame
    table: pd.DataFrame
    model: str = "model"

    @property
    def readers_above(self) -> tuple[str, ...]:
        """Readers above the model's ROC curve."""
        return tuple(self.readers.loc[self.readers["is_above_curve"], "reader"])

    @property
    def readers_best(self) -> tuple[str, ...]:
        """Readers who have the least expected cost at some gradient."""
        return _readers_best(self.table, self.readers["reader"])

    def summary(self) -> str:
        """
        Say the result in words, and what the comparison gets wrong.

        Returns
        -------
        str
            Several paragraphs, the last ones what the dominance table says.
        """
        above, n = self.readers_above, len(self.readers)
        who = f"Above the curve: {some(above)}." if above else "No reader is above it."
        claim = "The usual claim would be that the model is better than the readers."
        if not self.is_under_curve:
            claim = "The usual claim would be that the model is no better."
        return paragraphs(
            f"The mean of {plural(n, 'reader')} (sensitivity "
            f"{rate(self.mean_sensitivity)}, specificity "
            f"{rate(self.mean_specificity)}) lies {self._where()} the ROC curve of "
            f"{the_model(self.model)}, which has a sensitivity of "
            f"{rate(self.model_sensitivity)} there. {claim}",
            who,
            MEAN_IS_WRONG,
            dominance(self.table, self.readers_best, n),
        )

    def _where(self) -> str:
        if self.is_under_curve:
            return "under"
        gap = self.mean_sensitivity - self.model_sensitivity
        return "above" if gap > TIE else "on"


@dataclass(frozen=True, repr=False)
class ReaderHullComparison(_ShortRepr):
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
    model : str
        Name of the model in the table.
    readers_best : tuple of str
        Readers who have the least expected cost at some gradient.

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
    >>> print(result.summary()[:44])
    The area under the hull of 1 reader is 0.833
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
    model: str = "model"

    @property
    def readers_best(self) -> tuple[str, ...]:
        """Readers who have the least expected cost at some gradient."""
        return _readers_best(self.table, self.readers["reader"])

    def summary(self) -> str:
        """
        Say the result in words, and what the comparison gets wrong.

        Returns
        -------
        str
            Several paragraphs, the last ones what the dominance table says.
        """
        n = len(self.readers)
        inside = (
            f"Within it, the readers have {rate(self.reader_area_inside)}, and "
            f"{the_model(self.model)} {rate(self.model_area_inside)} "
            f"({rate(self.model_hull_area_inside)} under its hull)."
        )
        if self.fpr_low == self.fpr_high:
            inside = "That is one point, with no area over it."
        return paragraphs(
            f"The area under the hull of {plural(n, 'reader')} is "
            f"{rate(self.reader_auc)}, and that under the ROC curve of "
            f"{the_model(self.model)} is {rate(self.model_auc)} "
            f"({rate(self.model_hull_auc)} under its hull).",
            f"Readers decide at false positive rates from {rate(self.fpr_low)} to "
            f"{rate(self.fpr_high)}; {100 * self.share_outside:.0f} % of their area is "
            f"outside of that range, where nobody decides. {inside}",
            AREA_IS_WRONG,
            dominance(self.table, self.readers_best, n),
        )


@dataclass(frozen=True, repr=False)
class MatchedComparison(_ShortRepr):
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
        (better in one rate and not worse in the other), "trade-off" (each is better in
        one: one point cannot tell), "chance" (both intervals include 0), "equal" (both
        rates are the same), or "untested" (they differ, and with weights there is no
        interval).
    table : DataFrame
        What to look at instead: the dominance table of the model and the readers.
    model : str
        Name of the model in the table.
    readers_best : tuple of str
        Readers who have the least expected cost at some gradient.

    See Also
    --------
    matched_operating_point : Returns this.

    Examples
    --------
    >>> from skcalfair.dominance import matched_operating_point
    >>> result = matched_operating_point(
    ...     [0, 0, 0, 1, 1, 1], [1, 2, 4, 3, 5, 6], [[0], [0], [0], [1], [1], [0]]
    ... )
    >>> result
    MatchedComparison(matched='specificity', target=None, model='model')
    >>> result.readers["reading"].tolist()
    ['equal']
    >>> print(result.summary().splitlines()[0])
    The model at the specificity of each reader, on the cases that the reader read:
    """

    matched: str
    target: float | None
    readers: pd.DataFrame
    table: pd.DataFrame
    model: str = "model"

    @property
    def readers_best(self) -> tuple[str, ...]:
        """Readers who have the least expected cost at some gradient."""
        return _readers_best(self.table, self.readers["reader"])

    def summary(self) -> str:
        """
        Say the result in words, and what the comparison gets wrong.

        Returns
        -------
        str
            Several paragraphs and tables, the last ones what the dominance table says.
        """
        at = f"a {self.matched} of at least {self.target}"
        if self.target is None:
            at = f"the {self.matched} of each reader"
        return paragraphs(
            f"{_capital(the_model(self.model))} at {at}, on the cases that the reader "
            "read:",
            differences(self.readers),
            readings(self.readers["reading"].tolist()),
            POINT_IS_WRONG,
            dominance(self.table, self.readers_best, len(self.readers)),
        )


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _readers_best(table: pd.DataFrame, readers: pd.Series) -> tuple[str, ...]:
    """Readers among the owners of a table, in the order of its rows."""
    known = set(readers)
    owners = (owner for owners in table["owners"] for owner in owners)
    return tuple(dict.fromkeys(owner for owner in owners if owner in known))
