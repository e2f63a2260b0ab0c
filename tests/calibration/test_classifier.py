"""CalibratedClassifier: a calibrator on top of any classifier."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from skcalfair._log_odds import log_odds
from skcalfair.calibration import CalibratedClassifier, PlattCalibrator


@parametrize_with_checks(
    [
        CalibratedClassifier(cv=3),
        CalibratedClassifier(cv=3, ensemble=False),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    return make_classification(
        300, n_features=6, n_informative=3, flip_y=0.2, random_state=0
    )


@pytest.fixture(scope="module")
def three_classes():
    return make_classification(
        300, n_informative=5, n_classes=3, flip_y=0.2, random_state=0
    )


@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("estimator", [LinearSVC(), LogisticRegression()])
def test_agrees_with_scikit_learn(data, ensemble, weighted, estimator):
    X, y = data
    w = np.random.default_rng(0).exponential(size=len(y)) if weighted else None
    options = {"cv": 4, "ensemble": ensemble}
    ours = CalibratedClassifier(estimator, **options).fit(X, y, sample_weight=w)
    theirs = CalibratedClassifierCV(estimator, method="sigmoid", **options)
    theirs.fit(X, y, sample_weight=w)
    np.testing.assert_allclose(
        ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6
    )


@pytest.mark.parametrize("ensemble", [True, False])
def test_three_classes_agree_with_scikit_learn(three_classes, ensemble):
    X, y = three_classes
    ours = CalibratedClassifier(LinearSVC(), ensemble=ensemble).fit(X, y)
    theirs = CalibratedClassifierCV(LinearSVC(), ensemble=ensemble).fit(X, y)
    p = ours.predict_proba(X)
    np.testing.assert_allclose(p, theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(ours.predict(X), p.argmax(axis=1))


def test_frozen_classifier_is_calibrated_on_all_rows(data):
    X, y = data
    model = GaussianNB().fit(X[:150], y[:150])
    calibrated = CalibratedClassifier(FrozenEstimator(model)).fit(X[150:], y[150:])
    (pair,) = calibrated.calibrated_classifiers_
    x = log_odds(model.predict_proba(X[150:])[:, 1:])
    direct = PlattCalibrator(input="log_odds").fit(x, y[150:])
    assert pair.calibrators[0].slope_ == pytest.approx(direct.slope_, rel=1e-9)


def test_frozen_classifier_accepts_a_calibration_split_of_one_class(data):
    X, y = data
    order = np.argsort(y)  # KFold then holds out one class at a time
    model = FrozenEstimator(LogisticRegression().fit(X, y))
    calibrated = CalibratedClassifier(model, cv=KFold(4)).fit(X[order], y[order])
    assert len(calibrated.calibrated_classifiers_) == 1


def test_frozen_classifier_needs_no_folds_and_no_weights_of_its_own(data):
    X, y = data
    rows = np.concatenate([np.flatnonzero(y == label)[:3] for label in (0, 1)])
    model = FrozenEstimator(LogisticRegression().fit(X, y))
    calibrated = CalibratedClassifier(model, cv=GroupKFold(5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calibrated.fit(X[rows], y[rows], sample_weight=[1, 2, 3, 4, 5, 6])
    (pair,) = calibrated.calibrated_classifiers_
    repeated = CalibratedClassifier(model).fit(
        np.repeat(X[rows], [1, 2, 3, 4, 5, 6], axis=0),
        np.repeat(y[rows], [1, 2, 3, 4, 5, 6]),
    )
    np.testing.assert_allclose(
        calibrated.predict_proba(X), repeated.predict_proba(X), rtol=1e-9
    )
    assert pair.estimator is model


def test_frozen_classifier_of_other_classes(data):
    X, y = data
    model = FrozenEstimator(LogisticRegression().fit(X, y))
    with pytest.raises(ValueError, match=r"frozen classifier knows the classes \[0, 1"):
        CalibratedClassifier(model).fit(X, np.where(y == 1, "yes", "no"))


def test_frozen_classifier_with_an_ensemble(data):
    X, y = data
    model = FrozenEstimator(LinearSVC().fit(X, y))
    calibrated = CalibratedClassifier(model, cv=3, ensemble=True).fit(X, y)
    assert len({id(pair.estimator) for pair in calibrated.calibrated_classifiers_}) == 1
    assert len(calibrated.calibrated_classifiers_) == 3


def test_predefined_held_out_part(data):
    X, y = data
    split = PredefinedSplit(np.where(np.arange(len(y)) < 200, -1, 0))
    (pair,) = CalibratedClassifier(cv=split).fit(X, y).calibrated_classifiers_
    np.testing.assert_allclose(
        pair.estimator.coef_, LogisticRegression().fit(X[:200], y[:200]).coef_
    )


def test_held_out_part(data):
    X, y = data
    split = ShuffleSplit(1, test_size=0.4, random_state=0)
    calibrated = CalibratedClassifier(GaussianNB(), cv=split).fit(X, y)
    ((train, test),) = split.split(X)
    model = GaussianNB().fit(X[train], y[train])
    platt = PlattCalibrator(input="log_odds").fit(
        log_odds(model.predict_proba(X[test])[:, 1:]), y[test]
    )
    np.testing.assert_allclose(
        calibrated.predict_proba(X)[:, [1]],
        platt.transform(log_odds(model.predict_proba(X)[:, 1:])),
    )
    masks = [(np.isin(np.arange(300), train), np.isin(np.arange(300), test))]
    by_mask = CalibratedClassifier(GaussianNB(), cv=masks).fit(X, y)
    np.testing.assert_allclose(by_mask.predict_proba(X), calibrated.predict_proba(X))
    with pytest.raises(ValueError, match="exactly once"):
        CalibratedClassifier(GaussianNB(), cv=split, ensemble=False).fit(X, y)


class SeesScores(BaseEstimator):
    """Calibrator that remembers what it was given."""

    def __init__(self, input="auto"):
        self.input = input

    def fit(self, S, y, sample_weight=None):
        self.seen_, self.weights_ = (S, y), sample_weight
        return self

    def transform(self, S):
        return np.full((len(S), 1), 0.0)


@pytest.mark.parametrize("response", ["decision_function", "predict_proba"])
def test_calibrator_sees_a_column_of_log_odds_and_never_auto(data, response):
    X, y = data
    estimator = LogisticRegression()
    model = CalibratedClassifier(
        estimator, SeesScores(), cv=3, response_method=response
    ).fit(X, np.where(y == 1, "sick", "healthy"))
    pair = model.calibrated_classifiers_[0]
    seen, outcome = pair.calibrators[0].seen_
    _, test = next(StratifiedKFold(3).split(X, y))
    assert pair.calibrators[0].input == "log_odds"
    np.testing.assert_array_equal(outcome, y[test])  # "sick" is classes_[1]
    expected = pair.estimator.decision_function(X[test])[:, np.newaxis]
    np.testing.assert_allclose(seen, expected, atol=1e-8)


def test_isotonic_regression_is_a_calibrator(data):
    X, y = data
    isotonic = IsotonicRegression(out_of_bounds="clip")
    ours = CalibratedClassifier(LinearSVC(), isotonic).fit(X, y)
    theirs = CalibratedClassifierCV(LinearSVC(), method="isotonic").fit(X, y)
    np.testing.assert_allclose(
        ours.predict_proba(X), theirs.predict_proba(X), atol=1e-12
    )


@pytest.mark.parametrize(
    ("calibrator", "message"),
    [
        (StandardScaler(), r"StandardScaler.*one probability in \[0, 1\]"),
        (IsotonicRegression(), "IsotonicRegression.*nan"),  # NaN beyond what it saw
    ],
)
def test_calibrators_must_return_probabilities(data, calibrator, message):
    X, y = data
    model = CalibratedClassifier(LinearSVC(), calibrator, cv=3).fit(X, y)
    with pytest.raises(ValueError, match=message):
        model.predict_proba(10 * X)


def test_calibrator_of_probabilities_is_refused(data):
    with pytest.raises(ValueError, match="pass input='log_odds'"):
        CalibratedClassifier(calibrator=PlattCalibrator(input="probability")).fit(*data)


def test_probabilities_are_clipped_by_the_calibrators_eps(data):
    X, y = data
    estimator = KNeighborsClassifier(2)  # probabilities 0, 0.5 and 1
    model = CalibratedClassifier(estimator, PlattCalibrator(eps=0.01), cv=3).fit(X, y)
    train, test = next(StratifiedKFold(3).split(X, y))
    p = estimator.fit(X[train], y[train]).predict_proba(X[test])[:, 1:]
    direct = PlattCalibrator(input="log_odds").fit(log_odds(p, eps=0.01), y[test])
    fitted = model.calibrated_classifiers_[0].calibrators[0]
    assert fitted.slope_ == pytest.approx(direct.slope_, rel=1e-9)


def test_calibrator_output_in_a_frame(data):
    X, y = data
    plain = CalibratedClassifier(cv=3).fit(X, y).predict_proba(X)
    for container in ("pandas", "polars"):
        with sklearn.config_context(transform_output=container):
            framed = CalibratedClassifier(cv=3).fit(X, y).predict_proba(X)
        np.testing.assert_array_equal(framed, plain)


def test_rows_without_any_probability_get_equal_shares(three_classes):
    X, y = three_classes
    model = CalibratedClassifier(GaussianNB(), SeesScores(), cv=3).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), 1 / 3)


@pytest.mark.parametrize("routing", [False, True])
def test_groups_reach_the_splitter(data, routing):
    X, y = data
    groups = np.random.default_rng(0).integers(0, 40, len(y))
    with sklearn.config_context(enable_metadata_routing=routing):
        cv = StratifiedGroupKFold(4)
        model = CalibratedClassifier(GaussianNB(), SeesScores(), cv=cv)
        model.fit(X, y, groups=groups)
    splits = StratifiedGroupKFold(4).split(X, y, groups)
    for pair, (_, test) in zip(model.calibrated_classifiers_, splits, strict=True):
        assert len(pair.calibrators[0].seen_[1]) == len(test)
        np.testing.assert_array_equal(pair.calibrators[0].seen_[1], y[test])
    with pytest.raises(ValueError, match="groups"):
        CalibratedClassifier(GaussianNB(), cv=GroupKFold(3)).fit(X, y)


def test_groups_reach_the_splitter_without_an_ensemble(data):
    X, y = data
    groups = np.random.default_rng(0).integers(0, 40, len(y))
    models = [
        CalibratedClassifier(cv=StratifiedGroupKFold(4), ensemble=False).fit(
            X, y, groups=groups
        ),
        CalibratedClassifier(
            cv=list(StratifiedGroupKFold(4).split(X, y, groups)), ensemble=False
        ).fit(X, y),
    ]
    with sklearn.config_context(enable_metadata_routing=True):
        models.append(clone(models[0]).fit(X, y, groups=groups))
    for model in models[1:]:
        np.testing.assert_allclose(
            model.predict_proba(X), models[0].predict_proba(X), rtol=1e-9
        )


def test_groups_reach_both_splitters_of_a_search(data):
    X, y = data
    groups = np.random.default_rng(0).integers(0, 40, len(y))
    inner = CalibratedClassifier(cv=StratifiedGroupKFold(3))
    grid = {"estimator__C": [0.01, 1.0]}
    with sklearn.config_context(enable_metadata_routing=True):
        inner.set_params(estimator=LogisticRegression())
        search = GridSearchCV(inner, grid, cv=StratifiedGroupKFold(3))
        search.fit(X, y, groups=groups)
    direct = clone(search.best_estimator_).fit(X, y, groups=groups)
    np.testing.assert_allclose(search.predict_proba(X), direct.predict_proba(X))


@pytest.mark.parametrize("ensemble", [True, False])
def test_weights_are_routed_by_their_requested_name(data, ensemble):
    X, y = data
    w = np.random.default_rng(0).exponential(size=len(y))
    expected = CalibratedClassifier(cv=3, ensemble=ensemble).fit(X, y, sample_weight=w)
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = LogisticRegression().set_fit_request(sample_weight="own")
        model = CalibratedClassifier(estimator, cv=3, ensemble=ensemble)
        model.fit(X, y, sample_weight=w, own=w)
        parent = make_pipeline(
            StandardScaler(with_mean=False, with_std=False).set_fit_request(
                sample_weight=False
            ),
            CalibratedClassifier(cv=3, ensemble=ensemble).set_fit_request(
                sample_weight=True
            ),
        ).fit(X, y, sample_weight=w)
    for weighted in (model, parent):
        np.testing.assert_allclose(
            weighted.predict_proba(X), expected.predict_proba(X), rtol=1e-12
        )


@pytest.mark.parametrize("routing", [False, True])
def test_weights_reach_classifier_and_calibrator(data, routing):
    X, y = data
    w = np.random.default_rng(0).exponential(size=len(y))
    with sklearn.config_context(enable_metadata_routing=routing):
        estimator = LogisticRegression()
        if routing:
            estimator.set_fit_request(sample_weight=True)
        model = CalibratedClassifier(estimator, SeesScores(), cv=3)
        model.fit(X, y, sample_weight=w)
        default = CalibratedClassifier(cv=3).fit(X, y, sample_weight=w)
    train, test = next(StratifiedKFold(3).split(X, y))
    pair = model.calibrated_classifiers_[0]
    np.testing.assert_array_equal(pair.calibrators[0].weights_, w[test])
    alone = LogisticRegression().fit(X[train], y[train], sample_weight=w[train])
    np.testing.assert_allclose(pair.estimator.coef_, alone.coef_)
    np.testing.assert_allclose(
        default.calibrated_classifiers_[0].estimator.coef_, alone.coef_
    )


def test_classifier_without_weights_is_said(data):
    X, y = data
    with pytest.warns(UserWarning, match="does not accept sample_weight"):
        CalibratedClassifier(KNeighborsClassifier()).fit(X, y, np.ones(len(y)))


def test_that_warning_points_at_the_call(data):
    X, y = data
    with pytest.warns(UserWarning, match="sample_weight") as caught:
        CalibratedClassifier(KNeighborsClassifier()).fit(X, y, np.ones(len(y)))
    assert caught[0].filename == __file__


def test_other_parameters_reach_the_classifier(data):
    X, y = data

    class Noted(GaussianNB):
        def fit(self, X, y, note=None):
            self.note_ = note
            return super().fit(X, y)

    model = CalibratedClassifier(Noted(), cv=3).fit(X, y, note=np.arange(len(y)))
    train, _ = next(StratifiedKFold(3).split(X, y))
    np.testing.assert_array_equal(
        model.calibrated_classifiers_[0].estimator.note_, train
    )


def test_pipeline_search_clone_pickle_and_workers(data):
    X, y = data
    labels = np.where(y == 1, "yes", "no")
    model = make_pipeline(StandardScaler(), CalibratedClassifier(LinearSVC(), cv=3))
    search = GridSearchCV(
        model,
        {
            "calibratedclassifier__estimator__C": [0.1, 1.0],
            "calibratedclassifier__calibrator": [PlattCalibrator(smooth_targets=False)],
            "calibratedclassifier__calibrator__eps": [1e-12, 1e-6],
        },
        scoring="neg_log_loss",
        cv=3,
    ).fit(X, labels)
    p = search.predict_proba(X)
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(p, again.predict_proba(X))
    assert set(search.predict(X)) == {"yes", "no"}
    parallel = clone(model).set_params(calibratedclassifier__n_jobs=2).fit(X, labels)
    np.testing.assert_array_equal(
        parallel.predict_proba(X), model.fit(X, labels).predict_proba(X)
    )
    assert cross_val_score(model, X, labels, cv=3).mean() > 0.6


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames(data, frame):
    X, y = data
    names = [f"x{j}" for j in range(X.shape[1])]
    table = frame({name: X[:, j] for j, name in enumerate(names)})
    model = CalibratedClassifier(cv=3).fit(table, y)
    assert list(model.feature_names_in_) == names
    np.testing.assert_allclose(
        model.predict_proba(table),
        CalibratedClassifier(cv=3).fit(X, y).predict_proba(X),
    )


def test_precomputed_kernel(data):
    X, y = data
    K = X @ X.T
    ours = CalibratedClassifier(SVC(kernel="precomputed"), cv=3, ensemble=False)
    linear = CalibratedClassifier(SVC(kernel="linear"), cv=3, ensemble=False)
    np.testing.assert_allclose(
        ours.fit(K, y).predict_proba(K),
        linear.fit(X, y).predict_proba(X),
        atol=1e-4,
    )


def test_missing_values_are_the_classifiers_business(data):
    X, y = data
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    trees = HistGradientBoostingClassifier(max_iter=5, random_state=0)
    model = CalibratedClassifier(trees, cv=3)
    assert get_tags(model).input_tags.allow_nan
    np.testing.assert_allclose(model.fit(X, y).predict_proba(X).sum(axis=1), 1.0)
    with pytest.raises(ValueError, match="NaN"):
        CalibratedClassifier().fit(X, y)


def test_sparse_features(data):
    X, y = data
    dense = CalibratedClassifier(cv=3).fit(X, y).predict_proba(X)
    X = csr_array(X)
    sparse = CalibratedClassifier(cv=3).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(sparse, dense, atol=1e-6)


@pytest.mark.parametrize("ensemble", [True, False])
def test_workers_change_nothing(three_classes, ensemble):
    X, y = three_classes
    trees = HistGradientBoostingClassifier(max_iter=3, random_state=0)
    one = CalibratedClassifier(trees, cv=3, ensemble=ensemble, n_jobs=1).fit(X, y)
    two = clone(one).set_params(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_clear_errors(data):
    X, y = data
    rare = np.where(np.arange(len(y)) < 2, 1, 0)
    with pytest.raises(ValueError, match=r"5-fold .* class .*1.* has 2"):
        CalibratedClassifier().fit(X, rare)
    with pytest.raises(ValueError, match="only one class"):
        CalibratedClassifier().fit(X, np.zeros(len(y)))
    order = np.argsort(y)
    with pytest.raises(ValueError, match=r"of split \d knows the classes"):
        CalibratedClassifier(GaussianNB(), cv=KFold(2)).fit(X[order], y[order])
    with pytest.raises(ValueError, match=r"calibration part of split \d holds no row"):
        CalibratedClassifier(GaussianNB(), cv=KFold(4)).fit(X[order], y[order])
    X4, y4 = make_classification(200, n_informative=5, n_classes=4, random_state=0)
    one_by_one = CalibratedClassifier(SVC(decision_function_shape="ovo"), cv=3)
    with pytest.raises(ValueError, match="response_method='predict_proba'"):
        one_by_one.fit(X4, y4)
    with pytest.raises(ValueError, match="sample_weight must not be negative"):
        CalibratedClassifier().fit(X, y, sample_weight=-np.ones(len(y)))


def test_fits_silently(data):
    X, y = data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CalibratedClassifier().fit(X, y).predict(X)
