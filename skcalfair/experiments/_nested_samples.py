"""Metrics on nested samples of the test rows, from one sort of all rows.

An increasing distortion of the scores keeps their order, so one sort serves every
scenario; samples that contain each other become cumulative sums over the rows that each
adds.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._binning import uniform_starts
from .._log_odds import EPS, PlattFit, fit_platt, log_odds
from .._sorted_scores import ROW_BLOCK
from ..metrics._proper import log_loss_values
from ..metrics._recalibration import _at_fit

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]

SAMPLE_METRICS = (
    "expected_calibration_error",
    "maximum_calibration_error",
    "adaptive_calibration_error",
    "squared_calibration_error",
    "log_loss",
    "brier_score_loss",
    "calibration_loss_log_loss",
    "calibration_loss_brier",
)
HELD_OUT = {"calibration_loss_log_loss", "calibration_loss_brier"}
# A row that is in no sample, one that fits the calibrator, and the first sample.
NOWHERE, VALIDATION, FIRST = 0, 1, 2


@dataclass(frozen=True)
class Scenario:
    """All rows under one distortion of the scores, by descending score."""

    name: str
    p: Floats
    y: NDArray[np.uint8]

    @cached_property
    def residual(self) -> Floats:
        """Outcome minus probability."""
        return self.y - self.p

    @cached_property
    def log_odds(self) -> Floats:
        """Log-odds of the probabilities."""
        return log_odds(self.p)

    @cached_property
    def log_loss(self) -> Floats:
        """Cross-entropy of each row."""
        return log_loss_values(self.y, self.p)

    def prepare(self, metrics: Sequence[str]) -> None:
        """Compute what these metrics need of all rows, before it goes to workers."""
        _ = self.residual
        if HELD_OUT & set(metrics):
            _ = self._fit_to_all
        if {"log_loss", "calibration_loss_log_loss"} & set(metrics):
            _ = self.log_loss

    def first_of_ties(self, rows: Positions) -> Positions:
        """First row with the score of each of these rows."""
        ascending = self.p[::-1]
        return len(self.p) - np.searchsorted(ascending, self.p[rows], side="right")

    @cached_property
    def _fit_to_all(self) -> PlattFit:
        """Where the fits to parts of the rows set out from."""
        return fit_platt(self.log_odds, self.y, smooth_targets=True)

    def fit(self, rows: Positions) -> PlattFit | None:
        """Platt map fitted to some rows; None if they are of one class."""
        y = self.y[rows]
        if not 0 < y.sum() < len(y):
            return None
        with warnings.catch_warnings():
            # Separable scores get the smoothed fit, which is as good as there is.
            warnings.filterwarnings("ignore", "the classes are separable")
            return fit_platt(self.log_odds[rows], y, start=self._fit_to_all)


class Split:
    """Validation rows, and test rows in samples each of which contains the one before.

    `parts` says for each row, in the order of the scores, where it belongs: NOWHERE,
    VALIDATION, or FIRST + k for the test rows that sample k adds to the sample before.
    """

    def __init__(self, parts: NDArray[np.integer], n_samples: int) -> None:
        self.validation = np.flatnonzero(parts == VALIDATION)
        self.rows = np.flatnonzero(parts >= FIRST)
        part = parts[self.rows] - FIRST
        self.part = part.astype(np.intp)
        self.sizes = np.cumsum(np.bincount(self.part, minlength=n_samples))
        # Places in `rows`, which ascend with the rows themselves.
        self.samples = [np.flatnonzero(part <= k) for k in range(n_samples)]

    def bins(self, starts: Positions) -> Positions:
        """Bin of each test row."""
        cuts = np.searchsorted(self.rows, starts)
        return np.repeat(np.arange(len(starts)), np.diff(cuts, append=len(self.rows)))

    def sums(
        self, values: Floats | None, bins: Positions | None = None, n_bins: int = 1
    ) -> Floats:
        """Sums of values (None: counts) of test rows, (n_samples, n_bins)."""
        n_samples = len(self.sizes)
        cells = self.part if bins is None else self.part * n_bins + bins
        found = np.bincount(cells, weights=values, minlength=n_samples * n_bins)
        return np.cumsum(found.reshape(n_samples, n_bins).astype(np.float64), axis=0)


def draw_parts(
    n: int, n_validation: int, sizes: Sequence[int], rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Where each of n rows belongs in a random split; see `Split`.

    Every row draws its part, then rows drawn at random leave the parts that have too
    many. No row is treated unlike another, so all splits of these sizes are equally
    likely, and that is much faster than to shuffle.
    """
    wanted = np.array([0, n_validation, *np.diff(sizes, prepend=0)])
    wanted[NOWHERE] = n - wanted.sum()
    shares = np.rint(np.cumsum(wanted) * (2**16 / n)).astype(np.intp)
    table = np.repeat(np.arange(len(wanted)), np.diff(shares, prepend=0))
    drawn = rng.integers(2**16, size=n, dtype=np.uint16)
    parts = table.astype(np.uint8)[drawn]
    surplus = np.bincount(parts, minlength=len(wanted)) - wanted
    leaving = _leaving(parts, np.maximum(surplus, 0), rng)
    parts[leaving] = np.repeat(np.arange(len(wanted)), np.maximum(-surplus, 0))
    return parts


def _leaving(
    parts: NDArray[np.uint8], numbers: NDArray[np.intp], rng: np.random.Generator
) -> Positions:
    """Random rows, so many of each part, in random order."""
    n, wanted = len(parts), int(numbers.sum())
    size = min(n, 64 * wanted)
    while wanted:
        # Distinct rows in random order: the first of each part are what is wanted.
        rows = rng.permutation(n) if size == n else _distinct(n, size, rng)
        part = parts[rows]
        chosen = [np.flatnonzero(part == k)[:m] for k, m in enumerate(numbers) if m]
        found = np.concatenate(chosen)
        if len(found) == wanted:
            return rng.permutation(rows[found])
        size = min(n, 4 * size)
    return np.empty(0, dtype=np.intp)


def _distinct(n: int, size: int, rng: np.random.Generator) -> Positions:
    """About so many different rows, in random order."""
    return pd.unique(rng.integers(n, size=size))


def sample_values(
    scenario: Scenario, split: Split, metrics: Sequence[str], n_bins: int
) -> Floats:
    """Every metric on every sample, (n_samples, n_metrics); NaN without a Platt map."""
    values = _Values(scenario, split, n_bins)
    return np.stack([getattr(values, name) for name in metrics], axis=1)


class _Values:
    """Metrics on the samples of one split; sums that several need are kept."""

    def __init__(self, scenario: Scenario, split: Split, n_bins: int) -> None:
        self.scenario, self.split, self.n_bins = scenario, split, n_bins
        self.residual = scenario.residual[split.rows]

    @cached_property
    def _bins(self) -> Positions:
        return self.split.bins(uniform_starts(self.scenario.p, self.n_bins))

    def _by_bin(self, values: Floats | None) -> Floats:
        return self.split.sums(values, self._bins, self.n_bins)

    @cached_property
    def _mass(self) -> Floats:
        return self._by_bin(None)

    @cached_property
    def _sums(self) -> Floats:
        return self._by_bin(self.residual)

    @cached_property
    def _squares(self) -> Floats:
        return self._by_bin(self.residual**2)

    def _means(self, values: Floats) -> Floats:
        return self.split.sums(values)[:, 0] / self.split.sizes

    @property
    def expected_calibration_error(self) -> Floats:
        return np.abs(self._sums).sum(axis=1) / self.split.sizes

    @property
    def maximum_calibration_error(self) -> Floats:
        return (np.abs(self._sums) / np.maximum(self._mass, 1.0)).max(axis=1)

    @property
    def adaptive_calibration_error(self) -> Floats:
        return np.array([self._adaptive(places) for places in self.split.samples])

    def _adaptive(self, places: Positions) -> float:
        """Expected error over equal-mass bins; tied scores stay together."""
        n = len(places)
        rows = self.split.rows
        limits = places[(n * np.arange(self.n_bins)) // self.n_bins]
        first = np.searchsorted(rows, self.scenario.first_of_ties(rows[limits]))
        starts = np.unique(np.searchsorted(places, first))
        sums = np.add.reduceat(self.residual[places], starts)
        return float(np.abs(sums).sum() / n)

    @property
    def squared_calibration_error(self) -> Floats:
        mass = self._mass
        enough = np.maximum(mass - 1.0, 1.0)
        terms = (self._sums**2 - self._squares) / enough
        # A bin needs two rows.
        return np.where(mass > 1, terms, 0.0).sum(axis=1) / self.split.sizes

    @cached_property
    def brier_score_loss(self) -> Floats:
        return self._squares.sum(axis=1) / self.split.sizes

    @cached_property
    def log_loss(self) -> Floats:
        return self._means(self.scenario.log_loss[self.split.rows])

    @cached_property
    def _recalibrated(self) -> tuple[Floats, Floats]:
        """Log loss and Brier score after the Platt map of the validation rows."""
        rows = self.split.rows
        fit = self.scenario.fit(self.split.validation)
        if fit is None:
            nothing = np.full(len(self.split.sizes), np.nan)
            return nothing, nothing
        losses, squares = np.empty(len(rows)), np.empty(len(rows))
        x, sign = self.scenario.log_odds[rows], 2.0 * self.scenario.y[rows] - 1.0
        for start in range(0, len(rows), ROW_BLOCK):
            block = slice(start, start + ROW_BLOCK)
            z = fit.slope * x[block] + fit.intercept
            losses[block], error, _ = _at_fit(z, sign[block], EPS)
            np.square(error, out=squares[block])
        return self._means(losses), self._means(squares)

    @property
    def calibration_loss_log_loss(self) -> Floats:
        return self.log_loss - self._recalibrated[0]

    @property
    def calibration_loss_brier(self) -> Floats:
        return self.brier_score_loss - self._recalibrated[1]
