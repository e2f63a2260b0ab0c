"""PlattCalibrator as a transformer."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.calibration import _sigmoid_calibration
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from skcalfair._log_odds import log_odds, sigmoid
from skcalfair.calibration import PlattCalibrator


@parametrize_with_checks([PlattCalibrator(), PlattCalibrator(input="log_odds")])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture
def scores():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2)) * [1.5, 3.0]
    y = (rng.random(400) < sigmoid(0.6 * x[:, 0] - 0.2)).astype(int)
    return sigmoid(x), y


def test_each_column_is_calibrated_by_itself(scores):
    p, y = scores
    both = PlattCalibrator().fit(p, y)
    assert both.transform(p).dtype == np.float64
    for j in range(2):
        alone = PlattCalibrator().fit(p[:, [j]], y)
        np.testing.assert_array_equal(both.slope_[j], alone.slope_[0])
        np.testing.assert_array_equal(
            both.transform(p)[:, [j]], alone.transform(p[:, [j]])
        )


def test_agrees_with_scikit_learns_sigmoid(scores):
    p, y = scores
    platt = PlattCalibrator().fit(p, y)
    for j in range(2):
        slope, intercept = _sigmoid_calibration(log_odds(p[:, j]), y)
        assert platt.slope_[j] == pytest.approx(-slope, abs=1e-5)
        assert platt.intercept_[j] == pytest.approx(-intercept, abs=1e-5)


def test_unsmoothed_agrees_with_logistic_regression(scores):
    p, y = scores
    platt = PlattCalibrator(smooth_targets=False).fit(p, y)
    model = LogisticRegression(C=np.inf, tol=1e-10).fit(log_odds(p[:, [0]]), y)
    assert platt.slope_[0] == pytest.approx(model.coef_[0, 0], abs=1e-6)
    np.testing.assert_allclose(
        platt.transform(p)[:, 0],
        model.predict_proba(log_odds(p[:, [0]]))[:, 1],
        atol=1e-6,
    )


def test_log_odds_and_likelihood_ratios_give_the_same_probabilities(scores):
    p, y = scores
    x = log_odds(p)
    one = PlattCalibrator(input="log_odds").fit(x, y)
    other = PlattCalibrator(input="log_odds").fit(x - log_odds(0.2), y)
    np.testing.assert_allclose(
        one.transform(x), other.transform(x - log_odds(0.2)), atol=1e-10
    )


def test_input_is_decided_per_column_on_rows_of_positive_weight(scores):
    p, y = scores
    X = np.c_[p[:, 0], log_odds(p[:, 1])]
    X[0, 0] = 7.0
    weights = np.ones(400)
    weights[0] = 0.0
    platt = PlattCalibrator().fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(platt.is_probability_, [True, False])
    np.testing.assert_array_equal(
        PlattCalibrator().fit(X, y).is_probability_, [False, False]
    )


def test_input_is_enforced_when_transforming(scores):
    p, y = scores
    platt = PlattCalibrator().fit(p, y)
    with pytest.raises(ValueError, match=r"column 1 .* got 1.5 at row 2"):
        platt.transform([[0.1, 0.2], [0.5, 1.0], [0.3, 1.5]])
    with pytest.raises(ValueError, match="probabilities"):
        PlattCalibrator(input="probability").fit(log_odds(p), y)


@pytest.mark.parametrize("smooth", [False, True])
def test_weights_are_repetition_and_zero_is_absence(scores, smooth):
    p, y = scores
    w = np.random.default_rng(1).integers(0, 3, len(y))
    y = np.where(w == 0, 5, y)  # a label that only rows of weight zero have
    weighted = PlattCalibrator(smooth_targets=smooth).fit(p, y, sample_weight=w)
    repeated = PlattCalibrator(smooth_targets=smooth).fit(
        np.repeat(p, w, axis=0), np.repeat(y, w)
    )
    np.testing.assert_allclose(weighted.slope_, repeated.slope_, rtol=1e-11)
    np.testing.assert_array_equal(weighted.classes_, [0, 1])


@given(st.lists(st.integers(0, 3), min_size=12, max_size=12))
def test_any_weights_are_repetition(counts):
    p = np.array([0.1, 0.2, 0.2, 0.3, 0.4, 0.5, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    y = np.array([0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 1, 0])
    rows = np.repeat(np.arange(12), counts)
    assume(len(set(y[rows])) == 2)
    X = p[:, np.newaxis]
    weighted = PlattCalibrator().fit(X, y, sample_weight=counts)
    repeated = PlattCalibrator().fit(X[rows], y[rows])
    np.testing.assert_allclose(
        weighted.transform(X), repeated.transform(X), rtol=1e-8, atol=1e-12
    )


def test_row_order_does_not_matter(scores):
    p, y = scores
    order = np.random.default_rng(3).permutation(len(y))
    one, other = PlattCalibrator().fit(p, y), PlattCalibrator().fit(p[order], y[order])
    np.testing.assert_allclose(one.transform(p), other.transform(p), atol=1e-12)


def test_zero_and_one_are_ordinary_scores():
    X = [[0.0], [1.0], [0.5], [1.0], [0.0], [0.2]]
    platt = PlattCalibrator(eps=1e-6).fit(X, [0, 1, 1, 0, 1, 0])
    assert ((platt.transform(X) > 0) & (platt.transform(X) < 1)).all()
    clipped = np.clip(X, 1e-6, 1 - 1e-6)
    np.testing.assert_allclose(platt.transform(X), platt.transform(clipped))


def test_inverse(scores):
    p, y = scores
    X = np.c_[p[:, 0], log_odds(p[:, 1])]
    platt = PlattCalibrator().fit(X, y)
    np.testing.assert_allclose(
        platt.inverse_transform(platt.transform(X)), X, atol=1e-8
    )
    with pytest.raises(ValueError, match="2 features"):
        platt.inverse_transform([[0.5]])
    with pytest.raises(ValueError, match="must lie in"):
        platt.inverse_transform([[0.5, 1.5]])


def test_constant_column_has_slope_zero_and_no_inverse():
    X = pd.DataFrame({"a": [0.3] * 4, "b": [0.1, 0.6, 0.2, 0.7]})
    platt = PlattCalibrator(smooth_targets=False)
    with pytest.warns(ConvergenceWarning):
        platt.fit(X, [0, 1, 0, 1])
    assert platt.slope_[0] == 0
    assert platt.transform(X)[0, 0] == pytest.approx(0.5)
    with pytest.raises(ValueError, match="'a' has slope 0"):
        platt.inverse_transform(X)


@pytest.mark.parametrize(
    ("y", "message"),
    [([1, 1, 1], "one class"), ([0, 1, 2], "binary"), ([0.1, 0.5, 0.3], "abel type")],
)
def test_wrong_targets(y, message):
    with pytest.raises(ValueError, match=message):
        PlattCalibrator().fit([[0.1], [0.2], [0.3]], y)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_missing_and_infinite_scores_are_refused(scores, value):
    p, y = scores
    p = p.copy()
    p[3, 1] = value
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        PlattCalibrator().fit(p, y)
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        PlattCalibrator().fit(scores[0], y).transform(p)


def test_one_dimension_is_refused(scores):
    p, y = scores
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        PlattCalibrator().fit(p[:, 0], y)


def test_separable_scores():
    X, y = [[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1]
    smoothed = PlattCalibrator().fit(X, y)
    with pytest.warns(ConvergenceWarning, match="separable"):
        plain = PlattCalibrator(smooth_targets=False).fit(X, y)
    np.testing.assert_array_equal(plain.slope_, smoothed.slope_)


@pytest.mark.parametrize(("labels", "positive"), [([-1, 1], 1), ([False, True], True)])
def test_the_greater_label_is_positive(scores, labels, positive):
    p, y = scores
    platt = PlattCalibrator().fit(p, np.array(labels)[y])
    assert platt.pos_label_ == positive
    np.testing.assert_array_equal(platt.classes_, labels)
    np.testing.assert_array_equal(platt.slope_, PlattCalibrator().fit(p, y).slope_)


def test_positive_label(scores):
    p, y = scores
    text = np.where(y == 1, "benign", "malignant")
    swapped = PlattCalibrator(pos_label="benign").fit(p, text)
    np.testing.assert_allclose(swapped.slope_, PlattCalibrator().fit(p, y).slope_)
    default = PlattCalibrator().fit(p, text)
    assert default.pos_label_ == "malignant"
    np.testing.assert_allclose(
        default.transform(p) + swapped.transform(p), 1.0, atol=1e-9
    )
    with pytest.raises(ValueError, match="pos_label='x'"):
        PlattCalibrator(pos_label="x").fit(p, text)


def test_float32_scores(scores):
    p, y = scores
    one, other = PlattCalibrator().fit(p, y), PlattCalibrator().fit(p.astype("f4"), y)
    np.testing.assert_allclose(one.slope_, other.slope_, atol=1e-4)
    np.testing.assert_allclose(one.intercept_, other.intercept_, atol=1e-4)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_keep_their_column_names(scores, frame):
    p, y = scores
    X = frame({"model_a": p[:, 0], "model_b": p[:, 1]})
    platt = PlattCalibrator().fit(X, y)
    kind = "pandas" if frame is pd.DataFrame else "polars"
    out = clone(platt).set_output(transform=kind).fit_transform(X, y)
    assert isinstance(out, frame)
    assert list(out.columns) == ["model_a", "model_b"]
    np.testing.assert_allclose(np.asarray(out), platt.transform(X))
    assert list(platt.get_feature_names_out()) == ["model_a", "model_b"]


def test_in_a_column_transformer_and_a_search(scores):
    p, y = scores
    X = pd.DataFrame({"score": p[:, 0], "age": 50 * p[:, 1]})
    columns = ColumnTransformer(
        [("platt", PlattCalibrator(), ["score"])], remainder="passthrough"
    )
    search = GridSearchCV(
        make_pipeline(columns, LogisticRegression()),
        {"columntransformer__platt__smooth_targets": [True, False]},
        cv=3,
    ).fit(X, y)
    assert search.best_score_ > 0.5


def test_sample_weight_is_routed(scores):
    p, y = scores
    w = np.random.default_rng(2).exponential(size=len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        platt = PlattCalibrator(input="probability").set_fit_request(sample_weight=True)
        model = make_pipeline(platt, LogisticRegression())
        model[1].set_fit_request(sample_weight=False)
        model.fit(p, y, sample_weight=w)
    direct = PlattCalibrator(input="probability").fit(p, y, sample_weight=w)
    np.testing.assert_array_equal(model[0].slope_, direct.slope_)
