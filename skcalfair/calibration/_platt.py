"""Platt scaling of score columns, as a scikit-learn transformer."""

from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    OneToOneFeatureMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.utils import ClassifierTags, check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .._log_odds import EPS, fit_platt, log_odds, sigmoid
from .._validation import check_sample_weight, encode_two_classes
from ._score_columns import EPS_CONSTRAINT, INPUT_CONSTRAINT, ScoreColumnsMixin

Floats = NDArray[np.float64]


class PlattCalibrator(
    ScoreColumnsMixin, OneToOneFeatureMixin, TransformerMixin, BaseEstimator
):
    """Turn scores into calibrated probabilities by Platt scaling.

    Each column of `X` is one classifier's score and is calibrated by itself, as a
    scaler would treat it. The output holds probabilities of the positive class.

    Parameters
    ----------
    input : {"auto", "probability", "log_odds"}, default="auto"
        What the columns hold. Probabilities are turned into log-odds first;
        ``"log_odds"`` (also right for raw decision scores) takes the values as they
        are. ``"auto"`` decides for each column when fitting: a column whose rows of
        positive weight all lie in [0, 1] holds probabilities. Name the input where
        decision scores could all fall into [0, 1] by chance.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. By default the greater of the two sorted labels,
        ``classes_[1]``.
    smooth_targets : bool, default=True
        Fit to Platt's smoothed targets instead of 0 and 1, as scikit-learn's sigmoid
        calibration does. The fit then exists for separable data as well.
    eps : float, default=1e-12
        Probabilities are clipped to [eps, 1 - eps] before the log-odds are taken.
        Must lie in (0, 0.5).

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The two labels, sorted.
    pos_label_ : int, float, bool or str
        Label of the positive class.
    is_probability_ : ndarray of shape (n_features,), dtype=bool
        Whether a column holds probabilities.
    slope_ : ndarray of shape (n_features,)
        Slope on the log-odds or decision scores of each column.
    intercept_ : ndarray of shape (n_features,)
        Intercept of each column, in log-odds.
    n_iter_ : ndarray of shape (n_features,), dtype=int
        Newton steps taken for each column.
    n_features_in_ : int
        Number of columns seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns seen during `fit`, if all are strings.

    See Also
    --------
    CalibratedClassifier : Put this calibrator on top of any classifier.
    skcalfair.metrics.calibration_loss : What a classifier would gain by this.

    Notes
    -----
    With x the log-odds or decision score, the calibrated probability is ::

        q = 1 / (1 + exp(-(slope * x + intercept)))

    where slope and intercept are the *unpenalised* weighted maximum-likelihood
    estimate. Smoothed targets are ``(N1 + 1) / (N1 + 2)`` for the positive and
    ``1 / (N0 + 2)`` for the negative class, of total weight N1 and N0.

    A weight is a number of repetitions: rows of weight zero count for nothing, labels
    included. A constant column gets slope 0 and the log-odds of the (smoothed)
    prevalence as intercept. Without smoothing, separable data have no
    maximum-likelihood estimate: a ConvergenceWarning says so, and the smoothed fit is
    returned.

    References
    ----------
    .. [1] J. Platt, "Probabilistic outputs for support vector machines and comparisons
       to regularized likelihood methods", Advances in Large Margin Classifiers, 1999.
    .. [2] A. Niculescu-Mizil and R. Caruana, "Predicting good probabilities with
       supervised learning", Proceedings of the 22nd International Conference on
       Machine Learning, 2005.

    Examples
    --------
    The scores of this classifier are far too extreme:

    >>> from skcalfair.calibration import PlattCalibrator
    >>> X = [[0.01], [0.02], [0.9], [0.99], [0.98], [0.999]]
    >>> y = [0, 1, 0, 1, 0, 1]
    >>> platt = PlattCalibrator().fit(X, y)
    >>> platt.is_probability_
    array([ True])
    >>> platt.slope_.round(3)
    array([0.067])
    >>> platt.transform([[0.01], [0.5], [0.999]]).round(2)
    array([[0.4 ],
           [0.47],
           [0.59]])
    """

    _parameter_constraints: dict = {
        "input": INPUT_CONSTRAINT,
        "pos_label": [Real, str, "boolean", None],
        "smooth_targets": ["boolean"],
        "eps": EPS_CONSTRAINT,
    }

    def __init__(
        self,
        *,
        input: str = "auto",
        pos_label: Any = None,
        smooth_targets: bool = True,
        eps: float = EPS,
    ) -> None:
        self.input = input
        self.pos_label = pos_label
        self.smooth_targets = smooth_targets
        self.eps = eps

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit slope and intercept of each column.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Scores: probabilities in [0, 1], log-odds or decision scores.
        y : array-like of shape (n_samples,)
            Outcomes: two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights. By default every row weighs one.

        Returns
        -------
        PlattCalibrator
            The fitted calibrator itself.

        Raises
        ------
        ValueError
            If `y` does not hold exactly two classes, `pos_label` is not one of them,
            or a column to be read as probabilities leaves [0, 1].
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        weights = check_sample_weight(sample_weight, len(y))
        rows = np.arange(len(y))
        if weights is not None:
            # Dropped before anything is decided, so that they cannot decide it.
            rows = np.flatnonzero(weights)
            X, y, weights = X[rows], y[rows], weights[rows]
        outcome = self._encode(y)
        self.is_probability_ = self._find_probabilities(X)
        self._check_probabilities(X, self.is_probability_, rows)
        fits = [
            fit_platt(column, outcome, weights, smooth_targets=self.smooth_targets)
            for column in self._to_log_odds(X).T
        ]
        self.slope_ = np.array([fit.slope for fit in fits])
        self.intercept_ = np.array([fit.intercept for fit in fits])
        self.n_iter_ = np.array([fit.n_iter for fit in fits])
        return self

    def transform(self, X: Any) -> Floats:
        """Calibrated probabilities of the positive class.

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
        return sigmoid(self._to_log_odds(X) * self.slope_ + self.intercept_)

    def inverse_transform(self, X: ArrayLike) -> Floats:
        """Map calibrated probabilities back to scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Calibrated probabilities in [0, 1]; clipped to [eps, 1 - eps].

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Scores on the scale of the input: probabilities where `is_probability_`,
            log-odds or decision scores elsewhere.

        Raises
        ------
        ValueError
            If a slope is zero, or a value leaves [0, 1].
        """
        check_is_fitted(self)
        q = check_array(X, dtype=np.float64, estimator=self, input_name="X")
        self._check_n_columns(q, self.n_features_in_)
        flat = np.flatnonzero(self.slope_ == 0)
        if flat.size:
            raise ValueError(
                f"column {self._column_name(flat[0])} has slope 0: every score maps to "
                "the same probability, which cannot be inverted"
            )
        self._check_probabilities(q, np.ones(self.n_features_in_, dtype=bool))
        scores = (log_odds(q, eps=self.eps) - self.intercept_) / self.slope_
        scores[:, self.is_probability_] = sigmoid(scores[:, self.is_probability_])
        return scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        # Not a classifier, but what is said about its target holds here as well.
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags

    def _encode(self, y: NDArray) -> NDArray[np.uint8]:
        """Set `classes_` and `pos_label_`; code the positive class 1."""
        self.classes_, outcome, self.pos_label_ = encode_two_classes(
            y, self.pos_label, type(self).__name__
        )
        return outcome
