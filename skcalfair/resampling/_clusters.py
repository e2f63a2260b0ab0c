"""Clusters as units of resampling: each lies in one stratum, and moves as a whole."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from .._validation import encode_clusters, encode_groups

Codes = NDArray[np.intp]


def stratum_codes(strata: Any) -> Codes:
    """Code of each row's stratum; several columns intersect, none may be missing."""
    if (
        isinstance(strata, np.ndarray)
        and strata.ndim == 1
        and strata.dtype.kind in "iu"
    ):
        return pd.factorize(strata)[0]  # codes already, many times faster
    return encode_groups(strata, _n_rows(strata), name="strata").codes


def _n_rows(strata: Any) -> int:
    return len(next(iter(strata.values()))) if isinstance(strata, dict) else len(strata)


def cluster_codes(clusters: ArrayLike | None, n: int) -> Codes | None:
    """Codes 0, 1, ... of the clusters, if any."""
    return None if clusters is None else encode_clusters(clusters, n)


def of_clusters(values: NDArray, clusters: Codes, what: str, advice: str) -> NDArray:
    """Value of each cluster; refuses a cluster whose rows differ in it."""
    found = np.empty(int(clusters.max()) + 1, dtype=values.dtype)
    found[clusters] = values
    other = np.flatnonzero(found[clusters] != values)
    if other.size:
        row = int(other[0])
        with_it = int(np.flatnonzero(clusters == clusters[row])[-1])
        raise ValueError(
            f"a cluster must lie in one {what}, but the cluster of row {row} also has "
            f"rows in another (row {with_it}); {advice}"
        )
    return found


class UnitOrder:
    """Units (rows or clusters) in the order of their strata, small strata first.

    Strata of one size are neighbours, so that they can be drawn together:
    `blocks` lists (size, number of strata) and `order` the units in that order.
    """

    def __init__(self, strata: Codes, clusters: Codes | None) -> None:
        _, strata = np.unique(strata, return_inverse=True)
        sizes = np.bincount(strata)
        self.order = np.lexsort((strata, sizes[strata]))
        distinct, repeats = np.unique(sizes, return_counts=True)
        self.blocks = list(zip(distinct.tolist(), repeats.tolist(), strict=True))
        place = np.empty(len(strata), dtype=np.intp)
        place[self.order] = np.arange(len(strata))
        # One stratum of single rows needs no lookup.
        self.place: Codes | None = place if clusters is None else place[clusters]
        if clusters is None and len(sizes) == 1:
            self.place = None

    def to_rows(self, units: NDArray) -> NDArray:
        """Values of the rows, from values of shape (n_replicates, n_units) in order."""
        if self.place is None:
            return units
        out = np.empty((len(units), len(self.place)), dtype=units.dtype)
        for row, values in zip(out, units, strict=True):
            # Places are in range: clipping only spares numpy a buffer.
            np.take(values, self.place, out=row, mode="clip")
        return out
