"""The tests of equal calibration by name: what each needs, and how it is run."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f as f_distribution

from .._validation import ScoredRows
from ..exceptions import NotEstimableError
from ._equal_amount import equal_amount
from ._group_score import Problem, Score, group_score, term_columns
from ._logistic import cluster_covariance, fit_logistic
from ._permuted_groups import permuted_p_value
from ._redraws import redrawn_p_value
from ._spline import curve_basis

Floats = NDArray[np.float64]

# Where the outcomes of a group vary less than so many outcomes of probability near 0
# or 1 would, chi-square is a poor guide and outcomes are redrawn.
FEW_EVENTS = 5.0


@dataclass(frozen=True)
class Found:
    """Outcome of one test, or the reason why there is none."""

    statistic: float = np.nan
    df: float = np.nan
    p_value: float = np.nan
    n_draws: int = 0
    reason: str | None = None


Run = Callable[[Problem, Floats, int, np.random.Generator], Found]


@dataclass(frozen=True)
class Method:
    """A test: its hypothesis in words, how it is run, what each group must have.

    `fewest_outcomes` counts the rows of either class; `tails` is the number of tails
    in which a p-value by draws counts them.
    """

    hypothesis: str
    run: Run
    fewest_clusters: int = 1
    tails: int = 1
    fewest_outcomes: int = 0


def make_problem(
    rows: ScoredRows, codes: NDArray[np.intp], n_groups: int
) -> tuple[Problem, Floats]:
    """Rows of the groups coded 0 to n_groups - 1, and their probabilities."""
    problem = Problem(
        rows.y.astype(np.float64),
        curve_basis(rows.p),
        codes,
        n_groups,
        rows.clusters,
        rows.sample_weight,
    )
    return problem, rows.p


def _score(
    problem: Problem, p: Floats, n_draws: int, rng: np.random.Generator
) -> Found:
    score = group_score(problem)
    information = np.bincount(problem.codes, weights=problem.variance)
    if information.min() >= FEW_EVENTS:
        return Found(score.statistic, score.df, score.p_value)
    return _redrawn(problem, score, n_draws, rng, omnibus=False)


def _omnibus(
    problem: Problem, p: Floats, n_draws: int, rng: np.random.Generator
) -> Found:
    score = group_score(problem, omnibus=True)
    return _redrawn(problem, score, n_draws, rng, omnibus=True)


def _redrawn(
    problem: Problem,
    score: Score,
    n_draws: int,
    rng: np.random.Generator,
    omnibus: bool,
) -> Found:
    p_value = redrawn_p_value(problem, score, n_draws, rng, omnibus=omnibus)
    return Found(score.statistic, score.df, p_value, n_draws)


def _permutation(
    problem: Problem, p: Floats, n_draws: int, rng: np.random.Generator
) -> Found:
    score = group_score(problem)
    p_value = permuted_p_value(problem, score, n_draws, rng)
    return Found(score.statistic, score.df, p_value, n_draws)


def _equal_amount(
    problem: Problem, p: Floats, n_draws: int, rng: np.random.Generator
) -> Found:
    statistic, p_value = equal_amount(problem, p, n_draws, rng)
    return Found(statistic, np.nan, p_value, n_draws)


def _wald(problem: Problem, p: Floats, n_draws: int, rng: np.random.Generator) -> Found:
    """Group terms of one joint model over their cluster covariance, by F."""
    terms = term_columns(problem, omnibus=False)
    groups = range(problem.n_groups - 1)
    own = [terms * (problem.codes == g)[:, np.newaxis] for g in groups]
    columns = np.concatenate([problem.basis.curve, *own], axis=1)
    fit = fit_logistic(columns, problem.y, problem.sample_weight)
    rows = np.arange(len(problem.y))
    clusters = rows if problem.clusters is None else problem.clusters
    covariance = cluster_covariance(
        columns, fit, problem.y, clusters, problem.sample_weight
    )
    tested = slice(problem.basis.curve.shape[1], None)
    coef = fit.coef[tested]
    statistic = float(coef @ np.linalg.solve(covariance[tested, tested], coef))
    fewest = min(clusters_by_group(problem.codes, clusters, problem.n_groups))
    # The smallest group settles how well its own terms' covariance is known.
    p_value = f_distribution.sf(
        statistic / len(coef), len(coef), fewest - terms.shape[1]
    )
    return Found(statistic, len(coef), float(p_value))


def clusters_by_group(
    codes: NDArray[np.intp], clusters: NDArray[np.intp], n_groups: int
) -> list[int]:
    """Number of clusters with rows in each group."""
    return [len(np.unique(clusters[codes == g])) for g in range(n_groups)]


_SAME_LINE = (
    "given the score, the outcome does not depend on the group: no group's curve is "
    "shifted or turned against the common one"
)
_SAME_CURVE = (
    "given the score, the outcome does not depend on the group: no group's curve "
    "differs from the common one anywhere"
)
_SAME_AMOUNT = (
    "the squared calibration errors (CE2) differ by no more than a curve common to "
    "all groups makes them"
)

METHODS = {
    "score": Method(_SAME_LINE, _score, 10),
    "wald": Method(_SAME_LINE, _wald, 25),
    "omnibus": Method(_SAME_CURVE, _omnibus, 60),
    "equal_amount": Method(_SAME_AMOUNT, _equal_amount, 25, 2, fewest_outcomes=20),
    "permutation": Method(_SAME_LINE, _permutation),
}


def run_method(
    name: str,
    rows: ScoredRows,
    codes: NDArray[np.intp],
    n_groups: int,
    n_draws: int,
    rng: np.random.Generator,
) -> Found:
    """Run a test; what cannot be estimated becomes a reason."""
    problem, p = make_problem(rows, codes, n_groups)
    if problem.y.min() == problem.y.max():
        return Found(reason="one class only")
    try:
        return METHODS[name].run(problem, p, n_draws, rng)
    except NotEstimableError as error:
        return Found(reason=str(error))
