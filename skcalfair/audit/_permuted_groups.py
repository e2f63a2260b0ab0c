"""Permutation of group membership among rows of nearly equal scores."""

import numpy as np
from numpy.typing import NDArray

from ..resampling import permutation_p_value, permute_within_strata
from ._group_score import Problem, Score

Floats = NDArray[np.float64]

# Strata of scores, at least ten, with about this many rows of the smallest group each
# where there are more.
FEWEST_STRATA, MOST_STRATA = 10, 50
ROWS_A_STRATUM = 10
# Cells of one temporary.
BLOCK = 2**22


def score_strata(problem: Problem) -> NDArray[np.intp]:
    """Stratum of each row by its score; equal scores stay together."""
    x = problem.basis.line[:, 1]
    smallest = np.bincount(problem.codes, minlength=problem.n_groups).min()
    k = int(np.clip(smallest // ROWS_A_STRATUM, FEWEST_STRATA, MOST_STRATA))
    values = np.unique(x)
    if len(values) <= k:
        return np.searchsorted(values, x)
    edges = np.unique(np.quantile(x, np.arange(1, k) / k))
    return np.searchsorted(edges, x, side="right")


def permuted_p_value(
    problem: Problem, score: Score, n_draws: int, rng: np.random.Generator
) -> float:
    """Upper tail of the score statistic when groups are permuted within strata.

    The common curve does not depend on who belongs where, so it is fitted once; the
    covariance of the score is that of each permutation.
    """
    sums = _GroupSums(problem)
    strata = score_strata(problem)
    kind = np.uint8 if problem.n_groups <= 256 else np.intp
    codes = problem.codes.astype(kind)
    step = max(1, BLOCK // len(codes))
    permuted = []
    for start in range(0, n_draws, step):
        n = min(step, n_draws - start)
        draws = permute_within_strata(codes, strata, n, random_state=rng)
        permuted.append(sums.statistics(draws))
    return permutation_p_value(
        score.statistic, np.concatenate(permuted), alternative="greater"
    )


class _GroupSums:
    """Score statistics of many assignments of rows to groups."""

    def __init__(self, problem: Problem) -> None:
        fit, curve, v = problem.common, problem.basis.curve, problem.variance
        self.n_groups, self.inverse = problem.n_groups, fit.inverse
        one, x = problem.basis.line.T
        self.trace = fit.inverse @ (curve.T @ problem.error)
        self.k = curve.shape[1]
        columns = [problem.error, problem.error * x, v, v * x, v * x * x]
        shared = [(v * t)[:, np.newaxis] * curve for t in (one, x)]
        self.columns = np.column_stack([*columns, *shared])

    def statistics(self, codes: NDArray) -> Floats:
        """Statistic of each row of codes."""
        groups = self.n_groups - 1
        parts = [(codes == g).astype(np.float64) @ self.columns for g in range(groups)]
        sums = np.stack(parts, axis=1)
        shared = sums[:, :, 5:].reshape(len(codes), groups * 2, self.k)
        value = sums[:, :, :2].reshape(len(codes), -1) - shared @ self.trace
        covariance = -shared @ self.inverse @ shared.transpose(0, 2, 1)
        for g in range(groups):
            own = sums[:, g, [2, 3, 3, 4]].reshape(-1, 2, 2)
            covariance[:, 2 * g : 2 * g + 2, 2 * g : 2 * g + 2] += own
        inverse = np.linalg.pinv(covariance, rcond=1e-9, hermitian=True)
        out: Floats = np.einsum("bi,bij,bj->b", value, inverse, value)
        return out
