"""Permutations of labels within strata, and the p value they give."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._random import RandomStateLike, generator
from .._validation import Floats, as_1d, as_floats, check_same_length
from ._clusters import UnitOrder, cluster_codes, of_clusters, stratum_codes

ALTERNATIVES = ("two-sided", "greater", "less")
# Statistics that differ by rounding only are ties.
ROUNDING = 1e-12


def permute_within_strata(
    values: ArrayLike,
    strata: Any,
    n_permutations: int,
    *,
    clusters: ArrayLike | None = None,
    random_state: RandomStateLike = None,
) -> NDArray:
    """
    Permute labels within strata.

    Parameters
    ----------
    values : array-like of shape (n,)
        Label of each row, usually the integer code of its group.
    strata : array-like, Series, dict, DataFrame or None
        Stratum of each row; labels move within strata only. Several columns intersect.
        None puts all rows into one stratum.
    n_permutations : int
        Number of permutations.
    clusters : array-like of shape (n,), default=None
        Cluster of each row, for example the patient: labels then move between whole
        clusters. Every cluster must have one label and lie in one stratum.
    random_state : int, Generator, RandomState or None, default=None
        Seed.

    Returns
    -------
    ndarray of shape (n_permutations, n)
        Permuted labels, of the type of `values`. Each stratum keeps its labels; with
        clusters, each stratum keeps the number of clusters of each label.

    Raises
    ------
    ValueError
        If lengths differ, a stratum or cluster is missing, `n_permutations` is below 1,
        or a cluster has several labels or strata.

    See Also
    --------
    permutation_p_value : The p value of a statistic of the permuted labels.
    stratified_bootstrap : Draws rows instead.

    Notes
    -----
    All permutations within a stratum are equally likely. A test by permutation is exact
    if the labels are exchangeable within strata: rows with a common cluster are not, so
    permuting single rows of patients with several images rejects too often. A label
    that differs within a cluster has no valid permutation of this kind, and is refused.

    Examples
    --------
    >>> from skcalfair.resampling import permute_within_strata
    >>> permuted = permute_within_strata(
    ...     [0, 0, 1, 1], ["low", "low", "low", "high"], 100, random_state=0
    ... )
    >>> permuted.shape
    (100, 4)
    >>> permuted[:, :3].sum(axis=1).tolist() == permuted[:, 3].tolist() == [1] * 100
    True
    """
    values = as_1d(values, "values")
    stratum = (
        np.zeros(len(values), dtype=np.intp)
        if strata is None
        else stratum_codes(strata)
    )
    check_same_length(("values", values), ("strata", stratum))
    if n_permutations < 1:
        raise ValueError(f"n_permutations must be at least 1; got {n_permutations!r}")
    codes = cluster_codes(clusters, len(values))
    if codes is not None:
        stratum = of_clusters(stratum, codes, "stratum", _ADVICE_STRATA)
        values = of_clusters(values, codes, "group of values", _ADVICE_VALUES)
    units = UnitOrder(stratum, codes)
    rng = generator(random_state)
    return units.to_rows(_permuted(values[units.order], units, n_permutations, rng))


_ADVICE_STRATA = "make strata of what is the same for all rows of a cluster"
_ADVICE_VALUES = (
    "whole clusters can only be permuted by a label that all rows of a cluster share"
)


def _permuted(
    values: NDArray, units: UnitOrder, n_permutations: int, rng: np.random.Generator
) -> NDArray:
    out = np.empty((n_permutations, len(values)), dtype=values.dtype)
    start = 0
    for size, n_strata in units.blocks:
        stop = start + size * n_strata
        out[:, start:stop] = values[start:stop]
        block = out[:, start:stop].reshape(n_permutations, n_strata, size)
        out[:, start:stop] = rng.permuted(block, axis=2).reshape(n_permutations, -1)
        start = stop
    return out


def permutation_p_value(
    observed: ArrayLike, permuted: ArrayLike, *, alternative: str = "two-sided"
) -> Any:
    """
    Monte Carlo p value of a permutation test.

    Parameters
    ----------
    observed : float or array-like of shape (...)
        Statistic of the data.
    permuted : array-like of shape (n_permutations, ...)
        Statistic under each permutation.
    alternative : {"two-sided", "greater", "less"}, default="two-sided"
        "greater" and "less" ask how often a permutation is at least as large, or as
        small. "two-sided" doubles the smaller of both p values; for a statistic without
        a sign, such as a largest difference, use "greater".

    Returns
    -------
    float or ndarray of shape (...)
        (1 + number of permutations at least as extreme) / (n_permutations + 1), never
        0. NaN where `observed` is.

    Raises
    ------
    ValueError
        If the shapes do not fit or the alternative is unknown.

    See Also
    --------
    permute_within_strata : Makes the permutations.

    Notes
    -----
    The data are counted as one of the permutations, which makes the test valid for any
    number of them [1]_. Values that differ only by rounding are ties, and a permutation
    whose statistic is NaN counts as extreme: both can only raise p.

    References
    ----------
    .. [1] B. Phipson and G. K. Smyth, "Permutation p-values should never be zero:
       calculating exact p-values when permutations are randomly drawn", Statistical
       Applications in Genetics and Molecular Biology 9, 2010.

    Examples
    --------
    >>> from skcalfair.resampling import permutation_p_value
    >>> permutation_p_value(2.5, [0.1, 3.0, -1.2, 0.4], alternative="greater")
    0.4
    """
    if alternative not in ALTERNATIVES:
        raise ValueError(
            f"alternative must be one of {ALTERNATIVES}; got {alternative!r}"
        )
    data = as_floats(np.asarray(observed), "observed")
    draws = as_floats(np.asarray(permuted), "permuted")
    if draws.ndim == 0 or draws.shape[1:] != data.shape or not len(draws):
        raise ValueError(
            "permuted must have shape (n_permutations, ...) with the shape of observed "
            f"after the first axis; got {draws.shape} for {data.shape}"
        )
    greater = _share(data, draws, ROUNDING)
    less = _share(-data, -draws, ROUNDING)
    if alternative == "two-sided":
        p = np.minimum(1.0, 2.0 * np.minimum(greater, less))
    else:
        p = greater if alternative == "greater" else less
    p = np.where(np.isnan(data), np.nan, p)
    return float(p) if p.ndim == 0 else p


def _share(observed: Floats, permuted: Floats, rounding: float) -> Floats:
    """Share of permutations that are no smaller, the data among them."""
    size = np.abs(permuted)
    size = np.max(size, axis=0, initial=0.0, where=np.isfinite(size))
    finite = np.where(np.isfinite(observed), np.abs(observed), 0.0)
    limit = observed - rounding * np.maximum(size, finite)
    smaller = np.sum(permuted < limit, axis=0)
    return (1.0 + len(permuted) - smaller) / (len(permuted) + 1.0)
