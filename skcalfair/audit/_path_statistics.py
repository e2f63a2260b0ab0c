"""Metrics along a Platt path: their true value, and how estimates scatter around it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import hstack

from ..metrics._calibration_error import (
    expected_error_kernel,
    kernel_error_kernel,
    laplacian_pair_sums,
    squared_error_kernel,
    squared_error_terms,
)
from ..metrics._calibration_loss import calibration_loss_kernel
from ._platt_path import N_BINS, PlattPath, bin_codes, square_root

Floats = NDArray[np.float64]

BANDWIDTH = 0.1
# Where all rows are saturated, nothing scatters; their variance must stay invertible.
ROUNDING = 1e-12
SATURATED = 1e-150
# Where rows times redraws are more, SKCE's kernel is evaluated between cells of p.
KERNEL_WORK = 2_000_000
KERNEL_CELLS = 400
# Points of the table that leads from a true value to its place on the path. The last
# ones are where hardly a row is uncertain: a gap may be refuted only there.
REACH = np.concatenate(
    [[0.0], np.geomspace(1e-4, 15.0, 50), np.geomspace(30.0, 15.0 * 2**12, 12)]
)


class PathStatistic(ABC):
    """A metric along a path.

    `observed` is its estimate, `truth(reach)` its true value at a place of the path and
    `deviates(reach)` redrawn estimates there minus the true value.
    """

    observed: float
    # Estimates of a biased metric are judged by both tails, others by their distance.
    equal_tailed = False

    @abstractmethod
    def truth(self, reach: float) -> float:
        """True value at a place of the path."""

    @abstractmethod
    def deviates(self, reach: float) -> Floats:
        """Redrawn estimates minus the true value."""

    @cached_property
    def _table(self) -> Floats:
        values = np.array([self.truth(reach) for reach in REACH])
        return np.maximum.accumulate(values)

    def reach(self, value: float) -> float:
        """Place of the path with this true value."""
        return float(np.interp(value, self._table, REACH))

    @cached_property
    def _moments(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the estimate over the table."""
        deviates = [self.deviates(reach) for reach in REACH]
        means = self._table + np.array([d.mean() for d in deviates])
        return means, np.array([d.std() for d in deviates])

    @property
    def known_truths(self) -> Floats:
        """True values of the table, ascending."""
        return self._table

    def distance(self, values: Floats) -> Floats:
        """Standard deviations from the estimate to that expected of true values."""
        means, deviations = (
            np.interp(values, self._table, column) for column in self._moments
        )
        return (self.observed - means) / np.maximum(deviations, ROUNDING)

    @property
    def spread(self) -> float:
        """Standard deviation of the estimate near the most plausible true value."""
        return float(np.interp(self.estimate, self._table, self._moments[1]))

    @cached_property
    def floor(self) -> float:
        """Estimates below say no more than this one: no true value is below 0."""
        return float(np.median(self.deviates(0.0))) if self.equal_tailed else 0.0

    @property
    def clipped(self) -> float:
        """Estimate, not below the floor."""
        return max(self.observed, self.floor)

    def redraws(self, reach: float) -> Floats:
        """Redrawn estimates, not below the floor."""
        return np.maximum(self.truth(reach) + self.deviates(reach), self.floor)

    @cached_property
    def estimate(self) -> float:
        """Most plausible true value, at least 0."""
        if not self.equal_tailed:
            return self.clipped
        low, high = 0.0, float(REACH[-1])
        if self.observed <= self.floor:
            return 0.0
        for _ in range(30):
            middle = (low + high) / 2.0
            below = np.median(self.redraws(middle)) < self.observed
            low, high = (middle, high) if below else (low, middle)
        return self.truth(low)


class _Quadratic(PathStatistic):
    """U-statistic of residuals that move linearly along the path.

    With residuals reach * shift + sign * error, estimates are a polynomial in reach:
    pairs of shifts (`unit`), of a shift and an error (`cross`), of errors (`plain`).
    """

    unit: float
    cross: Floats
    plain: Floats

    def truth(self, reach: float) -> float:
        return reach * reach * self.unit

    def deviates(self, reach: float) -> Floats:
        return self.plain + reach * self.cross


class SquaredError(_Quadratic):
    """CE2 over uniform bins."""

    def __init__(self, path: PlattPath) -> None:
        scores, bins = path.scores, bin_codes(path.scores)
        self.observed = float(squared_error_kernel(scores, N_BINS)[0])
        mass, _, pairs = squared_error_terms(scores, N_BINS)
        weight = np.zeros(N_BINS)
        np.divide(mass[0], pairs[0], out=weight, where=pairs[0] > 0)
        weight /= len(path)
        error = path.by_cluster(bins, path.error, N_BINS)
        shift = path.by_cluster(bins, path.shift, N_BINS)
        both = hstack([error, shift.multiply(error)], format="csr")
        redrawn = path.redraw(both)
        noise, own = redrawn[:, :N_BINS], redrawn[:, N_BINS:]
        total = np.asarray(shift.sum(axis=0))
        self.unit = float(weight @ (total**2 - _squares(shift)))
        self.cross = 2.0 * (noise * total - own) @ weight
        self.plain = (noise**2 - _squares(error)) @ weight


def _squares(sums: object) -> Floats:
    """Column sums of the squares of a sparse matrix."""
    return np.asarray(sums.multiply(sums).sum(axis=0))  # type: ignore[attr-defined]


class KernelError(_Quadratic):
    """SKCE: as CE2, with a kernel in place of bins."""

    def __init__(self, path: PlattPath) -> None:
        p, shift, error = path.scores.p, path.shift, path.error
        self.observed = float(kernel_error_kernel(path.scores, BANDWIDTH)[0])
        sizes = np.bincount(path.codes)
        n_pairs = (len(p) ** 2 - float(sizes @ sizes)) / 2.0
        others = laplacian_smooth(p, shift) - _own_smooth(path, shift)
        self.unit = float(shift @ others) / 2.0 / n_pairs
        zeros = np.zeros(len(p), dtype=np.intp)
        pull = path.by_cluster(zeros, error * others, 1)
        self.cross = path.redraw(pull)[:, 0] / n_pairs
        # A cluster's rows share their sign: pairs within it do not depend on it.
        own = float(error @ _own_smooth(path, error))
        squares = self._squares(path)
        self.plain = (squares - own) / 2.0 / n_pairs

    def _squares(self, path: PlattPath) -> Floats:
        """Redraws of the double sum over all rows."""
        p, error = path.scores.p, path.error
        if len(path) * path.n_draws > KERNEL_WORK:
            cell = np.minimum((p * KERNEL_CELLS).astype(np.intp), KERNEL_CELLS - 1)
            sums = path.redraw(path.by_cluster(cell, error, KERNEL_CELLS))
            kernel = laplacian((np.arange(KERNEL_CELLS) + 0.5) / KERNEL_CELLS)
            return ((sums @ kernel) * sums).sum(axis=1)
        out = np.empty(path.n_draws)
        for rows, signs in path.signs():
            signed = signs[:, path.codes] * error
            out[rows] = 2.0 * laplacian_pair_sums(p, signed, BANDWIDTH) + error @ error
        return out


def laplacian(p: Floats) -> Floats:
    """Kernel of SKCE between all pairs."""
    return np.exp(-np.abs(p[:, np.newaxis] - p) / BANDWIDTH)


def laplacian_smooth(p: Floats, values: Floats) -> Floats:
    """Kernel-weighted sum of values for every row; p descends."""
    # exp(1 / BANDWIDTH) is harmless, so the kernel may be split into two factors.
    up = np.exp(p / BANDWIDTH)
    above = np.cumsum(values / up) * up
    below = np.cumsum((values * up)[::-1])[::-1] / up
    return above + below - values


def _own_smooth(path: PlattPath, values: Floats) -> Floats:
    """The same sum over the rows of the row's own cluster."""
    if path.n_clusters == len(path):
        return values
    out = np.empty_like(values)
    order = np.argsort(path.codes, kind="stable")
    starts = np.flatnonzero(np.diff(path.codes[order], prepend=-1))
    for rows in np.split(order, starts[1:]):
        out[rows] = laplacian_smooth(path.scores.p[rows], values[rows])
    return out


class ExpectedError(PathStatistic):
    """ECE over uniform bins; its true value is that of infinitely many rows."""

    equal_tailed = True

    def __init__(self, path: PlattPath) -> None:
        self.n, self.cells = len(path), path.cells
        self.observed = float(expected_error_kernel(path.scores, N_BINS)[0])
        errors = path.by_cluster(bin_codes(path.scores), path.error, N_BINS)
        self.noise = path.redraw(errors)

    def _shift(self, reach: float) -> NDArray:
        moved = self.cells.n * (self.cells.at(reach) - self.cells.p)
        return np.bincount(self.cells.bins, weights=moved, minlength=N_BINS)

    def truth(self, reach: float) -> float:
        return float(np.abs(self._shift(reach)).sum()) / self.n

    def deviates(self, reach: float) -> Floats:
        shift = self._shift(reach)
        redrawn = np.abs(shift + self.noise).sum(axis=1)
        return (redrawn - np.abs(shift).sum()) / self.n


class CalibrationLoss(PathStatistic):
    """Corrected calibration loss: a form in five normal sums, without refits."""

    def __init__(self, path: PlattPath, score: str) -> None:
        self.path, self.cells, self.score = path, path.cells, score
        self.observed = float(calibration_loss_kernel(path.scores, score=score)[0])
        rng = np.random.default_rng(path.seed)
        self.normals = rng.standard_normal((path.n_draws, 5))

    def truth(self, reach: float) -> float:
        cells = self.cells
        q, x, z = cells.at(reach), cells.x, cells.x + reach * cells.step
        if self.score == "brier":
            values = (q - cells.p) ** 2
        else:
            # Divergence of p from q, in a form that takes any log-odds.
            values = q * (z - x) + np.logaddexp(0.0, x) - np.logaddexp(0.0, z)
        return float(cells.n @ values) / len(self.path)

    def deviates(self, reach: float) -> Floats:
        cells = self.cells
        q = cells.at(reach)
        v = np.maximum(q * (1.0 - q), SATURATED)
        line = np.stack([np.ones_like(q), cells.x], axis=1)
        off = reach * cells.step if self.score == "log_loss" else 2.0 * (q - cells.p)
        features = np.column_stack([line, v[:, np.newaxis] * line, off])
        covariance = self._covariance(features, v)
        form = self._gain_form(line, v)
        draws = self.normals @ square_root(covariance).T
        gain = ((draws[:, :4] @ form) * draws[:, :4]).sum(axis=1)
        return draws[:, 4] + gain - np.trace(form @ covariance[:4, :4])

    def _gain_form(self, line: Floats, v: Floats) -> Floats:
        """Gain of the fit over the truth, as a form in the sums of e x~ and v e x~."""
        weight = (self.cells.n * v)[:, np.newaxis] / len(self.path)
        # Far along the path every row may be saturated.
        inverse = np.linalg.pinv((weight * line).T @ line, hermitian=True)
        form = np.zeros((4, 4))
        if self.score == "log_loss":
            form[:2, :2] = inverse / 2.0
            return form
        curvature = (weight * v[:, np.newaxis] * line).T @ line
        form[:2, :2] = -inverse @ curvature @ inverse
        form[:2, 2:] = form[2:, :2] = inverse
        return form

    def _covariance(self, features: Floats, v: Floats) -> Floats:
        """Covariance of the means of the features times the error."""
        path, n = self.path, len(self.path)
        if path.n_clusters == n:
            weighted = features * (self.cells.n * v)[:, np.newaxis]
            return weighted.T @ features / n**2
        sums = self.cells.errors @ (features * np.sqrt(v)[:, np.newaxis])
        # The errors were freed of two parameters.
        factor = path.n_clusters / max(path.n_clusters - 2.0, 1.0)
        return factor * sums.T @ sums / n**2


STATISTICS: dict[str, Callable[[PlattPath], PathStatistic]] = {
    "squared_calibration_error": SquaredError,
    "kernel_calibration_error": KernelError,
    "expected_calibration_error": ExpectedError,
    "calibration_loss_log_loss": partial(CalibrationLoss, score="log_loss"),
    "calibration_loss_brier": partial(CalibrationLoss, score="brier"),
}
