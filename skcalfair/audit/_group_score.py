"""Score tests of equal calibration: only the common curve is fitted.

The test columns are freed from what the common curve explains, so that the statistic
needs no fit of any group and holds for groups of one class.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.stats import chi2

from ..exceptions import NotEstimableError
from ._logistic import LogisticFit, fit_logistic, gram
from ._spline import CurveBasis

Floats = NDArray[np.float64]

# Keeps the common curve finite where only one class occurs; beside the information
# of a few rows it is nothing.
RIDGE = 1e-3
# Directions with less than this part of the information are not tested.
SMALLEST = 1e-8


@dataclass(frozen=True)
class Problem:
    """Rows of two or more groups: the outcome, the group, clusters and weights."""

    y: Floats
    basis: CurveBasis
    codes: NDArray[np.intp]
    n_groups: int
    clusters: NDArray[np.intp] | None = None
    sample_weight: Floats | None = None

    @cached_property
    def common(self) -> LogisticFit:
        """Fit of the curve common to all groups, without weights."""
        return fit_logistic(self.basis.curve, self.y, ridge=RIDGE)

    @cached_property
    def error(self) -> Floats:
        """Outcome minus its probability by the common curve."""
        return self.y - self.common.fitted

    @cached_property
    def variance(self) -> Floats:
        """Variance of an outcome under the common curve."""
        return self.common.fitted * (1.0 - self.common.fitted)


@dataclass(frozen=True)
class Score:
    """Efficient score of the group terms and its covariance under the common curve."""

    value: Floats
    covariance: Floats

    @cached_property
    def root(self) -> Floats:
        """Matrix r with r r' the inverse covariance, where there is any."""
        scale = np.sqrt(np.maximum(np.diag(self.covariance), 1e-300))
        values, vectors = np.linalg.eigh(self.covariance / np.outer(scale, scale))
        kept = values > SMALLEST
        if not kept.any():
            raise NotEstimableError("the scores settle every outcome: nothing varies")
        return vectors[:, kept] / np.sqrt(values[kept]) / scale[:, np.newaxis]

    @property
    def df(self) -> int:
        """Number of directions tested."""
        return self.root.shape[1]

    @property
    def statistic(self) -> float:
        """Squared length of the standardised score."""
        return float(np.sum((self.value @ self.root) ** 2))

    @property
    def p_value(self) -> float:
        """Upper tail of chi-square."""
        return float(chi2.sf(self.statistic, self.df))


def term_columns(problem: Problem, omnibus: bool) -> Floats:
    """Columns of the terms by group: a line in the log-odds, or a whole curve."""
    return problem.basis.curve if omnibus else problem.basis.line


def efficient_columns(problem: Problem, omnibus: bool) -> Floats:
    """Group terms freed from the common curve, (n, columns x (groups - 1))."""
    fit, curve = problem.common, problem.basis.curve
    columns = term_columns(problem, omnibus)
    out = []
    for group in range(problem.n_groups - 1):
        own = columns * (problem.codes == group)[:, np.newaxis]
        out.append(own - curve @ (fit.inverse @ gram(curve, problem.variance, own)))
    return np.concatenate(out, axis=1)


def group_score(problem: Problem, omnibus: bool = False) -> Score:
    """Efficient score for rows with or without clusters."""
    if problem.clusters is None:
        return _independent_score(problem, omnibus)
    columns = efficient_columns(problem, omnibus)
    return Score(columns.T @ problem.error, _clustered(problem, columns))


def _independent_score(problem: Problem, omnibus: bool) -> Score:
    """Efficient score from sums within groups: more groups cost hardly more."""
    fit, curve, v = problem.common, problem.basis.curve, problem.variance
    columns = term_columns(problem, omnibus)
    error = problem.error
    k, groups = columns.shape[1], problem.n_groups - 1
    value, shared = np.empty((groups, k)), np.empty((groups, k, curve.shape[1]))
    covariance = np.zeros((groups, k, groups, k))
    order = np.argsort(problem.codes, kind="stable")
    ends = np.cumsum(np.bincount(problem.codes, minlength=problem.n_groups))
    for group in range(groups):
        rows = order[ends[group - 1] if group else 0 : ends[group]]
        own, own_v = columns[rows], v[rows]
        value[group] = own.T @ error[rows]
        shared[group] = gram(own, own_v, curve[rows])
        covariance[group, :, group] = gram(own, own_v)
    b = shared.reshape(groups * k, -1)
    size = groups * k
    explained = b @ fit.inverse @ b.T
    # The penalty leaves a trace of the curve in the errors.
    trace = b @ (fit.inverse @ (curve.T @ error))
    return Score(value.ravel() - trace, covariance.reshape(size, size) - explained)


# -- clusters -------------------------------------------------------------------------


@dataclass(frozen=True)
class Cells:
    """Rows of one cluster in one group, as codes, and the cluster and group of each."""

    codes: NDArray[np.intp]
    cluster: NDArray[np.intp]
    group: NDArray[np.intp]

    @classmethod
    def of(cls, problem: Problem) -> "Cells":
        """Find the cells of a problem with clusters."""
        assert problem.clusters is not None
        key = problem.clusters * problem.n_groups + problem.codes
        found, codes = np.unique(key, return_inverse=True)
        _, cluster = np.unique(found // problem.n_groups, return_inverse=True)
        return cls(codes.ravel(), cluster.ravel(), found % problem.n_groups)

    def sums(self, columns: Floats) -> Floats:
        """Sums of columns within cells."""
        return _sum_by(self.codes, columns, len(self.group))

    def over_clusters(self, sums: Floats) -> Floats:
        """Sums of cells within clusters."""
        return _sum_by(self.cluster, sums, int(self.cluster.max()) + 1)


def _sum_by(codes: NDArray[np.intp], columns: Floats, k: int) -> Floats:
    n = len(codes)
    one_hot = csr_array((np.ones(n), (codes, np.arange(n))), shape=(k, n))
    out: Floats = one_hot @ columns
    return out


def correlations(problem: Problem, cells: Cells) -> tuple[Floats, float]:
    """Correlation of two outcomes of a cluster given their scores.

    One for each group, and one for two rows of different groups. It is the ratio of
    the sum of products of errors to that of their standard deviations, over pairs.
    """
    columns = np.stack([problem.error, np.sqrt(problem.variance)], axis=1)
    sums, squares = cells.sums(columns), cells.sums(columns * columns)
    pairs = _sum_by(cells.group, sums * sums - squares, problem.n_groups)
    whole = cells.over_clusters(sums)
    across = (whole * whole).sum(axis=0) - (sums * sums).sum(axis=0)
    own = np.clip(_ratio(pairs[:, 0], pairs[:, 1]), 0.0, 1.0)
    between = float(np.clip(_ratio(across[0], across[1]), 0.0, own.min()))
    return own, between


def _ratio(top: Floats, bottom: Floats) -> Floats:
    """Quotient, 0 where there are no pairs."""
    bottom = np.asarray(bottom)
    positive = bottom > 1e-9
    return np.where(positive, top / np.where(positive, bottom, 1.0), 0.0)


def _clustered(problem: Problem, columns: Floats) -> Floats:
    """Covariance of the score with the estimated correlations within clusters."""
    cells = Cells.of(problem)
    own, between = correlations(problem, cells)
    sums = cells.sums(columns * np.sqrt(problem.variance)[:, np.newaxis])
    whole = cells.over_clusters(sums)
    out = gram(columns, problem.variance * (1.0 - own[problem.codes]))
    out += gram(sums, own[cells.group] - between)
    return out + between * whole.T @ whole
