"""Redraws of a group's ECE at a smaller size, with the same subsamples each time."""

from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..resampling import subsample_clusters, subsample_counts
from ._platt_path import N_BINS, PlattPath, bin_codes

Floats = NDArray[np.float64]

# Subsamples, fewer where they hold many rows: their mean is then known well enough.
SUBSAMPLES = (25, 200)
WORK = 60_000_000


def matched_redraws(
    path: PlattPath, size: int, seed: np.random.SeedSequence
) -> tuple[float, Floats]:
    """Mean ECE over subsamples of `size` rows, and the same for redrawn outcomes."""
    n_subsamples = int(np.clip(WORK // (size * path.n_draws), *SUBSAMPLES))
    counts = _subsamples(path, size, n_subsamples, np.random.default_rng(seed))
    drawn, rows = np.nonzero(counts)
    columns = drawn * N_BINS + bin_codes(path.scores)[rows]
    n_columns = len(counts) * N_BINS

    def sums(values: Floats) -> NDArray:
        return np.bincount(columns, weights=values[rows], minlength=n_columns)

    rows_drawn = counts.sum(axis=1, dtype=np.int64)

    def mean_error(totals: Floats) -> Floats:
        errors = np.abs(totals).reshape(*totals.shape[:-1], -1, N_BINS).sum(axis=-1)
        return (errors / rows_drawn).mean(axis=-1)

    noise = csr_array(
        (path.error[rows], (path.codes[rows], columns)),
        shape=(path.n_clusters, n_columns),
    )
    shift = sums(path.fitted - path.scores.p)
    observed = float(mean_error(sums(path.scores.residual)))
    return observed, mean_error(shift + path.redraw(noise))


def _subsamples(
    path: PlattPath, size: int, n: int, rng: np.random.Generator
) -> NDArray[np.uint8]:
    n_rows = len(path)
    if size >= n_rows:
        return np.ones((1, n_rows), dtype=np.uint8)
    clustered = path.n_clusters < n_rows
    draw = (
        partial(subsample_clusters, path.codes)
        if clustered
        else partial(subsample_counts, n_rows)
    )
    return draw(size, n, random_state=rng)
