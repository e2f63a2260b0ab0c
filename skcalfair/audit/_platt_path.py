"""The Platt path of a group: its scores, moved from calibrated to fitted and beyond.

The path leads from calibrated scores (reach 0) over the group's own Platt fit and
further: x + reach * step in log-odds, where step has the direction of the fit and a
root mean square of 1. Outcomes are redrawn by one random sign a cluster.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array

from .._log_odds import sigmoid
from .._sorted_scores import SortedScores

Floats = NDArray[np.float64]

N_BINS = 15
# Signs of up to this many clusters are drawn; the sums over more are normal.
DRAWN_CLUSTERS = 5_000
# Neighbouring rows share a cell where the path is followed, so that following it takes
# no longer for more rows than these.
CELLS = 1_024
# Signs drawn at once.
BLOCK = 2**22
# A fit this close to the identity gives no direction.
NO_LENGTH = 1e-9


class PlattPath:
    """Scores of one group along the path of its own Platt fit, and redraws.

    Parameters
    ----------
    scores : SortedScores
        Rows of a group without weights, for which a Platt fit exists.
    n_draws : int
        Number of redraws.
    seed : SeedSequence
        Seed of the signs; every metric of the group uses the same.
    """

    def __init__(
        self, scores: SortedScores, n_draws: int, seed: np.random.SeedSequence
    ) -> None:
        self.scores, self.n_draws, self.seed = scores, n_draws, seed
        fit = scores.platt()
        self.x = scores.log_odds()
        fitted = float(fit.slope[0]) * self.x + float(fit.intercept[0])
        self.fitted = sigmoid(fitted)
        self.error = scores.y - self.fitted
        moved = fitted - self.x
        self.length = float(np.sqrt(np.mean(moved * moved)))
        known = self.length > NO_LENGTH
        self.step = moved / self.length if known else np.ones_like(moved)
        # Change of the probabilities for one unit of reach, to first order.
        self.shift = (
            (self.fitted - scores.p) / self.length
            if known
            else scores.p * (1.0 - scores.p)
        )
        # Numbered as they come in the sorted rows, whatever the caller's order was.
        clusters = scores.clusters
        self.codes: NDArray[np.intp] = (
            np.arange(len(scores)) if clusters is None else pd.factorize(clusters)[0]
        )
        self.n_clusters = int(self.codes.max()) + 1

    def __len__(self) -> int:
        return len(self.x)

    @cached_property
    def cells(self) -> "Cells":
        """Neighbouring rows in cells that respect the bins."""
        return Cells(self)

    def by_cluster(
        self, columns: NDArray[np.intp], values: Floats, n_columns: int
    ) -> csr_array:
        """Sums of values by cluster and column, as a sparse matrix."""
        shape = (self.n_clusters, n_columns)
        out = csr_array((values, (self.codes, columns)), shape=shape)
        out.sum_duplicates()
        return out

    def redraw(self, sums: csr_array) -> Floats:
        """Redraws of column sums: each cluster's row with a random sign."""
        rng = np.random.default_rng(self.seed)
        if self.n_clusters > DRAWN_CLUSTERS:
            root = square_root((sums.T @ sums).toarray())
            return rng.standard_normal((self.n_draws, len(root))) @ root.T
        out = np.empty((self.n_draws, sums.shape[1]))
        transposed = sums.T.tocsr()
        for rows, signs in self.signs():
            out[rows] = (transposed @ signs.T).T
        return out

    def signs(self) -> Iterator[tuple[slice, Floats]]:
        """Random signs, (redraws, clusters), in blocks of redraws; always the same."""
        rng = np.random.default_rng(self.seed)
        size = max(1, BLOCK // self.n_clusters)
        for start in range(0, self.n_draws, size):
            n = min(size, self.n_draws - start)
            bits = rng.integers(256, size=(n, -(-self.n_clusters // 8)), dtype=np.uint8)
            coins = np.unpackbits(bits, axis=1, count=self.n_clusters)
            yield slice(start, start + n), 2.0 * coins.astype(np.float64) - 1.0


class Cells:
    """Rows of a path in cells of neighbours: their number, log-odds and direction."""

    def __init__(self, path: PlattPath) -> None:
        n, starts = len(path), path.scores.uniform_starts(N_BINS)
        even = np.arange(0, n, -(-n // CELLS))
        starts = np.unique(np.concatenate([starts[starts < n], even]))
        sizes = np.diff(starts, append=n)
        self.n = sizes.astype(np.float64)
        self.x = np.add.reduceat(path.x, starts) / sizes
        self.step = np.add.reduceat(path.step, starts) / sizes
        self.p = sigmoid(self.x)
        self.bins = bin_codes(path.scores)[starts]
        # Errors in units of their standard deviation, to be scaled along the path.
        fitted = path.fitted
        scaled = path.error / np.sqrt(np.maximum(fitted * (1.0 - fitted), 1e-300))
        of_row = np.repeat(np.arange(len(starts)), sizes)
        self.errors = path.by_cluster(of_row, scaled, len(starts))

    def at(self, reach: float) -> Floats:
        """True probabilities if the scores were off by this much."""
        return sigmoid(self.x + reach * self.step)


def bin_codes(scores: SortedScores) -> NDArray[np.intp]:
    """Uniform bin of each row, the highest first."""
    starts = scores.uniform_starts(N_BINS)
    return np.repeat(np.arange(N_BINS), np.diff(starts, append=len(scores)))


def square_root(covariance: Floats) -> Floats:
    """Matrix whose product with its transpose is the covariance."""
    values, vectors = np.linalg.eigh(covariance)
    root: Floats = vectors * np.sqrt(np.maximum(values, 0.0))
    return root
