"""Scorers that compare groups, inside scikit-learn's own searches."""

import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalfair.exceptions import GroupScoringError, NotEstimableError
from skcalfair.metrics import (
    balanced_accuracy_at_threshold,
    calibration_loss,
    expected_calibration_error,
    get_scorer,
    make_group_scorer,
    metric_table,
    squared_calibration_error,
)

CV = StratifiedKFold(2)
ECE = "expected_calibration_error"


class Stated(ClassifierMixin, BaseEstimator):
    """Classifier whose probability is a column of X, on the scale that is asked for."""

    def __init__(self, slope=1.0, column="score", shift=0.0):
        self.slope = slope
        self.column = column
        self.shift = shift

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(np.asarray(y))
        return self

    def predict_proba(self, X):
        score = np.asarray(X[self.column], dtype=float)
        # Only the rows of group "b" are shifted.
        score = self.slope * score + self.shift * (np.asarray(X["group"]) == "b")
        p = 1 / (1 + np.exp(-score))
        return np.column_stack([1 - p, p])


class Broken(Stated):
    """Classifier that predicts NaN when its slope is negative."""

    def predict_proba(self, X):
        return super().predict_proba(X) * (np.nan if self.slope < 0 else 1.0)


def frame(sizes, seed=0):
    """Log-odds that are right, and groups of some sizes."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(list(sizes), list(sizes.values()))
    score = rng.normal(0, 1.5, len(groups))
    X = pd.DataFrame({"score": score, "group": groups})
    X["sex"] = rng.choice(["f", "m"], len(X))
    y = (rng.random(len(X)) < 1 / (1 + np.exp(-score))).astype(int)
    order = rng.permutation(len(X))
    return X.iloc[order].reset_index(drop=True), y[order]


@pytest.fixture(scope="module")
def data():
    return frame({"a": 300, "b": 60, "c": 120})


def naive(X, y, metric=expected_calibration_error, by="group", **options):
    """A metric in each group on all its rows."""
    p = Stated().fit(X, y).predict_proba(X)[:, 1]
    keys = X[by].apply(tuple, axis=1) if isinstance(by, list) else X[by]
    return {
        k: metric(y[keys == k], p[keys == k], **options) for k in sorted(keys.unique())
    }


def scorer_of(metric=ECE, **options):
    return make_group_scorer(metric, **{"sensitive_features": "group", **options})


class TestAggregates:
    def test_of_an_error(self, data):
        X, y = data
        model = Stated().fit(X, y)
        values = list(naive(X, y).values())
        for aggregate, expected in {
            "difference": min(values) - max(values),
            "ratio": min(values) / max(values),
            "min": -min(values),
            "max": -max(values),
        }.items():
            scorer = scorer_of(aggregate=aggregate, size_matched=False)
            assert_allclose(scorer(model, X, y), expected)

    def test_of_a_score(self, data):
        X, y = data
        model = Stated().fit(X, y)
        values = list(naive(X, y, balanced_accuracy_at_threshold).values())
        for aggregate, expected in {
            "difference": min(values) - max(values),
            "ratio": min(values) / max(values),
            "min": min(values),
            "max": max(values),
        }.items():
            scorer = scorer_of(
                "balanced_accuracy_at_threshold",
                aggregate=aggregate,
                size_matched=False,
            )
            assert_allclose(scorer(model, X, y), expected)

    def test_a_ratio_of_values_of_both_signs_has_no_meaning(self, data):
        X, y = data
        values = naive(X, y, squared_calibration_error).values()
        assert min(values) < 0
        scorer = scorer_of(
            "squared_calibration_error", aggregate="ratio", size_matched=False
        )
        with pytest.raises(NotEstimableError, match="aggregate='difference'"):
            scorer(Stated().fit(X, y), X, y)

    @pytest.mark.parametrize("name", metric_table().index)
    def test_every_metric(self, data, name):
        X, y = data
        value = scorer_of(name, n_resamples=20)(Stated().fit(X, y), X, y)
        assert value <= 0
        assert np.isfinite(value)


class TestSizeMatching:
    @pytest.mark.parametrize("size_matched", [True, False])
    def test_against_a_loop(self, data, size_matched):
        X, y = data
        model = Stated().fit(X, y)
        p = model.predict_proba(X)[:, 1]
        rng = np.random.default_rng(1)
        means, errors = [], []
        for group in "abc":
            rows = np.flatnonzero(X["group"] == group)
            size = 60 if size_matched else len(rows)
            draws = [
                expected_calibration_error(y[part], p[part])
                for part in (rng.choice(rows, size, replace=False) for _ in range(400))
            ]
            means.append(np.mean(draws))
            errors.append(np.std(draws) / 20)
        scorer = scorer_of(aggregate="max", size_matched=size_matched, n_resamples=400)
        worst = int(np.argmax(means))
        assert_allclose(
            -scorer(model, X, y), means[worst], atol=5 * errors[worst] + 1e-12
        )

    def test_the_gap_of_calibrated_groups_goes_away(self):
        X, y = frame({"a": 3000, "b": 60}, seed=1)
        model = Stated().fit(X, y)
        assert scorer_of(size_matched=False)(model, X, y) < -0.06
        assert scorer_of()(model, X, y) > -0.05

    def test_deterministic(self, data):
        X, y = data
        model = Stated().fit(X, y)
        scorer = scorer_of()
        assert scorer(model, X, y) == scorer(model, X, y) == scorer_of()(model, X, y)
        assert scorer(model, X, y) != scorer_of(random_state=1)(model, X, y)

    def test_a_subsample_may_miss_a_class(self):
        # Of 200 rows a few are positive: most subsamples of 10 rows hold none.
        X, y = frame({"a": 200, "b": 10})
        model = Stated().fit(X, y)
        of_a = np.flatnonzero(X["group"] == "a")
        y[of_a] = 0
        y[of_a[:4]] = 1
        scorer = scorer_of("roc_auc", aggregate="min")
        assert np.isfinite(scorer(model, X, y))
        y[of_a[1:4]] = 0
        with pytest.raises(GroupScoringError, match="one class only in all 1 subsamp"):
            scorer_of("roc_auc", n_resamples=1, random_state=2)(model, X, y)


class TestGroups:
    @pytest.mark.parametrize("library", [pd, pl])
    def test_column_of_a_frame(self, data, library):
        X, y = data
        given = X if library is pd else pl.from_pandas(X)
        scorer = scorer_of(aggregate="max", size_matched=False)
        scores = cross_val_score(Stated(), given, y, scoring=scorer, cv=CV)
        for score, (_, test) in zip(scores, CV.split(X, y), strict=True):
            assert_allclose(-score, max(naive(X.iloc[test], y[test]).values()))

    @pytest.mark.parametrize("columns", [["group", "sex"], ("group", "sex")])
    def test_columns_intersect(self, data, columns):
        X, y = data
        scorer = scorer_of(
            sensitive_features=columns, aggregate="max", size_matched=False
        )
        expected = naive(X, y, by=["group", "sex"])
        assert len(expected) == 6
        assert_allclose(-scorer(Stated().fit(X, y), X, y), max(expected.values()))

    def test_labels(self, data):
        X, y = data
        values = naive(X, y)
        model = Stated().fit(X, y)
        options = {"aggregate": "max", "size_matched": False}
        scorer = scorer_of(labels=["c", "a"], **options)
        assert_allclose(-scorer(model, X, y), max(values["a"], values["c"]))
        intersection = scorer_of(
            sensitive_features=["group", "sex"],
            labels=[("a", "f"), ["b", "m"]],
            **options,
        )
        both = naive(X, y, by=["group", "sex"])
        expected = max(both["a", "f"], both["b", "m"])
        assert_allclose(-intersection(model, X, y), expected)
        with pytest.raises(GroupScoringError, match=r"\{'d': 'absent'\}"):
            scorer_of(labels=["a", "b", "d"])(model, X, y)

    def test_small_groups_are_left_out_unless_expected(self, data):
        X, y = data
        X = X.assign(group=X["group"].where(np.arange(len(X)) > 4, "rare"))
        model = Stated().fit(X, y)
        kept = naive(X, y)
        kept.pop("rare")
        scorer = scorer_of(aggregate="max", size_matched=False)
        assert_allclose(-scorer(model, X, y), max(kept.values()))
        with pytest.raises(GroupScoringError, match=r"rare.*5 rows, fewer than min_gr"):
            scorer_of(labels=["a", "rare"])(model, X, y)
        scorer_of(min_group_size=5)(model, X, y)

    def test_missing_groups(self, data):
        X, y = data
        X = X.assign(group=X["group"].where(X["group"] != "c", None))
        model = Stated().fit(X, y)
        with pytest.raises(GroupScoringError, match="missing='own_group'"):
            scorer_of()(model, X, y)
        options = {"aggregate": "max", "size_matched": False}
        dropped = scorer_of(missing="drop", **options)(model, X, y)
        own = scorer_of(missing="own_group", **options)(model, X, y)
        values = naive(*data)
        assert_allclose(-dropped, max(values["a"], values["b"]))
        assert_allclose(-own, max(values.values()))

    def test_a_column_that_is_not_there(self, data):
        X, y = data
        scorer = scorer_of(sensitive_features=["sex", "skin"])
        with pytest.raises(GroupScoringError, match=r"\['skin'\] not found.*'score'"):
            scorer(Stated().fit(X, y), X, y)
        model = LogisticRegression().fit(X[["score"]].to_numpy(), y)
        with pytest.raises(GroupScoringError, match="ndarray has no named columns"):
            scorer(model, X[["score"]].to_numpy(), y)


class TestRouting:
    @pytest.fixture(autouse=True)
    def routing(self):
        with sklearn.config_context(enable_metadata_routing=True):
            yield

    def expected(self, X, y):
        return [
            max(naive(X.iloc[test], y[test]).values()) for _, test in CV.split(X, y)
        ]

    @pytest.mark.parametrize("several", [False, True])
    def test_sensitive_features_are_requested(self, data, several):
        X, y = data
        scorer = make_group_scorer(ECE, aggregate="max", size_matched=False)
        scores = cross_validate(
            Stated(),
            X,
            y,
            scoring={"worst": scorer, "all": get_scorer(f"neg_{ECE}")}
            if several
            else scorer,
            cv=CV,
            params={"sensitive_features": X["group"]},
        )["test_worst" if several else "test_score"]
        assert_allclose(-scores, self.expected(X, y))

    def test_another_name(self, data):
        X, y = data
        scorer = make_group_scorer(ECE, aggregate="max", size_matched=False)
        scorer.set_score_request(sensitive_features="skin")
        scores = cross_val_score(
            Stated(), X, y, scoring=scorer, cv=CV, params={"skin": X["group"]}
        )
        assert_allclose(-scores, self.expected(X, y))

    @pytest.mark.parametrize("search", [GridSearchCV, RandomizedSearchCV])
    def test_search_of_a_pipeline(self, data, search):
        X, y = data
        found = search(
            make_pipeline(StandardScaler(), LogisticRegression()),
            {"logisticregression__C": [1e-3, 1.0]},
            scoring=make_group_scorer(ECE, n_resamples=20),
            cv=CV,
            **({"n_iter": 2} if search is RandomizedSearchCV else {}),
        ).fit(X[["score"]], y, sensitive_features=X["group"])
        assert np.isfinite(found.cv_results_["mean_test_score"]).all()

    def test_weights(self, data):
        X, y = data
        w = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
        scorer = make_group_scorer(ECE, aggregate="max", size_matched=False)
        scorer.set_score_request(sample_weight=True)
        scores = cross_val_score(
            Stated().set_fit_request(sample_weight=False),
            X,
            y,
            scoring=scorer,
            cv=CV,
            params={"sensitive_features": X["group"], "sample_weight": w},
        )
        for score, (_, test) in zip(scores, CV.split(X, y), strict=True):
            repeated = np.repeat(test, w[test].astype(int))
            expected = max(naive(X.iloc[repeated], y[repeated]).values())
            assert_allclose(-score, expected)

    def test_unrequested_weights_are_not_guessed(self, data):
        X, y = data
        with pytest.raises(
            sklearn.exceptions.UnsetMetadataPassedError, match="make_group_scorer"
        ):
            cross_val_score(
                Stated().set_fit_request(sample_weight=True),
                X,
                y,
                scoring=make_group_scorer(ECE),
                cv=CV,
                params={"sensitive_features": X["group"], "sample_weight": y + 1.0},
            )

    def test_unknown_metadata(self):
        with pytest.raises(TypeError, match=r"takes no metadata \['groups'\]"):
            make_group_scorer(ECE).set_score_request(groups=True)

    def test_forgotten_features_stop_the_search(self, data):
        X, y = data
        search = GridSearchCV(
            Stated(), {"slope": [1, 2]}, scoring=make_group_scorer(ECE), cv=CV
        )
        with pytest.raises(GroupScoringError, match="no sensitive_features arrived"):
            search.fit(X, y)


class TestWeights:
    def test_direct_call(self, data):
        X, y = data
        rng = np.random.default_rng(0)
        w = rng.integers(0, 4, len(X)).astype(float)
        rows = np.repeat(np.arange(len(X)), w.astype(int))
        model = Stated().fit(X, y)
        scorer = make_group_scorer(ECE, aggregate="max", size_matched=False)
        weighted = scorer(model, X, y, sample_weight=w, sensitive_features=X["group"])
        repeated = scorer(
            model, X.iloc[rows], y[rows], sensitive_features=X["group"].iloc[rows]
        )
        assert_allclose(weighted, repeated)

    def test_what_weights_mean_is_one_decision_for_all_groups(self, data):
        # Group a happens to have whole weights; those of b and c show that they are
        # no numbers of rows.
        X, y = data
        w = np.where(X["group"] == "a", 2.0, 1.5)
        model = Stated().fit(X, y)
        p = model.predict_proba(X)[:, 1]
        scorer = scorer_of(
            "squared_calibration_error", size_matched=False, labels=["a", "b"]
        )
        values = [
            squared_calibration_error(
                y[rows], p[rows], sample_weight=w[rows], weights="probability"
            )
            for rows in (X["group"] == "a", X["group"] == "b")
        ]
        assert_allclose(
            scorer(model, X, y, sample_weight=w), -abs(values[0] - values[1])
        )

    def test_search_without_routing(self, data):
        X, y = data
        w = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
        options = {"cv": CV, "refit": False}
        for scoring in (scorer_of(), {"worst": scorer_of()}):
            search = GridSearchCV(Stated(), {"slope": [1]}, scoring=scoring, **options)
            search.fit(X, y, sample_weight=w)
            name = "worst" if isinstance(scoring, dict) else "score"
            found = search.cv_results_[f"split0_test_{name}"][0]
            _, test = next(CV.split(X, y))
            model = Stated().fit(X, y)
            plain = scorer_of()(model, X.iloc[test], y[test])
            weighted = scorer_of()(model, X.iloc[test], y[test], sample_weight=w[test])
            assert plain != weighted
            assert found in (plain, weighted)  # newer versions hand weights over


class TestImpossible:
    """Data on which groups cannot be compared stop a search."""

    def search(self, scorer, X, y, **options):
        return GridSearchCV(
            Stated(), {"slope": [0.5, 1, 2]}, scoring=scorer, cv=CV, **options
        ).fit(X, y)

    def test_one_group(self, data):
        X, y = data
        X, y = X[X["group"] == "a"], y[X["group"] == "a"]
        with pytest.raises(GroupScoringError, match=r"fewer than two groups.*'a'"):
            self.search(scorer_of(), X, y)
        with pytest.raises(GroupScoringError, match="make_group_scorer"):
            self.search({"s": scorer_of()}, X, y, refit="s")

    def test_with_workers(self, data):
        X, y = data
        scorer = scorer_of(labels=["a", "z"])
        with (
            joblib.parallel_config(backend="threading", n_jobs=2),
            pytest.raises(GroupScoringError, match="'z': 'absent'") as caught,
        ):
            self.search(scorer, X, y)
        # From another process it would come pickled.
        copy = pickle.loads(pickle.dumps(caught.value))
        assert type(copy) is GroupScoringError
        assert str(copy) == str(caught.value)

    @pytest.mark.parametrize("error_score", [0, "raise"])
    def test_whatever_the_error_score(self, data, error_score):
        X, y = data
        with pytest.raises(GroupScoringError):
            self.search(scorer_of(labels=["a", "z"]), X, y, error_score=error_score)

    def test_a_group_of_one_class(self, data):
        X, y = data
        y = np.where(X["group"] == "b", 0, y)
        scorer = scorer_of("roc_auc", labels=["a", "b"])
        with pytest.raises(GroupScoringError, match=r"b.*only one class is present"):
            self.search(scorer, X, y)
        self.search(scorer_of(labels=["a", "b"]), X, y)  # ECE needs no two classes

    def test_single_rows_have_no_pairs(self):
        X, y = frame({"a": 40, "b": 1})
        scorer = scorer_of("kernel_calibration_error", min_group_size=1)
        with pytest.raises(GroupScoringError, match="fewer than two rows"):
            scorer(Stated().fit(X, y), X, y)

    def test_wrong_arguments(self, data):
        X, y = data
        with pytest.raises(GroupScoringError, match="pos_label='yes' is not among"):
            self.search(scorer_of(pos_label="yes"), X, y)
        model = Stated().fit(X, y)
        scorer = make_group_scorer(ECE)
        with pytest.raises(GroupScoringError, match=r"one value per row.*5 for 480"):
            scorer(model, X, y, sensitive_features=X["group"][:5])
        with pytest.raises(GroupScoringError, match="sample_weight must not be neg"):
            scorer(model, X, y, sensitive_features=X["group"], sample_weight=-y)

    def test_the_error_is_no_exception_and_pickles(self):
        error = pickle.loads(pickle.dumps(GroupScoringError("why")))
        assert str(error) == "why"
        assert not isinstance(error, Exception)


class TestOneCandidate:
    """What only the scores of a candidate make impossible leaves the others alone."""

    def test_constant_scores_rank_last(self, data):
        X, y = data
        with pytest.warns(UserWarning, match="non-finite|Scoring failed"):
            found = GridSearchCV(
                Stated(),
                {"slope": [0.0, 0.5, 1.0]},
                scoring=scorer_of("calibration_loss_log_loss", n_resamples=20),
                cv=CV,
                refit=False,
            ).fit(X, y)
        scores = found.cv_results_["mean_test_score"]
        assert np.isnan(scores[0])
        assert np.isfinite(scores[1:]).all()
        assert found.cv_results_["rank_test_score"][0] == 3
        assert found.best_index_ == np.nanargmax(scores)

    def test_the_reason_is_given(self, data):
        X, y = data
        scorer = scorer_of("calibration_loss_brier")
        with pytest.raises(NotEstimableError, match="group 'a': the scores are const"):
            scorer(Stated(slope=0.0).fit(X, y), X, y)

    def test_nan_predictions_are_the_candidates_own_fault(self, data):
        X, y = data
        with pytest.warns(UserWarning, match="non-finite|Scoring failed"):
            found = GridSearchCV(
                Broken(), {"slope": [-1.0, 1.0]}, scoring=scorer_of(), cv=CV
            ).fit(X, y)
        assert found.best_params_ == {"slope": 1.0}

    def test_a_failed_fit(self, data):
        X, y = data
        with pytest.warns((FitFailedWarning, UserWarning)):
            found = GridSearchCV(
                LogisticRegression(),
                {"C": [-1.0, 1.0]},
                scoring=make_group_scorer(ECE, sensitive_features="half"),
                cv=CV,
            ).fit(pd.DataFrame({"s": X["score"], "half": np.arange(len(X)) % 2}), y)
        assert found.best_params_ == {"C": 1.0}


class TestSelection:
    def test_a_search_selects_on_the_worst_group(self):
        # Scaling all log-odds by 1 is best for the many rows of a, and leaves b far
        # off. Moving b's by its own shift costs nothing in a.
        X, y = frame({"a": 1800, "b": 200}, seed=3)
        rng = np.random.default_rng(0)
        true = np.where(X["group"] == "b", X["score"] - 1.5, X["score"])
        y = (rng.random(len(X)) < 1 / (1 + np.exp(-true))).astype(int)
        # The second candidate repairs b, but is a little overconfident everywhere.
        grid = [{"slope": [1.0], "shift": [0.0]}, {"slope": [1.5], "shift": [-1.5]}]
        chosen = {}
        for name, scoring in {
            "overall": get_scorer("neg_squared_calibration_error"),
            "worst": scorer_of("squared_calibration_error", aggregate="max"),
            "gap": scorer_of("squared_calibration_error"),
        }.items():
            found = GridSearchCV(Stated(), grid, scoring=scoring, cv=CV).fit(X, y)
            assert np.isfinite(found.cv_results_["mean_test_score"]).all()
            chosen[name] = found.best_params_["shift"]
        assert chosen == {"overall": 0.0, "worst": -1.5, "gap": -1.5}

    def test_workers_do_not_matter(self, data):
        X, y = data
        results = [
            cross_val_score(Stated(), X, y, scoring=scorer_of(), cv=CV, n_jobs=n)
            for n in (None, 2)
        ]
        assert_allclose(*results, rtol=0, atol=0)


class TestMetrics:
    def test_a_public_function_is_its_metric(self, data):
        X, y = data
        model = Stated().fit(X, y)
        for function, parameters, name in [
            (expected_calibration_error, {"n_bins": 5}, ECE),
            (calibration_loss, {}, "calibration_loss_log_loss"),
            (calibration_loss, {"score": "brier"}, "calibration_loss_brier"),
        ]:
            options = {k: v for k, v in parameters.items() if k != "score"}
            by_function = scorer_of(function, **parameters)
            by_name = scorer_of(name, **options)
            assert by_function(model, X, y) == by_name(model, X, y)
            assert by_function.metric.name == name

    def test_parameters(self, data):
        X, y = data
        model = Stated().fit(X, y)
        options = {"n_bins": 4, "strategy": "quantile"}
        scorer = scorer_of(aggregate="max", size_matched=False, **options)
        assert_allclose(-scorer(model, X, y), max(naive(X, y, **options).values()))

    def test_text_labels(self, data):
        X, y = data
        expected = scorer_of()(Stated().fit(X, y), X, y)
        text = np.where(y == 1, "sick", "healthy")
        assert scorer_of()(Stated().fit(X, text), X, text) == expected
        text = np.where(y == 1, "malignant", "normal")
        model = Stated(slope=-1.0).fit(X, text)
        other = scorer_of(pos_label="malignant")(model, X, text)
        assert_allclose(other, expected, rtol=1e-9)

    def test_own_callable_with_weights(self, data):
        X, y = data
        model = Stated().fit(X, y)
        own = scorer_of(brier_score_loss, greater_is_better=False, aggregate="max")
        built_in = scorer_of("brier_score_loss", aggregate="max")
        assert_allclose(own(model, X, y), built_in(model, X, y))
        w = np.random.default_rng(0).random(len(X))
        assert_allclose(
            own(model, X, y, sample_weight=w), built_in(model, X, y, sample_weight=w)
        )

    def test_own_callable_without_weights(self, data):
        X, y = data
        model = Stated().fit(X, y)

        def bias(y_true, y_prob, power=1):
            return abs(np.mean(y_true - y_prob)) ** power

        own = scorer_of(bias, greater_is_better=False, size_matched=False)
        values = list(naive(X, y, bias).values())
        assert_allclose(own(model, X, y), min(values) - max(values))
        squared = scorer_of(bias, greater_is_better=False, size_matched=False, power=2)
        assert_allclose(squared(model, X, y), min(values) ** 2 - max(values) ** 2)
        w = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
        rows = np.repeat(np.arange(len(X)), w.astype(int))
        assert_allclose(
            own(model, X, y, sample_weight=w), own(model, X.iloc[rows], y[rows])
        )
        with pytest.raises(ValueError, match="takes no sample_weight, but weights"):
            own(model, X, y, sample_weight=w + 0.5)

    def test_own_callable_that_refuses_one_class(self):
        X, y = frame({"a": 100, "b": 10})
        y[np.flatnonzero(X["group"] == "b")[:2]] = [0, 1]
        y = np.where((X["group"] == "a") & (np.arange(len(X)) % 4 > 0), 0, y)

        def auc(y_true, y_prob):
            if len(set(y_true)) < 2:
                raise ValueError("one class only")
            return roc_auc_score(y_true, y_prob)

        model = Stated().fit(X, y)
        options = {"aggregate": "min", "n_resamples": 50}
        own = scorer_of(auc, greater_is_better=True, **options)
        assert_allclose(own(model, X, y), scorer_of("roc_auc", **options)(model, X, y))
        y = np.where(X["group"] == "b", 0, y)
        with pytest.raises(GroupScoringError, match="'b' has rows of one class only"):
            own(model, X, y)

    def test_own_callable_that_fails(self, data):
        X, y = data

        def fails(y_true, y_prob):
            raise ValueError("not today")

        with pytest.raises(ValueError, match="not today"):
            scorer_of(fails, greater_is_better=True)(Stated().fit(X, y), X, y)


class TestArguments:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"metric": "ece"}, "metric must be callable or one of"),
            ({"metric": f"neg_{ECE}"}, "metric must be callable or one of"),
            ({"metric": None}, "metric must be callable or one of"),
            ({"metric": roc_auc_score}, "greater_is_better must be given for roc_auc"),
            (
                {"metric": len, "greater_is_better": True},
                r"cannot be called as len\(y_true, y_prob",
            ),
            ({"greater_is_better": True}, "contradicts expected_calibration_error"),
            ({"aggregate": "mean"}, "aggregate must be one of"),
            ({"missing": "ignore"}, "missing must be one of"),
            ({"min_group_size": 0}, "min_group_size must be a positive integer"),
            ({"n_resamples": 2.5}, "n_resamples must be a positive integer"),
            ({"n_resamples": True}, "n_resamples must be a positive integer"),
            ({"size_matched": "yes"}, "size_matched must be True or False"),
            ({"random_state": "x"}, "random_state"),
            ({"labels": "ab"}, "labels must be a list of groups"),
            ({"labels": ["a", "a"]}, "labels must name two groups or more"),
            ({"sensitive_features": []}, "sensitive_features must be a column name"),
            (
                {"sensitive_features": np.array(["a", "b"])},
                "sensitive_features must be a column name",
            ),
            ({"n_bin": 5}, "no parameter 'n_bin'; its parameters are"),
            ({"n_bins": -5}, "n_bins"),
            ({"kind": "confidence"}, "does not offer the parameter 'kind'.*only"),
            (
                {"metric": "calibration_loss_brier", "score": "log_loss"},
                "no parameter 'score'",
            ),
            ({"metric": "roc_auc", "n_bins": 5}, "no parameter 'n_bins'; it has none"),
        ],
    )
    def test_wrong_ones_fail_at_once(self, options, message):
        with pytest.raises(ValueError, match=message):
            make_group_scorer(**{"metric": ECE, **options})

    def test_repr_is_the_call(self):
        text = (
            f"make_group_scorer('{ECE}', aggregate='max', labels=['a', 'b'], "
            "sensitive_features='sex', n_bins=5)"
        )
        assert repr(eval(text)) == text
        assert repr(make_group_scorer(ECE)) == f"make_group_scorer('{ECE}')"

    def test_pickle_and_clone(self, data):
        X, y = data
        model = Stated().fit(X, y)
        scorer = scorer_of(aggregate="max", n_bins=7)
        for copy in (pickle.loads(pickle.dumps(scorer)), clone(scorer, safe=False)):
            assert repr(copy) == repr(scorer)
            assert copy(model, X, y) == scorer(model, X, y)

    def test_a_generator_is_taken(self, data):
        X, y = data
        scorer = scorer_of(random_state=np.random.default_rng(0))
        model = Stated().fit(X, y)
        assert scorer(model, X, y) != scorer(model, X, y)
