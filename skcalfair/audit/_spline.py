"""A flexible common calibration curve: natural cubic spline in the log-odds.

Scores that many rows share (0 and 1 of a saturated network, a few risk classes) get a
level of their own, so that nothing is assumed about the curve there.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._log_odds import EPS, log_odds

Floats = NDArray[np.float64]

# Quantiles of the pooled log-odds where the pieces of the spline meet.
KNOT_QUANTILES = (0.05, 0.275, 0.5, 0.725, 0.95)
# So few distinct scores have a level of their own each.
FEW_DISTINCT = 10
# Knots nearer to each other, in standard deviations of the log-odds, are one.
NEAR = 1e-3
# A score shared by this part of the rows has its own level.
SHARED = 0.05


@dataclass(frozen=True)
class CurveBasis:
    """Columns that span the calibration curves considered.

    `curve` has shape (n, k), its columns orthogonal over the rows of all groups;
    `line` (n, 2) holds a constant and the standardised log-odds, both within the span
    of `curve`.
    """

    curve: Floats
    line: Floats

    def take(self, positions: NDArray[np.intp]) -> "CurveBasis":
        """Return the basis of some of the rows."""
        return CurveBasis(self.curve[positions], self.line[positions])


def curve_basis(p: Floats) -> CurveBasis:
    """Basis for the pooled probabilities of all groups compared."""
    values, place, counts = np.unique(p, return_inverse=True, return_counts=True)
    own = counts >= SHARED * len(p)
    if np.sum(~own) <= FEW_DISTINCT:
        own[:] = True
    x = _standardised(_unsaturated(values), counts)
    smooth = _smooth_columns(x[~own], counts[~own])
    columns = np.zeros((len(values), smooth.shape[1] + int(own.sum())))
    columns[~own, : smooth.shape[1]] = smooth
    columns[own, smooth.shape[1] :] = np.eye(int(own.sum()))
    line = np.stack([np.ones_like(x), x], axis=1)
    place = place.ravel()
    return CurveBasis(_orthogonal(columns, counts)[place], line[place])


def _orthogonal(columns: Floats, counts: NDArray[np.intp]) -> Floats:
    """Columns of the same span, uncorrelated and of mean square one over the rows."""
    root = np.sqrt(counts / counts.sum())[:, np.newaxis]
    _, triangle = np.linalg.qr(root * columns)
    out: Floats = np.linalg.solve(triangle.T, columns.T).T
    return out


def _unsaturated(values: Floats) -> Floats:
    """Log-odds of ascending scores; 0 and 1 are put beside their neighbours.

    At the log-odds of a clipped 0 or 1 a few rows would settle every slope.
    """
    inside = (values > EPS) & (values < 1.0 - EPS)
    x = log_odds(values)
    return np.clip(x, *x[inside][[0, -1]]) if inside.any() else np.sign(x)


def _standardised(x: Floats, counts: NDArray[np.intp]) -> Floats:
    centre = np.average(x, weights=counts)
    spread = np.sqrt(np.average((x - centre) ** 2, weights=counts))
    return (x - centre) / spread if spread > 0 else x - centre


def _smooth_columns(x: Floats, counts: NDArray[np.intp]) -> Floats:
    """Constant and natural spline for scores that few rows share."""
    if not len(x):
        return np.empty((0, 0))
    share = (np.cumsum(counts) - 0.5 * (counts + 1)) / (counts.sum() - 1)
    knots = np.interp(KNOT_QUANTILES, share, x)
    knots = knots[np.diff(knots, prepend=-np.inf) > NEAR]
    return np.column_stack([np.ones_like(x), natural_spline(x, knots)])


def natural_spline(x: Floats, knots: Floats) -> Floats:
    """Natural cubic spline in x without its constant, shape (n, len(knots) - 1).

    It is linear beyond the outer knots; fewer than three knots leave a line.
    """
    if len(knots) < 3:
        return x[:, np.newaxis]
    before, last = knots[-2:]
    beyond = _cubed(x - last)
    tail = (_cubed(x - before) - beyond) / (last - before)
    pieces = [(_cubed(x - k) - beyond) / (last - k) - tail for k in knots[:-2]]
    return np.stack([x, *pieces], axis=1)


def _cubed(x: Floats) -> Floats:
    """Cube of the positive part."""
    positive = np.maximum(x, 0.0)
    return positive * positive * positive
