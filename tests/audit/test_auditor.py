"""SubgroupAuditor: a whole study as one estimator."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    brier_score_loss,
    log_loss,
    roc_auc_score,
)
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedStratifiedKFold,
    StratifiedKFold,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from skcalfair._log_odds import log_odds, sigmoid
from skcalfair.audit import SubgroupAuditor
from skcalfair.calibration import PlattCalibrator
from skcalfair.metrics import calibration_loss, expected_calibration_error
from skcalfair.model_selection import NestedStratifiedGroupKFold

ECE = "expected_calibration_error"
QUICK = {"metrics": ["brier_score_loss", ECE], "n_resamples": 5, "random_state": 0}


@parametrize_with_checks(
    [
        SubgroupAuditor(
            cv=NestedStratifiedGroupKFold(2, 2), n_resamples=2, progress=False
        ),
        SubgroupAuditor(LogisticRegression(), cv=2, metrics=ECE, progress=False),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    """Rows of patients in three groups, one of them small, and some without."""
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(200), rng.integers(1, 4, 200))
    n = len(patient)
    tone = rng.choice(["light", "dark", "mid"], 200, p=[0.6, 0.15, 0.25])[patient]
    tone = np.where(patient % 7 == 0, None, tone.astype(object))
    a, b = rng.normal(size=(2, n))
    y = (rng.random(n) < sigmoid(1.5 * a + b)).astype(int)
    return pd.DataFrame({"a": a, "b": b, "y": y, "tone": tone, "patient": patient})


def fit(auditor, data, y=None, X=None, **options):
    given = {"sensitive_features": data["tone"], "groups": data["patient"]} | options
    X = data[["a", "b"]] if X is None else X
    return auditor.fit(X, data["y"] if y is None else y, **given)


@pytest.fixture(scope="module")
def triples(data):
    cv = NestedStratifiedGroupKFold(3, 2, random_state=1)
    return list(
        cv.split_nested(
            data, data["y"], sensitive_features=data["tone"], groups=data["patient"]
        )
    )


@pytest.fixture(scope="module")
def fitted(data, triples):
    return fit(SubgroupAuditor(cv=triples, n_resamples=20, random_state=0), data)


def value(auditor, metric, group, run, sampling="naive"):
    table = auditor.results_
    found = table[
        (table["metric"] == metric)
        & (table["group"] == group)
        & (table["run"] == run)
        & (table["sampling"] == sampling)
    ]
    assert len(found) == 1
    return found["value"].item()


def same_results(first, second):
    for name in ("results_", "predictions_", "tests_", "gaps_", "runs_", "groups_"):
        pd.testing.assert_frame_equal(
            getattr(first, name), getattr(second, name), rtol=1e-9
        )


# -- what a run does ------------------------------------------------------------------


def test_every_run_is_what_a_plain_loop_gives(data, triples, fitted):
    X, y = data[["a", "b"]], data["y"]
    for run, (train, validation, test) in enumerate(triples):
        model = make_pipeline(StandardScaler(), LogisticRegression())
        model.fit(X.iloc[train], y.iloc[train])
        p_val = model.predict_proba(X.iloc[validation])[:, 1]
        for group in ("dark", "light", "mid"):
            rows = test[(data["tone"] == group).to_numpy()[test]]
            p, outcome = model.predict_proba(X.iloc[rows])[:, 1], y.iloc[rows]
            losses = {
                f"calibration_loss_{score}": calibration_loss(
                    outcome, p, score=name, y_val=y.iloc[validation], p_val=p_val
                )
                for score, name in (("log_loss", "log_loss"), ("brier", "brier"))
            }
            prevalence = outcome.mean()
            precision = average_precision_score(outcome, p)
            expected = losses | {
                "roc_auc": roc_auc_score(outcome, p),
                "average_precision": precision,
                "normalized_average_precision": (precision - prevalence)
                / (1 - prevalence),
                "balanced_accuracy_at_threshold": balanced_accuracy_score(
                    outcome, p >= 0.5
                ),
                "log_loss": log_loss(outcome, p),
                "brier_score_loss": brier_score_loss(outcome, p),
                ECE: expected_calibration_error(outcome, p),
            }
            for metric, number in expected.items():
                assert_allclose(
                    value(fitted, metric, group, run), number, atol=1e-9, err_msg=metric
                )


def test_results_are_tidy(fitted):
    results = fitted.results_
    assert list(results) == [
        "run",
        "fold",
        "group",
        "metric",
        "sampling",
        "size",
        "value",
        "reason",
    ]
    assert len(results) == 6 * 3 * 11 * 2
    assert results["reason"].isna().all()
    assert results["value"].notna().all()
    assert results["metric"].nunique() == 11
    assert (results["fold"] == results["run"] // 2).all()
    assert not results.duplicated(["run", "group", "metric", "sampling"]).any()


def test_predictions_are_out_of_fold(data, triples, fitted):
    predictions = fitted.predictions_
    known = data["tone"].notna().to_numpy()
    for run, (_, _, test) in enumerate(triples):
        rows = predictions.loc[predictions["run"] == run, "row"]
        assert set(rows) == set(test[known[test]])
    row = predictions["row"].to_numpy()
    assert (predictions["outcome"].to_numpy() == data["y"].to_numpy()[row]).all()
    assert (predictions["group"].to_numpy() == data["tone"].to_numpy()[row]).all()
    codes = pd.factorize(data["patient"])[0]
    assert (predictions["cluster"].to_numpy() == codes[row]).all()
    # the calibrator is monotone in the score within a run
    for _, of_run in predictions.groupby("run"):
        ordered = of_run.sort_values("score")
        assert (ordered["calibrated"].diff().dropna() >= 0).all()


def test_results_follow_from_the_predictions(fitted):
    for (run, group), rows in fitted.predictions_.groupby(["run", "group"]):
        y, p, q = (rows[name] for name in ("outcome", "score", "calibrated"))
        assert_allclose(
            value(fitted, "calibration_loss_brier", group, run),
            ((p - y) ** 2).mean() - ((q - y) ** 2).mean(),
        )


class Recorder(ClassifierMixin, BaseEstimator):
    """Classifier that reads its probabilities from X and keeps what it was given."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        self.seen_, self.weights_ = np.asarray(X)[:, 0], sample_weight
        return self

    def predict_proba(self, X):
        p = sigmoid(np.asarray(X)[:, 1])
        return np.column_stack([1 - p, p])


def test_rows_of_unknown_group_train_but_are_not_tested(data, triples):
    X = np.column_stack([np.arange(len(data)), data["a"]])
    auditor = fit(
        SubgroupAuditor(Recorder(), cv=triples, store_estimators=True, **QUICK),
        data,
        X=X,
    )
    unknown = np.flatnonzero(data["tone"].isna())
    for model, (train, _, test) in zip(auditor.estimators_, triples, strict=True):
        assert np.array_equal(model.seen_, train)
        assert np.intersect1d(train, unknown).size
        assert np.intersect1d(test, unknown).size
    assert not np.intersect1d(auditor.predictions_["row"], unknown).size
    assert len(auditor.calibrators_) == 6
    assert auditor.calibrators_[0].slope_.shape == (1,)


def test_the_calibrator_is_fitted_on_the_validation_rows(data, triples):
    X = np.column_stack([np.arange(len(data)), data["a"]])
    auditor = fit(
        SubgroupAuditor(Recorder(), cv=triples, store_estimators=True, **QUICK),
        data,
        X=X,
    )
    _, validation, _ = triples[4]
    expected = LogisticRegression(C=np.inf, tol=1e-10).fit(
        data[["a"]].iloc[validation], data["y"].iloc[validation]
    )
    assert_allclose(auditor.calibrators_[4].slope_, expected.coef_[0], rtol=1e-5)


# -- size matching --------------------------------------------------------------------


def test_sizes_are_those_of_the_smallest_group_in_the_run(data, triples, fitted):
    for run, (_, _, test) in enumerate(triples):
        counts = data["tone"].iloc[test].value_counts()
        of_run = fitted.results_[fitted.results_["run"] == run]
        naive = of_run[of_run["sampling"] == "naive"].groupby("group")["size"].first()
        assert naive.to_dict() == counts.to_dict()
        matched = of_run.loc[of_run["sampling"] == "size_matched", "size"]
        assert set(matched) == {counts.min()}
        smallest = counts.idxmin()
        assert value(fitted, ECE, smallest, run) == value(
            fitted, ECE, smallest, run, "size_matched"
        )


def test_size_matched_values_are_means_over_subsamples(data, triples):
    auditor = SubgroupAuditor(
        cv=triples[:1], n_resamples=2000, metrics=[ECE], random_state=0
    )
    fit(auditor, data, groups=None)
    rows = auditor.predictions_
    light = rows[rows["group"] == "light"]
    size = int(rows["group"].value_counts().min())
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(400):
        part = light.iloc[rng.choice(len(light), size, replace=False)]
        draws.append(expected_calibration_error(part["outcome"], part["score"]))
    error = np.std(draws) / np.sqrt(400)
    found = value(auditor, ECE, "light", 0, "size_matched")
    assert abs(found - np.mean(draws)) < 4 * error
    assert found > value(auditor, ECE, "light", 0)


def test_size_match_none_and_a_number(data, triples):
    none = fit(SubgroupAuditor(cv=triples, size_match=None, **QUICK), data)
    assert set(none.results_["sampling"]) == {"naive"}
    assert none.gaps_["size_matched"].isna().all()
    assert (none.gaps_["n_size_matched"] == 0).all()
    number = fit(SubgroupAuditor(cv=triples, size_match=25, **QUICK), data)
    matched = number.results_[number.results_["sampling"] == "size_matched"]
    assert set(matched["size"]) == {25}
    short = matched[matched["group"] == "dark"]
    assert set(short["reason"].dropna()) == {"fewer than 25 rows"}


def test_groups_too_small_in_a_run_are_not_estimable(data, triples):
    auditor = fit(SubgroupAuditor(cv=triples, min_group_size=25, **QUICK), data)
    results = auditor.results_
    small = results[results["group"] == "dark"]
    assert set(small["reason"]) == {"fewer than 25 rows"}
    assert small["value"].isna().all()
    assert results.loc[results["group"] == "light", "value"].notna().all()
    gaps = auditor.gaps_.set_index(["metric", "group", "reference"])["naive"]
    assert np.isnan(gaps["brier_score_loss", "dark", "light"])
    assert np.isfinite(gaps["brier_score_loss", "mid", "light"])


def test_a_group_of_one_class_is_not_estimable_where_two_are_needed(data, triples):
    y = data["y"].where(data["tone"] != "dark", 1)
    metrics = ["roc_auc", "brier_score_loss"]
    auditor = fit(
        SubgroupAuditor(cv=triples, metrics=metrics, n_resamples=5), data, y=y
    )
    dark = auditor.results_[auditor.results_["group"] == "dark"].set_index("metric")
    assert dark.loc["roc_auc", "value"].isna().all()
    assert dark.loc["roc_auc", "reason"].str.contains("only one class").all()
    assert dark.loc["brier_score_loss", "value"].notna().all()
    gaps = auditor.gaps_
    lost = (gaps["metric"] == "roc_auc") & (gaps["group"] == "dark")
    assert lost.any()
    assert gaps.loc[lost, "naive"].isna().all()
    assert (gaps.loc[lost, "n_naive"] == 0).all()


def test_a_group_absent_from_a_test_fold(data):
    fold = np.where(data["tone"] == "dark", 0, np.arange(len(data)) % 3)
    cv = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]
    auditor = fit(SubgroupAuditor(cv=cv, **QUICK), data, groups=None)
    dark = auditor.results_[
        (auditor.results_["group"] == "dark") & (auditor.results_["run"] > 0)
    ]
    assert set(dark["reason"]) == {"no test rows"}
    assert (dark.loc[dark["sampling"] == "naive", "size"] == 0).all()


# -- tables ---------------------------------------------------------------------------


def test_gaps_are_means_over_runs(fitted):
    wide = fitted.results_.pivot(
        index=["metric", "sampling", "run"], columns="group", values="value"
    )
    gaps = fitted.gaps_.set_index(["metric", "group", "reference"])
    assert len(gaps) == 11 * 3
    for (metric, group, reference), row in gaps.iterrows():
        for sampling in ("naive", "size_matched"):
            expected = (wide[group] - wide[reference])[metric, sampling].mean()
            assert_allclose(row[sampling], expected, atol=1e-12)
            assert row[f"n_{sampling}"] == 6
    sizes = fitted.groups_.set_index("group")["n"]
    for _, group, reference in gaps.index:
        assert sizes[group] <= sizes[reference]


def test_tests_compare_with_the_largest_group(fitted):
    tests = fitted.tests_
    assert set(tests["reference"]) == {"light"}
    assert set(tests["group"]) == {"dark", "mid"}
    pooled = tests[tests["metric"] == "brier_score_loss"]
    assert set(pooled["unit"]) == {"cluster"}
    assert set(tests.loc[tests["metric"] == ECE, "unit"]) == {"fold"}
    pd.testing.assert_frame_equal(tests, fitted.compare())
    published = fitted.compare(method="wilcoxon_as_published", reference="mid")
    assert set(published["unit"]) == {"run"}
    assert set(published["reference"]) == {"mid"}


def test_groups_and_runs_are_described(data, triples, fitted):
    groups = fitted.groups_.set_index("group")
    assert groups["n"].to_dict() == data["tone"].value_counts().to_dict()
    by_tone = data.groupby("tone")
    assert groups["positives"].to_dict() == by_tone["y"].sum().to_dict()
    assert groups["clusters"].to_dict() == by_tone["patient"].nunique().to_dict()
    runs = fitted.runs_
    assert runs["n_train"].tolist() == [len(train) for train, _, _ in triples]
    assert runs["n_validation"].tolist() == [len(part) for _, part, _ in triples]
    known = data["tone"].notna().to_numpy()
    assert runs["n_test"].tolist() == [known[test].sum() for _, _, test in triples]


def test_without_sensitive_features_there_is_one_group(data, triples):
    auditor = fit(SubgroupAuditor(cv=triples, **QUICK), data, sensitive_features=None)
    assert set(auditor.results_["group"]) == {"all"}
    assert set(auditor.results_["sampling"]) == {"naive"}
    assert len(auditor.gaps_) == len(auditor.tests_) == 0
    assert "p_value" in auditor.tests_
    assert set(auditor.predictions_["row"]) == set(range(len(data)))


def test_several_features_intersect(data, triples):
    features = pd.DataFrame(
        {"tone": data["tone"], "old": np.where(data["patient"] % 2, "old", "young")}
    )
    auditor = fit(
        SubgroupAuditor(cv=triples, min_group_size=2, **QUICK),
        data,
        sensitive_features=features,
    )
    assert "dark & old" in set(auditor.results_["group"])
    assert list(auditor.groups_) == [
        "group",
        "tone",
        "old",
        "n",
        "positives",
        "clusters",
        "reason",
    ]


# -- reproducibility ------------------------------------------------------------------


def test_n_jobs_changes_nothing(data):
    tree = DecisionTreeClassifier(max_features=1, min_samples_leaf=10)
    first, second = (
        fit(SubgroupAuditor(tree, cv=2, n_jobs=jobs, **QUICK), data)
        for jobs in (None, 2)
    )
    same_results(first, second)


def test_random_state_reproduces_splits_models_and_subsamples(data):
    tree = DecisionTreeClassifier(max_features=1, min_samples_leaf=10)
    cv = NestedStratifiedGroupKFold(2, 2, random_state=0)
    options = QUICK | {"random_state": np.random.default_rng(1)}
    for own in ({"cv": cv}, {"cv": 2}):
        auditor = SubgroupAuditor(tree, **(QUICK | {"cv": 2} | own))
        same_results(fit(clone(auditor), data), fit(clone(auditor), data))
    first = fit(SubgroupAuditor(tree, cv=cv, **options), data)
    second = fit(SubgroupAuditor(tree, cv=cv, **options), data)
    assert not first.predictions_["score"].equals(second.predictions_["score"])


def test_a_second_fit_forgets_the_first(data, triples):
    tree = DecisionTreeClassifier(max_features=1, min_samples_leaf=10)
    auditor = SubgroupAuditor(tree, cv=triples[:2], store_estimators=True, **QUICK)
    assert hasattr(fit(auditor, data), "estimators_")
    fit(auditor.set_params(store_estimators=False), data)
    assert not hasattr(auditor, "estimators_")
    assert not hasattr(auditor, "calibrators_")


def test_a_seed_of_the_estimator_is_kept(data, triples):
    tree = DecisionTreeClassifier(max_features=1, min_samples_leaf=10, random_state=3)
    auditor = fit(
        SubgroupAuditor(tree, cv=triples[:2], store_estimators=True, **QUICK), data
    )
    assert [model.random_state for model in auditor.estimators_] == [3, 3]
    assert tree.random_state == 3
    unset = DecisionTreeClassifier(max_features=1, min_samples_leaf=10)
    auditor = fit(
        SubgroupAuditor(unset, cv=triples[:2], store_estimators=True, **QUICK), data
    )
    states = [model.random_state for model in auditor.estimators_]
    assert None not in states
    assert states[0] != states[1]
    assert unset.random_state is None


def test_the_default_study(data):
    auditor = fit(SubgroupAuditor(n_resamples=2, random_state=0), data)
    assert auditor.runs_["run"].tolist() == list(range(25))
    assert auditor.runs_["fold"].tolist() == [run // 5 for run in range(25)]
    assert auditor.results_["metric"].nunique() == 11
    patient = data["patient"].to_numpy()
    by_fold = auditor.predictions_.groupby("fold")["row"].unique()
    tested = np.concatenate([np.unique(patient[rows]) for rows in by_fold])
    assert len(tested) == len(np.unique(tested))
    # every row of known group is tested by five models
    counts = auditor.predictions_["row"].value_counts()
    assert set(counts) == {5}
    assert len(counts) == data["tone"].notna().sum()


# -- data of any kind -----------------------------------------------------------------


def test_text_labels_and_the_positive_class(data, triples):
    text = np.where(data["y"] == 1, "malignant", "benign")
    metrics = ["roc_auc", "brier_score_loss", "calibration_loss_log_loss"]
    options = QUICK | {"cv": triples, "metrics": metrics}
    numbers = fit(SubgroupAuditor(**options), data)
    words = fit(SubgroupAuditor(**options), data, y=text)
    assert words.classes_.tolist() == ["benign", "malignant"]
    assert words.pos_label_ == "malignant"
    same_results(numbers, words)
    other = fit(SubgroupAuditor(pos_label="benign", **options), data, y=text)
    assert other.pos_label_ == "benign"
    assert_allclose(other.predictions_["score"], 1 - words.predictions_["score"])
    assert (other.predictions_["outcome"] == 1 - words.predictions_["outcome"]).all()
    assert_allclose(other.results_["value"], words.results_["value"], atol=1e-7)


@pytest.mark.parametrize("labels", [[False, True], [-1, 1], [1.0, 2.0]])
def test_labels_of_other_kinds(data, triples, labels):
    options = QUICK | {"cv": triples}
    found = fit(SubgroupAuditor(**options), data, y=np.array(labels)[data["y"]])
    same_results(found, fit(SubgroupAuditor(**options), data))


def test_containers(data, triples):
    options = QUICK | {"cv": triples}
    expected = fit(SubgroupAuditor(LogisticRegression(), **options), data)
    assert expected.feature_names_in_.tolist() == ["a", "b"]
    assert expected.n_features_in_ == 2
    frame = pl.DataFrame({"a": data["a"].to_numpy(), "b": data["b"].to_numpy()})
    tone = pl.Series("tone", [t if isinstance(t, str) else None for t in data["tone"]])
    for X in (data[["a", "b"]].to_numpy(), csr_array(data[["a", "b"]].to_numpy())):
        found = fit(SubgroupAuditor(LogisticRegression(), **options), data, X=X)
        same_results(found, expected)
    found = fit(
        SubgroupAuditor(LogisticRegression(), **options),
        data,
        X=frame,
        y=pl.Series(data["y"].tolist()),
        sensitive_features=tone,
        groups=pl.Series(data["patient"].tolist()),
    )
    same_results(found, expected)
    found = fit(
        SubgroupAuditor(LogisticRegression(), **options),
        data,
        X=data[["a", "b"]].to_numpy().tolist(),
        y=data["y"].tolist(),
        sensitive_features=data["tone"].tolist(),
        groups=data["patient"].tolist(),
    )
    same_results(found, expected)


class FromFiles(ClassifierMixin, BaseEstimator):
    """Classifier of paths, or of images."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        if isinstance(X[0], str):
            x = np.array([float(path.split("_")[1]) for path in X])
        else:
            assert X.shape[1:] == (4, 4, 3)
            x = X[:, 0, 0, 0]
        return np.column_stack([1 - sigmoid(x), sigmoid(x)])


def test_paths_and_images(data, triples):
    options = QUICK | {"cv": triples}
    paths = [f"image_{value:.17g}" for value in data["a"]]
    images = np.zeros((len(data), 4, 4, 3))
    images[:, 0, 0, 0] = data["a"]
    first = fit(SubgroupAuditor(FromFiles(), **options), data, X=paths)
    second = fit(SubgroupAuditor(FromFiles(), **options), data, X=images)
    third = fit(SubgroupAuditor(FromFiles(), **options), data, X=np.array(paths))
    same_results(first, second)
    same_results(first, third)
    assert_allclose(
        first.predictions_["score"], sigmoid(data["a"])[first.predictions_["row"]]
    )


@pytest.mark.parametrize(
    "model",
    [
        HistGradientBoostingClassifier(max_iter=5),
        make_pipeline(SimpleImputer(), LogisticRegression()),
    ],
)
def test_missing_values_in_x_are_the_classifiers_affair(data, triples, model):
    X = data[["a", "b"]].mask(np.random.default_rng(0).random((len(data), 2)) < 0.1)
    auditor = fit(SubgroupAuditor(model, cv=triples, **QUICK), data, X=X)
    assert auditor.results_["value"].notna().all()
    with pytest.raises(ValueError, match="NaN"):
        fit(SubgroupAuditor(cv=triples, **QUICK), data, X=X)


@pytest.mark.parametrize(
    "model",
    [
        GaussianNB(),
        KNeighborsClassifier(),
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
        make_pipeline(StandardScaler(), LogisticRegression()),
        DummyClassifier(),
    ],
)
def test_any_classifier(data, triples, model):
    auditor = fit(SubgroupAuditor(model, cv=triples[:3], **QUICK), data)
    assert auditor.results_["value"].notna().all()


def test_a_pairwise_kernel(data, triples):
    a = data[["a", "b"]].to_numpy()
    expected = fit(SubgroupAuditor(KNeighborsClassifier(20), cv=triples, **QUICK), data)
    distance = np.linalg.norm(a[:, np.newaxis] - a, axis=2)
    found = fit(
        SubgroupAuditor(
            KNeighborsClassifier(20, metric="precomputed"), cv=triples, **QUICK
        ),
        data,
        X=distance,
    )
    assert_allclose(found.results_["value"], expected.results_["value"])


def test_a_fitted_classifier_is_audited_as_it_is(data, triples):
    model = LogisticRegression().fit(data[["a", "b"]], data["y"])
    auditor = fit(SubgroupAuditor(FrozenEstimator(model), cv=triples, **QUICK), data)
    expected = model.predict_proba(data[["a", "b"]])[auditor.predictions_["row"], 1]
    assert_allclose(auditor.predictions_["score"], expected)


@pytest.mark.parametrize("pos_label", [0, 1])
def test_decision_scores_are_read_as_log_odds(data, triples, pos_label):
    auditor = SubgroupAuditor(
        LinearSVC(), cv=triples, store_estimators=True, pos_label=pos_label, **QUICK
    )
    with pytest.warns(UserWarning, match="LinearSVC has no predict_proba"):
        fit(auditor, data)
    first = auditor.predictions_[auditor.predictions_["run"] == 0]
    decision = auditor.estimators_[0].decision_function(data[["a", "b"]])
    decision = decision if pos_label else -decision
    assert_allclose(first["score"], sigmoid(decision[first["row"]]))
    platt = auditor.calibrators_[0]
    expected = sigmoid(decision * platt.slope_ + platt.intercept_)
    assert_allclose(first["calibrated"], expected[first["row"]])
    assert_allclose(log_odds(first["score"]), decision[first["row"]], atol=1e-6)


# -- metrics and calibrators ----------------------------------------------------------


def mean_score(y_true, y_prob):
    return float(np.mean(y_prob))


def test_metrics_of_ones_own(data, triples):
    metrics = [mean_score, "kernel_calibration_error", expected_calibration_error]
    auditor = fit(SubgroupAuditor(cv=triples, metrics=metrics, n_resamples=3), data)
    names = ["mean_score", "kernel_calibration_error", ECE]
    assert list(dict.fromkeys(auditor.results_["metric"])) == names
    rows = auditor.predictions_
    dark = rows[(rows["run"] == 0) & (rows["group"] == "dark")]
    assert_allclose(value(auditor, "mean_score", "dark", 0), dark["score"].mean())
    assert not auditor.gaps_.set_index("metric").loc["mean_score", "size_robust"].any()
    single = fit(SubgroupAuditor(cv=triples, metrics=ECE, n_resamples=3), data)
    assert set(single.results_["metric"]) == {ECE}


class Isotonic(TransformerMixin, BaseEstimator):
    """Calibrator of another kind."""

    def fit(self, X, y, sample_weight=None):
        self.model_ = IsotonicRegression(out_of_bounds="clip")
        self.model_.fit(X[:, 0], y, sample_weight)
        return self

    def transform(self, X):
        return self.model_.predict(X[:, 0])


def test_another_calibrator(data, triples):
    metrics = ["calibration_loss_brier", "brier_score_loss"]
    options = {"cv": triples, "metrics": metrics, "n_resamples": 3, "random_state": 0}
    auditor = fit(SubgroupAuditor(calibrator=Isotonic(), **options), data)
    for (run, group), rows in auditor.predictions_.groupby(["run", "group"]):
        y, p, q = (rows[name] for name in ("outcome", "score", "calibrated"))
        expected = brier_score_loss(y, p) - ((q - y) ** 2).mean()
        found = value(auditor, "calibration_loss_brier", group, run)
        assert_allclose(found, expected, atol=1e-12)
    smooth = fit(SubgroupAuditor(calibrator=PlattCalibrator(), **options), data)
    plain = fit(SubgroupAuditor(**options), data)
    a, b = (found.predictions_["calibrated"] for found in (smooth, plain))
    assert 0 < (a - b).abs().max() < 0.1


class Broken(Isotonic):
    """Calibrator that cannot be fitted."""

    def fit(self, X, y, sample_weight=None):
        raise RuntimeError("no map today")


def test_a_calibrator_that_fails_costs_only_what_needs_it(data, triples):
    metrics = ["calibration_loss_brier", "brier_score_loss"]
    auditor = fit(
        SubgroupAuditor(calibrator=Broken(), cv=triples, metrics=metrics), data
    )
    results = auditor.results_.set_index("metric")
    assert results.loc["brier_score_loss", "value"].notna().all()
    lost = results.loc["calibration_loss_brier"]
    assert lost["value"].isna().all()
    assert set(lost["reason"]) == {"calibrator: RuntimeError: no map today"}
    assert auditor.predictions_["calibrated"].isna().all()
    tests = auditor.tests_.set_index("metric")
    assert "not estimable" in tests.loc["calibration_loss_brier", "note"].iloc[0]


def test_separable_validation_rows_get_the_smoothed_map(data):
    y = (data["a"] > 0).astype(int)
    X = np.column_stack([np.arange(len(data)), data["a"]])
    auditor = fit(SubgroupAuditor(Recorder(), cv=2, **QUICK), data, X=X, y=y)
    assert auditor.predictions_["calibrated"].notna().all()


# -- failures -------------------------------------------------------------------------


class Moody(ClassifierMixin, BaseEstimator):
    """Classifier that refuses rows with a marker."""

    def __init__(self, mood=3.0, kind="fit"):
        self.mood = mood
        self.kind = kind

    def fit(self, X, y):
        if self.kind == "fit" and (np.asarray(X)[:, 1] > self.mood).any():
            raise RuntimeError("a marked\n row")
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        p = sigmoid(np.asarray(X)[:, 0])
        if self.kind == "nan":
            p = np.where(np.asarray(X)[:, 1] > self.mood, np.nan, p)
        return np.column_stack([1 - p, p])


@pytest.fixture(scope="module")
def marked(data, triples):
    """X with one row marked, and the runs that train on it and that test it."""
    X = data[["a", "b"]].to_numpy().clip(-2, 2)
    row = triples[0][2][data["tone"].notna().to_numpy()[triples[0][2]]][0]
    X[row, 1] = 5.0
    trains = [run for run, parts in enumerate(triples) if row in parts[0]]
    tests = [run for run, parts in enumerate(triples) if row in parts[2]]
    return X, trains, tests


def test_a_run_that_fails_is_not_estimable(data, triples, marked):
    X, trains, _ = marked
    auditor = SubgroupAuditor(Moody(), cv=triples, store_estimators=True, **QUICK)
    with pytest.warns(FitFailedWarning, match=f"{len(trains)} of 6 runs"):
        fit(auditor, data, X=X)
    results = auditor.results_
    failed = results["run"].isin(trains)
    assert 0 < failed.mean() < 1
    assert set(results.loc[failed, "reason"]) == {"RuntimeError: a marked row"}
    assert results.loc[failed, "value"].isna().all()
    assert results.loc[~failed, "value"].notna().all()
    assert len(results) == 6 * 3 * 2 * 2
    assert auditor.runs_["reason"].notna().tolist() == [r in trains for r in range(6)]
    assert [m is None for m in auditor.estimators_] == [r in trains for r in range(6)]
    lost = auditor.predictions_["run"].isin(trains)
    assert auditor.predictions_.loc[lost, "score"].isna().all()
    assert auditor.tests_["p_value"].notna().all()
    assert (auditor.gaps_["n_naive"] == 6 - len(trains)).all()


def test_scores_that_are_none_fail_the_run(data, triples, marked):
    X, _, tests = marked
    with pytest.warns(FitFailedWarning, match="contains NaN"):
        auditor = fit(
            SubgroupAuditor(Moody(kind="nan"), cv=triples, **QUICK), data, X=X
        )
    assert set(np.flatnonzero(auditor.runs_["reason"].notna())) == set(tests)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_when_no_run_can_be_fitted_the_first_error_is_raised(data, triples, n_jobs):
    auditor = SubgroupAuditor(Moody(mood=-9.0), cv=triples, n_jobs=n_jobs, **QUICK)
    with pytest.raises(RuntimeError, match="a marked") as caught:
        fit(auditor, data)
    assert "None of the 6 runs could be fitted." in caught.value.__notes__


class Unpicklable(Exception):
    """Error that cannot leave its process."""

    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")


class Fails(Moody):
    """Classifier with such an error."""

    def fit(self, X, y):
        raise Unpicklable("this", "that")


def test_an_error_that_cannot_be_pickled_still_arrives(data, triples):
    with pytest.raises(RuntimeError, match="Unpicklable: this and that"):
        fit(SubgroupAuditor(Fails(), cv=triples[:2], n_jobs=2, **QUICK), data)


def test_a_training_part_of_one_class_fails_the_run(data):
    y = data["y"].to_numpy()
    rows = np.arange(len(data))
    only = np.flatnonzero(y == 0)[:40]
    part = np.setdiff1d(rows, only)
    cv = [(only, part[::2], part[1::2]), (part[::3], part[1::3], part[2::3])]
    for model, why in ((GaussianNB(), "knows the classes"), (SVC(), "classes")):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "SVC has no predict_proba")
            with pytest.warns(FitFailedWarning, match=why):
                auditor = fit(SubgroupAuditor(model, cv=cv, **QUICK), data, groups=None)
        assert auditor.runs_["reason"].notna().tolist() == [True, False]


def test_a_validation_part_of_one_class_costs_only_the_calibration(data):
    y = data["y"].to_numpy()
    only = np.flatnonzero(y == 0)[:40]
    rest = np.setdiff1d(np.arange(len(data)), only)
    auditor = fit(
        SubgroupAuditor(
            cv=[(rest[::2], only, rest[1::2])], metrics=None, n_resamples=2
        ),
        data,
        groups=None,
    )
    lost = auditor.results_[auditor.results_["value"].isna()]
    assert set(lost["metric"]) == {
        "calibration_loss_log_loss",
        "calibration_loss_brier",
    }
    assert lost["reason"].str.contains("needs two classes").all()


# -- splits ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cv", "n_runs", "n_folds"),
    [
        (3, 3, 3),
        (StratifiedKFold(4), 4, 4),
        (KFold(2, shuffle=True, random_state=0), 2, 2),
        (RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0), 4, 4),
        (NestedStratifiedGroupKFold(2, 3, random_state=0), 6, 2),
    ],
)
def test_splitters(data, cv, n_runs, n_folds):
    auditor = SubgroupAuditor(cv=cv, min_group_size=2, **QUICK)
    fit(auditor, data, groups=None)
    assert len(auditor.runs_) == n_runs
    assert auditor.runs_["fold"].nunique() == n_folds
    assert auditor.results_["value"].notna().all()
    parts = auditor.runs_[["n_train", "n_validation", "n_test"]].sum(axis=1)
    assert (parts <= len(data)).all()


def test_a_fifth_of_the_training_rows_calibrates_where_cv_gives_pairs(data):
    cv = list(GroupKFold(4).split(data, groups=data["patient"]))
    X = np.column_stack([np.arange(len(data)), data["a"]])
    auditor = fit(
        SubgroupAuditor(Recorder(), cv=cv, store_estimators=True, **QUICK), data, X=X
    )
    patient = data["patient"].to_numpy()
    for (train, _), model, n_validation in zip(
        cv, auditor.estimators_, auditor.runs_["n_validation"], strict=True
    ):
        seen = model.seen_.astype(int)
        held_out = np.setdiff1d(train, seen)
        assert set(seen) < set(train)
        assert len(held_out) == n_validation
        assert abs(len(held_out) - len(train) / 5) < 5
        assert not np.intersect1d(patient[held_out], patient[seen]).size


def test_few_rows_are_held_out_as_well():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(16, 2)), np.arange(16) % 2
    cv = [(np.arange(6), np.arange(6, 16)), (np.arange(10, 16), np.arange(10))]
    auditor = SubgroupAuditor(cv=cv, min_group_size=2, **QUICK).fit(X, y)
    assert (auditor.runs_["n_validation"] == 2).all()


def test_masks_are_positions(data, triples):
    masks = [
        tuple(np.isin(np.arange(len(data)), part) for part in parts)
        for parts in triples
    ]
    same_results(
        fit(SubgroupAuditor(cv=masks, **QUICK), data),
        fit(SubgroupAuditor(cv=triples, **QUICK), data),
    )


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ([], "cv yields no split"),
        ([(range(10),)], "run 0 has 1 parts"),
        ([(range(10), range(9, 20))], "row 9 in more than one"),
        ([(range(10), range(10_000, 10_010))], "cv yields row 10009"),
        ([(np.ones(5, bool), range(9, 20))], "a mask of cv has 5 rows"),
        ([(range(0, 100), [], range(100, 200))], "no validation rows"),
    ],
)
def test_splits_that_make_no_sense_are_refused(data, cv, message):
    with pytest.raises(ValueError, match=message):
        fit(SubgroupAuditor(cv=cv, **QUICK), data)


def test_warns_of_patients_on_two_sides(data):
    cv = StratifiedKFold(2, shuffle=True, random_state=0)
    with pytest.warns(UserWarning, match="in 2 of 2 runs a value of groups"):
        fit(SubgroupAuditor(cv=cv, **QUICK), data)


# -- weights --------------------------------------------------------------------------


def test_rows_of_weight_zero_are_not_there(data):
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 3, len(data)).astype(float)
    kept = weights > 0
    y = data["y"].astype(object).where(kept, 7).astype(int)
    tone = data["tone"].where(kept, "nowhere")
    for cv in (2, NestedStratifiedGroupKFold(2, 2, random_state=0), StratifiedKFold(2)):
        options = {"groups": None} if isinstance(cv, StratifiedKFold) else {}
        first = fit(
            SubgroupAuditor(cv=cv, **QUICK),
            data,
            y=y,
            sensitive_features=tone,
            sample_weight=weights,
            **options,
        )
        second = fit(
            SubgroupAuditor(cv=cv, **QUICK),
            data[kept],
            sample_weight=weights[kept],
            **options,
        )
        pd.testing.assert_frame_equal(first.results_, second.results_)
        assert first.groups_["n"].tolist() == second.groups_["n"].tolist()


def test_integer_weights_are_repetition(data, triples):
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 4, len(data))
    again = np.repeat(np.arange(len(data)), weights)
    start = np.cumsum(weights) - weights

    def repeated(part):
        return np.concatenate(
            [np.arange(start[i], start[i] + weights[i]) for i in part]
        )

    options = {"size_match": None, "random_state": 0}
    first = fit(SubgroupAuditor(cv=triples, **options), data, sample_weight=weights)
    second = fit(
        SubgroupAuditor(
            cv=[tuple(map(repeated, parts)) for parts in triples], **options
        ),
        data.iloc[again],
    )
    assert_allclose(first.results_["value"], second.results_["value"], atol=2e-6)
    p_values = [
        found.tests_.set_index("metric")["p_value"][
            ["brier_score_loss", "log_loss"]
        ].to_numpy()
        for found in (first, second)
    ]
    assert_allclose(*p_values, rtol=1e-3)


def test_weights_reach_the_classifier_and_its_absence_is_told(data, triples):
    weights = np.random.default_rng(0).exponential(size=len(data))
    X = np.column_stack([np.arange(len(data)), data["a"]])
    auditor = fit(
        SubgroupAuditor(Recorder(), cv=triples, store_estimators=True, **QUICK),
        data,
        X=X,
        sample_weight=weights,
    )
    for model, (train, _, _) in zip(auditor.estimators_, triples, strict=True):
        assert np.array_equal(model.weights_, weights[train])
    rows = auditor.predictions_
    assert (rows["sample_weight"].to_numpy() == weights[rows["row"]]).all()
    dark = rows[(rows["run"] == 0) & (rows["group"] == "dark")]
    expected = brier_score_loss(
        dark["outcome"], dark["score"], sample_weight=dark["sample_weight"]
    )
    assert_allclose(value(auditor, "brier_score_loss", "dark", 0), expected)
    with pytest.warns(UserWarning, match="does not accept sample_weight"):
        fit(
            SubgroupAuditor(KNeighborsClassifier(), cv=triples, **QUICK),
            data,
            sample_weight=weights,
        )


# -- scikit-learn ---------------------------------------------------------------------


def test_metadata_routing(data, triples):
    weights = np.random.default_rng(0).exponential(size=len(data))
    cv = NestedStratifiedGroupKFold(2, 2, random_state=0)
    for options, metadata in (
        ({"cv": cv}, {}),
        ({"cv": 2}, {"sample_weight": weights}),
        ({"cv": GroupKFold(2)}, {"sample_weight": weights}),
        ({"cv": triples, "estimator": LogisticRegression()}, {}),
    ):
        expected = fit(SubgroupAuditor(**QUICK, **options), data, **metadata)
        with sklearn.config_context(enable_metadata_routing=True):
            found = fit(SubgroupAuditor(**QUICK, **options), data, **metadata)
        same_results(found, expected)
    with sklearn.config_context(enable_metadata_routing=True):
        model = LogisticRegression().set_fit_request(sample_weight=False)
        auditor = SubgroupAuditor(model, cv=triples, store_estimators=True, **QUICK)
        fit(auditor, data, sample_weight=weights)
    plain = LogisticRegression().fit(
        *(data.iloc[triples[0][0]][c] for c in (["a", "b"], "y"))
    )
    assert_allclose(auditor.estimators_[0].coef_, plain.coef_)


def test_clone_pickle_and_repr(data, fitted):
    auditor = SubgroupAuditor(GaussianNB(), cv=3, n_resamples=7)
    assert (
        repr(auditor) == "SubgroupAuditor(cv=3, estimator=GaussianNB(), n_resamples=7)"
    )
    assert clone(auditor).get_params()["n_resamples"] == 7
    same_results(pickle.loads(pickle.dumps(fitted)), fitted)
    assert not hasattr(fitted, "estimators_")


def test_progress_writes_only_when_asked(data, triples, capsys):
    fit(SubgroupAuditor(cv=triples[:2], progress=True, **QUICK), data)
    assert "runs" in capsys.readouterr().err
    fit(SubgroupAuditor(cv=triples[:2], **QUICK), data)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"metrics": ["accuracy"]}, "metrics must be names of built-in metrics"),
        ({"metrics": []}, "metrics must name at least one"),
        ({"size_match": "largest"}, "'size_match' parameter"),
        ({"n_resamples": 0}, "'n_resamples' parameter"),
        ({"min_group_size": 0}, "'min_group_size' parameter"),
        ({"estimator": "logistic"}, "'estimator' parameter"),
        ({"calibrator": LogisticRegression()}, "'calibrator' parameter"),
        ({"cv": 1}, "'cv' parameter"),
        ({"random_state": "0"}, "'random_state' parameter"),
        ({"pos_label": 5}, "pos_label=5 is not among the labels"),
        ({"calibrator": PlattCalibrator(input="probability")}, "log-odds"),
    ],
)
def test_parameters_without_sense_are_refused(data, parameters, message):
    with pytest.raises(ValueError, match=message):
        fit(SubgroupAuditor(**parameters), data)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": np.zeros(390)}, "inconsistent numbers of samples"),
        ({"sensitive_features": ["a"]}, "sensitive_features must have one value"),
        ({"groups": [1, 2]}, "groups must have one value per row"),
        ({"sample_weight": [1, 2]}, "sample_weight must have one value per row"),
    ],
)
def test_lengths_that_differ_are_refused(data, options, message):
    with pytest.raises(ValueError, match=message):
        fit(SubgroupAuditor(), data, **options)


def test_targets_and_groups_that_cannot_be_audited(data):
    n = len(data)
    with pytest.raises(ValueError, match="got only one class"):
        fit(SubgroupAuditor(), data, y=np.ones(n))
    with pytest.raises(ValueError, match="got 3 classes"):
        fit(SubgroupAuditor(), data, y=np.arange(n) % 3)
    with pytest.raises(ValueError, match="gives no row a group"):
        fit(SubgroupAuditor(), data, sensitive_features=[None] * n)
