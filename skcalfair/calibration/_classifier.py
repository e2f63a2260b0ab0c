"""A classifier with a calibrator on top, fitted on rows the classifier did not see."""

import warnings
from collections.abc import Iterable
from inspect import signature
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    _fit_context,
    clone,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import check_cv
from sklearn.utils import (
    Bunch,
    assert_all_finite,
    column_or_1d,
    get_tags,
    indexable,
)
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    _check_response_method,
    _num_samples,
    check_is_fitted,
)

from .._log_odds import EPS
from .._validation import check_sample_weight
from ._pair import CalibratedPair, Response, fit_and_score
from ._platt import PlattCalibrator

Floats = NDArray[np.float64]


class CalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Put a calibrator on top of a classifier.

    The calibrator is fitted on scores of rows that the classifier was not trained on:
    by cross-fitting, on a held-out part, or on all rows when the classifier is frozen.

    Parameters
    ----------
    estimator : classifier, default=None
        Has `decision_function` or `predict_proba`. By default
        :class:`~sklearn.linear_model.LogisticRegression`. A classifier that is fitted
        already goes in as ``FrozenEstimator(classifier)``; the rows given to `fit` then
        serve the calibrator alone, and must not be those it was trained on.
    calibrator : transformer, default=None
        Follows the contract ``fit(S, y, sample_weight)``, ``transform(S)`` with S of
        shape (n_samples, 1) and y in {0, 1}, and returns probabilities; by default
        `PlattCalibrator`. S always holds log-odds or decision scores, so a calibrator
        with ``input="auto"`` is told ``input="log_odds"``, and one with
        ``input="probability"`` is refused.
    cv : int, cross-validation generator or iterable, default=None
        How training and calibration rows are split: 5-fold stratified by default. One
        split means a held-out part. Splitters by group take `groups` from `fit`. Not
        used for a frozen classifier without an ensemble: no row needs holding out.
    ensemble : bool or "auto", default="auto"
        Whether each split keeps its own classifier and calibrator, whose probabilities
        are averaged. Otherwise one calibrator is fitted to the out-of-fold scores of
        all rows, and the classifier to all rows. "auto" is True, except for a frozen
        classifier.
    response_method : {"auto", "decision_function", "predict_proba"}, default="auto"
        Where the scores come from: "auto" prefers `decision_function`; probabilities
        are turned into log-odds, clipped by the `eps` of a calibrator that has one.
    n_jobs : int, default=None
        Splits fitted in parallel; the result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    calibrated_classifiers_ : list
        Fitted pairs, one a split if ensembled: each has `estimator` and `calibrators`.
    n_features_in_ : int
        Number of features seen by the classifier, if it says so.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features seen by the classifier, if it says so.

    See Also
    --------
    PlattCalibrator : The default calibrator.
    sklearn.calibration.CalibratedClassifierCV : With scikit-learn's own methods only.

    Notes
    -----
    With two classes, the score is that of ``classes_[1]``. With more, each class has a
    calibrator against the rest, and the probabilities are divided by their sum (rows
    without any get equal shares).

    With the default calibrator the probabilities are those of scikit-learn's
    ``CalibratedClassifierCV(method="sigmoid")`` where both use `decision_function`. For
    a classifier with `predict_proba` only they differ: scikit-learn fits the sigmoid to
    the probabilities, not to their log-odds.

    References
    ----------
    .. [1] J. Platt, "Probabilistic outputs for support vector machines and comparisons
       to regularized likelihood methods", Advances in Large Margin Classifiers, 1999.
    .. [2] A. Niculescu-Mizil and R. Caruana, "Predicting good probabilities with
       supervised learning", Proceedings of the 22nd International Conference on
       Machine Learning, 2005.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skcalfair.calibration import CalibratedClassifier
    >>> from skcalfair.metrics import calibration_loss
    >>> X, y = make_classification(2000, n_redundant=10, random_state=0)
    >>> plain = GaussianNB().fit(X[:1000], y[:1000])
    >>> calibrated = CalibratedClassifier(GaussianNB()).fit(X[:1000], y[:1000])
    >>> round(calibration_loss(y[1000:], plain.predict_proba(X[1000:])), 2)
    0.18
    >>> round(calibration_loss(y[1000:], calibrated.predict_proba(X[1000:])), 2)
    0.0
    """

    _parameter_constraints: dict = {
        "estimator": [
            HasMethods(["fit", "predict_proba"]),
            HasMethods(["fit", "decision_function"]),
            None,
        ],
        "calibrator": [HasMethods(["fit", "transform"]), None],
        "cv": ["cv_object"],
        "ensemble": ["boolean", StrOptions({"auto"})],
        "response_method": [StrOptions({"auto", "decision_function", "predict_proba"})],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        estimator: Any = None,
        calibrator: Any = None,
        *,
        cv: Any = None,
        ensemble: bool | str = "auto",
        response_method: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.ensemble = ensemble
        self.response_method = response_method
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Fit classifier and calibrator.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training data, as the classifier takes it.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights for the calibrator, and for a classifier that takes
            them.
        **fit_params : dict
            `groups` for the splitter, and parameters of the classifier's `fit`. With
            scikit-learn's metadata routing enabled, each goes where it is requested.

        Returns
        -------
        CalibratedClassifier
            The fitted classifier itself.

        Raises
        ------
        ValueError
            If there are fewer than two classes, a split lacks one, or without an
            ensemble a row is not held out exactly once.
        """
        X, y = indexable(X, y)
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        weights = check_sample_weight(sample_weight, len(y))
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes in y; got only one "
                f"class or no rows: {self.classes_.tolist()}"
            )
        params = self._route(weights, fit_params)
        response = self._response()
        self.calibrated_classifiers_ = [
            CalibratedPair(
                model,
                self._fit_calibrators(
                    scores, codes[rows], None if weights is None else weights[rows]
                ),
                response,
            )
            for model, scores, rows in self._fit_parts(X, y, codes, params, response)
        ]
        first = self.calibrated_classifiers_[0].estimator
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(first, name):
                setattr(self, name, getattr(first, name))
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Calibrated probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Data, as the classifier takes it.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities that sum to one, in the order of `classes_`.
        """
        check_is_fitted(self)
        total = np.zeros((_num_samples(X), len(self.classes_)))
        for pair in self.calibrated_classifiers_:
            total += pair.predict_proba(X)
        return total / len(self.calibrated_classifiers_)

    def predict(self, X: Any) -> NDArray:
        """Most probable class.

        It can differ from what the classifier alone predicts.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Data, as the classifier takes it.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels.
        """
        check_is_fitted(self)
        labels: NDArray = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return labels

    def get_metadata_routing(self) -> MetadataRouter:
        """Which metadata goes to the classifier and to the splitter.

        Returns
        -------
        MetadataRouter
            See scikit-learn's user guide on metadata routing.
        """
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                estimator=self._estimator(),
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
            .add(
                splitter=self.cv,
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        of_estimator = get_tags(self._estimator()).input_tags
        tags.input_tags.sparse = of_estimator.sparse
        tags.input_tags.pairwise = of_estimator.pairwise
        tags.input_tags.allow_nan = of_estimator.allow_nan
        return tags

    def _estimator(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        estimator = LogisticRegression()
        if _routing_enabled():
            estimator.set_fit_request(sample_weight=True)
        return estimator

    def _response(self) -> Response:
        methods: Any = ["decision_function", "predict_proba"]
        if self.response_method != "auto":
            methods = self.response_method
        name: str = _check_response_method(self._estimator(), methods).__name__
        return Response(name, getattr(self.calibrator, "eps", EPS))

    def _route(self, weights: Floats | None, fit_params: dict[str, Any]) -> Bunch:
        """Parameters for the splitter and for the classifier's fit."""
        if _routing_enabled():
            return process_routing(self, "fit", sample_weight=weights, **fit_params)
        params = dict(fit_params)
        groups = params.pop("groups", None)
        if weights is not None:
            estimator = self._estimator()
            if "sample_weight" in signature(estimator.fit).parameters:
                params["sample_weight"] = weights
            elif not isinstance(estimator, FrozenEstimator):  # that fits nothing
                warnings.warn(
                    f"{type(estimator).__name__} does not accept sample_weight: the "
                    "weights are used for the calibration only",
                    stacklevel=4,  # past scikit-learn's wrapper of fit
                )
        return Bunch(
            splitter=Bunch(split={"groups": groups}), estimator=Bunch(fit=params)
        )

    def _splits(
        self, X: Any, y: NDArray, params: dict[str, Any]
    ) -> Iterable[tuple[NDArray, NDArray]]:
        cv = check_cv(self.cv, y, classifier=True)
        if self.cv is None or isinstance(self.cv, Integral):
            counts = np.unique(y, return_counts=True)[1]
            rarest = int(counts.argmin())
            if counts[rarest] < cv.get_n_splits():
                raise ValueError(
                    f"{cv.get_n_splits()}-fold cross-validation needs that many rows "
                    f"of each class; class {self.classes_.tolist()[rarest]!r} has "
                    f"{counts[rarest]}"
                )
        for train, test in cv.split(X, y, **params):
            yield _as_positions(train), _as_positions(test)

    def _fit_parts(
        self, X: Any, y: NDArray, codes: NDArray, params: Bunch, response: Response
    ) -> list[tuple[Any, Floats, NDArray[np.intp]]]:
        """Fitted classifiers, each with scores and the rows to calibrate it on."""
        estimator = self._estimator()
        ensemble = self._is_ensemble(estimator)
        if isinstance(estimator, FrozenEstimator) and not ensemble:
            # It has seen no row: cross-fitting would only repeat its scores.
            self._check_classes(estimator, "the frozen classifier")
            return [(estimator, response.columns(estimator, X), np.arange(len(y)))]
        splits = list(self._splits(X, y, params.splitter.split))
        fitted = Parallel(n_jobs=self.n_jobs)(
            delayed(fit_and_score)(
                clone(estimator), X, y, train, test, params.estimator.fit, response
            )
            for train, test in splits
        )
        parts = [
            (model, scores, test)
            for (model, scores), (_, test) in zip(fitted, splits, strict=True)
        ]
        for i, (model, _, _) in enumerate(parts):
            self._check_classes(model, f"the classifier of split {i}")
        if ensemble:
            self._check_calibration_rows(codes, [rows for _, _, rows in parts])
            return parts
        rows = np.concatenate([test for _, _, test in parts])
        if not np.array_equal(np.sort(rows), np.arange(len(y))):
            raise ValueError(
                "without an ensemble, cv must hold out every row exactly once"
            )
        whole = clone(estimator).fit(X, y, **params.estimator.fit)
        return [(whole, np.concatenate([scores for _, scores, _ in parts]), rows)]

    def _is_ensemble(self, estimator: Any) -> bool:
        if self.ensemble == "auto":
            return not isinstance(estimator, FrozenEstimator)
        return bool(self.ensemble)

    def _check_classes(self, model: Any, name: str) -> None:
        known = np.asarray(model.classes_).tolist()
        expected = self.classes_.tolist()
        if known != expected:
            raise ValueError(
                f"{name} knows the classes {known}, but y holds {expected}; use a "
                "splitter that is stratified by class, and for a frozen classifier "
                "rows of every class that it knows"
            )

    def _check_calibration_rows(
        self, codes: NDArray, parts: list[NDArray[np.intp]]
    ) -> None:
        for i, rows in enumerate(parts):
            missing = np.setdiff1d(np.arange(len(self.classes_)), codes[rows])
            if missing.size:
                raise ValueError(
                    f"the calibration part of split {i} holds no row of class "
                    f"{self.classes_.tolist()[missing[0]]!r}; use a splitter that is "
                    "stratified by class, or ensemble=False"
                )

    def _fit_calibrators(
        self, scores: Floats, codes: NDArray, weights: Floats | None
    ) -> list[Any]:
        """One calibrator a column: the second class, or each against the rest."""
        positives = [1] if scores.shape[1] == 1 else range(scores.shape[1])
        options = {} if weights is None else {"sample_weight": weights}
        return [
            self._new_calibrator().fit(
                scores[:, [j]], (codes == positive).astype(int), **options
            )
            for j, positive in enumerate(positives)
        ]

    def _new_calibrator(self) -> Any:
        if self.calibrator is None:
            return PlattCalibrator(input="log_odds")
        calibrator = clone(self.calibrator)
        kind = getattr(calibrator, "input", None)
        if kind == "auto":
            calibrator.set_params(input="log_odds")
        elif kind == "probability":
            raise ValueError(
                "the calibrator gets log-odds or decision scores, so that "
                "input='probability' cannot serve here; pass input='log_odds'"
            )
        return calibrator


def _as_positions(rows: ArrayLike) -> NDArray[np.intp]:
    """Row numbers; an iterable of splits may hold masks."""
    rows = np.asarray(rows)
    return np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.intp)
