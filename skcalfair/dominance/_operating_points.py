"""Operating points: the counts of true and false decisions, whoever makes them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._validation import as_floats

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

COUNTS = ("TP", "FN", "FP", "TN")
RATES = ("sensitivity", "specificity")
# Decimals kept of a published rate; a product of two still fits Python's integers.
_DIGITS = 12


@dataclass(frozen=True)
class OperatingPoints:
    """Operating points of models and readers, in exact counts.

    Parameters
    ----------
    name : ndarray of shape (n_points,), object
        Whose point it is: the name of a model or reader.
    kind : ndarray of shape (n_points,), object
        ``"model"`` or ``"reader"``.
    threshold : ndarray of shape (n_points,)
        A score or rating of at least this is called positive; NaN where the calls
        themselves were given.
    tp, positives, fp, negatives : ndarray of shape (n_points,), int64
        True positives of so many positives, false positives of so many negatives, in
        multiples of `unit`.
    unit : float, default=1.0
        Weight of one count; it differs from 1 for fractional weights.
    has_counts : bool, default=True
        False where only rates are known: then nothing can be said of uncertainty.
    unread : dict of str to int, optional
        Number of cases that a reader did not read.

    See Also
    --------
    DominanceTable : Who decides best at which cost and prevalence.

    Notes
    -----
    Counts are whole numbers so that ties and convexity are decided exactly. Fractional
    weights keep 52 binary digits of their sum, published rates 12 decimals.

    Examples
    --------
    >>> import pandas as pd
    >>> from skcalfair.dominance import OperatingPoints
    >>> points = OperatingPoints.from_frame(
    ...     pd.DataFrame({"name": ["A"], "TP": [9], "FN": [1], "FP": [2], "TN": [18]})
    ... )
    >>> points.sensitivity, points.specificity
    (array([0.9]), array([0.9]))
    """

    name: NDArray[np.object_]
    kind: NDArray[np.object_]
    threshold: Floats
    tp: Ints
    positives: Ints
    fp: Ints
    negatives: Ints
    unit: float = 1.0
    has_counts: bool = True
    unread: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.name)

    @property
    def names(self) -> list[str]:
        """Names of the models and readers, each once, in order of appearance."""
        return list(dict.fromkeys(self.name.tolist()))

    @property
    def kinds(self) -> dict[str, str]:
        """Kind of each name, in order of appearance."""
        return dict(zip(self.name.tolist(), self.kind.tolist(), strict=True))

    @property
    def sensitivity(self) -> Floats:
        """True positive rate, of shape (n_points,), in [0, 1]."""
        return self.tp / self.positives

    @property
    def specificity(self) -> Floats:
        """True negative rate, of shape (n_points,), in [0, 1]."""
        return (self.negatives - self.fp) / self.negatives

    @property
    def fpr(self) -> Floats:
        """False positive rate, of shape (n_points,), in [0, 1]."""
        return self.fp / self.negatives

    def to_frame(self) -> pd.DataFrame:
        """
        List the points as a table.

        Returns
        -------
        DataFrame
            Columns ``name``, ``kind``, ``threshold``, ``TP``, ``FN``, ``FP``, ``TN``
            (NaN where only rates are known), ``sensitivity`` and ``specificity``.

        Examples
        --------
        >>> import pandas as pd
        >>> from skcalfair.dominance import OperatingPoints
        >>> rates = pd.DataFrame({"sensitivity": [0.8], "specificity": [0.7]}, ["A"])
        >>> OperatingPoints.from_frame(rates).to_frame()[["name", "kind", "TP"]]
          name    kind  TP
        0    A  reader NaN
        """
        counts = {
            "TP": self.tp,
            "FN": self.positives - self.tp,
            "FP": self.fp,
            "TN": self.negatives - self.fp,
        }
        return pd.DataFrame(
            {"name": self.name, "kind": self.kind, "threshold": self.threshold}
            | {label: self._in_cases(value) for label, value in counts.items()}
            | {"sensitivity": self.sensitivity, "specificity": self.specificity}
        )

    def _in_cases(self, counts: Ints) -> NDArray:
        if not self.has_counts:
            return np.full(len(self), np.nan)
        return counts if self.unit == 1.0 else counts * self.unit

    @classmethod
    def from_frame(cls, frame: Any) -> Self:
        """
        Take points from a table, for example one out of a publication.

        Parameters
        ----------
        frame : DataFrame or dict of columns
            One row per point, with the column ``name`` (or the names as index) and
            either the counts ``TP``, ``FN``, ``FP``, ``TN`` or the rates
            ``sensitivity`` and ``specificity`` in [0, 1]. Optional: ``kind``, which is
            ``"model"`` or ``"reader"`` (by default a name with several points is a
            model), and ``threshold``. Capitals in column names do not matter.

        Returns
        -------
        OperatingPoints
            The points, in the order given.

        Raises
        ------
        ValueError
            If a column is absent, a count is negative or no whole number, a rate is
            outside [0, 1], or a point has no positives or no negatives.
        """
        table = _as_table(frame)
        names = _names(table)
        given = [c for c in COUNTS if c.lower() in table]
        if len(given) == len(COUNTS):
            counts = [_count_column(table[c.lower()], c) for c in COUNTS]
            tp, fn, fp, tn = counts
            positives, negatives = tp + fn, fp + tn
        elif given or not all(rate in table for rate in RATES):
            raise ValueError(
                "points must have the columns TP, FN, FP and TN, or sensitivity and "
                f"specificity; got {', '.join(map(str, table.columns)) or 'none'}"
            )
        else:
            tp, positives = _rate_column(table["sensitivity"], "sensitivity")
            tn, negatives = _rate_column(table["specificity"], "specificity")
            fp = negatives - tn
        _check_both_classes(names, positives, negatives)
        return cls(
            name=names,
            kind=_kinds(table, names),
            threshold=_thresholds(table),
            tp=tp,
            positives=positives,
            fp=fp,
            negatives=negatives,
            has_counts=bool(given),
        )


def concatenate(parts: Sequence[OperatingPoints]) -> OperatingPoints:
    """One set of points of several, which share their unit."""
    columns = ("name", "kind", "threshold", "tp", "positives", "fp", "negatives")
    joined: dict[str, Any] = {
        c: np.concatenate([getattr(part, c) for part in parts]) for c in columns
    }
    unread = {name: n for part in parts for name, n in part.unread.items()}
    return OperatingPoints(**joined, unit=parts[0].unit, unread=unread)


def _as_table(frame: Any) -> pd.DataFrame:
    """Columns in lower case; a named or textual index becomes the names."""
    if isinstance(frame, pd.DataFrame):
        table = frame
        if "name" not in [str(c).lower() for c in frame.columns] and not isinstance(
            frame.index, pd.RangeIndex
        ):
            table = frame.rename_axis("name").reset_index()
    elif hasattr(frame, "columns") and not isinstance(frame, dict):
        table = pd.DataFrame({c: frame[c].to_numpy() for c in frame.columns})
    else:
        try:
            table = pd.DataFrame(frame)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"points must be a table with named columns; {error}"
            ) from (error)
    table = table.rename(columns=lambda c: str(c).strip().lower())
    twice = table.columns[table.columns.duplicated()]
    if len(twice):
        raise ValueError(f"points have the column {twice[0]!r} twice")
    if table.empty:
        raise ValueError("points are empty: at least one row is needed")
    return table


def _names(table: pd.DataFrame) -> NDArray[np.object_]:
    if "name" not in table:
        raise ValueError(
            "points must have a column 'name' (whose point it is); got "
            f"{', '.join(map(str, table.columns))}"
        )
    missing = table["name"].isna().to_numpy()
    if missing.any():
        raise ValueError(f"the point in row {int(missing.argmax())} has no name")
    return np.array([str(name) for name in table["name"]], dtype=object)


def _kinds(table: pd.DataFrame, names: NDArray[np.object_]) -> NDArray[np.object_]:
    several = pd.Series(names).value_counts()
    usual = ["model" if several[name] > 1 else "reader" for name in names]
    if "kind" not in table:
        return np.array(usual, dtype=object)
    given = table["kind"].where(table["kind"].notna(), usual)
    kinds = np.array([str(kind).strip().lower() for kind in given], dtype=object)
    for name, kind in zip(names, kinds, strict=True):
        if kind not in ("model", "reader"):
            raise ValueError(f"kind must be 'model' or 'reader'; {name!r} has {kind!r}")
    of_name = dict(zip(names, kinds, strict=True))
    for name, kind in zip(names, kinds, strict=True):
        if kind != of_name[name]:
            raise ValueError(f"kind of {name!r} must be the same in all its rows")
    return kinds


def _thresholds(table: pd.DataFrame) -> Floats:
    if "threshold" not in table:
        return np.full(len(table), np.nan)
    return as_floats(table["threshold"], "threshold")


def _count_column(values: pd.Series, name: str) -> Ints:
    counts = as_floats(values, name)
    bad = np.flatnonzero(~((counts >= 0) & (counts == np.floor(counts))))
    if bad.size or counts.max() > 2**53:
        row = int(bad[0]) if bad.size else int(counts.argmax())
        raise ValueError(
            f"{name} must hold numbers of cases; got {counts[row]:g} in row {row}"
        )
    return counts.astype(np.int64)


def _rate_column(values: pd.Series, name: str) -> tuple[Ints, Ints]:
    """Numerators over a power of ten: the decimals that were printed, exactly."""
    rates = as_floats(values, name)
    bad = np.flatnonzero(~((rates >= 0) & (rates <= 1)))
    if bad.size:
        row = int(bad[0])
        hint = "; give fractions, not percentages" if rates[row] > 1 else ""
        raise ValueError(
            f"{name} must lie in [0, 1]; got {rates[row]:g} in row {row}{hint}"
        )
    scale = 10**_DIGITS
    exact = [round(Fraction(Decimal(repr(float(rate)))) * scale) for rate in rates]
    return np.array(exact, dtype=np.int64), np.full(len(rates), scale, dtype=np.int64)


def _check_both_classes(
    names: NDArray[np.object_], positives: Ints, negatives: Ints
) -> None:
    for name, p, n in zip(names, positives, negatives, strict=True):
        if p == 0 or n == 0:
            lacking = "positive (TP + FN)" if p == 0 else "negative (FP + TN)"
            raise ValueError(
                f"{name!r} has no {lacking} case, so a rate is not defined"
            )
