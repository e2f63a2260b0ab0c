"""Kernels on many replicates: blocks of weights, one child seed a block."""

from collections.abc import Callable, Mapping

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from .._random import RandomStateLike, child_seeds
from .._sorted_scores import CHUNK, SortedScores
from ._evaluate import Kernel

Floats = NDArray[np.float64]
# (number of replicates, generator) -> weights of shape (n_replicates, n)
Draw = Callable[[int, np.random.Generator], NDArray]

# Replicates processed together when rows are many: enough to share the features of a
# row block, few enough to keep a block of a million rows at 16 MB.
REPLICATES = 16


def replicate_values(
    scores: SortedScores,
    kernels: Mapping[str, Kernel],
    draw: Draw,
    n_replicates: int,
    *,
    frequency: bool = True,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
) -> dict[str, Floats]:
    """Value of every kernel on `n_replicates` sets of weights.

    The weights drawn multiply those of `scores`. Results do not depend on `n_jobs`.
    """
    size = max(REPLICATES, 2 * CHUNK // len(scores))
    sizes = [min(size, n_replicates - i) for i in range(0, n_replicates, size)]
    seeds = child_seeds(random_state, len(sizes))
    blocks = Parallel(n_jobs=n_jobs)(
        delayed(_block_values)(scores, dict(kernels), draw, n, seed, frequency)
        for n, seed in zip(sizes, seeds, strict=True)
    )
    return {name: np.concatenate([block[name] for block in blocks]) for name in kernels}


def _block_values(
    scores: SortedScores,
    kernels: dict[str, Kernel],
    draw: Draw,
    n_replicates: int,
    seed: np.random.SeedSequence,
    frequency: bool,
) -> dict[str, Floats]:
    weights = draw(n_replicates, np.random.default_rng(seed))
    if scores.weights is not None:
        weights = weights * scores.weights[0]
    replicates = scores.reweighted(weights, frequency=frequency and scores.frequency)
    return {name: kernel(replicates) for name, kernel in kernels.items()}
