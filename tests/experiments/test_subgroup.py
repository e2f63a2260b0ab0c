import os

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal
from scipy.stats import wilcoxon
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from skcalfair._log_odds import log_odds
from skcalfair.audit import SubgroupAuditor
from skcalfair.datasets import make_skin_tone_cohort
from skcalfair.experiments import _subgroup, subgroup_study
from skcalfair.metrics import (
    adaptive_calibration_error,
    brier_score_loss,
    expected_calibration_error,
    log_loss,
    squared_calibration_error,
)
from skcalfair.model_selection import NestedStratifiedGroupKFold

TABLES = (
    "values", "fractions", "gaps", "tests", "published_tests", "predictions", "runs",
    "groups",
)  # fmt: skip
METRICS = [
    "roc_auc",
    "expected_calibration_error",
    "adaptive_calibration_error",
    "brier_score_loss",
    "calibration_loss_log_loss",
]


@pytest.fixture(scope="module")
def cohort():
    frame = make_skin_tone_cohort()
    noise = np.random.default_rng(0).normal(size=len(frame))
    return {
        "X": pd.DataFrame({"marker": log_odds(frame["score"]) + noise}),
        "y": frame["malignant"],
        "sensitive_features": frame["skin_tone"],
        "groups": frame["patient"],
    }


def study(cohort, folder=None, **options):
    options = {
        "metrics": METRICS,
        "cv": NestedStratifiedGroupKFold(3, 2, random_state=0),
        "n_resamples": 10,
        "random_state": 0,
        "results_folder": folder,
    } | options
    return subgroup_study(LogisticRegression(), **cohort, **options)


@pytest.fixture(scope="module")
def result(cohort):
    return study(cohort)


def test_values_are_those_of_the_auditor(cohort, result):
    data = dict(cohort)
    auditor = SubgroupAuditor(
        LogisticRegression(),
        metrics=METRICS,
        cv=NestedStratifiedGroupKFold(3, 2, random_state=0),
        n_resamples=10,
        random_state=0,
    ).fit(data.pop("X"), data.pop("y"), **data)
    assert_frame_equal(result.values, auditor.results_)
    assert_frame_equal(result.gaps, auditor.gaps_)
    assert_frame_equal(result.tests, auditor.tests_)
    assert_frame_equal(result.predictions, auditor.predictions_)
    assert_frame_equal(result.runs, auditor.runs_)
    assert set(result.published_tests["method"]) == {"wilcoxon_as_published"}


def test_published_test_is_wilcoxon_over_runs(result):
    ece = result.values.query(
        "metric == 'expected_calibration_error' and sampling == 'naive'"
    ).pivot_table(index="run", columns="group", values="value")
    expected = wilcoxon(ece["dark"], ece["light"]).pvalue
    found = result.published_tests.query(
        "metric == 'expected_calibration_error' and sampling == 'naive'"
    )
    assert_allclose(found["p_value"], expected)


class TestFractions:
    def test_whole_set_is_every_test_row(self, result):
        whole = result.fractions.query("fraction == 1").set_index(["run", "metric"])
        functions = {
            "roc_auc": roc_auc_score,
            "expected_calibration_error": expected_calibration_error,
            "adaptive_calibration_error": adaptive_calibration_error,
            "brier_score_loss": brier_score_loss,
        }
        for run, rows in result.predictions.groupby("run"):
            y, p, q = rows["outcome"], rows["score"], rows["calibrated"]
            for metric, function in functions.items():
                assert_allclose(whole.loc[(run, metric), "value"], function(y, p))
            assert_allclose(
                whole.loc[(run, "calibration_loss_log_loss"), "value"],
                log_loss(y, p) - log_loss(y, q),
            )
            assert whole.loc[(run, "roc_auc"), "n"] == len(rows)

    def test_one_row_per_run_fraction_and_metric(self, result):
        keys = ["run", "fraction", "metric"]
        assert len(result.fractions) == 6 * 10 * len(METRICS)
        assert not result.fractions.duplicated(keys).any()
        n_test = result.runs.set_index("run")["n_test"]
        expected = result.fractions["run"].map(n_test) * result.fractions["fraction"]
        assert_array_equal(result.fractions["n"], expected.round())

    def test_samples_are_nested_whole_patients(self, cohort):
        seen = {}

        def rows_seen(y_true, y_prob):
            # The rows of each sample, by their scores.
            seen.setdefault(len(y_prob), set(np.asarray(y_prob)))
            return 0.0

        fractions = [0.3, 0.6, 1.0]
        result = study(
            cohort,
            metrics=[rows_seen],
            cv=3,
            fractions=fractions,
            size_match=None,
        )
        rows = result.predictions.query("run == 0")
        sizes = [round(f * len(rows)) for f in fractions]
        samples = [seen[n] for n in sizes]
        assert samples[0] < samples[1] < samples[2]
        held = rows["score"].isin(samples[0])
        by_patient = held.groupby(rows["cluster"]).mean()
        assert ((by_patient > 0) & (by_patient < 1)).sum() <= 1

    def test_ece_falls_with_size_and_brier_does_not(self, cohort):
        result = study(cohort, cv=5, size_match=None)
        mean = result.fractions.pivot_table(
            index="fraction", columns="metric", values="value"
        )
        assert (
            mean.loc[0.1, "expected_calibration_error"]
            > 1.5 * (mean.loc[1.0, "expected_calibration_error"])
        )
        brier = mean["brier_score_loss"]
        assert abs(brier[0.1] - brier[1.0]) < 0.02

    def test_weights_and_clusters_reach_the_kernels(self, cohort):
        weights = np.random.default_rng(1).integers(1, 4, len(cohort["y"]))
        result = study(
            cohort,
            metrics=["expected_calibration_error", "squared_calibration_error"],
            cv=3,
            sample_weight=weights,
            fractions=[1.0],
        )
        rows = result.predictions.query("run == 1")
        found = result.fractions.query("run == 1")["value"]
        options = {"sample_weight": rows["sample_weight"]}
        assert_allclose(
            found,
            [
                expected_calibration_error(rows["outcome"], rows["score"], **options),
                squared_calibration_error(
                    rows["outcome"], rows["score"], clusters=rows["cluster"], **options
                ),
            ],
        )

    def test_tiny_samples_say_why_there_is_no_value(self, cohort):
        small = {name: values[:90] for name, values in cohort.items()}
        result = study(small, cv=3, fractions=[0.01, 0.05, 1.0], metrics=["roc_auc"])
        missing = result.fractions["value"].isna()
        assert missing[result.fractions["n"] < 2].all()
        assert (result.fractions["reason"].notna() == missing).all()


@pytest.fixture
def counted(monkeypatch):
    """Numbers of the runs that are trained and not read."""
    calls = []
    train = _subgroup.perform

    def count(number, *arguments):
        calls.append(number)
        return train(number, *arguments)

    monkeypatch.setattr(_subgroup, "perform", count)
    return calls


class TestFolder:
    def test_read_is_as_computed(self, cohort, result, tmp_path, counted):
        first = study(cohort, tmp_path)
        again = study(cohort, tmp_path)
        assert counted == list(range(6))
        for name in TABLES:
            assert_frame_equal(getattr(first, name), getattr(result, name))
            assert_frame_equal(getattr(again, name), getattr(result, name))

    def test_only_missing_runs_are_trained(self, cohort, result, tmp_path, counted):
        study(cohort, tmp_path)
        for path in sorted(tmp_path.iterdir())[:2]:
            path.unlink()
        counted.clear()
        assert_frame_equal(study(cohort, tmp_path).values, result.values)
        assert len(counted) == 2

    @pytest.mark.parametrize(
        "other",
        [
            {"n_resamples": 11},
            {"metrics": METRICS[1:]},
            {"random_state": 1},
            {"fractions": [0.5, 1.0]},
            {"size_match": 20},
        ],
        ids=str,
    )
    def test_other_studies_do_not_share_runs(self, cohort, tmp_path, counted, other):
        study(cohort, tmp_path, cv=2)
        counted.clear()
        study(cohort, tmp_path, **({"cv": 2} | other))
        assert len(counted) == 2

    def test_other_data_or_model(self, cohort, tmp_path, counted):
        study(cohort, tmp_path, cv=2)
        counted.clear()
        study(cohort | {"X": cohort["X"] + 1}, tmp_path, cv=2)
        subgroup_study(
            LogisticRegression(C=0.1),
            **cohort,
            metrics=METRICS,
            cv=2,
            n_resamples=10,
            random_state=0,
            results_folder=tmp_path,
        )
        assert len(counted) == 4

    @pytest.mark.parametrize("labels", [(1, 2), ("a", "b"), (True, False), None])
    def test_labels_of_groups_come_back(self, cohort, tmp_path, labels):
        light = cohort["sensitive_features"] == "light"
        if labels is None:
            half = np.arange(len(light)) % 2
            features = pd.DataFrame({"light": light, "half": half})
        else:
            features = np.where(light, *labels)
        data = cohort | {"sensitive_features": features}
        options = {"cv": 2, "metrics": ["brier_score_loss"], "size_match": None}
        first, again = (study(data, tmp_path, **options) for _ in range(2))
        for name in TABLES:
            assert_frame_equal(getattr(first, name), getattr(again, name))

    def test_needs_a_seed(self, cohort, tmp_path):
        with pytest.raises(ValueError, match="needs a random_state"):
            study(cohort, tmp_path, random_state=None)


class OnceFails(ClassifierMixin, BaseEstimator):
    """Fails while a file is there, unless the first training row is a certain one."""

    def __init__(self, path="", at=0.0):
        self.path, self.at = path, at

    def fit(self, X, y):
        if os.path.exists(self.path) and np.asarray(X)[0, 0] != self.at:
            raise RuntimeError("out of memory")
        self.model_ = LogisticRegression().fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


def test_failed_runs_are_tried_again(cohort, tmp_path, counted):
    trap = tmp_path / "trap"
    trap.write_text("")
    data = cohort | {"X": cohort["X"].to_numpy()}
    folds = np.arange(len(data["X"])) % 3
    cv = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(3)]
    first_rows = [data["X"][train[0], 0] for train, _ in cv]
    # Without groups, so that a list of splits is no leak.
    del data["groups"]
    options = {
        "cv": [(t[: len(t) // 2], t[len(t) // 2 :], test) for t, test in cv],
        "metrics": ["brier_score_loss"],
        "random_state": 0,
        "results_folder": tmp_path / "results",
    }
    model = OnceFails(str(trap), first_rows[0])
    with pytest.warns(FitFailedWarning, match="2 of 3 runs|1 of 3 runs"):
        failed = subgroup_study(model, **data, **options)
    n_failed = failed.runs["reason"].notna().sum()
    lost = failed.fractions[failed.fractions["value"].isna()]
    assert len(lost) == 10 * n_failed
    assert lost["reason"].str.contains("out of memory").all()
    trap.unlink()
    counted.clear()
    complete = subgroup_study(model, **data, **options)
    assert len(counted) == n_failed
    assert complete.runs["reason"].isna().all()


def test_calibrator_that_fails(cohort):
    class Broken(BaseEstimator):
        def fit(self, X, y):
            raise RuntimeError("no")

        def transform(self, X):
            return X

    result = study(cohort, cv=2, calibrator=Broken(), metrics=METRICS)
    loss = result.fractions.query("metric == 'calibration_loss_log_loss'")
    assert loss["value"].isna().all()
    assert (loss["reason"] == "the calibrator could not be fitted").all()
    others = result.fractions.query("metric == 'brier_score_loss'")
    assert others["value"].notna().all()


def test_n_jobs_does_not_matter(cohort, result):
    parallel = study(cohort, n_jobs=2)
    for name in TABLES:
        assert_frame_equal(getattr(parallel, name), getattr(result, name))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"fractions": [1.0, 0.5]}, "increasing numbers"),
        ({"metrics": ["no_such"]}, "'no_such'"),
        ({"n_resamples": 0}, "n_resamples"),
    ],
    ids=str,
)
def test_refuses(cohort, options, match):
    with pytest.raises(ValueError, match=match):
        study(cohort, **options)
