"""Exact and fast draws of replicate weights; no metric in sight.

A replicate is a row of counts, one for each row of the sample. Rows are exchangeable,
so counts may be applied to rows in any order, in particular to sorted ones.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import poisson

from .._random import RandomStateLike, generator

Counts = NDArray[np.uint8]

# Below this many rows, flat integers and one bincount beat everything else.
FLAT_ROWS = 20_000
# Below this many rows, partially sorting random keys is the simplest exact subsample.
KEYED_ROWS = 2_048
CELLS = 2**16
# Draws start this many standard deviations below their target, and are topped up.
MARGIN = 4.0
# Cells of one temporary.
BLOCK = 2**22


def bootstrap_counts(
    n: int, n_replicates: int, *, random_state: RandomStateLike = None
) -> Counts:
    """
    Draw bootstrap samples of n rows, as counts.

    Parameters
    ----------
    n : int
        Number of rows, at least 1.
    n_replicates : int
        Number of bootstrap samples.
    random_state : int, Generator, RandomState or None, default=None
        Seed.

    Returns
    -------
    ndarray of shape (n_replicates, n), uint8
        How often each row was drawn; each replicate sums to n.

    See Also
    --------
    subsample_counts : Subsamples without replacement.

    Notes
    -----
    Exactly multinomial. For large n, Poisson counts of a mean a little below one are
    topped up to n uniformly: given its total, a set of Poisson counts is multinomial.

    Examples
    --------
    >>> from skcalfair.resampling import bootstrap_counts
    >>> bootstrap_counts(5, 2, random_state=0).sum(axis=1).tolist()
    [5, 5]
    """
    _check_sizes(n, n_replicates)
    rng = generator(random_state)
    out = np.empty((n_replicates, n), dtype=np.uint8)
    if n < FLAT_ROWS:
        step = max(1, BLOCK // n)
        for start in range(0, n_replicates, step):
            rows = slice(start, min(start + step, n_replicates))
            out[rows] = _flat_bootstrap(n, rows.stop - rows.start, rng)
        return out
    table = _PoissonTable(1.0 - MARGIN / np.sqrt(n))
    for counts in out:
        _poisson_bootstrap(counts, table, rng)
    return out


def _flat_bootstrap(n: int, n_replicates: int, rng: np.random.Generator) -> Counts:
    drawn = rng.integers(n, size=(n_replicates, n), dtype=np.int64)
    drawn += np.arange(n_replicates, dtype=np.int64)[:, np.newaxis] * n
    counts = np.bincount(drawn.ravel(), minlength=n_replicates * n)
    return _as_uint8(counts).reshape(n_replicates, n)


def _poisson_bootstrap(
    counts: Counts, table: "_PoissonTable", rng: np.random.Generator
) -> None:
    n = len(counts)
    missing = -1
    while missing < 0:
        counts[:] = table.draw(n, rng)
        missing = n - int(counts.sum(dtype=np.int64))
    np.add.at(counts, rng.integers(n, size=missing), np.uint8(1))


class _PoissonTable:
    """Poisson counts by looking up 16 random bits.

    Where a cell of the table straddles two counts, further bits decide.
    """

    UNSURE = np.uint8(255)

    def __init__(self, mean: float) -> None:
        cumulative = poisson.cdf(np.arange(64), mean) * CELLS
        self.thresholds = cumulative[cumulative < CELLS]
        self.lookup = np.searchsorted(
            self.thresholds, np.arange(CELLS), side="right"
        ).astype(np.uint8)
        self.lookup[self.thresholds.astype(np.intp)] = self.UNSURE

    def draw(self, n: int, rng: np.random.Generator) -> Counts:
        bits = _random_cells(n, rng)
        counts = np.take(self.lookup, bits)
        unsure = np.flatnonzero(counts == self.UNSURE)
        position = bits[unsure] + rng.random(len(unsure))
        counts[unsure] = np.searchsorted(self.thresholds, position, side="right")
        return counts


def _random_cells(n: int, rng: np.random.Generator) -> NDArray[np.uint16]:
    """Uniform 16-bit integers, four from each 64-bit draw."""
    words = rng.integers(2**64, size=-(-n // 4), dtype=np.uint64)
    return words.view(np.uint16)[:n]


def subsample_counts(
    n: int, size: int, n_replicates: int, *, random_state: RandomStateLike = None
) -> Counts:
    """
    Draw subsamples without replacement, as counts of 0 and 1.

    Parameters
    ----------
    n : int
        Number of rows, at least 1.
    size : int
        Number of rows to keep, between 1 and n.
    n_replicates : int
        Number of subsamples.
    random_state : int, Generator, RandomState or None, default=None
        Seed.

    Returns
    -------
    ndarray of shape (n_replicates, n), uint8
        1 for the rows kept; each replicate sums to `size`.

    See Also
    --------
    subsample_clusters : Keeps whole clusters.

    Notes
    -----
    Every subset of `size` rows is equally likely. For large n, independent coins are
    topped up uniformly from the rows not yet kept.

    Examples
    --------
    >>> from skcalfair.resampling import subsample_counts
    >>> subsample_counts(10, 4, 2, random_state=0).sum(axis=1).tolist()
    [4, 4]
    """
    _check_sizes(n, n_replicates)
    if not 1 <= size <= n:
        raise ValueError(f"size must lie between 1 and n={n}; got {size!r}")
    rng = generator(random_state)
    if size == n:
        return np.ones((n_replicates, n), dtype=np.uint8)
    if 2 * size > n:
        dropped = subsample_counts(n, n - size, n_replicates, random_state=rng)
        return np.subtract(1, dropped, out=dropped)
    out = np.zeros((n_replicates, n), dtype=np.uint8)
    if n < KEYED_ROWS:
        step = max(1, BLOCK // n)
        for start in range(0, n_replicates, step):
            block = out[start : start + step]
            kept = rng.random(block.shape).argpartition(size, axis=1)[:, :size]
            np.put_along_axis(block, kept, 1, axis=1)
        return out
    for counts in out:
        _coin_subsample(counts, size, rng)
    return out


def _coin_subsample(counts: Counts, size: int, rng: np.random.Generator) -> None:
    n = len(counts)
    share = size / n
    share -= MARGIN * np.sqrt(share * (1.0 - share) / n)
    limit = max(0, int(share * CELLS))
    missing = -1
    while missing < 0:
        counts[:] = _random_cells(n, rng) < limit
        missing = size - int(np.count_nonzero(counts))
    while missing:
        # About as many tries as it takes to find so many rows that are free.
        tried = rng.integers(n, size=16 + int(1.2 * missing * n / (n - size)))
        tried = tried[counts[tried] == 0]
        # The first distinct ones in the order drawn: a repeated draw counts once.
        _, first = np.unique(tried, return_index=True)
        fresh = tried[np.sort(first)[:missing]]
        counts[fresh] = 1
        missing -= len(fresh)


def subsample_clusters(
    clusters: NDArray[np.intp],
    size: int,
    n_replicates: int,
    *,
    random_state: RandomStateLike = None,
) -> Counts:
    """
    Draw whole clusters without replacement, up to a number of rows.

    Parameters
    ----------
    clusters : ndarray of shape (n,)
        Integer codes 0, 1, ... of the clusters.
    size : int
        Number of rows wanted. Clusters are taken in random order as long as they fit;
        the first one is taken in any case.
    n_replicates : int
        Number of subsamples.
    random_state : int, Generator, RandomState or None, default=None
        Seed.

    Returns
    -------
    ndarray of shape (n_replicates, n), uint8
        1 for the rows kept; at most `size` of them, unless one cluster alone is larger.

    See Also
    --------
    subsample_counts : Keeps single rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalfair.resampling import subsample_clusters
    >>> clusters = np.array([0, 0, 1, 1, 2, 2])
    >>> int(subsample_clusters(clusters, 4, 1, random_state=0).sum())
    4
    """
    _check_sizes(len(clusters), n_replicates)
    if size < 1:
        raise ValueError(f"size must be at least 1; got {size!r}")
    rng = generator(random_state)
    # A code without rows must not use up the first place.
    _, clusters = np.unique(clusters, return_inverse=True)
    sizes = np.bincount(clusters)
    out = np.empty((n_replicates, len(clusters)), dtype=np.uint8)
    for counts in out:
        order = rng.permutation(len(sizes))
        taken = np.cumsum(sizes[order]) <= size
        taken[0] = True
        kept = np.zeros(len(sizes), dtype=np.uint8)
        kept[order[taken]] = 1
        counts[:] = kept[clusters]
    return out


def _check_sizes(n: int, n_replicates: int) -> None:
    for name, value in (("n", n), ("n_replicates", n_replicates)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1; got {value!r}")


def _as_uint8(counts: NDArray) -> Counts:
    if counts.max(initial=0) > np.iinfo(np.uint8).max:
        raise OverflowError("a row was drawn more than 255 times in one replicate")
    return counts.astype(np.uint8)
