import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from pandas.testing import assert_frame_equal
from scipy.stats import norm
from sklearn.metrics import roc_auc_score, roc_curve

from skcalfair.datasets import make_reader_study
from skcalfair.metrics import calibration_slope_intercept

READERS = {"A": (0.9, 0.7), "B": (0.6, 0.95), "C": (0.8, 0.8)}


@pytest.fixture(scope="module")
def large():
    return make_reader_study(
        100_000,
        readers=READERS,
        models={"good": 2.5, "fair": 1.0},
        prevalence=0.3,
        case_correlation=0.5,
        random_state=0,
    )


def test_columns_and_truth(large):
    assert list(large.data.columns) == ["good", "fair", "A", "B", "C"]
    assert (large.models, large.readers) == (["good", "fair"], ["A", "B", "C"])
    assert large.target.sum() == 30_000
    assert set(np.unique(large.data[large.readers])) == {0, 1}
    assert large.truth["kind"].tolist() == ["model"] * 2 + ["reader"] * 3
    a = large.truth.loc["A"]
    assert_allclose(norm.cdf(a["separability"] - a["threshold"]), 0.9)
    assert_allclose(norm.cdf(a["threshold"]), 0.7)


def test_readers_work_at_their_points(large):
    for name, (sensitivity, specificity) in READERS.items():
        calls = large.data[name]
        assert_allclose(calls[large.target == 1].mean(), sensitivity, atol=0.01)
        assert_allclose(1 - calls[large.target == 0].mean(), specificity, atol=0.01)


def test_models_have_their_curve_and_are_calibrated(large):
    for name, d in {"good": 2.5, "fair": 1.0}.items():
        assert_allclose(
            roc_auc_score(large.target, large.data[name]),
            large.truth.loc[name, "roc_auc"],
            atol=0.006,
        )
        fpr, tpr, _ = roc_curve(large.target, large.data[name])
        inner = (fpr > 0.01) & (fpr < 0.99)
        expected = norm.cdf(d + norm.ppf(fpr[inner]))
        assert np.abs(tpr[inner] - expected).max() < 0.012
        fit = calibration_slope_intercept(large.target, large.data[name])
        assert_allclose([fit.slope, fit.intercept], [1, 0], atol=0.04)


def test_difficulty_is_shared_as_chosen(large):
    # Two binormal readers within a class: correlation of the latent variables is rho,
    # so the chance that both call a negative case positive is bivariate normal.
    negative = large.data[large.target == 0]
    both = (negative["A"] * negative["C"]).mean()
    z = np.random.default_rng(1).multivariate_normal(
        [0, 0], [[1, 0.5], [0.5, 1]], 400_000
    )
    expected = ((z[:, 0] > norm.ppf(0.7)) & (z[:, 1] > norm.ppf(0.8))).mean()
    assert_allclose(both, expected, atol=0.006)
    alone = make_reader_study(
        50_000, readers=READERS, case_correlation=0.0, random_state=0
    )
    within = alone.data[alone.target == 0][["A", "C"]].corr().iloc[0, 1]
    assert abs(within) < 0.03


def test_full_correlation_makes_equal_readers_agree():
    study = make_reader_study(
        300, readers={"A": (0.8, 0.8), "B": (0.8, 0.8)}, case_correlation=1.0,
        random_state=0,
    )  # fmt: skip
    assert study.data["A"].equals(study.data["B"])
    order = np.argsort(study.difficulty[study.target == 0])
    assert study.data["A"][study.target == 0].iloc[order].is_monotonic_increasing


def test_missing_reads():
    study = make_reader_study(20_000, missing_reads={"reader_2": 0.25}, random_state=0)
    absent = study.data.isna().mean()
    assert_allclose(absent.pop("reader_2"), 0.25, atol=0.02)
    assert (absent == 0).all()
    assert pd.api.types.is_integer_dtype(study.data["reader_1"])
    everyone = make_reader_study(2000, missing_reads=0.5, random_state=0)
    assert (everyone.data[everyone.readers].isna().mean() > 0.4).all()
    complete = make_reader_study(2000, random_state=0)
    read = everyone.data["reader_1"].notna()
    assert (everyone.data["reader_1"] == complete.data["reader_1"])[read].all()


def test_who_comes_later_changes_nothing():
    few = make_reader_study(200, readers={"A": (0.9, 0.7)}, random_state=4)
    many = make_reader_study(200, readers=READERS, random_state=4)
    assert_frame_equal(few.data, many.data[["model_1", "A"]])


def test_a_case_of_each_class_at_least():
    study = make_reader_study(5, prevalence=0.01, random_state=0)
    assert study.target.sum() == 1


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"readers": {"A": (0.4, 0.5)}}, "readers must give two numbers"),
        ({"readers": {"A": 0.9}}, "got 0.9 for 'A'"),
        ({"models": {"m": -1.0}}, "separability above 0; got -1.0 for 'm'"),
        ({"readers": {}, "models": {}}, "both empty"),
        ({"readers": {"m": (0.9, 0.9)}, "models": {"m": 1.0}}, "'m' names both"),
        ({"missing_reads": {"nobody": 0.1}}, "'nobody', who is none"),
        ({"missing_reads": {"reader_1": 1.0}}, r"must lie in \[0, 1\); got 1.0"),
        ({"n_cases": 1}, "n_cases"),
    ],
    ids=str,
)
def test_refuses(parameters, match):
    with pytest.raises(ValueError, match=match):
        make_reader_study(**parameters)
