"""Log-odds, the sigmoid, and two-parameter (Platt) logistic regression.

The only place where probabilities become log-odds, and the only logistic fit of the
package. The fit takes weights whose leading axis is replicates, so that one call
recalibrates thousands of resamples.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

EPS = 1e-12
MAX_ITER = 25
# A Newton step this small (in units of the standardised score) leaves an error of
# about its square, one with third derivatives of about its cube: near rounding.
STEP_TOLERANCE = 3e-7
SHARP_TOLERANCE = 3e-6
# Third derivatives taken at the start serve steps within BEND_REACH of it; only within
# SHARP_REACH are they exact enough for the wider tolerance.
BEND_REACH = 0.25
SHARP_REACH = 0.02
# float64 elements of one temporary: 512 KiB, so that a pass stays in the L2 cache.
BLOCK = 2**16
# From this many rows on, a histogram supplies the starting point.
HISTOGRAM_ROWS = 2**11

Floats = NDArray[np.float64]


def log_odds(p: ArrayLike, *, eps: float = EPS) -> Floats:
    """Log-odds ``log(p) - log(1 - p)`` in float64, p clipped to [eps, 1 - eps].

    Clipping p and 1 - p apart keeps ``log_odds(1 - p) == -log_odds(p)`` to rounding,
    also where ``1 - eps`` rounds to one.
    """
    p = np.asarray(p, dtype=np.float64)
    high = 1.0 - eps
    return np.log(np.clip(p, eps, high)) - np.log(np.clip(1.0 - p, eps, high))


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
    n_replicates = 1 if weights is None else len(weights)
    low = np.full((2, n_replicates), np.inf)
    high = np.full((2, n_replicates), -np.inf)
    exists = np.zeros(n_replicates, dtype=bool)
    for rows in _row_blocks(len(x), n_replicates):
        for label in (0, 1):
            of_class = np.flatnonzero(y[rows] == label)
            values = np.broadcast_to(x[rows][of_class], (n_replicates, len(of_class)))
            here: NDArray | bool = True
            if weights is not None:
                here = weights[:, rows][:, of_class] > 0
            lowest = np.min(values, axis=1, where=here, initial=np.inf)
            highest = np.max(values, axis=1, where=here, initial=-np.inf)
            np.minimum(low[label], lowest, out=low[label])
            np.maximum(high[label], highest, out=high[label])
        exists = (high[0] > low[1]) & (high[1] > low[0])
        if exists.all():  # classes overlap, as a rule within the first block
            break
    return ~exists


def _row_blocks(n: int, n_replicates: int) -> Iterator[slice]:
    """Slices of rows whose temporaries, for all replicates, stay in the cache."""
    width = max(1, BLOCK // n_replicates)
    for start in range(0, n, width):
        yield slice(start, min(start + width, n))


def fit_platt(
    x: Floats,
    y: NDArray[np.uint8],
    sample_weight: Floats | None = None,
    *,
    smooth_targets: bool = False,
    start: PlattFit | None = None,
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
    start : PlattFit, optional
        A scalar fit to similar rows, which saves steps.
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
        x, y, weights, smooth_targets=smooth_targets, start=start, max_iter=max_iter
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
    possible = np.ones(n_replicates, dtype=bool)
    if not smooth_targets:
        possible = ~no_maximum(x, y, weights)
    # Newton steps do not depend on an affine map of x; rounding does. A part of the
    # rows is enough to place it.
    part = x[:: 1 + len(x) // BLOCK]
    centre, scale = float(part.mean()), float(part.std()) or 1.0
    problem = _Likelihood((x - centre) / scale, y, weights, smooth_targets)
    theta = np.empty((n_replicates, 2))
    if start is not None:
        theta[:] = start.slope * scale, start.intercept + start.slope * centre
    else:
        theta[:, 0], theta[:, 1] = 0.0, problem.prior_log_odds()
        if n_replicates == 1 and len(x) >= HISTOGRAM_ROWS and possible[0]:
            theta = _histogram_start(problem, y, smooth_targets, theta)
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


def _histogram_start(
    problem: "_Likelihood", y: NDArray[np.uint8], smooth_targets: bool, prior: Floats
) -> Floats:
    """Fit to the bin means of one large sample: nearly the maximum, for one exp a bin.

    Returns the starting point `prior` if that fit fails.
    """
    x = problem.x
    n_bins = min(2**14, len(x) // 8)
    low, high = x.min(), x.max()
    bins = ((x - low) * ((n_bins - 0.5) / (high - low))).astype(np.intp)
    w = None if problem.weights is None else problem.weights[0]
    mass = np.bincount(bins, weights=w, minlength=n_bins).astype(np.float64)
    sums, positive = (
        np.bincount(bins, weights=v if w is None else w * v, minlength=n_bins)
        for v in (x, y)
    )
    filled = mass > 0
    mass = mass[filled]
    coarse = _Likelihood(
        sums[filled] / mass, positive[filled] / mass, mass[np.newaxis], smooth_targets
    )
    theta = prior.copy()
    _, converged = _newton(coarse, theta, np.ones(1, dtype=bool), MAX_ITER)
    return theta if converged[0] else prior


class _Likelihood:
    """Score and information of the logistic likelihood, replicates leading.

    Sums over rows are by power of x, the intercept's first.
    """

    def __init__(
        self, x: Floats, y: NDArray, weights: NDArray | None, smooth_targets: bool
    ) -> None:
        self.x, self.weights = x, weights
        positive = y.astype(np.float64)
        sums = self._weigh(
            lambda rows: (1.0, x[rows], positive[rows], positive[rows] * x[rows])
        )
        of_all, of_positive = sums[:, :2], sums[:, 2:]
        self.total, n_positive = of_all[:, 0], of_positive[:, 0]
        high, low = np.ones_like(n_positive), np.zeros_like(n_positive)
        if smooth_targets:
            high = (n_positive + 1) / (n_positive + 2)
            low = 1 / (self.total - n_positive + 2)
        self.target_sums = high[:, np.newaxis] * of_positive + low[:, np.newaxis] * (
            of_all - of_positive
        )

    def _weigh(self, columns: Callable[[slice], Sequence[Any]]) -> Floats:
        """Weighted sums of columns, which are made a block of rows at a time."""
        n_replicates = 1 if self.weights is None else len(self.weights)
        out: Floats | float = 0.0
        for rows in _row_blocks(len(self.x), n_replicates):
            if self.weights is None:
                w = np.ones((1, rows.stop - rows.start))
            else:
                w = self.weights[:, rows].astype(np.float64)
            out = out + _dots(w, columns(rows))
        return np.asarray(out)

    def prior_log_odds(self) -> Floats:
        """Log-odds of the mean target: the maximum with slope 0."""
        mean = self.target_sums[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(mean) - np.log(self.total - mean)

    def derivatives_at_one_point(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """First three derivatives, all replicates at one theta: one exp for all."""

        def columns(rows: slice) -> list[Any]:
            x = self.x[rows]
            q = sigmoid(theta[0] * x + theta[1])
            v = q * (1.0 - q)
            t = v * (1.0 - 2.0 * q)
            x2 = x * x
            return [q, q * x, v, v * x, v * x2, t, t * x, t * x2, t * x2 * x]

        sums = self._weigh(columns)
        return sums[:, :2] - self.target_sums, sums[:, 2:5], sums[:, 5:]

    def derivatives(
        self, theta: Floats, replicates: NDArray[np.intp]
    ) -> tuple[Floats, Floats]:
        """Gradient (k, 2) and information sums (k, 3) of some replicates."""
        gradient = -self.target_sums[replicates]
        information = np.zeros((len(replicates), 3))
        minus_slope, minus_intercept = -theta[:, :1], -theta[:, 1:]
        whole = self.weights is None or len(replicates) == len(self.weights)
        for rows in _row_blocks(len(self.x), len(replicates)):
            q = minus_slope * self.x[rows]
            q += minus_intercept
            with np.errstate(over="ignore"):
                np.exp(q, out=q)
            q += 1.0
            np.reciprocal(q, out=q)
            v = q * q
            np.subtract(q, v, out=v)
            if self.weights is not None:
                w = self.weights[:, rows] if whole else self.weights[replicates, rows]
                q *= w
                v *= w
            x = self.x[rows]
            gradient += _dots(q, (1.0, x))
            information += _dots(v, (1.0, x, x * x))
        return gradient, information


def _dots(weights: Floats, columns: Sequence[Any]) -> Floats:
    """Each row of weights times each column; a column 1.0 stands for plain sums."""
    return np.stack(
        [
            weights.sum(axis=1) if isinstance(column, float) else weights @ column
            for column in columns
        ],
        axis=1,
    )


def _newton(
    problem: _Likelihood,
    theta: Floats,
    possible: NDArray[np.bool_],
    max_iter: int,
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Newton with step halving, in place on theta (n_replicates, 2).

    The likelihood is concave, so a step is too long exactly when the slope along it
    has turned and grown; it is then halved. No likelihood value is needed. Replicates
    that start at one point share its third derivatives, which sharpen steps near it.
    """
    n_iter = np.zeros(len(theta), dtype=np.intp)
    converged = np.zeros(len(theta), dtype=bool)
    active = np.flatnonzero(possible)
    if not active.size:
        return n_iter, converged
    third, start = None, theta[active[0]].copy()
    if active.size > 1 and (theta[active] == theta[active[0]]).all():
        gradient, information, third = (
            d[active] for d in problem.derivatives_at_one_point(start)
        )
    else:
        gradient, information = problem.derivatives(theta[active], active)
    while active.size:
        step = _solve(gradient, information)
        tolerance: Floats | float = STEP_TOLERANCE
        if third is not None:
            moved = np.abs(theta[active] - start).max(axis=1)
            near = moved + np.abs(step).max(axis=1) <= BEND_REACH
            bend = _bend(third[near], step[near])
            step[near] += _solve(bend, information[near])
            tolerance = np.where(moved <= SHARP_REACH, SHARP_TOLERANCE, STEP_TOLERANCE)
        n_iter[active] += 1
        small = np.abs(step).max(axis=1) <= tolerance * (
            1.0 + np.abs(theta[active]).max(axis=1)
        )
        theta[active[small]] += step[small]
        converged[active[small]] = True
        go_on = ~small & (n_iter[active] < max_iter) & np.isfinite(step).all(axis=1)
        active, step, gradient = active[go_on], step[go_on], gradient[go_on]
        third = None if third is None else third[go_on]
        if active.size:
            gradient, information = _advance(problem, theta, active, step, gradient)
    return n_iter, converged


def _bend(third: Floats, step: Floats) -> Floats:
    """Change of the gradient along a step that the information leaves out."""
    a, b = step[:, :1], step[:, 1:]
    return 0.5 * (
        b * b * third[:, :2] + 2 * a * b * third[:, 1:3] + a * a * third[:, 2:]
    )


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
