"""The only bin-edge code: uniform bins and equal-mass bins on sorted scores."""

from numbers import Integral

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Sums of fractional weights are exact only to rounding; without this slack the order
# of tied rows could move a bin boundary.
MASS_TOLERANCE = 1e-11


def check_n_bins(n_bins: int) -> int:
    """A positive integer number of bins."""
    if not isinstance(n_bins, Integral) or isinstance(n_bins, bool) or n_bins < 1:
        raise ValueError(f"n_bins must be a positive integer; got {n_bins!r}")
    return int(n_bins)


def uniform_edges(n_bins: int) -> Floats:
    """Edges of equally wide bins of [0, 1].

    `linspace` and not k / n_bins, which differs in the last bit: scikit-learn's rule.
    """
    return np.linspace(0.0, 1.0, n_bins + 1)


def uniform_starts(p_descending: Floats, n_bins: int) -> NDArray[np.intp]:
    """First row of every uniform bin in scores sorted descending, the top bin first.

    A bin is (lo, hi] and 0 belongs to the lowest; empty bins repeat a position.
    """
    inner = uniform_edges(n_bins)[1:-1]
    ascending = p_descending[::-1]
    above = len(ascending) - np.searchsorted(ascending, inner, side="right")
    return np.concatenate([[0], above[::-1]]).astype(np.intp)


def equal_mass_cuts(cumulative: NDArray, n_bins: int) -> NDArray[np.intp]:
    """First tie group of every equal-mass bin, by replicate.

    Parameters
    ----------
    cumulative : ndarray of shape (n_replicates, n_groups)
        Weight down to and including each group of tied scores, the highest score
        first; integers stay exact.
    n_bins : int
        Number of bins asked for; bins that no score ends in repeat a position.

    Returns
    -------
    ndarray of shape (n_replicates, n_bins)
        Counted upwards, bin k ends where the weighted ECDF first reaches k / n_bins;
        a group opens the next bin downwards once the weight above it exceeds the
        share that belongs there.
    """
    n_replicates, n_groups = cumulative.shape
    total = cumulative[:, -1:]
    shares = np.arange(1, n_bins)
    limits: NDArray
    if cumulative.dtype.kind in "iu":
        limits = (total.astype(np.int64) * shares) // n_bins
    else:
        limits = total * (shares / n_bins) + MASS_TOLERANCE * total
    if n_replicates > 1:
        # One search for all replicates: shift each above the one before it.
        kind = np.int64 if cumulative.dtype.kind in "iu" else np.float64
        shift = np.arange(n_replicates, dtype=kind)[:, np.newaxis] * (total.max() + 1)
        found = np.searchsorted(
            (cumulative + shift).ravel(), (limits + shift).ravel(), side="right"
        ).reshape(n_replicates, n_bins - 1)
        found -= np.arange(n_replicates)[:, np.newaxis] * n_groups
    else:
        found = np.searchsorted(cumulative[0], limits[0], side="right")[np.newaxis]
    np.minimum(found, n_groups - 1, out=found)
    return np.concatenate([np.zeros((n_replicates, 1), np.intp), found], axis=1)
