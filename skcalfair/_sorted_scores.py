"""SortedScores: rows sorted once by score, replicate weights along the leading axis.

Every metric is a function of one of these objects and returns one value a replicate.
Sums that several metrics share (per-bin sums, the Platt fit, the ROC staircase) are
computed once and kept. A plain evaluation is the case of one replicate.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ._binning import equal_mass_cuts, uniform_starts
from ._log_odds import (
    EPS,
    PlattFit,
    fit_platt,
    fit_platt_replicates,
    is_constant,
    log_odds,
)
from ._validation import ScoredRows

Floats = NDArray[np.float64]
T = TypeVar("T")

# Rank statistics take replicates in chunks of about this many cells, one replicate at
# the least: their integer cumulative sums then stay in the cache.
CHUNK = 2**17
ROW_BLOCK = 2**13


class SortedScores:
    """Outcomes and probabilities sorted by descending probability, with weights.

    Parameters
    ----------
    p : ndarray of shape (n,)
        Probabilities, descending.
    y : ndarray of shape (n,), uint8
        Outcomes in the same order.
    order : ndarray of shape (n,), optional
        Position of each sorted row in the caller's arrays.
    weights : ndarray of shape (n_replicates, n), optional
        Weights in sorted order; None stands for one replicate of ones. Unsigned
        integer counts are the fast case.
    clusters : ndarray of shape (n,), optional
        Cluster codes in sorted order.
    frequency : bool, default=True
        Whether a weight counts rows that may pair with each other in a U-statistic;
        if not, a row never pairs with itself (survey weights, bootstrap counts).
    """

    def __init__(
        self,
        p: Floats,
        y: NDArray[np.uint8],
        *,
        order: NDArray[np.intp] | None = None,
        weights: NDArray | None = None,
        clusters: NDArray[np.intp] | None = None,
        frequency: bool = True,
    ) -> None:
        self.p, self.y = p, y
        self.order, self.weights, self.clusters = order, weights, clusters
        self.frequency = frequency
        self._memo: dict[Any, Any] = {}
        # Facts about the rows alone: shared with every reweighted copy.
        self._row_memo: dict[Any, Any] = {}

    @classmethod
    def from_rows(
        cls, rows: ScoredRows, *, frequency: bool = True, keep_order: bool = False
    ) -> "SortedScores":
        """Sort validated rows; their weights become the single replicate."""
        weighted = rows.sample_weight is not None or rows.clusters is not None
        if not (weighted or keep_order):
            return cls(*_sort_pairs(rows.p, rows.y), frequency=frequency)
        order = np.argsort(rows.p)[::-1]
        weights = rows.sample_weight
        return cls(
            rows.p[order],
            rows.y[order],
            order=order,
            weights=None if weights is None else weights[order][np.newaxis],
            clusters=None if rows.clusters is None else rows.clusters[order],
            frequency=frequency,
        )

    def reweighted(
        self, weights: NDArray | None, *, frequency: bool | None = None
    ) -> "SortedScores":
        """Return the same rows under new replicate weights (in sorted order)."""
        other = SortedScores(
            self.p,
            self.y,
            order=self.order,
            weights=weights,
            clusters=self.clusters,
            frequency=self.frequency if frequency is None else frequency,
        )
        other._row_memo = self._row_memo
        return other

    def take(self, positions: NDArray[np.intp]) -> "SortedScores":
        """Return a subset of the sorted rows; `positions` must ascend."""
        return SortedScores(
            self.p[positions],
            self.y[positions],
            order=None if self.order is None else self.order[positions],
            weights=None if self.weights is None else self.weights[:, positions],
            clusters=None if self.clusters is None else self.clusters[positions],
            frequency=self.frequency,
        )

    def __len__(self) -> int:
        return len(self.p)

    @property
    def n_replicates(self) -> int:
        """Length of the leading axis."""
        return 1 if self.weights is None else len(self.weights)

    def memo(self, key: Any, compute: Callable[[], T]) -> T:
        """Value of `compute()`, kept for other metrics of the same evaluation."""
        if key not in self._memo:
            self._memo[key] = compute()
        found: T = self._memo[key]
        return found

    def row_memo(self, key: Any, compute: Callable[[], T]) -> T:
        """Like `memo`, for what depends on the rows and not on the weights."""
        if key not in self._row_memo:
            self._row_memo[key] = compute()
        found: T = self._row_memo[key]
        return found

    # -- row facts --------------------------------------------------------------

    @property
    def residual(self) -> Floats:
        """Outcome minus probability."""
        return self.row_memo("residual", lambda: self.y - self.p)

    def log_odds(self, eps: float = EPS) -> Floats:
        """Log-odds of the probabilities."""
        return self.row_memo(("log_odds", eps), lambda: log_odds(self.p, eps=eps))

    @property
    def positives(self) -> NDArray[np.intp]:
        """Positions of the positive rows."""
        return self.row_memo("positives", lambda: np.flatnonzero(self.y))

    @property
    def tie_starts(self) -> NDArray[np.intp] | None:
        """First row of each group of equal scores; None when all scores differ."""

        def compute() -> NDArray[np.intp] | None:
            new = np.flatnonzero(self.p[1:] != self.p[:-1]) + 1
            if len(new) == len(self.p) - 1:
                return None
            return np.concatenate([[0], new]).astype(np.intp)

        return self.row_memo("tie_starts", compute)

    @property
    def tie_ends(self) -> NDArray[np.intp] | None:
        """Last row of each group of equal scores; None when all scores differ."""

        def compute() -> NDArray[np.intp] | None:
            starts = self.tie_starts
            if starts is None:
                return None
            return np.append(starts[1:], len(self.p)) - 1

        return self.row_memo("tie_ends", compute)

    # -- sums over rows ---------------------------------------------------------

    @property
    def total(self) -> Floats:
        """Sum of weights, by replicate."""
        return self.memo("total", lambda: self._weight_sum(None))

    @property
    def positive_total(self) -> Floats:
        """Sum of weights of the positive rows, by replicate."""
        return self.memo("positive_total", lambda: self._weight_sum(self.positives))

    def _weight_sum(self, positions: NDArray[np.intp] | None) -> Floats:
        if self.weights is None:
            return np.array([float(len(self) if positions is None else len(positions))])
        chosen = self.weights
        if positions is not None:
            chosen = np.take(chosen, positions, axis=1)
        kind = np.int64 if chosen.dtype.kind in "iu" else np.float64
        return chosen.sum(axis=1, dtype=kind).astype(np.float64)

    def sums(self, columns: Sequence[NDArray]) -> Floats:
        """Weighted sum of each column over all rows, (n_replicates, n_columns)."""
        return self.segment_sums(np.zeros(1, dtype=np.intp), columns)[:, 0]

    def segment_sums(
        self,
        starts: NDArray[np.intp],
        columns: Sequence[NDArray],
        *,
        squared_weights: bool = False,
    ) -> Floats:
        """Weighted sums over row segments, shape (n_replicates, n_segments, n_columns).

        Segment s runs from ``starts[s]`` to the next start; it may be empty.
        """
        out = np.zeros((self.n_replicates, len(starts), len(columns)))
        stops = np.append(starts[1:], len(self))
        if self.weights is None:
            filled = np.flatnonzero(stops > starts)
            for j, column in enumerate(columns):
                values = np.asarray(column, dtype=np.float64)
                out[0, filled, j] = np.add.reduceat(values, starts[filled])
            return out
        for s, (start, stop) in enumerate(zip(starts, stops, strict=True)):
            for low in range(start, stop, ROW_BLOCK):
                rows = slice(low, min(low + ROW_BLOCK, stop))
                block = self.weights[:, rows].astype(np.float64)
                if squared_weights:
                    block *= block
                out[:, s] += block @ np.stack([c[rows] for c in columns], axis=1)
        return out

    def mean(self, values: NDArray) -> Floats:
        """Weighted mean of one value a row, by replicate."""
        return self.sums([values])[:, 0] / self.total

    # -- bins -------------------------------------------------------------------

    def uniform_sums(self, n_bins: int) -> tuple[Floats, Floats]:
        """Weight and weighted residual of each uniform bin, (n_replicates, n_bins).

        Bins run from the highest scores to the lowest.
        """

        def unweighted() -> tuple[Floats, Floats]:
            starts = self.uniform_starts(n_bins)
            mass = np.diff(starts, append=len(self)).astype(np.float64)
            return mass[np.newaxis], self.segment_sums(starts, [self.residual])[..., 0]

        if self.weights is None:
            return self.memo(("uniform_sums", n_bins), unweighted)
        sums = self._weighted_uniform_sums(n_bins)
        return sums[..., 0], sums[..., 1]

    def uniform_squares(self, n_bins: int) -> Floats:
        """Weighted sum of squared residuals of each uniform bin."""
        if self.weights is None:
            starts, squares = self.uniform_starts(n_bins), self.residual**2
            return self.segment_sums(starts, [squares])[..., 0]
        return self._weighted_uniform_sums(n_bins)[..., 2]

    def _weighted_uniform_sums(self, n_bins: int) -> Floats:
        def compute() -> Floats:
            r = self.residual
            columns = [np.ones(len(r)), r, r * r]
            return self.segment_sums(self.uniform_starts(n_bins), columns)

        return self.memo(("weighted_uniform_sums", n_bins), compute)

    def uniform_starts(self, n_bins: int) -> NDArray[np.intp]:
        """First row of each uniform bin, the highest bin first."""
        return self.row_memo(
            ("uniform_starts", n_bins), lambda: uniform_starts(self.p, n_bins)
        )

    def equal_mass_starts(self, n_bins: int) -> NDArray[np.intp]:
        """First row of each equal-mass bin, (n_replicates, n_bins), the highest first.

        A bin that no score ends in repeats the position of the next.
        """

        def compute() -> NDArray[np.intp]:
            out = np.empty((self.n_replicates, n_bins), dtype=np.intp)
            starts, ends = self.tie_starts, self.tie_ends
            for rows, _, cumulative in self._cumulative_chunks():
                at_groups = cumulative if ends is None else cumulative[:, ends]
                cuts = equal_mass_cuts(at_groups, n_bins)
                out[rows] = cuts if starts is None else starts[cuts]
            return out

        return self.memo(("equal_mass_starts", n_bins), compute)

    def equal_mass_sums(self, n_bins: int, column: NDArray) -> Floats:
        """Weighted sum of a column in each equal-mass bin, (n_replicates, n_bins)."""
        starts = self.equal_mass_starts(n_bins)
        if self.weights is None:
            return self.segment_sums(starts[0], [column])[..., 0]
        out = np.empty(starts.shape)
        n = len(self)
        step = max(1, CHUNK // n)
        for low in range(0, len(starts), step):
            first = starts[low : low + step]
            flat = (first + np.arange(len(first))[:, np.newaxis] * n).ravel()
            values = np.multiply(
                self.weights[low : low + step], column, dtype=np.float64
            )
            sums = np.add.reduceat(values.ravel(), flat).reshape(first.shape)
            sums[:, :-1][first[:, 1:] == first[:, :-1]] = 0.0
            out[low : low + step] = sums
        return out

    # -- ranks ------------------------------------------------------------------

    def _cumulative_chunks(self) -> Iterator[tuple[slice, NDArray, NDArray]]:
        """Replicates in chunks: (slice, weights, weights summed down the scores)."""
        n = len(self)
        if self.weights is None:
            ones = np.ones((1, n), dtype=np.uint8)
            yield slice(0, 1), ones, np.arange(1, n + 1, dtype=np.int64)[np.newaxis]
            return
        step = max(1, CHUNK // n)
        for start in range(0, self.n_replicates, step):
            rows = slice(start, min(start + step, self.n_replicates))
            chunk = self.weights[rows]
            kind: type = np.float64
            if chunk.dtype.kind in "iu":
                # uint8 counts over fewer rows than this cannot overflow 32 bits.
                small = chunk.dtype == np.uint8 and n < 2**31 // 255
                kind = np.int32 if small else np.int64
            yield rows, chunk, np.cumsum(chunk, axis=1, dtype=kind)

    def staircases(
        self,
    ) -> Iterator[tuple[slice, Floats, NDArray, NDArray, NDArray]]:
        """Operating points at the scores of positive rows, replicates in chunks.

        Yields (slice, steps, tp, called, fp_before), arrays (n_chunk, n_groups) over
        the groups of tied scores that hold a positive row, highest first: the true
        positives gained there; the true positives and all rows called positive at the
        group's score; the false positives just above it. Groups without a positive row
        move the ROC curve only sideways. Counts stay integers.
        """
        positives = self.positives
        groups = self.row_memo("positive_groups", self._positive_groups)
        for rows, weights, cumulative in self._cumulative_chunks():
            gained = np.take(weights, positives, axis=1)
            if groups is None:
                tp = np.cumsum(gained, axis=1, dtype=cumulative.dtype)
                called = np.take(cumulative, positives, axis=1)
                yield rows, gained.astype(np.float64), tp, called, called - tp
                continue
            first, last_rows, rows_before = groups
            steps = np.add.reduceat(gained, first, axis=1, dtype=cumulative.dtype)
            tp = np.cumsum(steps, axis=1)
            called = np.take(cumulative, last_rows, axis=1)
            before = np.take(cumulative, np.maximum(rows_before, 0), axis=1)
            before[:, rows_before < 0] = 0
            yield rows, steps.astype(np.float64), tp, called, before - (tp - steps)

    def _positive_groups(self) -> tuple[NDArray, NDArray, NDArray] | None:
        """Tie groups that hold a positive row; None when all scores differ.

        For each: its first index among the positives, its last row, and the row above.
        """
        starts, ends = self.tie_starts, self.tie_ends
        if starts is None or ends is None:
            return None
        group_of = np.searchsorted(starts, self.positives, side="right") - 1
        first = np.flatnonzero(np.diff(group_of, prepend=-1))
        groups = group_of[first]
        return first, ends[groups], starts[groups] - 1

    # -- recalibration ----------------------------------------------------------

    def platt(self, eps: float = EPS) -> PlattFit:
        """Unsmoothed Platt fit of every replicate; NaN where none or no single exists.

        A constant score leaves slope and intercept undetermined.
        """

        def compute() -> PlattFit:
            x = self.log_odds(eps)
            if is_constant(x):
                nothing = np.full(self.n_replicates, np.nan)
                none = np.zeros(self.n_replicates, dtype=np.intp)
                return PlattFit(nothing, nothing, none, none.astype(bool))
            start = None
            if self.n_replicates > 1:
                start = self.row_memo(("platt", eps), lambda: _start(x, self.y))
            return fit_platt_replicates(x, self.y, self.weights, start=start)

        return self.memo(("platt", eps), compute)


def _start(x: Floats, y: NDArray[np.uint8]) -> PlattFit | None:
    """Fit to all rows, from which replicates set out; smoothed so that it exists."""
    if x[0] == x[-1] or not 0 < y.sum() < len(y):
        return None
    return fit_platt(x, y, smooth_targets=True)


def _sort_pairs(p: Floats, y: NDArray[np.uint8]) -> tuple[Floats, NDArray[np.uint8]]:
    """Sort (p, y) by descending p without an index array.

    The bits of a double in [0, 1] order as an integer does, and leave the top bit free
    for the outcome to ride along; an in-place integer sort beats argsort several times.
    """
    keys = np.add(p, 0.0).view(np.uint64)  # adding 0.0 turns -0.0 into 0.0
    keys <<= np.uint64(1)
    keys |= y
    keys.sort()
    keys = keys[::-1]
    sorted_y = keys.astype(np.uint8) & np.uint8(1)
    return (keys >> np.uint64(1)).view(np.float64), sorted_y
