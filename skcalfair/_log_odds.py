"""Log-odds, the sigmoid, and two-parameter (Platt) logistic regression.

The only place where probabilities become log-odds, and the only logistic fit of the
package. The fit takes weights whose leading axis is replicates, so that one call
recalibrates thousands of resamples.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

EPS = 1e-12
MAX_ITER = 25
# A Newton step this small (in units of the standardised score) leaves an error of
# about its square: below rounding.
STEP_TOLERANCE = 1e-8
# float64 elements of one temporary: 512 KiB, so that a pass stays in the L2 cache.
BLOCK = 2**16
# Above this many rows an even subsample supplies the starting point.
WARM_START_ROWS = 2**15

Floats = NDArray[np.float64]


def log_odds(p: ArrayLike, *, eps: float = EPS) -> Floats:
    """Log-odds ``log(p) - log(1 - p)`` in float64, p clipped to [eps, 1 - eps].

    Clipping the two tails apart keeps ``log_odds(1 - p) == -log_odds(p)`` to rounding,
    also where ``1 - eps`` rounds to one.
    """
    p = np.asarray(p, dtype=np.float64)
    return np.log(np.maximum(p, eps)) - np.log(np.maximum(1.0 - p, eps))


def sigmoid(x: ArrayLike) -> Floats:
    """Inverse of `log_odds`: ``1 / (1 + exp(-x))`` without overflow."""
    x = np.asarray(x, dtype=np.float64)
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-x))


@dataclass(frozen=True)
class PlattFit:
    """Slope and intercept of ``P(y=1) = sigmoid(slope * x + intercept)``.

    Scalars for one fit; arrays of shape (n_replicates,) for a fit of replicates, where
    a replicate without a finite maximum-likelihood estimate holds NaN.
    """

    slope: Floats
    intercept: Floats
    n_iter: NDArray[np.intp]
    converged: NDArray[np.bool_]

    def decision(self, x: Floats) -> Floats:
        """Recalibrated log-odds, the replicates along the leading axis."""
        return np.multiply.outer(self.slope, x) + self.intercept[..., np.newaxis]


def is_constant(x: Floats) -> bool:
    """Whether `x` holds one value only, up to what rounding can separate."""
    low, high = float(x.min()), float(x.max())
    return bool(high - low <= 4 * np.finfo(np.float64).eps * max(abs(low), abs(high)))


def no_maximum(
    x: Floats, y: NDArray[np.uint8], weights: NDArray | None
) -> NDArray[np.bool_]:
    """Whether the unsmoothed maximum-likelihood estimate fails to exist, by replicate.

    It does for one class, for a constant score, and when some threshold splits the
    classes (rows on the threshold included).
    """
    lows, highs = [], []
    for positive in (False, True):
        rows = np.flatnonzero(y == positive)
        low, high = _weighted_range(x, rows, weights)
        lows.append(low)
        highs.append(high)
    one_class = np.isinf(lows[0]) | np.isinf(lows[1])
    return one_class | (highs[0] <= lows[1]) | (highs[1] <= lows[0])


def _weighted_range(
    x: Floats, rows: NDArray[np.intp], weights: NDArray | None
) -> tuple[Floats, Floats]:
    """Smallest and largest x of `rows` with positive weight, by replicate."""
    n_replicates = 1 if weights is None else len(weights)
    low = np.full(n_replicates, np.inf)
    high = np.full(n_replicates, -np.inf)
    if weights is None:
        if rows.size:
            low[:], high[:] = x[rows].min(), x[rows].max()
        return low, high
    width = max(1, BLOCK // n_replicates)
    for start in range(0, rows.size, width):
        block = rows[start : start + width]
        present = weights[:, block] > 0
        np.minimum(low, np.where(present, x[block], np.inf).min(axis=1), out=low)
        np.maximum(high, np.where(present, x[block], -np.inf).max(axis=1), out=high)
    return low, high


def fit_platt(
    x: Floats,
    y: NDArray[np.uint8],
    sample_weight: Floats | None = None,
    *,
    smooth_targets: bool = False,
    max_iter: int = MAX_ITER,
) -> PlattFit:
    """Fit Platt scaling to one sample by unpenalised maximum likelihood.

    Parameters
    ----------
    x : ndarray of shape (n,)
        Log-odds or decision scores.
    y : ndarray of shape (n,)
        Outcomes, 0 or 1.
    sample_weight : ndarray of shape (n,), optional
        Non-negative weights.
    smooth_targets : bool, default=False
        Use Platt's 1999 targets ``(N+ + 1) / (N+ + 2)`` and ``1 / (N- + 2)``.
    max_iter : int, default=25
        Newton steps before a ConvergenceWarning.

    Returns
    -------
    PlattFit
        Scalars (zero-dimensional arrays). A constant x has slope 0. Separable data
        without smoothing: a ConvergenceWarning, and the smoothed fit.
    """
    weights = None if sample_weight is None else sample_weight[np.newaxis]
    constant = is_constant(x)
    if not smooth_targets and not constant and no_maximum(x, y, weights)[0]:
        warnings.warn(
            "the classes are separable by the score (or one class is missing): the "
            "unsmoothed maximum-likelihood fit does not exist; returning the fit to "
            "Platt's smoothed targets",
            ConvergenceWarning,
            stacklevel=2,
        )
        smooth_targets = True
    fit = fit_platt_replicates(
        x, y, weights, smooth_targets=smooth_targets, max_iter=max_iter
    )
    if not fit.converged[0]:
        warnings.warn(
            f"Platt scaling did not converge in {max_iter} Newton steps; the scores "
            "may be almost separable. Consider smooth_targets=True",
            ConvergenceWarning,
            stacklevel=2,
        )
    return PlattFit(fit.slope[0], fit.intercept[0], fit.n_iter[0], fit.converged[0])


def fit_platt_replicates(
    x: Floats,
    y: NDArray[np.uint8],
    weights: NDArray | None,
    *,
    smooth_targets: bool = False,
    start: PlattFit | None = None,
    max_iter: int = MAX_ITER,
) -> PlattFit:
    """Fit Platt scaling to every replicate: weights have shape (n_replicates, n).

    `start` (a scalar fit to the whole sample) saves most of the steps. Without
    smoothing, replicates without a maximum (see `no_maximum`) are NaN, not converged.
    """
    n_replicates = 1 if weights is None else len(weights)
    if is_constant(x):
        return _fit_constant(y, weights, smooth_targets)
    # Newton steps do not depend on an affine map of x; rounding does.
    centre, scale = float(x.mean()), float(x.std())
    standardised = (x - centre) / scale
    problem = _Likelihood(standardised, y, weights, smooth_targets)
    theta = np.empty((n_replicates, 2))
    if start is not None:
        theta[:] = start.slope * scale, start.intercept + start.slope * centre
    else:
        theta[:] = _starting_point(standardised, y, weights, smooth_targets)
        prior_missing = np.isnan(theta[:, 1])
        theta[prior_missing, 0] = 0.0
        theta[prior_missing, 1] = problem.prior_log_odds()[prior_missing]
    possible = np.ones(n_replicates, dtype=bool)
    if not smooth_targets:
        possible = ~no_maximum(x, y, weights)
    n_iter, converged = _newton(problem, theta, possible, max_iter)
    theta[~possible] = np.nan
    slope = theta[:, 0] / scale
    return PlattFit(slope, theta[:, 1] - slope * centre, n_iter, converged)


def _fit_constant(
    y: NDArray[np.uint8], weights: NDArray | None, smooth_targets: bool
) -> PlattFit:
    """A constant score carries nothing: slope 0, the prevalence as intercept."""
    problem = _Likelihood(np.zeros(len(y)), y, weights, smooth_targets)
    intercept = problem.prior_log_odds()
    zeros = np.zeros_like(intercept)
    return PlattFit(
        zeros, intercept, zeros.astype(np.intp), np.ones(len(zeros), dtype=bool)
    )


def _starting_point(
    x: Floats, y: NDArray[np.uint8], weights: NDArray | None, smooth_targets: bool
) -> tuple[float, float]:
    """Fit to an even subsample of a large single sample, or NaN."""
    if len(x) < WARM_START_ROWS or (weights is not None and len(weights) > 1):
        return np.nan, np.nan
    rows = slice(None, None, len(x) * 4 // WARM_START_ROWS)
    part = None if weights is None else weights[:, rows]
    if is_constant(x[rows]) or no_maximum(x[rows], y[rows], part)[0]:
        return np.nan, np.nan
    fit = fit_platt_replicates(x[rows], y[rows], part, smooth_targets=smooth_targets)
    if not fit.converged[0]:
        return np.nan, np.nan
    return float(fit.slope[0]), float(fit.intercept[0])


class _Likelihood:
    """Score and information of the logistic likelihood, replicates leading."""

    def __init__(
        self,
        x: Floats,
        y: NDArray[np.uint8],
        weights: NDArray | None,
        smooth_targets: bool,
    ) -> None:
        self.x, self.weights = x, weights
        self.powers = np.stack([np.ones_like(x), x, x * x], axis=1)
        first_two = self.powers[:, :2]
        positive = y.astype(np.float64)
        if weights is None:
            of_all = first_two.sum(axis=0)[np.newaxis]
            of_positive = (positive @ first_two)[np.newaxis]
        else:
            of_all = self._weigh(first_two)
            of_positive = self._weigh(first_two * positive[:, np.newaxis])
        self.n_positive = of_positive[:, 0]
        self.n_negative = of_all[:, 0] - self.n_positive
        if smooth_targets:
            high = (self.n_positive + 1) / (self.n_positive + 2)
            low = 1 / (self.n_negative + 2)
        else:
            high = np.ones_like(self.n_positive)
            low = np.zeros_like(high)
        self.target_sums = high[:, np.newaxis] * of_positive + low[:, np.newaxis] * (
            of_all - of_positive
        )
        self.total = of_all[:, 0]

    def _weigh(self, columns: Floats) -> Floats:
        assert self.weights is not None
        out = np.zeros((len(self.weights), columns.shape[1]))
        width = max(1, BLOCK // len(self.weights))
        for start in range(0, len(columns), width):
            block = self.weights[:, start : start + width].astype(np.float64)
            out += block @ columns[start : start + width]
        return out

    def prior_log_odds(self) -> Floats:
        """Log-odds of the mean target: the maximum with slope 0."""
        mean = self.target_sums[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(mean) - np.log(self.total - mean)

    def derivatives_at_one_point(self, theta: Floats) -> tuple[Floats, Floats]:
        """Derivatives of all replicates at the same theta: one exp for all."""
        q = sigmoid(theta[0] * self.x + theta[1])[:, np.newaxis]
        sums = self._weigh(
            np.hstack([q * self.powers[:, :2], q * (1 - q) * self.powers])
        )
        return sums[:, :2] - self.target_sums, sums[:, 2:]

    def derivatives(
        self, theta: Floats, replicates: NDArray[np.intp]
    ) -> tuple[Floats, Floats]:
        """Gradient (k, 2) as (intercept, slope) and information sums (k, 3)."""
        gradient = -self.target_sums[replicates]
        information = np.zeros((len(replicates), 3))
        slope, intercept = theta[:, :1], theta[:, 1:]
        whole = self.weights is not None and len(replicates) == len(self.weights)
        width = max(1, BLOCK // len(replicates))
        for start in range(0, len(self.x), width):
            rows = slice(start, start + width)
            powers = self.powers[rows]
            q = slope * self.x[rows]
            q += intercept
            np.negative(q, out=q)
            with np.errstate(over="ignore"):
                np.exp(q, out=q)
            q += 1.0
            np.reciprocal(q, out=q)
            v = q * q
            np.subtract(q, v, out=v)
            if self.weights is not None:
                block = (
                    self.weights[:, rows] if whole else self.weights[replicates, rows]
                )
                q *= block
                v *= block
            gradient += q @ powers[:, :2]
            information += v @ powers
        return gradient, information


def _newton(
    problem: _Likelihood,
    theta: Floats,
    possible: NDArray[np.bool_],
    max_iter: int,
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Newton with step halving, in place on theta (n_replicates, 2).

    The likelihood is concave, so a step is too long exactly when the slope along it
    has turned and grown; it is then halved. No likelihood value is needed.
    """
    n_iter = np.zeros(len(theta), dtype=np.intp)
    converged = np.zeros(len(theta), dtype=bool)
    active = np.flatnonzero(possible)
    if not active.size:
        return n_iter, converged
    if active.size > 1 and (theta[active] == theta[active[0]]).all():
        gradient, information = problem.derivatives_at_one_point(theta[active[0]])
        gradient, information = gradient[active], information[active]
    else:
        gradient, information = problem.derivatives(theta[active], active)
    while active.size:
        step = _solve(gradient, information)
        n_iter[active] += 1
        small = np.abs(step).max(axis=1) <= STEP_TOLERANCE * (
            1.0 + np.abs(theta[active]).max(axis=1)
        )
        theta[active[small]] += step[small]
        converged[active[small]] = True
        go_on = ~small & (n_iter[active] < max_iter) & np.isfinite(step).all(axis=1)
        active, step, gradient = active[go_on], step[go_on], gradient[go_on]
        if active.size:
            gradient, information = _advance(problem, theta, active, step, gradient)
    return n_iter, converged


def _advance(
    problem: _Likelihood,
    theta: Floats,
    active: NDArray[np.intp],
    step: Floats,
    gradient: Floats,
) -> tuple[Floats, Floats]:
    """Move theta along `step`, halving it where it overshoots."""
    slope_before = _along(gradient, step)
    new_gradient = np.empty_like(gradient)
    new_information = np.empty((len(active), 3))
    length = np.ones(len(active))
    todo = np.arange(len(active))
    while todo.size:
        trial = theta[active[todo]] + length[todo, np.newaxis] * step[todo]
        g, information = problem.derivatives(trial, active[todo])
        slope_after = _along(g, step[todo])
        done = (slope_after <= -slope_before[todo]) | (length[todo] < 1e-6)
        rows = todo[done]
        theta[active[rows]] = trial[done]
        new_gradient[rows], new_information[rows] = g[done], information[done]
        todo = todo[~done]
        length[todo] /= 2
    return new_gradient, new_information


def _along(gradient: Floats, step: Floats) -> Floats:
    """Slope of the loss along a step: gradient is (intercept, slope), step reversed."""
    return gradient[:, 1] * step[:, 0] + gradient[:, 0] * step[:, 1]


def _solve(gradient: Floats, information: Floats) -> Floats:
    """Newton step (slope, intercept) from (intercept, slope) gradients."""
    s0, s1, s2 = information.T
    g0, g1 = gradient.T
    with np.errstate(divide="ignore", invalid="ignore"):
        # Centring at the weighted mean of x avoids the cancellation of s0*s2 - s1**2.
        centre = s1 / s0
        slope_step = -(g1 - centre * g0) / (s2 - centre * s1)
        intercept_step = -g0 / s0 - centre * slope_step
    return np.stack([slope_step, intercept_step], axis=1)
