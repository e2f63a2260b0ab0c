"""Redraws of the outcomes from the curve common to all groups."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from ..resampling import permutation_p_value
from ._group_score import Cells, Problem, Score, correlations, efficient_columns
from ._platt_path import square_root

Floats = NDArray[np.float64]

# Rows of a group whose outcomes are redrawn one by one; of more, the sums are normal.
REDRAWN_ROWS = 2_000
# Cells of one temporary.
BLOCK = 2**21
# Nodes of the integral over the effect that the rows of a cluster share.
NODES = 16
LARGEST_LATENT = 0.95


def redrawn_p_value(
    problem: Problem,
    score: Score,
    n_draws: int,
    rng: np.random.Generator,
    *,
    omnibus: bool,
) -> float:
    """Upper tail of a score statistic when outcomes follow the common curve."""
    sizes = np.bincount(problem.codes, minlength=problem.n_groups)
    rows = np.flatnonzero(sizes[problem.codes] <= REDRAWN_ROWS)
    if not len(rows):
        return score.p_value
    columns = (efficient_columns(problem, omnibus) @ score.root)[rows]
    redraw = OutcomeRedraw(problem, rows)
    draws = np.empty((n_draws, score.df))
    step = max(1, BLOCK // len(rows))
    for start in range(0, n_draws, step):
        stop = min(start + step, n_draws)
        draws[start:stop] = redraw.errors(stop - start, rng) @ columns
    if len(rows) < len(problem.y):
        # Sums over many rows are normal; they bring the variance to one.
        rest = np.eye(score.df) - draws.T @ draws / n_draws
        draws += rng.standard_normal((n_draws, score.df)) @ square_root(rest).T
    redrawn = np.sum(draws * draws, axis=1)
    return permutation_p_value(score.statistic, redrawn, alternative="greater")


class OutcomeRedraw:
    """Outcomes drawn from the common curve, for some rows.

    The rows of a cluster share a normal effect, of a size that gives their outcomes
    the correlations estimated.
    """

    def __init__(self, problem: Problem, rows: NDArray[np.intp]) -> None:
        self.fitted = problem.common.fitted[rows]
        self.clustered = problem.clusters is not None
        if not self.clustered:
            return
        own, between = correlations(problem, Cells.of(problem))
        here = Problem(
            problem.y[rows],
            problem.basis.take(rows),
            problem.codes[rows],
            problem.n_groups,
            problem.clusters[rows],  # type: ignore[index]
        )
        self.cells = Cells.of(here)
        self.threshold = ndtri(self.fitted)
        self.latent = self._latent(here.codes, own)
        shared = own[own > 0].min() if (own > 0).any() else 1.0
        self.between = min(1.0, between / shared)

    def errors(self, n_draws: int, rng: np.random.Generator) -> Floats:
        """Outcomes minus their probabilities, (n_draws, rows)."""
        shape = (n_draws, len(self.fitted))
        if not self.clustered:
            return (rng.random(shape) < self.fitted) - self.fitted
        cells = self.cells
        effect = rng.standard_normal((n_draws, len(cells.group)))
        if self.between > 0:
            whole = rng.standard_normal((n_draws, int(cells.cluster.max()) + 1))
            effect *= np.sqrt(1.0 - self.between)
            effect += np.sqrt(self.between) * whole[:, cells.cluster]
        noise = rng.standard_normal(shape)
        noise *= np.sqrt(1.0 - self.latent)
        noise += np.sqrt(self.latent) * effect[:, cells.codes]
        return (noise < self.threshold) - self.fitted

    def _latent(self, codes: NDArray[np.intp], own: Floats) -> Floats:
        """Latent correlation of each row that gives the correlation of its group."""
        low, high = np.zeros(len(own)), np.full(len(own), LARGEST_LATENT)
        for _ in range(10):
            middle = (low + high) / 2.0
            below = self._correlation(middle[codes], len(own)) < own
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.where(own > 0, low, 0.0)[codes]

    def _correlation(self, latent: Floats, n_groups: int) -> Floats:
        """Correlation of outcomes, by group, that latent correlations make."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        root, rest = np.sqrt(latent), np.sqrt(1.0 - latent)
        products = np.zeros(n_groups)
        for node, weight in zip(nodes, weights / weights.sum(), strict=True):
            shift = ndtr((self.threshold - root * node) / rest) - self.fitted
            products += weight * self._pairs(shift, n_groups)
        spread = np.sqrt(self.fitted * (1.0 - self.fitted))
        return products / np.maximum(self._pairs(spread, n_groups), 1e-300)

    def _pairs(self, values: Floats, n_groups: int) -> Floats:
        """Sum of products over ordered pairs of a cell, by group."""
        k = len(self.cells.group)
        sums = np.bincount(self.cells.codes, weights=values, minlength=k)
        squares = np.bincount(self.cells.codes, weights=values**2, minlength=k)
        pairs = sums**2 - squares
        out = np.bincount(self.cells.group, weights=pairs, minlength=n_groups)
        return out.astype(np.float64)
