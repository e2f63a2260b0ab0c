"""Logistic regression on a few columns, and its covariance when rows are clustered."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._log_odds import sigmoid
from ..exceptions import NotEstimableError

Floats = NDArray[np.float64]

MAX_ITER = 60
# Change of the fitted log-odds at which the fit has converged.
TOLERANCE = 1e-7
# Fitted log-odds this large mean that the likelihood has no maximum.
LARGEST = 30.0
# Rows of one temporary.
ROWS = 2**14
# float64 elements of a stack of small matrices.
STACK = 2**21


@dataclass(frozen=True)
class LogisticFit:
    """Coefficients, fitted probabilities and the inverse of the information."""

    coef: Floats
    fitted: Floats
    inverse: Floats


def fit_logistic(
    columns: Floats,
    y: NDArray,
    sample_weight: Floats | None = None,
    *,
    ridge: float = 0.0,
) -> LogisticFit:
    """Fit by Newton with step halving.

    The penalty is ridge / 2 times the sum of squared coefficients. Without one there
    may be no finite maximum, which is an error.
    """
    coef, eta = np.zeros(columns.shape[1]), np.zeros(len(y))
    q = np.full(len(y), 0.5)
    gradient = _gradient(columns, y, q, sample_weight)
    for _ in range(MAX_ITER):
        inverse = _inverse(gram(columns, _variance(q, sample_weight)), ridge)
        step = inverse @ gradient
        direction = columns @ step
        if float(np.abs(direction).max()) <= TOLERANCE:
            return LogisticFit(coef, q, inverse)
        slope, length = float(gradient @ step), 1.0
        while length > 1e-6:
            trial = coef + length * step
            q = sigmoid(eta + length * direction)
            gradient = _gradient(columns, y, q, sample_weight) - ridge * trial
            # The likelihood is concave: a step is too long if the slope along it has
            # turned and grown.
            if float(gradient @ step) >= -slope:
                break
            length /= 2.0
        coef, eta = trial, eta + length * direction
        if not ridge and float(np.abs(eta).max()) > LARGEST:
            break
    raise NotEstimableError(
        "in some range of scores (of some group) only one class occurs, so that the "
        "curve has no finite fit"
    )


def weighted(values: Floats, sample_weight: Floats | None) -> Floats:
    """Values times weights, if there are any."""
    return values if sample_weight is None else values * sample_weight


def _variance(q: Floats, sample_weight: Floats | None) -> Floats:
    return weighted(q * (1.0 - q), sample_weight)


def _gradient(
    columns: Floats, y: NDArray, q: Floats, sample_weight: Floats | None
) -> Floats:
    out: Floats = columns.T @ weighted(y - q, sample_weight)
    return out


def gram(columns: Floats, weights: Floats, others: Floats | None = None) -> Floats:
    """Weighted cross products of columns, a block of rows at a time."""
    others = columns if others is None else others
    out = np.zeros((columns.shape[1], others.shape[1]))
    for start in range(0, len(columns), ROWS):
        rows = slice(start, start + ROWS)
        out += (columns[rows] * weights[rows, np.newaxis]).T @ others[rows]
    return out


def _inverse(information: Floats, ridge: float = 0.0) -> Floats:
    """Inverse of a positive definite matrix, scaled first; singular is an error."""
    information = information + ridge * np.eye(len(information))
    scale = np.sqrt(np.maximum(np.diag(information), 1e-300))
    scaled = information / np.outer(scale, scale)
    values, vectors = np.linalg.eigh(scaled)
    if values[0] <= 1e-11:
        raise NotEstimableError(
            "the scores of some group do not vary enough to tell its curve from others"
        )
    return (vectors / values) @ vectors.T / np.outer(scale, scale)


def cluster_scores(
    columns: Floats,
    fit: LogisticFit,
    y: NDArray,
    codes: NDArray[np.intp],
    sample_weight: Floats | None = None,
) -> Floats:
    """Sum of the scores of each cluster, freed from its own leverage, (clusters, k).

    Mancl & DeRouen (2001): the errors of a cluster are multiplied by the inverse of
    I - A X (X' A X)^-1 X', the part of them that the fit has not absorbed.
    """
    q = fit.fitted
    error = weighted(y - q, sample_weight)
    variance = _variance(q, sample_weight)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    sizes = np.diff(starts, append=len(codes))
    out = np.empty((len(starts), columns.shape[1]))
    for size in np.unique(sizes):
        chosen = np.flatnonzero(sizes == size)
        step = max(1, STACK // int(size * (size + columns.shape[1])))
        for begin in range(0, len(chosen), step):
            part = chosen[begin : begin + step]
            rows = order[starts[part][:, np.newaxis] + np.arange(size)]
            x = columns[rows]
            leverage = (variance[rows][..., np.newaxis] * x) @ fit.inverse
            leverage = leverage @ x.transpose(0, 2, 1)
            kept = np.eye(size) - leverage
            corrected = np.linalg.solve(kept, error[rows][..., np.newaxis])
            out[part] = (x.transpose(0, 2, 1) @ corrected)[..., 0]
    return out


def cluster_covariance(
    columns: Floats,
    fit: LogisticFit,
    y: NDArray,
    codes: NDArray[np.intp],
    sample_weight: Floats | None = None,
) -> Floats:
    """Covariance of the coefficients by Mancl & DeRouen (2001)."""
    scores = cluster_scores(columns, fit, y, codes, sample_weight)
    return fit.inverse @ (scores.T @ scores) @ fit.inverse
