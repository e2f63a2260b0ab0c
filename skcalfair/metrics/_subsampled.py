"""Kernels on many subsamples; small ones touch only the rows that some of them hold."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from .._random import RandomStateLike, child_seeds
from .._sorted_scores import CHUNK, SortedScores
from ..resampling import subsample_clusters, subsample_counts
from ._evaluate import Kernel
from ._gathered import GatheredScores, can_gather, hand_on, is_served
from ._resampled import REPLICATES, replicate_values

Floats = NDArray[np.float64]

# Subsamples that may share one set of rows taken out.
TOGETHER = (4, 8, 16)
# Nanoseconds that ten metrics take: for a call, for each row taken out, and for each
# row and replicate.
CALL, ROW, CELL = 1.5e6, 60.0, 20.0
# Gathering a row costs as much as weighting this many.
GATHERED = 4
# Rows gathered at once.
GATHERED_CELLS = 2**17


def subsample_values(
    scores: SortedScores,
    kernels: Mapping[str, Kernel],
    size: int,
    n_replicates: int,
    *,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
) -> dict[str, Floats]:
    """Value of every kernel on subsamples of `size` rows without replacement.

    With clusters, whole ones are drawn, up to that size. The subsamples depend neither
    on `n_jobs` nor on the kernels.
    """
    gathers = can_gather(scores) and size * GATHERED < len(scores)
    served = {n: k for n, k in kernels.items() if gathers and is_served(k)}
    others = {n: k for n, k in kernels.items() if n not in served}
    together = 0 if scores.clusters is not None else how_many(len(scores), size)
    if not gathers and not together:
        return replicate_values(
            scores,
            kernels,
            partial(_draw, scores, size),
            n_replicates,
            random_state=random_state,
            n_jobs=n_jobs,
        )
    for kernel in kernels.values():
        kernel(scores)  # what is known row by row, such as log-odds, is then kept
    together = together or TOGETHER[0]
    # The same subsamples, whatever metrics are asked for.
    most = max(together, GATHERED_CELLS // size // together * together)
    starts = range(0, n_replicates, most)
    sizes = [min(most, n_replicates - start) for start in starts]
    seeds = child_seeds(random_state, len(sizes))
    blocks = Parallel(n_jobs=n_jobs)(
        delayed(_drawn_values)(scores, served, others, size, block, together, seed)
        for block, seed in zip(sizes, seeds, strict=True)
    )
    return {name: np.concatenate([block[name] for block in blocks]) for name in kernels}


def how_many(n: int, size: int) -> int:
    """Subsamples to evaluate together on the rows they hold; 0 to weight all rows.

    Each pays for the rows of all; all share the cost of a call.
    """
    costs = {0: CELL * n + CALL / max(REPLICATES, 2 * CHUNK // n)}
    for k in TOGETHER:
        union = n * (1.0 - (1.0 - size / n) ** k)
        costs[k] = (CALL + ROW * union) / k + CELL * union
    return min(costs, key=costs.__getitem__)


def _draw(
    scores: SortedScores, size: int, n_replicates: int, rng: np.random.Generator
) -> NDArray:
    if scores.clusters is None:
        return subsample_counts(len(scores), size, n_replicates, random_state=rng)
    _, codes = np.unique(scores.clusters, return_inverse=True)
    return subsample_clusters(codes, size, n_replicates, random_state=rng)


def _drawn_values(
    scores: SortedScores,
    served: dict[str, Kernel],
    others: dict[str, Kernel],
    size: int,
    n_replicates: int,
    together: int,
    seed: np.random.SeedSequence,
) -> dict[str, Floats]:
    """Values on a block of subsamples: gathered, or on the rows that some hold."""
    rng = np.random.default_rng(seed)
    drawn = draw_rows(len(scores), size, n_replicates, rng)
    out: dict[str, Floats] = {}
    if served:
        gathered = GatheredScores(scores, drawn)
        out = {name: kernel(gathered) for name, kernel in served.items()}
    if others:
        parts = [
            _union_values(scores, others, drawn[start : start + together])
            for start in range(0, n_replicates, together)
        ]
        out |= {name: np.concatenate([p[name] for p in parts]) for name in others}
    return out


def _union_values(
    scores: SortedScores, kernels: dict[str, Kernel], drawn: NDArray[np.intp]
) -> dict[str, Floats]:
    """Values on subsamples, from the rows that at least one holds."""
    rows, weights = union_of_subsamples(len(scores), drawn)
    part = scores.take(rows)
    if part.weights is not None:
        weights = weights * part.weights[0]
    replicates = _FewRows(part.p, part.y, weights=weights, frequency=part.frequency)
    hand_on(scores, rows, replicates)
    return {name: kernel(replicates) for name, kernel in kernels.items()}


class _FewRows(SortedScores):
    """Replicates on so few rows that their weights fit the cache as floats."""

    def segment_sums(
        self,
        starts: NDArray[np.intp],
        columns: Sequence[NDArray],
        *,
        squared_weights: bool = False,
    ) -> Floats:
        """Weighted sums over row segments, by one conversion of the weights."""
        if squared_weights or self.weights is None:
            return super().segment_sums(
                starts, columns, squared_weights=squared_weights
            )
        weights = self.weights
        floats = self.memo("floats", lambda: weights.astype(np.float64))
        table = np.stack(columns, axis=1)
        out = np.zeros((len(weights), len(starts), table.shape[1]))
        stops = np.append(starts[1:], len(self))
        for s, (start, stop) in enumerate(zip(starts, stops, strict=True)):
            if stop > start:
                out[:, s] = floats[:, start:stop] @ table[start:stop]
        return out


def draw_rows(
    n: int, size: int, n_replicates: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Rows of each subsample, ascending, (n_replicates, size).

    Repeated draws are thrown away and drawn anew: every set of rows stays equally
    likely.
    """
    first = np.arange(n_replicates, dtype=np.int64) * n
    drawn = (rng.integers(n, size=(n_replicates, size)) + first[:, np.newaxis]).ravel()
    while True:
        drawn.sort()
        repeated = drawn[1:] == drawn[:-1]
        if not repeated.any():
            return drawn.reshape(n_replicates, size) - first[:, np.newaxis]
        drawn = drawn[np.append(True, ~repeated)]
        missing = size - np.bincount(drawn // n, minlength=n_replicates)
        again = rng.integers(n, size=missing.sum()) + np.repeat(first, missing)
        drawn = np.concatenate([drawn, again])


def union_of_subsamples(
    n: int, drawn: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.uint8]]:
    """Rows that at least one subsample holds, ascending, and which holds which."""
    held = np.zeros(n, dtype=bool)
    held[drawn] = True
    rows = np.flatnonzero(held)
    place = np.empty(n, dtype=np.intp)
    place[rows] = np.arange(len(rows))
    weights = np.zeros((len(drawn), len(rows)), dtype=np.uint8)
    np.put_along_axis(weights, place[drawn], 1, axis=1)
    return rows, weights
