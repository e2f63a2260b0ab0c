"""VGG19Classifier among scikit-learn's and this package's estimators."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import SkipTestWarning
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    StratifiedKFold,
    cross_val_predict,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks
from sklearn.utils.validation import validate_data

from skcalfair.audit import SubgroupAuditor
from skcalfair.calibration import CalibratedClassifier, PlattCalibrator
from skcalfair.datasets import make_skin_lesions
from skcalfair.keras import VGG19Classifier


class TableClassifier(VGG19Classifier):
    """Takes tables, as scikit-learn's checks do: features become stripes of an image.

    Everything is in double precision and in one batch, so that neither rounding nor
    the order of rows keeps the estimator from what the checks ask for.
    """

    _filters = (4, 4, 8, 8, 8)

    def __init__(
        self,
        *,
        weights=None,
        input_size=(32, 32),
        normalization="dataset",
        learning_rate=0.01,
        clipnorm=None,
        batch_size=1024,
        max_epochs=1,
        early_stopping=False,
        n_iter_no_change=20,
        class_weight=None,
        dtype_policy="float64",
        random_state=None,
    ):
        super().__init__(
            weights=weights,
            input_size=input_size,
            normalization=normalization,
            horizontal_flip=False,
            rotation=0.0,
            zoom=0.0,
            learning_rate=learning_rate,
            clipnorm=clipnorm,
            batch_size=batch_size,
            max_epochs=max_epochs,
            early_stopping=early_stopping,
            n_iter_no_change=n_iter_no_change,
            class_weight=class_weight,
            dtype_policy=dtype_policy,
            random_state=random_state,
        )

    def _images(self, X, reset):
        X = validate_data(self, X, dtype=np.float64, reset=reset)
        column = np.arange(32) * X.shape[1] // 32
        stripes = np.broadcast_to(X[:, column], (3, 32, len(X), 32))
        return np.ascontiguousarray(np.moveaxis(stripes, [2, 1, 3, 0], [0, 1, 2, 3]))

    def fit(self, X, y, sample_weight=None):
        return super().fit(self._images(X, True), y, sample_weight)

    def decision_function(self, X):
        sklearn.utils.validation.check_is_fitted(self)
        return super().decision_function(self._images(X, False))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = False
        tags.input_tags.two_d_array = True
        tags.input_tags.string = False
        # Sixteen narrow layers learn little in an epoch; learning has its own test.
        tags.classifier_tags.poor_score = True
        return tags


@parametrize_with_checks([TableClassifier()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_weights_are_repetitions():
    rng = np.random.default_rng(0)
    X, y, times = rng.normal(size=(30, 4)), np.arange(30) % 2, np.arange(30) % 4
    # Beyond the one epoch of the checks; Keras holds parts of training in float32.
    model = TableClassifier(max_epochs=3, class_weight={0: 1.0, 1: 3.0}, random_state=0)
    weighted = model.fit(X, y, sample_weight=times).decision_function(X)
    repeated = model.fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(
        repeated.decision_function(X), weighted, rtol=1e-5, atol=1e-6
    )


def test_tags():
    tags = VGG19Classifier().__sklearn_tags__()
    assert not tags.input_tags.two_d_array
    assert tags.input_tags.one_d_array
    assert tags.estimator_type == "classifier"
    assert tags.classifier_tags.multi_class
    with pytest.warns(SkipTestWarning, match="two_d_array=False"):
        check_estimator(VGG19Classifier())


# -- model selection ------------------------------------------------------------------


def test_search_and_cross_validation(narrow, lesion_files):
    paths, _, y = lesion_files
    X = pd.DataFrame({"path": paths})
    search = GridSearchCV(
        narrow(), {"pooling": ["avg", "max"]}, cv=2, scoring="roc_auc"
    ).fit(X, y)
    assert set(search.cv_results_["param_pooling"]) == {"avg", "max"}
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.decision_function(X).shape == (24,)
    scores = cross_val_predict(narrow(), paths, y, cv=2, method="decision_function")
    assert np.isfinite(scores).all()


def test_jobs_do_not_change_the_result(lesions):
    """In other processes, where no test can make the network narrow."""
    X, y = lesions.images[:8], np.arange(8) % 2
    model = VGG19Classifier(
        weights=None,
        input_size=(32, 32),
        max_epochs=1,
        early_stopping=False,
        trainable_from="head",
        random_state=0,
    )
    options = {"cv": StratifiedKFold(2), "method": "predict_proba"}
    np.testing.assert_allclose(
        cross_val_predict(model, X, y, n_jobs=2, **options),
        cross_val_predict(model, X, y, **options),
        atol=1e-6,
    )


class Brighter(TransformerMixin, BaseEstimator):
    """A step before the classifier."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.minimum(X.astype(np.float32) * 1.1, 255)

    def __sklearn_is_fitted__(self):
        return True


def test_pipeline(narrow, lesions):
    weights = np.linspace(1, 2, 48)
    pipeline = make_pipeline(Brighter(), narrow()).fit(
        lesions.images, lesions.target, vgg19classifier__sample_weight=weights
    )
    bright = Brighter().transform(lesions.images)
    alone = narrow().fit(bright, lesions.target, sample_weight=weights)
    np.testing.assert_array_equal(
        pipeline.predict_proba(lesions.images), alone.predict_proba(bright)
    )


def test_metadata_is_routed(narrow, lesions, monkeypatch):
    seen = []
    fit = VGG19Classifier.fit

    def record(self, X, y, sample_weight=None, *, groups=None, **others):
        seen.append((sample_weight, groups))
        return fit(self, X, y, sample_weight, groups=groups, **others)

    # As scikit-learn made them from the signature of the method itself.
    monkeypatch.setattr(VGG19Classifier, "fit", record)
    weights, patients = np.linspace(1, 2, 48), np.arange(48) // 2
    with sklearn.config_context(enable_metadata_routing=True):
        model = narrow().set_fit_request(sample_weight=True, groups=True)
        model.set_score_request(sample_weight=True)
        cross_validate(
            model,
            lesions.images,
            lesions.target,
            cv=GroupKFold(2),
            params={"sample_weight": weights, "groups": patients},
            error_score="raise",
        )
    assert len(seen) == 2
    for given, groups in seen:
        assert len(given) == len(groups) == 24
        np.testing.assert_array_equal(given, weights[np.isin(patients, groups)])


# -- calibration and audit ------------------------------------------------------------


def test_scores_are_what_the_calibrator_takes(narrow, lesions):
    train, test = slice(0, 32), slice(32, None)
    model = narrow(max_epochs=2).fit(lesions.images[train], lesions.target[train])
    scores = model.decision_function(lesions.images[test])
    platt = PlattCalibrator(input="log_odds").fit(
        scores[:, np.newaxis], lesions.target[test]
    )
    assert platt.transform(scores[:, np.newaxis]).shape == (16, 1)
    calibrated = CalibratedClassifier(narrow(), cv=2)
    calibrated.fit(lesions.images, lesions.target)
    p = calibrated.predict_proba(lesions.images)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)


@pytest.mark.filterwarnings("ignore:some groups are too small")
def test_audit_of_generated_lesions(narrow):
    lesions = make_skin_lesions(120, size=32, dark_share=0.4, random_state=3)
    auditor = SubgroupAuditor(
        narrow(max_epochs=4, learning_rate=2e-3, random_state=None),
        metrics=["roc_auc", "brier_score_loss", "expected_calibration_error"],
        cv=2,
        n_resamples=20,
        random_state=0,
        store_estimators=True,
    ).fit(
        lesions.images,
        lesions.target,
        sensitive_features=lesions.skin_tone,
        groups=lesions.patient,
    )
    assert auditor.runs_["reason"].isna().all()
    assert set(auditor.gaps_["metric"]) == set(auditor.results_["metric"])
    assert np.isfinite(auditor.gaps_["naive"]).all()
    assert len(auditor.predictions_) == 120
    # Each run was given its own seed, and tells the same again.
    seeds = {model.random_state for model in auditor.estimators_}
    assert len(seeds) == 2
