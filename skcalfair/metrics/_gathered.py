"""Many small samples of the same rows, each gathered instead of weighted."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._binning import equal_mass_cuts
from .._sorted_scores import Floats, SortedScores
from ._calibration_error import (
    adaptive_error_kernel,
    expected_error_kernel,
    maximum_error_kernel,
    squared_error_kernel,
)
from ._calibration_loss import held_out_loss_kernel
from ._discrimination import (
    average_precision_kernel,
    normalized_average_precision_kernel,
    roc_auc_kernel,
)
from ._proper import brier_kernel, log_loss_kernel

# Kernels that ask for nothing but the sums and ranks that are offered here.
SERVED = {
    adaptive_error_kernel,
    average_precision_kernel,
    brier_kernel,
    expected_error_kernel,
    held_out_loss_kernel,
    log_loss_kernel,
    maximum_error_kernel,
    normalized_average_precision_kernel,
    roc_auc_kernel,
    squared_error_kernel,
}


def is_served(kernel: Callable) -> bool:
    """Whether a kernel, its parameters set or not, takes gathered samples."""
    while isinstance(kernel, partial):
        kernel = kernel.func
    return kernel in SERVED


def can_gather(scores: SortedScores) -> bool:
    """Whether the rows are alike: without weights, clusters and ties."""
    alike = scores.weights is None and scores.clusters is None
    return alike and scores.tie_starts is None


class GatheredScores(SortedScores):
    """Samples of equally many rows, one after the other, each sorted by score.

    Parameters
    ----------
    scores : SortedScores
        Rows for which `can_gather` holds.
    rows : ndarray of shape (n_replicates, size)
        Positions of each sample's rows, ascending.
    """

    def __init__(self, scores: SortedScores, rows: NDArray[np.intp]) -> None:
        self.parent, self.rows = scores, rows.ravel()
        self.shape = rows.shape
        super().__init__(
            scores.p[self.rows], scores.y[self.rows], frequency=scores.frequency
        )
        hand_on(scores, self.rows, self)

    @property
    def n_replicates(self) -> int:
        """Number of samples."""
        return self.shape[0]

    @property
    def total(self) -> Floats:
        """Rows of each sample."""
        return np.full(self.shape[0], float(self.shape[1]))

    @property
    def positive_total(self) -> Floats:
        """Positive rows of each sample."""
        return self.memo("positive_total", lambda: self.sums([self.y])[:, 0])

    def sums(self, columns: Sequence[NDArray]) -> Floats:
        """Sum of each column over the rows of each sample."""
        found = [c.reshape(self.shape).sum(axis=1, dtype=np.float64) for c in columns]
        return np.stack(found, axis=1)

    def uniform_sums(self, n_bins: int) -> tuple[Floats, Floats]:
        """Rows and summed residuals of each uniform bin of each sample."""

        def compute() -> tuple[Floats, Floats]:
            return self._by_bin(n_bins, None), self._by_bin(n_bins, self.residual)

        return self.memo(("uniform_sums", n_bins), compute)

    def uniform_squares(self, n_bins: int) -> Floats:
        """Summed squared residuals of each uniform bin of each sample."""
        return self._by_bin(n_bins, self.residual**2)

    def _by_bin(self, n_bins: int, column: NDArray | None) -> Floats:
        def codes() -> NDArray[np.intp]:
            starts = self.parent.uniform_starts(n_bins)
            sizes = np.diff(starts, append=len(self.parent))
            return np.repeat(np.arange(n_bins), sizes)

        def cells() -> NDArray[np.intp]:
            known = self.parent.row_memo(("uniform_codes", n_bins), codes)
            bins = known[self.rows].reshape(self.shape)
            samples = np.arange(self.shape[0])[:, np.newaxis]
            return (bins + n_bins * samples).ravel()

        cell = self.memo(("uniform_cells", n_bins), cells)
        n_cells = self.shape[0] * n_bins
        found = np.bincount(cell, weights=column, minlength=n_cells)
        return found.astype(np.float64, copy=False).reshape(-1, n_bins)

    def equal_mass_sums(self, n_bins: int, column: NDArray) -> Floats:
        """Sum of a column in each equal-mass bin: the same places in every sample."""
        places = np.arange(1, self.shape[1] + 1)[np.newaxis]
        starts = equal_mass_cuts(places, n_bins)[0]
        sums: Floats = np.add.reduceat(column.reshape(self.shape), starts, axis=1)
        sums[:, :-1][:, starts[1:] == starts[:-1]] = 0.0
        return sums

    def staircases(
        self,
    ) -> Iterator[tuple[slice, Floats, NDArray, NDArray, NDArray]]:
        """Operating points at every row; those of negative rows gain nothing."""
        steps = self.y.reshape(self.shape)
        tp = np.cumsum(steps, axis=1, dtype=np.int32)
        called = np.arange(1, self.shape[1] + 1, dtype=np.int32)[np.newaxis]
        fp = called - tp
        yield slice(0, self.shape[0]), steps.astype(np.float64), tp, called, fp


def hand_on(scores: SortedScores, rows: NDArray[np.intp], part: Any) -> None:
    """Hand on what is known of each row by itself: the float columns."""
    for key, known in scores._row_memo.items():
        column = isinstance(known, np.ndarray) and known.shape == scores.p.shape
        if column and known.dtype == np.float64:
            part._row_memo[key] = known[rows]
