"""Bootstrap samples of clusters and within strata, and jackknife samples, as counts."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._random import RandomStateLike, generator
from .._validation import as_1d, encode_clusters
from ._clusters import Codes, UnitOrder, cluster_codes, of_clusters, stratum_codes
from ._draws import Counts, bootstrap_counts

# What to do about a cluster with rows in several strata.
_ADVICE = (
    "clusters are drawn as a whole, so leave out what differs within them (often the "
    "class), or the clusters"
)


def bootstrap_clusters(
    clusters: ArrayLike, n_replicates: int, *, random_state: RandomStateLike = None
) -> Counts:
    """
    Draw bootstrap samples of whole clusters, as counts.

    Parameters
    ----------
    clusters : array-like of shape (n,)
        Cluster of each row, for example the patient; any labels, none missing.
    n_replicates : int
        Number of bootstrap samples.
    random_state : int, Generator, RandomState or None, default=None
        Seed.

    Returns
    -------
    ndarray of shape (n_replicates, n), uint8
        How often each row was drawn; the rows of a cluster share its count. As many
        clusters are drawn as there are, so the number of rows varies between
        replicates unless all clusters are equally large.

    Raises
    ------
    ValueError
        If a cluster is missing or `n_replicates` is below 1.

    See Also
    --------
    stratified_bootstrap : Keeps the number of clusters of each stratum.
    bootstrap_counts : Draws single rows.

    Examples
    --------
    >>> from skcalfair.resampling import bootstrap_clusters
    >>> counts = bootstrap_clusters(["a", "a", "b", "c"], 100, random_state=0)
    >>> bool((counts[:, 0] == counts[:, 1]).all())
    True
    >>> counts[:, 1:].sum(axis=1).tolist() == [3] * 100
    True
    """
    codes = encode_clusters(clusters, len(as_1d(clusters, "clusters")))
    return StratifiedDraw(np.zeros(len(codes), dtype=np.intp), codes)(
        n_replicates, random_state
    )


def stratified_bootstrap(
    strata: Any,
    n_replicates: int,
    *,
    clusters: ArrayLike | None = None,
    random_state: RandomStateLike = None,
) -> Counts:
    """
    Draw bootstrap samples within strata, as counts.

    Parameters
    ----------
    strata : array-like, Series, dict or DataFrame
        Stratum of each row, for example the group; several columns intersect, for
        example group and class. None may be missing.
    n_replicates : int
        Number of bootstrap samples.
    clusters : array-like of shape (n,), default=None
        Cluster of each row, for example the patient: whole clusters are drawn then.
    random_state : int, Generator, RandomState or None, default=None
        Seed.

    Returns
    -------
    ndarray of shape (n_replicates, n), uint8
        How often each row was drawn. Each stratum keeps its number of rows in every
        replicate; with clusters, its number of clusters.

    Raises
    ------
    ValueError
        If a stratum or cluster is missing, `n_replicates` is below 1, or a cluster has
        rows in several strata.

    See Also
    --------
    bootstrap_clusters : Draws clusters without strata.
    permute_within_strata : Permutes labels instead of drawing rows.

    Notes
    -----
    Strata are drawn independently, each exactly multinomial.

    A cluster with rows in several strata is refused. Its rows cannot be drawn as a
    whole while each stratum keeps its rows; strata of clusters with the same pattern
    would often hold a single cluster, which is then drawn once every time and hides its
    share of the variance. So with patients of both classes, stratify by group alone.

    Examples
    --------
    >>> from skcalfair.resampling import stratified_bootstrap
    >>> group, outcome = ["a"] * 5 + ["b"] * 3, [0, 1, 0, 1, 1, 0, 1, 1]
    >>> counts = stratified_bootstrap(group, 100, random_state=0)
    >>> counts[:, :5].sum(axis=1).tolist() == [5] * 100
    True

    By group and class:

    >>> counts = stratified_bootstrap(
    ...     {"group": group, "outcome": outcome}, 100, random_state=0
    ... )
    >>> counts[:, [0, 2]].sum(axis=1).tolist() == [2] * 100
    True
    """
    codes = stratum_codes(strata)
    draw = StratifiedDraw(codes, cluster_codes(clusters, len(codes)))
    return draw(n_replicates, random_state)


class StratifiedDraw:
    """Draws for one set of strata and clusters, sorted out once for many calls."""

    def __init__(self, strata: Codes, clusters: Codes | None) -> None:
        if clusters is not None:
            strata = of_clusters(strata, clusters, "stratum", _ADVICE)
        self.units = UnitOrder(strata, clusters)

    def __call__(self, n_replicates: int, random_state: RandomStateLike) -> Counts:
        if n_replicates < 1:
            raise ValueError(f"n_replicates must be at least 1; got {n_replicates!r}")
        rng = generator(random_state)
        blocks = self.units.blocks
        if len(blocks) == 1 and blocks[0][1] == 1:
            drawn = bootstrap_counts(blocks[0][0], n_replicates, random_state=rng)
            return self.units.to_rows(drawn)
        drawn = np.empty((n_replicates, len(self.units.order)), dtype=np.uint8)
        start = 0
        for size, n_strata in blocks:
            stop = start + size * n_strata
            counts = bootstrap_counts(size, n_replicates * n_strata, random_state=rng)
            drawn[:, start:stop] = counts.reshape(n_replicates, -1)
            start = stop
        return self.units.to_rows(drawn)


def jackknife_counts(clusters: ArrayLike) -> Counts:
    """
    Leave out each cluster in turn, as counts of 0 and 1.

    Parameters
    ----------
    clusters : array-like of shape (n,)
        Cluster of each row; any labels, none missing. ``range(n)`` leaves out single
        rows.

    Returns
    -------
    ndarray of shape (n_clusters, n), uint8
        0 for the rows of the cluster left out, clusters in order of appearance.

    Raises
    ------
    ValueError
        If a cluster is missing.

    See Also
    --------
    bca_interval : Takes the estimates on these samples.

    Notes
    -----
    The result has one row for each cluster. With many rows and no clusters, a random
    division into a few hundred clusters serves as well.

    Examples
    --------
    >>> from skcalfair.resampling import jackknife_counts
    >>> jackknife_counts(["a", "a", "b"])
    array([[0, 0, 1],
           [1, 1, 0]], dtype=uint8)
    """
    codes = encode_clusters(clusters, len(as_1d(clusters, "clusters")))
    units: NDArray = np.arange(int(codes.max()) + 1)
    return (codes != units[:, np.newaxis]).astype(np.uint8)
