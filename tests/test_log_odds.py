"""Log-odds and the two-parameter logistic fit."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.calibration import _sigmoid_calibration
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from skcalfair import _log_odds
from skcalfair._log_odds import (
    fit_platt,
    fit_platt_replicates,
    is_constant,
    log_odds,
    no_maximum,
    sigmoid,
)


def sample(n, seed=0, slope=0.7, intercept=-0.3):
    rng = np.random.default_rng(seed)
    x = 1.5 * rng.normal(size=n)
    y = (rng.random(n) < sigmoid(slope * x + intercept)).astype(np.uint8)
    return x, y


def unpenalised(x, y, sample_weight=None):
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000)
    model.fit(x[:, np.newaxis], y, sample_weight=sample_weight)
    return model.coef_[0, 0], model.intercept_[0]


# -- log-odds ---------------------------------------------------------------------


def test_closed_forms():
    p = np.array([0.5, 0.8, 0.2, 1 / (1 + np.e)])
    expected = [0, np.log(4), -np.log(4), -1]
    np.testing.assert_allclose(log_odds(p), expected, atol=1e-15)


@given(hnp.arrays(float, 5, elements=st.floats(0, 1)))
def test_symmetric(p):
    q = 1 - p
    np.testing.assert_allclose(log_odds(1 - q), -log_odds(q), rtol=1e-12, atol=1e-12)


def test_clipped_alike_at_both_ends():
    low, high = log_odds([0.0, 1.0])
    assert low == -high == pytest.approx(np.log(1e-12))
    assert log_odds(0.0, eps=0.01) == pytest.approx(np.log(0.01 / 0.99))


def test_float32_in_float64_out():
    assert log_odds(np.float32([0.25])).dtype == np.float64


@given(st.floats(-30, 30))
def test_sigmoid_inverts_log_odds(x):
    assert log_odds(sigmoid(x), eps=1e-300) == pytest.approx(x, abs=1e-2)
    if abs(x) < 20:
        assert log_odds(sigmoid(x)) == pytest.approx(x, abs=1e-6)


def test_sigmoid_does_not_overflow():
    np.testing.assert_array_equal(sigmoid([-1e4, 0.0, 1e4]), [0.0, 0.5, 1.0])


# -- one fit ----------------------------------------------------------------------


@pytest.mark.parametrize("n", [50, 500, 5_000, 60_000])
def test_agrees_with_unpenalised_logistic_regression(n):
    x, y = sample(n, seed=n)
    fit = fit_platt(x, y)
    expected = unpenalised(x, y)
    assert (fit.slope, fit.intercept) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("n", [50, 4_000])
def test_weighted_fit_agrees_with_logistic_regression(n):
    x, y = sample(n)
    w = np.random.default_rng(1).exponential(size=n)
    fit = fit_platt(x, y, w)
    assert (fit.slope, fit.intercept) == pytest.approx(unpenalised(x, y, w), abs=1e-6)


def test_smoothed_fit_agrees_with_scikit_learn():
    x, y = sample(300)
    w = np.random.default_rng(1).integers(0, 4, 300).astype(float)
    for weights in (None, w):
        slope, intercept = _sigmoid_calibration(x, y, weights)
        fit = fit_platt(x, y, weights, smooth_targets=True)
        assert (fit.slope, fit.intercept) == pytest.approx(
            (-slope, -intercept), abs=1e-5
        )


@pytest.mark.parametrize("n", [200, 5_000])
@pytest.mark.parametrize("smooth", [False, True])
def test_weights_are_repetition(n, smooth):
    x, y = sample(n)
    w = np.random.default_rng(2).integers(0, 4, n)
    one = fit_platt(x, y, w.astype(float), smooth_targets=smooth)
    other = fit_platt(np.repeat(x, w), np.repeat(y, w), smooth_targets=smooth)
    assert (one.slope, one.intercept) == pytest.approx(
        (other.slope, other.intercept), abs=1e-11
    )


@pytest.mark.parametrize(("scale", "shift"), [(1e6, 0), (1e-6, 0), (1.0, 1e5)])
def test_equivariant_under_scale_and_shift(scale, shift):
    x, y = sample(400)
    fit = fit_platt(x, y)
    moved = fit_platt(scale * x + shift, y)
    assert moved.slope * scale == pytest.approx(fit.slope, rel=1e-8)
    assert moved.decision(scale * x + shift) == pytest.approx(fit.decision(x), abs=1e-6)


def test_float32_scores_change_nothing_that_matters():
    p = sigmoid(sample(500)[0])
    y = sample(500)[1]
    fit = fit_platt(log_odds(p), y)
    rounded = fit_platt(log_odds(p.astype(np.float32)), y)
    assert rounded.slope == pytest.approx(fit.slope, abs=1e-4)
    assert rounded.intercept == pytest.approx(fit.intercept, abs=1e-4)


def test_histogram_start_does_not_change_the_fit(monkeypatch):
    x, y = sample(40_000)
    x[:3] = [-27.6, 27.6, 27.6]
    fit = fit_platt(x, y)
    monkeypatch.setattr(_log_odds, "HISTOGRAM_ROWS", 10**9)
    direct = fit_platt(x, y)
    assert fit.slope == pytest.approx(direct.slope, rel=1e-12)
    assert fit.intercept == pytest.approx(direct.intercept, rel=1e-11)
    assert fit.n_iter < direct.n_iter


@pytest.mark.parametrize("overlap", [1e-1, 1e-3, 1e-5])
def test_almost_separable_data_converge(overlap):
    x = np.array([-2.0, -1.0, overlap, 0.0, 1.0, 2.0])
    y = np.array([0, 0, 0, 1, 1, 1], dtype=np.uint8)
    fit = fit_platt(x, y)
    assert fit.converged
    assert fit.n_iter < 25
    gradient = (
        (sigmoid(fit.decision(x)) - y)[:, np.newaxis] * np.c_[x, np.ones(6)]
    ).sum(axis=0)
    np.testing.assert_allclose(gradient, 0, atol=1e-9)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([0.0, 1.0, 2.0, 3.0], [0, 0, 1, 1]),
        ([3.0, 2.0, 1.0, 0.0], [0, 0, 1, 1]),
        ([0.0, 1.0, 1.0, 2.0], [0, 0, 1, 1]),  # a shared value does not help
        ([0.0, 1.0, 2.0], [1, 1, 1]),
    ],
)
def test_no_maximum_is_said_and_the_smoothed_fit_returned(x, y):
    x, y = np.array(x), np.array(y, dtype=np.uint8)
    with pytest.warns(ConvergenceWarning, match="separable"):
        fit = fit_platt(x, y)
    smoothed = fit_platt(x, y, smooth_targets=True)
    assert (fit.slope, fit.intercept) == (smoothed.slope, smoothed.intercept)


def test_too_few_steps_are_said():
    x, y = sample(100)
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        fit_platt(x, y, max_iter=1)


def test_constant_score_gets_the_prevalence():
    y = np.array([0, 1, 1, 1], dtype=np.uint8)
    fit = fit_platt(np.full(4, 3.3), y)
    assert fit.slope == 0
    assert fit.intercept == pytest.approx(np.log(3))
    assert is_constant(np.array([0.1 + 0.2, 0.3]))


# -- replicates -------------------------------------------------------------------


@pytest.mark.parametrize(("n", "replicates"), [(60, 300), (3_000, 40)])
@pytest.mark.parametrize("shared_start", [False, True])
@pytest.mark.parametrize("kind", [np.uint8, np.float64])
def test_replicates_equal_single_fits(n, replicates, shared_start, kind):
    x, y = sample(n)
    w = np.random.default_rng(3).poisson(1, (replicates, n)).astype(kind)
    start = fit_platt(x, y) if shared_start else None
    fits = fit_platt_replicates(x, y, w, start=start)
    assert fits.converged.all()
    for slope, intercept, row in zip(fits.slope, fits.intercept, w, strict=True):
        one = fit_platt(x, y, row.astype(float))
        assert slope == pytest.approx(one.slope, rel=1e-10)
        assert intercept == pytest.approx(one.intercept, abs=1e-10)


def test_replicates_without_a_maximum_are_nan_and_silent():
    x = np.array([0.0, 1.0, 2.0, 3.0])
    y = np.array([0, 1, 0, 1], dtype=np.uint8)
    w = np.array([[1, 1, 1, 1], [1, 0, 1, 1], [0, 1, 0, 1], [1, 0, 1, 0]], np.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fits = fit_platt_replicates(x, y, w)
    np.testing.assert_array_equal(np.isnan(fits.slope), [False, True, True, True])
    np.testing.assert_array_equal(no_maximum(x, y, w), [False, True, True, True])
    assert np.isnan(fit_platt_replicates(x, y, w[1:]).slope).all()


def test_smoothed_replicates_equal_single_fits():
    x, y = sample(60)
    w = np.random.default_rng(3).poisson(1, (20, 60)).astype(np.uint8)
    fits = fit_platt_replicates(x, y, w, smooth_targets=True)
    for slope, row in zip(fits.slope, w, strict=True):
        one = fit_platt(x, y, row.astype(float), smooth_targets=True)
        assert slope == pytest.approx(one.slope, rel=1e-10)
