"""Scorers inside scikit-learn's own cross-validation and searches."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalfair.metrics import (
    calibration_loss,
    corp_decomposition,
    expected_calibration_error,
    get_scorer,
    get_scorer_names,
    metric_table,
    squared_calibration_error,
)

CV = StratifiedKFold(3)
ECE = "neg_expected_calibration_error"


@pytest.fixture(scope="module")
def data():
    """Features, text labels whose positive class sorts first, and whole weights."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 3))
    positive = rng.random(240) < 1 / (1 + np.exp(-2 * X[:, 0] - 1))
    y = np.where(positive, "malignant", "normal")
    return X, y, rng.integers(1, 4, 240).astype(float)


class Fixed(ClassifierMixin, BaseEstimator):
    """Classifier that predicts the first feature, and counts how often it is asked."""

    asked = 0

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        Fixed.asked += 1
        p = 1 / (1 + np.exp(-2 * X[:, 0]))
        return np.column_stack([p, 1 - p])

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def by_hand(X, y, function, column, **parameters):
    """Value of a metric in each fold, from a column of `predict_proba`."""
    values = []
    for train, test in CV.split(X, y):
        model = LogisticRegression().fit(X[train], y[train])
        p = model.predict_proba(X[test])[:, column]
        label = model.classes_[column]
        values.append(function(y[test], p, pos_label=label, **parameters))
    return np.array(values)


class TestNames:
    def test_every_metric_has_a_scorer_or_is_scikit_learns(self):
        table = metric_table()
        names = [n if b == "higher" else f"neg_{n}" for n, b in table["better"].items()]
        assert set(names) - set(get_scorer_names()) == {"roc_auc", "average_precision"}
        for name in ("roc_auc", "average_precision"):
            assert callable(sklearn.metrics.get_scorer(name))

    @pytest.mark.parametrize(
        "name",
        [
            "neg_expected_calibration_error",
            "neg_maximum_calibration_error",
            "neg_adaptive_calibration_error",
            "neg_squared_calibration_error",
            "neg_calibration_loss_log_loss",
            "neg_calibration_loss_brier",
            "normalized_average_precision",
        ],
    )
    def test_promised_names(self, name):
        assert name in get_scorer_names()

    @pytest.mark.parametrize("name", get_scorer_names())
    def test_every_scorer_gives_a_number_of_the_right_sign(self, name, data):
        X, y, w = data
        model = LogisticRegression().fit(X, y)
        value = get_scorer(name)(model, X, y)
        weighted = get_scorer(name)(model, X, y, sample_weight=w)
        assert isinstance(value, float)
        assert np.isfinite([value, weighted]).all()
        assert value != weighted
        repeated = np.repeat(np.arange(len(y)), w.astype(int))
        assert_allclose(weighted, get_scorer(name)(model, X[repeated], y[repeated]))
        if name.startswith("neg_") and "squared" not in name and "loss_" not in name:
            assert value <= 0 or name == "neg_kernel_calibration_error"

    @pytest.mark.parametrize(
        ("name", "hint"),
        [
            ("expected_calibration_error", "'neg_expected_calibration_error'"),
            ("roc_auc", "scikit-learn has one"),
            ("ece", "choose one of"),
            (None, "choose one of"),
        ],
    )
    def test_unknown_name_is_explained(self, name, hint):
        with pytest.raises(ValueError, match="is not a scorer of skcalfair") as error:
            get_scorer(name)
        assert hint in str(error.value)


class TestParameters:
    def test_parameters_reach_the_metric(self, data):
        X, y, _ = data
        scorer = get_scorer(ECE, n_bins=4, strategy="quantile")
        expected = by_hand(
            X, y, expected_calibration_error, 1, n_bins=4, strategy="quantile"
        )
        scores = cross_val_score(LogisticRegression(), X, y, scoring=scorer, cv=CV)
        assert_allclose(-scores, expected)

    def test_both_calibration_losses(self, data):
        X, y, _ = data
        for score in ("log_loss", "brier"):
            scores = cross_val_score(
                LogisticRegression(),
                X,
                y,
                scoring=get_scorer(f"neg_calibration_loss_{score}"),
                cv=CV,
            )
            assert_allclose(-scores, by_hand(X, y, calibration_loss, 1, score=score))

    def test_corp(self, data):
        X, y, _ = data
        model = LogisticRegression().fit(X, y)
        p = model.predict_proba(X)[:, 1]
        expected = corp_decomposition(y, p, pos_label="normal").miscalibration
        assert_allclose(get_scorer("neg_corp_miscalibration")(model, X, y), -expected)

    def test_held_out_recalibration(self, data):
        X, y, _ = data
        model = LogisticRegression().fit(X[:80], y[:80])
        q = model.predict_proba(X[80:160])
        held_out = {
            "recalibrate": "held_out",
            "y_val": y[80:160],
            "p_val": q[:, 1],
        }
        scorer = get_scorer("neg_calibration_loss_brier", **held_out)
        p = model.predict_proba(X[160:])[:, 1]
        expected = calibration_loss(
            y[160:], p, score="brier", pos_label="normal", **held_out
        )
        assert_allclose(scorer(model, X[160:], y[160:]), -expected)

    @pytest.mark.parametrize(
        ("name", "parameters", "message"),
        [
            (ECE, {"bins": 5}, "no parameter 'bins'; its parameters are .*n_bins"),
            (ECE, {"n_bins": 0}, "n_bins"),
            (ECE, {"strategy": "equal"}, "strategy"),
            (ECE, {"sample_weight": [1, 2]}, "no parameter 'sample_weight'"),
            ("neg_calibration_loss_brier", {"score": "log_loss"}, "'score'"),
            ("normalized_average_precision", {"n_bins": 5}, "it has none"),
        ],
    )
    def test_wrong_parameters_fail_at_once(self, name, parameters, message):
        # In a search they would become NaN for every candidate.
        with pytest.raises(ValueError, match=message):
            get_scorer(name, **parameters)


class TestPositiveClass:
    @pytest.mark.parametrize(
        ("pos_label", "column"), [(None, 1), ("normal", 1), ("malignant", 0)]
    )
    def test_text_labels(self, data, pos_label, column):
        X, y, _ = data
        scorer = get_scorer(ECE, pos_label=pos_label)
        scores = cross_val_score(LogisticRegression(), X, y, scoring=scorer, cv=CV)
        assert_allclose(-scores, by_hand(X, y, expected_calibration_error, column))

    def test_make_scorer_hands_over_the_wrong_column(self, data):
        # The reason why these scorers exist: a metric with its own idea of the
        # positive class gets the column of the last one.
        X, y, _ = data
        model = LogisticRegression().fit(X, y)

        def of_malignant(y_true, y_prob):
            return expected_calibration_error(y_true == "malignant", y_prob)

        plain = make_scorer(
            of_malignant, greater_is_better=False, response_method="predict_proba"
        )
        expected = of_malignant(y, model.predict_proba(X)[:, 0])
        assert expected < 0.1
        assert -plain(model, X, y) > 0.3
        own = get_scorer(ECE, pos_label="malignant")
        assert_allclose(-own(model, X, y), expected)

    def test_unknown_pos_label(self, data):
        X, y, _ = data
        scorer = get_scorer(ECE, pos_label="benign")
        with pytest.raises(ValueError, match="'benign' is not among the classes"):
            scorer(LogisticRegression().fit(X, y), X, y)

    def test_bool_and_signed_labels(self, data):
        X, y, _ = data
        expected = get_scorer(ECE)(LogisticRegression().fit(X, y), X, y)
        for labels in (y == "normal", np.where(y == "normal", 1, -1)):
            model = LogisticRegression().fit(X, labels)
            assert_allclose(get_scorer(ECE)(model, X, labels), expected)

    def test_a_fold_of_one_class(self, data):
        X, y, _ = data
        model = LogisticRegression().fit(X, y)
        rows = y == "normal"
        p = model.predict_proba(X[rows])[:, 1]
        expected = expected_calibration_error(y[rows], p, pos_label="normal")
        assert_allclose(get_scorer(ECE)(model, X[rows], y[rows]), -expected)

    def test_estimators_it_cannot_score(self, data):
        X, y, _ = data
        with pytest.raises(ValueError, match="LinearRegression has no classes_"):
            get_scorer(ECE)(LinearRegression().fit(X, X[:, 0]), X, y)
        three = np.arange(240) % 3
        model = LogisticRegression().fit(X, three)
        with pytest.raises(ValueError, match=r"has classes_ \[0, 1, 2\]"):
            get_scorer(ECE)(model, X, three)


class TestTogether:
    def test_predict_proba_is_called_once(self, data):
        X, y, _ = data
        scoring = {name: get_scorer(name) for name in get_scorer_names()}
        Fixed.asked = 0
        cross_validate(Fixed(), X, y, scoring=scoring, cv=CV)
        assert Fixed.asked == 3

    def test_one_scorer_or_many_give_the_same(self, data):
        X, y, _ = data
        names = [ECE, "normalized_average_precision"]
        many = cross_validate(
            LogisticRegression(),
            X,
            y,
            scoring={n: get_scorer(n) for n in names} | {"auc": "roc_auc"},
            cv=CV,
        )
        for name in names:
            scorer = get_scorer(name)
            one = cross_validate(LogisticRegression(), X, y, scoring=scorer, cv=CV)
            assert_allclose(many[f"test_{name}"], one["test_score"])

    def test_scorers_of_both_classes_keep_their_columns(self, data):
        # scikit-learn keeps one column per method, that of the first scorer's label.
        X, y, _ = data
        theirs = make_scorer(
            squared_calibration_error,
            greater_is_better=False,
            response_method="predict_proba",
            pos_label="malignant",
        )
        scoring = {
            "theirs": theirs,
            "first": get_scorer(ECE, pos_label="malignant"),
            "second": get_scorer(ECE),
            "log_loss": "neg_log_loss",
        }
        plain = {k: s for k, s in scoring.items() if k == "log_loss"}
        together = cross_validate(LogisticRegression(), X, y, scoring=scoring, cv=CV)
        assert_allclose(
            -together["test_first"], by_hand(X, y, expected_calibration_error, 0)
        )
        assert_allclose(
            -together["test_second"], by_hand(X, y, expected_calibration_error, 1)
        )
        scoring.pop("theirs")  # which spoils scikit-learn's own log loss
        together = cross_validate(LogisticRegression(), X, y, scoring=scoring, cv=CV)
        alone = cross_validate(LogisticRegression(), X, y, scoring=plain, cv=CV)
        assert_allclose(together["test_log_loss"], alone["test_log_loss"])


class TestSearch:
    @pytest.mark.parametrize("routing", [False, True])
    @pytest.mark.parametrize("search", [GridSearchCV, RandomizedSearchCV])
    def test_best_candidate(self, data, search, routing):
        X, y, _ = data
        grid = {"logisticregression__C": [1e-4, 1e-2, 1.0]}
        options = {"n_iter": 3} if search is RandomizedSearchCV else {}
        model = make_pipeline(StandardScaler(), LogisticRegression())
        with sklearn.config_context(enable_metadata_routing=routing):
            found = search(
                model, grid, scoring=get_scorer("neg_log_loss"), cv=CV, **options
            ).fit(X, y)
            reference = search(
                model, grid, scoring="neg_log_loss", cv=CV, **options
            ).fit(X, y)
        assert np.isfinite(found.cv_results_["mean_test_score"]).all()
        assert_allclose(
            sorted(found.cv_results_["mean_test_score"]),
            sorted(reference.cv_results_["mean_test_score"]),
        )
        assert found.best_params_ == reference.best_params_
        assert np.isfinite(found.score(X, y))

    def test_several_scorers_and_refit(self, data):
        X, y, _ = data
        found = GridSearchCV(
            LogisticRegression(),
            {"C": [1e-3, 1.0]},
            scoring={"ece": get_scorer(ECE), "auc": "roc_auc"},
            refit="ece",
            cv=CV,
        ).fit(X, y)
        scores = found.cv_results_["mean_test_ece"]
        assert found.best_index_ == scores.argmax()

    def test_workers_do_not_matter(self, data):
        X, y, _ = data
        results = [
            cross_val_score(
                LogisticRegression(), X, y, scoring=get_scorer(ECE), cv=CV, n_jobs=n
            )
            for n in (None, 2)
        ]
        assert_allclose(*results, rtol=0, atol=0)

    def test_wrapped_classifiers(self, data):
        X, y, _ = data
        for model in (
            CalibratedClassifierCV(LogisticRegression(), cv=2),
            GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}, cv=2),
            DummyClassifier(),
        ):
            scores = cross_val_score(model, X, y, scoring=get_scorer(ECE), cv=CV)
            assert np.isfinite(scores).all()

    def test_frames(self, data):
        X, y, _ = data
        frame = pd.DataFrame(X, columns=list("abc"))
        kept = cross_val_score(
            LogisticRegression(), frame, pd.Series(y), scoring=get_scorer(ECE), cv=CV
        )
        assert_allclose(-kept, by_hand(X, y, expected_calibration_error, 1))


class TestWeights:
    def test_direct(self, data):
        X, y, w = data
        model = LogisticRegression().fit(X, y)
        expected = expected_calibration_error(
            y, model.predict_proba(X)[:, 1], pos_label="normal", sample_weight=w
        )
        assert_allclose(get_scorer(ECE)(model, X, y, sample_weight=w), -expected)

    def test_survey_weights_by_the_metrics_own_parameter(self, data):
        X, y, w = data
        model = LogisticRegression().fit(X, y)
        name = "neg_squared_calibration_error"
        scorer = get_scorer(name, weights="probability")
        assert np.isfinite(scorer(model, X, y, sample_weight=w / 2))
        with pytest.raises(ValueError, match="weights='probability'"):
            get_scorer(name)(model, X, y, sample_weight=w / 2)

    @pytest.mark.parametrize("several", [False, True])
    def test_routed(self, data, several):
        X, y, w = data
        with sklearn.config_context(enable_metadata_routing=True):
            scorer = get_scorer(ECE).set_score_request(sample_weight=True)
            model = LogisticRegression().set_fit_request(sample_weight=False)
            scores = cross_validate(
                model,
                X,
                y,
                scoring={"s": scorer} if several else scorer,
                cv=CV,
                params={"sample_weight": w},
            )["test_s" if several else "test_score"]
        for score, (train, test) in zip(scores, CV.split(X, y), strict=True):
            fitted = LogisticRegression().fit(X[train], y[train])
            p = fitted.predict_proba(X[test])[:, 1]
            expected = expected_calibration_error(
                y[test], p, pos_label="normal", sample_weight=w[test]
            )
            assert_allclose(score, -expected)

    @pytest.mark.skipif(
        not hasattr(get_scorer(ECE), "_get_class_level_metadata_request_values"),
        reason="older scikit-learn leaves weights out without a word",
    )
    def test_unrequested_weights_are_not_guessed(self, data):
        X, y, w = data
        with sklearn.config_context(enable_metadata_routing=True):
            model = LogisticRegression().set_fit_request(sample_weight=True)
            with pytest.raises(
                sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"
            ):
                cross_validate(
                    model,
                    X,
                    y,
                    scoring=get_scorer(ECE),
                    cv=CV,
                    params={"sample_weight": w},
                )


class TestObject:
    @pytest.mark.parametrize(
        ("scorer", "text"),
        [
            (get_scorer(ECE), f"get_scorer('{ECE}')"),
            (get_scorer(ECE, n_bins=5), f"get_scorer('{ECE}', n_bins=5)"),
            (
                get_scorer("neg_calibration_loss_brier", pos_label="m"),
                "get_scorer('neg_calibration_loss_brier', pos_label='m')",
            ),
        ],
    )
    def test_repr_is_the_call(self, scorer, text):
        assert repr(scorer) == text
        assert repr(eval(text)) == text

    def test_pickle_and_clone(self, data):
        X, y, _ = data
        model = LogisticRegression().fit(X, y)
        scorer = get_scorer(ECE, n_bins=7, pos_label="malignant")
        value = scorer(model, X, y)
        for copy in (pickle.loads(pickle.dumps(scorer)), clone(scorer, safe=False)):
            assert repr(copy) == repr(scorer)
            assert copy(model, X, y) == value
        search = GridSearchCV(LogisticRegression(), {"C": [1.0]}, scoring=scorer)
        assert repr(clone(search).scoring) == repr(scorer)
