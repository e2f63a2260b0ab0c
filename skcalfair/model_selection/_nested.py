"""Nested folds that keep patients whole and class x group shares alike."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import (
    BaseCrossValidator,
    StratifiedGroupKFold,
    StratifiedKFold,
)
from sklearn.utils.validation import _num_samples

from .._random import RandomStateLike, child_seeds
from .._validation import as_1d, encode_clusters, encode_groups, unique_labels

Positions = NDArray[np.intp]


class NestedStratifiedGroupKFold(BaseCrossValidator):
    """Nested cross-validation by patient, stratified by class and sensitive feature.

    Rows are divided into `n_outer` test folds; what is left of each is divided into
    `n_inner` validation folds, and the rest of it trains. No patient (any group of
    rows that belong together) is on two sides, and every class has about the same
    share of each sensitive group in all folds.

    Parameters
    ----------
    n_outer : int, default=5
        Number of test folds, at least 2.
    n_inner : int, default=5
        Number of validation folds for each test fold, at least 2. Only `split_nested`
        uses them.
    shuffle : bool, default=True
        Assign patients who are alike to the folds at random. Otherwise their sorted
        identifiers (or the order of the rows, without `groups`) decide.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the shuffle; an int gives the same folds in every call.

    See Also
    --------
    sklearn.model_selection.StratifiedGroupKFold : One level, stratified by class.
    skcalfair.audit.SubgroupAuditor : Trains and audits a classifier on these folds.

    Notes
    -----
    Folds are those of scikit-learn's
    :class:`~sklearn.model_selection.StratifiedGroupKFold` with the combination of
    class and sensitive features as its class (of
    :class:`~sklearn.model_selection.StratifiedKFold` without `groups`). In simulated
    cohorts of the shape of [1]_ (2,298 images of 1,373 patients, two classes, three
    groups of which one has 71 images) the share of each combination in each test and
    validation fold was within 0.7 percentage points of its share in all rows.

    The rows of a patient are seldom many compared with a fold. Where they are, the
    shares can only be as even as the largest patients allow. Patients are assigned one
    by one, in about 4 s for 10,000 of them, `n_outer` + 1 times for nested folds. Where
    every combination has fewer rows than there are folds, patients are dealt out in
    the order of class and group.

    With `groups`, the order of the rows does not matter: the same patients share a
    fold however the rows are sorted. A missing sensitive feature is a group of its own.

    As a scikit-learn splitter the class requests `groups` and `sensitive_features` by
    default: with metadata routing enabled they are passed in ``params=`` of
    `cross_validate` and others. Without it only `groups` arrives, and folds are
    stratified by class alone.

    References
    ----------
    .. [1] Ricci Lara, M. A., Mosquera, C., Ferrante, E. and Echeveste, R. (2023).
       "Towards unraveling calibration biases in medical image analysis".
       arXiv:2305.05101.

    Examples
    --------
    >>> from skcalfair.datasets import make_skin_tone_cohort
    >>> from skcalfair.model_selection import NestedStratifiedGroupKFold
    >>> cohort = make_skin_tone_cohort()
    >>> cv = NestedStratifiedGroupKFold(n_outer=3, n_inner=2, random_state=0)
    >>> for train, validation, test in cv.split_nested(
    ...     cohort[["score"]],
    ...     cohort["malignant"],
    ...     sensitive_features=cohort["skin_tone"],
    ...     groups=cohort["patient"],
    ... ):
    ...     dark = cohort["skin_tone"].iloc[test] == "dark"
    ...     print(len(train), len(validation), len(test), dark.sum())
    498 498 498 24
    498 498 498 24
    498 498 498 24
    498 498 498 24
    498 498 498 23
    498 498 498 23
    """

    # The base class takes `groups` back; a class like this one wants them.
    __metadata_request__split = {"groups": True, "sensitive_features": True}

    def __init__(
        self,
        n_outer: int = 5,
        n_inner: int = 5,
        *,
        shuffle: bool = True,
        random_state: RandomStateLike = None,
    ) -> None:
        for name, value in (("n_outer", n_outer), ("n_inner", n_inner)):
            if not _is_integer(value) or value < 2:
                raise ValueError(
                    f"{name} must be an integer of at least 2; got {value!r}"
                )
        if not isinstance(shuffle, (bool, np.bool_)):
            raise ValueError(f"shuffle must be True or False; got {shuffle!r}")
        if not shuffle and random_state is not None:
            raise ValueError(
                "random_state has no effect with shuffle=False; leave it None, or set "
                "shuffle=True"
            )
        self.n_outer = n_outer
        self.n_inner = n_inner
        self.shuffle = shuffle
        self.random_state = random_state

    def split(
        self,
        X: Any,
        y: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        sensitive_features: Any = None,
    ) -> Iterator[tuple[Positions, Positions]]:
        """Divide the rows into training and test rows, as scikit-learn does.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            Data; only its length matters.
        y : array-like of shape (n_samples,)
            Class labels, two or more. Needed, in spite of its place in the signature.
        groups : array-like of shape (n_samples,), default=None
            Patient of each row, for example; none may be missing. By default each row
            stands by itself.
        sensitive_features : array-like, Series, dict or DataFrame, default=None
            Sensitive group of each row; several columns intersect, and missing values
            form a group of their own. By default folds are stratified by class alone.

        Yields
        ------
        train : ndarray of shape (n_train,)
            Training rows (those that `split_nested` divides further), ascending.
        test : ndarray of shape (n_test,)
            Test rows, ascending.

        Raises
        ------
        ValueError
            If the lengths differ, `y` is missing or continuous, or there are fewer
            patients than folds.

        Warns
        -----
        UserWarning
            When rows of one class and sensitive group come from fewer patients than
            there are folds, so that some folds lack them.
        """
        rows = _check_rows(X, y, sensitive_features, groups)
        pairs = self._outer(rows, self._seeds()[0])
        rows.warn_of_rare_strata(self.n_outer)
        yield from pairs

    def split_nested(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: Any = None,
        groups: ArrayLike | None = None,
    ) -> Iterator[tuple[Positions, Positions, Positions]]:
        """Divide the rows into training, validation and test rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            Data; only its length matters.
        y : array-like of shape (n_samples,)
            Class labels, two or more.
        sensitive_features : array-like, Series, dict or DataFrame, default=None
            Sensitive group of each row; several columns intersect, and missing values
            form a group of their own. By default folds are stratified by class alone.
        groups : array-like of shape (n_samples,), default=None
            Patient of each row, for example; none may be missing. By default each row
            stands by itself.

        Yields
        ------
        train : ndarray of shape (n_train,)
            Training rows, ascending.
        validation : ndarray of shape (n_validation,)
            Validation rows, ascending.
        test : ndarray of shape (n_test,)
            Test rows, ascending; the same for `n_inner` triples in a row.

        Raises
        ------
        ValueError
            If the lengths differ, `y` is continuous, or there are fewer patients than
            folds.

        Warns
        -----
        UserWarning
            When rows of one class and sensitive group come from fewer patients than
            there are folds, so that some folds lack them.
        """
        rows = _check_rows(X, y, sensitive_features, groups)
        seed, *inner_seeds = self._seeds()
        pairs = self._outer(rows, seed)
        rows.warn_of_rare_strata(self.n_outer, self.n_inner)
        for (rest, test), inner_seed in zip(pairs, inner_seeds, strict=True):
            part = rows.take(rest)
            inner = part.folds(self.n_inner, "n_inner", inner_seed)
            for fold in range(self.n_inner):
                yield rest[inner != fold], rest[inner == fold], test

    def get_n_splits(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        sensitive_features: Any = None,
    ) -> int:
        """Number of (train, test) pairs that `split` yields.

        Parameters
        ----------
        X : object, default=None
            Ignored, as all of these; here for compatibility.
        y : object, default=None
            Ignored.
        groups : object, default=None
            Ignored.
        sensitive_features : object, default=None
            Ignored.

        Returns
        -------
        int
            `n_outer`; `split_nested` yields ``n_outer * n_inner`` triples.
        """
        return int(self.n_outer)

    def _seeds(self) -> list[np.random.SeedSequence | None]:
        """Seed of the test folds, and one for the validation folds of each."""
        if not self.shuffle:
            return [None] * (self.n_outer + 1)
        return [*child_seeds(self.random_state, self.n_outer + 1)]

    def _outer(
        self, rows: "_Rows", seed: np.random.SeedSequence | None
    ) -> list[tuple[Positions, Positions]]:
        fold_of_row = rows.folds(self.n_outer, "n_outer", seed)
        return [
            (np.flatnonzero(fold_of_row != fold), np.flatnonzero(fold_of_row == fold))
            for fold in range(self.n_outer)
        ]


@dataclass(frozen=True)
class _Rows:
    """Stratum of each row, and its patient (None: every row is its own).

    `names` describes the strata; `patient` numbers patients in their sorted order.
    """

    stratum: Positions
    patient: Positions | None
    names: list[str]

    def take(self, positions: Positions) -> "_Rows":
        """Some of the rows."""
        patient = None if self.patient is None else self.patient[positions]
        return _Rows(self.stratum[positions], patient, self.names)

    def folds(
        self, n_folds: int, name: str, seed: np.random.SeedSequence | None
    ) -> Positions:
        """Fold of each row."""
        self._check_enough(n_folds, name)
        unit = np.arange(len(self.stratum)) if self.patient is None else self.patient
        _, unit = np.unique(unit, return_inverse=True)
        if seed is not None:
            # Shuffled here: scikit-learn's own shuffle takes no Generator, and that of
            # version 1.7 separates patients from their class counts.
            unit = np.random.default_rng(seed).permutation(unit.max() + 1)[unit]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The least populated class")
            return self._assign(n_folds, unit)

    def _assign(self, n_folds: int, unit: Positions) -> Positions:
        if np.bincount(self.stratum).max() < n_folds:
            return self._deal(n_folds, unit)
        fold_of_row = np.empty(len(unit), dtype=np.intp)
        if self.patient is None:
            order = np.argsort(unit)
            splits = StratifiedKFold(n_folds).split(unit, self.stratum[order])
            for fold, (_, test) in enumerate(splits):
                fold_of_row[order[test]] = fold
            return fold_of_row
        splitter = StratifiedGroupKFold(n_folds)
        for fold, (_, test) in enumerate(splitter.split(unit, self.stratum, unit)):
            fold_of_row[test] = fold
        return fold_of_row

    def _deal(self, n_folds: int, unit: Positions) -> Positions:
        """Deal patients out in the order of their strata: too few for anything else."""
        lowest = np.full(unit.max() + 1, self.stratum.max())
        np.minimum.at(lowest, unit, self.stratum)
        fold_of_unit = np.empty(len(lowest), dtype=np.intp)
        fold_of_unit[np.argsort(lowest, kind="stable")] = (
            np.arange(len(lowest)) % n_folds
        )
        return fold_of_unit[unit]

    def _check_enough(self, n_folds: int, name: str) -> None:
        units = self.stratum if self.patient is None else np.unique(self.patient)
        if len(units) < n_folds:
            what = "rows" if self.patient is None else "distinct groups (patients)"
            raise ValueError(
                f"{name}={n_folds} folds need at least {n_folds} {what} to divide; got "
                f"{len(units)}"
            )

    def warn_of_rare_strata(self, n_outer: int, n_inner: int = 1) -> None:
        """Warn of strata that cannot be in every fold."""
        found = pd.DataFrame({"stratum": self.stratum})
        found["unit"] = found.index if self.patient is None else self.patient
        counts = found.drop_duplicates()["stratum"].value_counts().sort_index()
        left = counts - -(-counts // n_outer)  # where the largest share is tested
        rare = counts.index[(counts < n_outer) | (left < n_inner)]
        if len(rare):
            what = "rows" if self.patient is None else "groups (patients)"
            others = f" (others: {len(rare) - 1})" if len(rare) > 1 else ""
            inner = f" and n_inner={n_inner}" if n_inner > 1 else ""
            warnings.warn(
                f"{self.names[rare[0]]} occurs in {counts[rare[0]]} {what} only"
                f"{others}, too few for n_outer={n_outer}{inner} folds: some folds "
                "have none of them",
                UserWarning,
                stacklevel=3,
            )


def _check_rows(
    X: Any, y: ArrayLike | None, sensitive_features: Any, groups: ArrayLike | None
) -> _Rows:
    """Validate what a split is made of."""
    if y is None:
        raise ValueError("y must be given: folds are stratified by class")
    labels = as_1d(y, "y")
    n = len(labels)
    if X is not None and _num_samples(X) != n:
        raise ValueError(
            f"X and y must have equal lengths; X has {_num_samples(X)} rows and y {n}"
        )
    classes = unique_labels(labels, "y")
    if labels.dtype.kind == "f" and (labels != np.floor(labels)).any():
        value = labels[labels != np.floor(labels)][0]
        raise ValueError(
            f"y must hold class labels, not continuous values; got {value!r}"
        )
    code = np.searchsorted(classes, labels)
    names = [f"class {label!r}" for label in classes.tolist()]
    if sensitive_features is not None:
        sensitive = encode_groups(sensitive_features, n, missing="own_group")
        code = code * len(sensitive.labels) + sensitive.codes
        names = [f"{name} in {k!r}" for name in names for k in sensitive.labels]
    patient = None if groups is None else _sorted_codes(groups, n)
    return _Rows(code.astype(np.intp), patient, names)


def _sorted_codes(groups: ArrayLike, n: int) -> Positions:
    """Codes of the patients in their sorted order, which no order of rows changes."""
    codes = encode_clusters(groups, n, "groups")
    values = as_1d(groups, "groups")
    distinct = pd.unique(values).tolist()  # in the order of the codes
    try:
        order = sorted(range(len(distinct)), key=distinct.__getitem__)
    except TypeError:
        order = sorted(range(len(distinct)), key=lambda i: repr(distinct[i]))
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    return rank[codes]


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
