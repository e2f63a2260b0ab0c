"""What a sample gains by its own Platt recalibration, and how much of it is optimism.

Everything is by replicate. The sums are taken at the maximum-likelihood fit, in the
standardised log-odds: the traces do not depend on the scale of x, rounding does.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._log_odds import BLOCK, EPS
from .._sorted_scores import SortedScores

Floats = NDArray[np.float64]

# A determinant this small, relative to the product of the diagonal, is rounding.
SINGULAR = 1e-12


@dataclass(frozen=True)
class RecalibratedSums:
    """Scores of the recalibrated probabilities q and the moment sums around them.

    `log_loss` and `brier` are weighted means, (n_replicates,). The moments are sums
    over rows of x~ x~' times: v = q(1-q) (`information`), e^2 = (y-q)^2 (`score`),
    v^2 (`curvature`) and v e^2 (`cross`), all (n_replicates, 2, 2); `score` and `cross`
    take squared weights when these are not frequencies.
    """

    log_loss: Floats
    brier: Floats
    information: Floats
    score: Floats
    curvature: Floats
    cross: Floats


def recalibrated_sums(scores: SortedScores, eps: float = EPS) -> RecalibratedSums:
    """Evaluate every replicate under its own Platt fit."""
    return scores.memo(("recalibrated", eps), lambda: _sums(scores, eps))


def _standardised(scores: SortedScores, eps: float) -> tuple[Floats, float, float]:
    """Log-odds with mean 0 and standard deviation 1, and both moments."""

    def compute() -> tuple[Floats, float, float]:
        x = scores.log_odds(eps)
        centre, scale = float(x.mean()), float(x.std()) or 1.0
        return (x - centre) / scale, centre, scale

    return scores.row_memo(("standardised", eps), compute)


def _sums(scores: SortedScores, eps: float) -> RecalibratedSums:
    fit = scores.platt(eps)
    x, centre, scale = _standardised(scores, eps)
    slope = (fit.slope * scale)[:, np.newaxis]
    intercept = (fit.intercept + fit.slope * centre)[:, np.newaxis]
    n_replicates = scores.n_replicates
    means = np.zeros((n_replicates, 2))
    moments = np.zeros((4, n_replicates, 3))
    width = max(1, BLOCK // n_replicates)
    for start in range(0, len(scores), width):
        rows = slice(start, start + width)
        sign = 2.0 * scores.y[rows] - 1.0
        losses, error, v = _at_fit(slope * x[rows] + intercept, sign, eps)
        squares = error * error
        powers = np.stack([np.ones_like(x[rows]), x[rows], x[rows] ** 2], axis=1)
        w: Floats | float = 1.0
        w_pairs: Floats | float = 1.0
        if scores.weights is not None:
            w = scores.weights[:, rows].astype(np.float64)
            w_pairs = w if scores.frequency else w * w
        means[:, 0] += (w * losses).sum(axis=1)
        means[:, 1] += (w * squares).sum(axis=1)
        moments[0] += (w * v) @ powers
        moments[1] += (w_pairs * squares) @ powers
        moments[2] += (w * (v * v)) @ powers
        moments[3] += (w_pairs * (v * squares)) @ powers
    means /= scores.total[:, np.newaxis]
    matrices = moments[..., [0, 1, 1, 2]].reshape(4, n_replicates, 2, 2)
    return RecalibratedSums(means[:, 0], means[:, 1], *matrices)


def _at_fit(z: Floats, sign: NDArray, eps: float) -> tuple[Floats, Floats, Floats]:
    """Cross-entropy, |y - q| and q (1 - q) for recalibrated log-odds z."""
    u = z * -sign
    with np.errstate(over="ignore"):
        np.exp(u, out=u)
    u += 1.0
    losses = np.clip(np.log(u), -np.log1p(-eps), -np.log(eps))
    likelihood = 1.0 / u
    error = 1.0 - likelihood
    return losses, error, likelihood * error


def optimism(
    scores: SortedScores, score: str, eps: float = EPS, *, out_of_fold: bool = False
) -> Floats:
    """Expected gain of the in-sample fit beyond that of the best Platt map.

    With ``out_of_fold=True``, the expected *loss* on new rows of a map fitted to these
    rows, which is what cross-fitting pays.
    """
    sums = recalibrated_sums(scores, eps)
    if scores.clusters is not None:
        return _clustered_optimism(scores, score, eps, out_of_fold)
    total = scores.total
    if score == "log_loss":
        return _traces(sums.information, sums.score) / (2.0 * total)
    if out_of_fold:
        return _sandwich(sums.information, sums.score, sums.curvature) / total
    if scores.frequency or scores.weights is None:
        return _traces(sums.information, 2.0 * sums.curvature) / (2.0 * total)
    first = _traces(sums.information, 2.0 * sums.cross)
    return (first - _sandwich(sums.information, sums.score, sums.curvature)) / total


def _traces(information: Floats, other: Floats) -> Floats:
    """tr(H^-1 A) by replicate; NaN where H is singular."""
    a, b, d = information[:, 0, 0], information[:, 0, 1], information[:, 1, 1]
    determinant = a * d - b * b
    with np.errstate(divide="ignore", invalid="ignore"):
        return (
            d * other[:, 0, 0]
            - b * (other[:, 0, 1] + other[:, 1, 0])
            + a * other[:, 1, 1]
        ) / determinant


def _sandwich(information: Floats, score: Floats, curvature: Floats) -> Floats:
    """tr(C H^-1 J H^-1) / 2 with C twice the curvature sums."""
    out = np.full(len(information), np.nan)
    finite = np.isfinite(information).all(axis=(1, 2))
    inverse = np.linalg.inv(information[finite])
    product = curvature[finite] @ inverse @ score[finite] @ inverse
    out[finite] = np.trace(product, axis1=1, axis2=2)
    return out


def _clustered_optimism(
    scores: SortedScores, score: str, eps: float, out_of_fold: bool
) -> Floats:
    """Mancl-DeRouen form: the score of a cluster is freed of its own leverage."""
    fit = scores.platt(eps)
    x, centre, scale = _standardised(scores, eps)
    sums = recalibrated_sums(scores, eps)
    out = np.full(scores.n_replicates, np.nan)
    for r in np.flatnonzero(np.isfinite(fit.slope)):
        weights = np.ones(len(x)) if scores.weights is None else scores.weights[r]
        z = fit.slope[r] * (x * scale + centre) + fit.intercept[r]
        _, error, v = _at_fit(z, 2.0 * scores.y - 1.0, eps)
        signed = weights * np.where(scores.y == 1, error, -error)
        j, m = _cluster_moments(
            scores.clusters, x, weights * v, signed, v * signed, sums.information[r]
        )
        if np.isnan(j).any():
            continue
        inverse = np.linalg.inv(sums.information[r])
        if score == "log_loss":
            out[r] = np.trace(inverse @ j) / 2.0
            continue
        out[r] = np.trace(sums.curvature[r] @ inverse @ j @ inverse)
        if not out_of_fold:
            out[r] = np.trace(inverse @ m) - out[r]
    return out / scores.total


def _cluster_moments(
    clusters: NDArray[np.intp] | None,
    x: Floats,
    information: Floats,
    score: Floats,
    cross: Floats,
    total_information: Floats,
) -> tuple[Floats, Floats]:
    """Sums over clusters of s s' and of 2 s g', s corrected for leverage.

    NaN where the rows outside one cluster do not determine the fit.
    """

    def by_cluster(values: Floats) -> NDArray:
        return np.bincount(clusters, weights=values)  # type: ignore[arg-type]

    h = np.stack([by_cluster(information * x**k) for k in (0, 1, 1, 2)], axis=1)
    s = np.stack([by_cluster(score), by_cluster(score * x)], axis=1)
    g = np.stack([by_cluster(cross), by_cluster(cross * x)], axis=1)
    others = total_information - h.reshape(-1, 2, 2)
    scale = total_information[0, 0] * total_information[1, 1]
    if (np.linalg.det(others) <= SINGULAR * scale).any():
        return np.full((2, 2), np.nan), np.full((2, 2), np.nan)
    # (I - H_c H^-1)^-1 = H (H - H_c)^-1
    s = np.linalg.solve(others, s[..., np.newaxis])[..., 0] @ total_information
    return s.T @ s, 2.0 * s.T @ g
