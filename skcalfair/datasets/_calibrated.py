"""Perfectly calibrated scores in any number, for studies of what spoils them."""

from numbers import Integral, Real

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import betaln, ndtr
from sklearn.utils import Bunch
from sklearn.utils._param_validation import Interval, StrOptions, validate_params

from .._log_odds import log_odds, sigmoid
from .._random import RANDOM_STATE_CONSTRAINT, RandomStateLike, generator

Floats = NDArray[np.float64]

# Concentrations a + b of the Beta distribution that are searched, as logarithms.
CONCENTRATIONS = (-12.0, 18.0)


@validate_params(
    {
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "prevalence": [Interval(Real, 0, 1, closed="neither")],
        "distribution": [StrOptions({"normal", "beta"})],
        "separability": [Interval(Real, 0, 6, closed="right")],
        "random_state": RANDOM_STATE_CONSTRAINT,
    },
    prefer_skip_nested_validation=True,
)
def make_calibrated_scores(
    n_samples: int = 1_000_000,
    *,
    prevalence: float = 0.5,
    distribution: str = "normal",
    separability: float = 2.0,
    random_state: RandomStateLike = None,
) -> Bunch:
    r"""Draw scores that are the true probabilities of their outcomes.

    Every row's score is its posterior probability, so the scores are perfectly
    calibrated: what a calibration metric reports for them is its own error. Distort
    them with `BetaDecalibrator` to any degree.

    Parameters
    ----------
    n_samples : int, default=1_000_000
        Number of independent rows.
    prevalence : float, default=0.5
        Expected proportion of positive outcomes, in (0, 1).
    distribution : {"normal", "beta"}, default="normal"
        Distribution of the scores. "normal": their log-odds are normal in each class,
        with equal variances. "beta": they have a Beta distribution; uniform for a
        prevalence of 0.5 and an area under the ROC curve of 5/6.
    separability : float, default=2.0
        How well the scores separate the classes, in (0, 6]: the true area under the ROC
        curve is :math:`\Phi(\text{separability} / \sqrt 2)` for either distribution;
        0.92 at 2. For "normal" it is the distance of the classes' mean log-odds in
        units of their standard deviation.
    random_state : int, Generator, RandomState instance or None, default=None
        Pass an int for the same data in every call.

    Returns
    -------
    sklearn.utils.Bunch
        The rows, and the truth they were drawn from:

        frame : DataFrame of shape (n_samples, 3)
            Columns ``outcome`` (0 or 1), ``score`` and ``posterior``, the true
            probability of a positive outcome, which the score equals.
        parameters : dict
            The truth: ``n_samples``, ``prevalence``, ``distribution``,
            ``separability`` and ``roc_auc``.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or no Beta distribution is as separable.

    See Also
    --------
    BetaDecalibrator : Spoils the calibration and nothing else.
    make_subgroup_scores : Groups with sizes and calibration of their own.

    Notes
    -----
    "normal": a row of class :math:`c = \pm 1`, which is :math:`+1` with probability
    :math:`\pi`, has the log-odds :math:`\log(\pi / (1 - \pi)) + c \delta^2 / 2 +
    \delta z` with separability :math:`\delta` and standard normal z. These are the
    exact log-odds of the class.

    "beta": the score is drawn from :math:`\text{Beta}(a, b)` with :math:`a = \pi
    \kappa`, :math:`b = (1 - \pi) \kappa`, and the outcome with that probability. The
    area under the ROC curve is then :math:`1/2 + E|p - p'| / (4 \pi (1 - \pi))`, where
    :math:`E|p - p'| = 4 B(a + b, a + b) / ((a + b) B(a, a) B(b, b))` is the mean
    difference of two scores; :math:`\kappa` is found from it.

    Examples
    --------
    >>> from skcalfair.datasets import make_calibrated_scores
    >>> data = make_calibrated_scores(1000, distribution="beta", random_state=0)
    >>> list(data.frame.columns)
    ['outcome', 'score', 'posterior']
    >>> round(data.parameters["roc_auc"], 3)
    0.921
    """
    rng = generator(random_state)
    if distribution == "normal":
        posterior = _normal(n_samples, prevalence, separability, rng)
    else:
        total = _concentration(prevalence, separability)
        posterior = rng.beta(prevalence * total, (1 - prevalence) * total, n_samples)
    outcome = (rng.random(n_samples) < posterior).astype(np.int64)
    frame = pd.DataFrame(
        {"outcome": outcome, "score": posterior, "posterior": posterior}
    )
    parameters = {
        "n_samples": int(n_samples),
        "prevalence": float(prevalence),
        "distribution": distribution,
        "separability": float(separability),
        "roc_auc": float(ndtr(separability / np.sqrt(2))),
    }
    return Bunch(frame=frame, parameters=parameters)


def _normal(
    n: int, prevalence: float, separability: float, rng: np.random.Generator
) -> Floats:
    """Posteriors whose log-odds are normal in each of the classes."""
    sign = np.where(rng.random(n) < prevalence, 1.0, -1.0)
    ratio = separability * (sign * separability / 2 + rng.standard_normal(n))
    return sigmoid(float(log_odds(prevalence)) + ratio)


def _concentration(prevalence: float, separability: float) -> float:
    """Sum of the two shape parameters that gives this separability."""
    wanted = float(ndtr(separability / np.sqrt(2)))

    def excess(log_total: float) -> float:
        return _beta_auc(prevalence, np.exp(log_total)) - wanted

    low, high = CONCENTRATIONS
    if not excess(high) < 0 < excess(low):
        raise ValueError(
            f"separability={separability!r} is out of reach of a Beta distribution "
            f"with prevalence={prevalence!r}"
        )
    return float(np.exp(brentq(excess, low, high, xtol=1e-12)))


def _beta_auc(prevalence: float, total: float) -> float:
    """True area under the ROC curve of calibrated scores from a Beta distribution."""
    a, b = prevalence * total, (1 - prevalence) * total
    log_ratio = betaln(total, total) - betaln(a, a) - betaln(b, b)
    difference = 4.0 / total * np.exp(log_ratio)
    return float(0.5 + difference / (4 * prevalence * (1 - prevalence)))
