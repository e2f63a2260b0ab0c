"""Test of equal squared calibration error, by signs from the common curve."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from .._binning import uniform_starts
from .._sorted_scores import SortedScores
from .._validation import ScoredRows
from ..metrics._calibration_error import squared_error_kernel
from ..resampling import permutation_p_value
from ._group_score import Problem

Floats = NDArray[np.float64]

N_BINS = 15
# Signs of up to this many clusters are drawn; the sums over more are normal.
DRAWN_CLUSTERS = 20_000
BLOCK = 2**22


def squared_errors(problem: Problem, p: Floats) -> Floats:
    """CE2 of each group."""
    out = np.empty(problem.n_groups)
    for group in range(problem.n_groups):
        rows = np.flatnonzero(problem.codes == group)
        clusters = None if problem.clusters is None else problem.clusters[rows]
        part = ScoredRows(problem.y[rows].astype(np.uint8), p[rows], None, clusters)
        out[group] = squared_error_kernel(SortedScores.from_rows(part), N_BINS)[0]
    return out


def redrawn_squared_errors(
    problem: Problem, p: Floats, n_draws: int, rng: np.random.Generator
) -> Floats:
    """CE2 of each group, (n_draws, groups), when all follow the common curve.

    The errors of each cluster keep or change their sign together.
    """
    columns = _bins(p) + N_BINS * problem.codes
    k = N_BINS * problem.n_groups
    clusters = np.arange(len(p)) if problem.clusters is None else problem.clusters
    _, clusters = np.unique(clusters, return_inverse=True)
    shape = (int(clusters.max()) + 1, k)

    def by_cluster(values: Floats) -> csr_array:
        matrix = csr_array((values, (clusters, columns)), shape=shape)
        matrix.sum_duplicates()
        return matrix

    e, d = by_cluster(problem.error), by_cluster(problem.common.fitted - p)
    own = d.multiply(e).tocsr()
    noise = _signed_sums([e, own], n_draws, rng)
    total = np.asarray(d.sum(axis=0)).ravel()
    squares = np.asarray((d.multiply(d) + e.multiply(e)).sum(axis=0)).ravel()
    top = (total + noise[:, :k]) ** 2 - squares - 2.0 * noise[:, k:]
    terms = top * _weights(problem, columns, by_cluster(np.ones(len(p))))
    out: Floats = terms.reshape(n_draws, problem.n_groups, N_BINS).sum(axis=2)
    return out


def _bins(p: Floats) -> NDArray[np.intp]:
    """Uniform bin of each row, the highest first."""
    order = np.argsort(p)[::-1]
    starts = uniform_starts(p[order], N_BINS)
    out = np.empty(len(p), dtype=np.intp)
    out[order] = np.repeat(np.arange(N_BINS), np.diff(starts, append=len(p)))
    return out


def _weights(problem: Problem, columns: NDArray[np.intp], rows: csr_array) -> Floats:
    """Weight of each bin's sum of products over pairs."""
    mass = np.bincount(columns, minlength=rows.shape[1]).astype(float)
    pairs = mass**2 - np.asarray(rows.multiply(rows).sum(axis=0)).ravel()
    sizes = np.bincount(problem.codes, minlength=problem.n_groups)
    share = mass / np.repeat(sizes, N_BINS)
    return np.divide(share, pairs, out=np.zeros_like(mass), where=pairs > 0)


def _signed_sums(
    matrices: list[csr_array], n_draws: int, rng: np.random.Generator
) -> Floats:
    """Sums over clusters of signed rows, the matrices beside each other."""
    clusters = matrices[0].shape[0]
    if clusters > DRAWN_CLUSTERS:
        return _normal_sums(matrices, n_draws, rng)
    out = np.empty((n_draws, sum(m.shape[1] for m in matrices)))
    transposed = [m.T.tocsr() for m in matrices]
    step = max(1, BLOCK // clusters)
    for start in range(0, n_draws, step):
        rows = slice(start, min(start + step, n_draws))
        signs = 2.0 * rng.integers(2, size=(clusters, rows.stop - start)) - 1.0
        out[rows] = np.concatenate([m @ signs for m in transposed]).T
    return out


def _normal_sums(
    matrices: list[csr_array], n_draws: int, rng: np.random.Generator
) -> Floats:
    products = [[(a.T @ b).toarray() for b in matrices] for a in matrices]
    values, vectors = np.linalg.eigh(np.block(products))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return rng.standard_normal((n_draws, len(values))) @ root.T


def equal_amount(
    problem: Problem, p: Floats, n_draws: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Statistic and p-value of equal amounts.

    The gap of two groups; of more groups the largest gap of a pair in units of its
    spread.
    """
    observed = squared_errors(problem, p)
    drawn = redrawn_squared_errors(problem, p, n_draws, rng)
    first, second = np.triu_indices(problem.n_groups, 1)
    gaps, redrawn = (
        observed[first] - observed[second],
        drawn[:, first] - drawn[:, second],
    )
    if len(gaps) == 1:
        return float(gaps[0]), permutation_p_value(gaps[0], redrawn[:, 0])
    spread = np.maximum(redrawn.std(axis=0), 1e-300)
    centre = redrawn.mean(axis=0)
    largest = np.abs((redrawn - centre) / spread).max(axis=1)
    statistic = float(np.abs((gaps - centre) / spread).max())
    return statistic, permutation_p_value(statistic, largest, alternative="greater")
