"""A strictly increasing distortion of probabilities with a known inverse."""

from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincinv
from sklearn.base import (
    BaseEstimator,
    OneToOneFeatureMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from .._log_odds import EPS, log_odds, sigmoid
from ..calibration._score_columns import (
    EPS_CONSTRAINT,
    INPUT_CONSTRAINT,
    ScoreColumnsMixin,
)

Floats = NDArray[np.float64]


class BetaDecalibrator(
    ScoreColumnsMixin, OneToOneFeatureMixin, TransformerMixin, BaseEstimator
):
    r"""Spoil the calibration of probabilities by a Beta distribution function.

    Each probability p becomes :math:`I_p(\alpha, \beta)`, the distribution function
    of the Beta distribution. That is strictly increasing, so that the order of the
    scores and with it the discrimination stay as they are.

    Parameters
    ----------
    alpha : float, default=1.0
        First shape parameter, above 0.
    beta : float, default=1.0
        Second shape parameter, above 0. With ``alpha = beta`` a probability of 0.5
        stays 0.5, so that nothing changes at that threshold: above 1 the scores become
        over-confident, below 1 under-confident. Both 1 change nothing.
    input : {"auto", "probability", "log_odds"}, default="auto"
        What the columns hold, as in `PlattCalibrator`. ``"log_odds"`` are turned into
        probabilities first. ``"auto"`` decides for each column when fitting: one whose
        rows all lie in [0, 1] holds probabilities.
    eps : float, default=1e-12
        `inverse_transform` clips probabilities to [eps, 1 - eps] before it takes the
        log-odds of columns that held log-odds. Must lie in (0, 0.5).

    Attributes
    ----------
    is_probability_ : ndarray of shape (n_features,), dtype=bool
        Whether a column holds probabilities.
    n_features_in_ : int
        Number of columns seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns seen during `fit`, if all are strings.

    See Also
    --------
    make_calibrated_scores : Scores whose calibration is perfect before.
    skcalfair.experiments.sample_size_study : Uses it at several strengths.

    Notes
    -----
    The transform is :math:`I_p(\alpha, \beta) = \int_0^p t^{\alpha - 1}
    (1 - t)^{\beta - 1} dt / B(\alpha, \beta)`, and the inverse the quantile function
    of the same distribution. The study of sample sizes [1]_ decalibrates scores in
    this way.

    Both are exact up to the rounding of a double. That matters for strong distortions:
    probabilities that become so close to 1 that a double does not tell them apart are
    one value from then on.

    References
    ----------
    .. [1] Ricci Lara, M. A., Mosquera, C., Ferrante, E. and Echeveste, R. (2023).
       "Towards unraveling calibration biases in medical image analysis".
       arXiv:2305.05101.

    Examples
    --------
    >>> from skcalfair.datasets import BetaDecalibrator
    >>> p = [[0.1], [0.5], [0.8]]
    >>> decalibrator = BetaDecalibrator(alpha=2, beta=2).fit(p)
    >>> q = decalibrator.transform(p)
    >>> q.round(3)
    array([[0.028],
           [0.5  ],
           [0.896]])
    >>> decalibrator.inverse_transform(q).round(12)
    array([[0.1],
           [0.5],
           [0.8]])
    """

    _parameter_constraints: dict = {
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "beta": [Interval(Real, 0, None, closed="neither")],
        "input": INPUT_CONSTRAINT,
        "eps": EPS_CONSTRAINT,
    }

    def __init__(
        self,
        alpha: float = 1.0,
        beta: float = 1.0,
        *,
        input: str = "auto",
        eps: float = EPS,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.input = input
        self.eps = eps

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find out which columns hold probabilities; nothing else is learnt.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Probabilities in [0, 1], or log-odds.
        y : object, default=None
            Ignored.

        Returns
        -------
        BetaDecalibrator
            The fitted transformer itself.

        Raises
        ------
        ValueError
            If a column to be read as probabilities leaves [0, 1].
        """
        X = validate_data(self, X, dtype=np.float64)
        self.is_probability_ = self._find_probabilities(X)
        self._check_probabilities(X, self.is_probability_)
        return self

    def transform(self, X: Any) -> Floats:
        """Distorted probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Scores of the same kind as in `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Probabilities in [0, 1], float64.

        Raises
        ------
        ValueError
            If a column that held probabilities in `fit` leaves [0, 1].
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        self._check_probabilities(X, self.is_probability_)
        p = X.copy()
        others = ~self.is_probability_
        p[:, others] = sigmoid(X[:, others])
        return decalibrate(p, self.alpha, self.beta)

    def inverse_transform(self, X: ArrayLike) -> Floats:
        """Map distorted probabilities back to the scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Distorted probabilities in [0, 1].

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Scores on the scale of the input: probabilities where `is_probability_`,
            log-odds elsewhere.

        Raises
        ------
        ValueError
            If a value leaves [0, 1].
        """
        check_is_fitted(self)
        q = check_array(X, dtype=np.float64, estimator=self, input_name="X")
        self._check_n_columns(q, self.n_features_in_)
        self._check_probabilities(q, np.ones(self.n_features_in_, dtype=bool))
        scores = betaincinv(self.alpha, self.beta, q)
        others = ~self.is_probability_
        scores[:, others] = log_odds(scores[:, others], eps=self.eps)
        return scores


def decalibrate(p: Floats, alpha: float, beta: float) -> Floats:
    """Beta distribution function of probabilities; 0.5 stays put if it should."""
    q = betainc(alpha, beta, p)
    # From the other side near 1, where older versions of SciPy stop short of it.
    high = q > 0.5
    q[high] = 1.0 - betainc(beta, alpha, 1.0 - p[high])
    if alpha == beta:
        # Rounding would move rows across the threshold.
        q[p == 0.5] = 0.5
    return q
