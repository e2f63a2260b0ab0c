"""Reliability curves against scikit-learn's, and their intervals against scipy's."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from pandas.testing import assert_frame_equal
from scipy.stats import beta, binomtest
from sklearn.calibration import calibration_curve

from skcalfair.metrics import (
    adaptive_calibration_error,
    expected_calibration_error,
    reliability_curve,
)


def make_sample(seed, n=150):
    """Scores with both ends and bin edges; integer weights."""
    rng = np.random.default_rng(seed)
    p = np.round(rng.beta(0.8, 1.2, n), 2)
    p[:4] = [0.0, 1.0, 0.2, 0.4]
    return (rng.random(n) < p).astype(int), p, rng.integers(1, 4, n)


seeds = pytest.mark.parametrize("seed", range(10))


@seeds
@pytest.mark.parametrize("n_bins", [1, 5, 15])
def test_curve_and_intervals_of_uniform_bins(seed, n_bins):
    y, p, _ = make_sample(seed)
    curve = reliability_curve(y, p, n_bins=n_bins)
    observed, predicted = calibration_curve(y, p, n_bins=n_bins)
    assert_allclose(curve.observed, observed, rtol=1e-12)
    assert_allclose(curve.mean_predicted, predicted, rtol=1e-12, atol=1e-15)
    assert curve.count.sum() == curve.weight.sum() == len(y)
    assert (curve.lowest[1:] > curve.highest[:-1]).all()
    for k, count in enumerate(curve.count):
        inside = (p >= curve.lowest[k]) & (p <= curve.highest[k])
        assert inside.sum() == count
        test = binomtest(int(y[inside].sum()), int(count))
        interval = test.proportion_ci(0.95, method="exact")
        assert_allclose([curve.lower[k], curve.upper[k]], interval, rtol=1e-9)


@seeds
def test_equal_mass_bins_are_those_of_the_error(seed):
    y, p, w = make_sample(seed)
    given = {"n_bins": 6, "sample_weight": w}
    curve = reliability_curve(y, p, strategy="quantile", **given)
    gaps = np.abs(curve.observed - curve.mean_predicted)
    value = np.average(gaps, weights=curve.weight)
    assert_allclose(value, adaptive_calibration_error(y, p, **given), rtol=1e-12)
    assert curve.weight.max() < 2 * w.sum() / 6  # nearly equal, but for ties
    assert len(curve.count) <= 6


@seeds
@pytest.mark.parametrize("weights", ["frequency", "probability"])
def test_the_mean_gap_is_the_calibration_error(seed, weights):
    y, p, w = make_sample(seed)
    w = w if weights == "frequency" else w / 7
    curve = reliability_curve(y, p, sample_weight=w, weights=weights)
    gaps = np.abs(curve.observed - curve.mean_predicted)
    value = expected_calibration_error(y, p, sample_weight=w)
    assert_allclose(np.average(gaps, weights=curve.weight), value, rtol=1e-12)


def test_frequencies_count_as_observations():
    curve = reliability_curve(
        [0, 1, 1], [0.1, 0.12, 0.9], n_bins=2, sample_weight=[3, 2, 4]
    )
    assert curve.count.tolist() == [5, 4]
    interval = binomtest(2, 5).proportion_ci(0.95, method="exact")
    assert_allclose([curve.lower[0], curve.upper[0]], interval, rtol=1e-9)


def test_probability_weights_have_kishs_effective_size():
    y, p = np.array([0, 1, 1, 0]), np.array([0.1, 0.2, 0.3, 0.9])
    w = np.array([0.5, 1.5, 0.25, 2.0])
    curve = reliability_curve(y, p, n_bins=2, sample_weight=w, weights="probability")
    low = slice(0, 3)
    assert curve.count.tolist() == [3, 1]
    assert_allclose(curve.weight, [2.25, 2.0])
    assert_allclose(curve.observed, [1.75 / 2.25, 0.0])
    assert_allclose(curve.mean_predicted[0], w[low] @ p[low] / 2.25)
    size = w[low].sum() ** 2 / (w[low] ** 2).sum()
    events = size * 1.75 / 2.25
    expected = (
        beta.ppf(0.025, events, size - events + 1),
        beta.ppf(0.975, events + 1, size - events),
    )
    assert_allclose([curve.lower[0], curve.upper[0]], expected, rtol=1e-10)
    scaled = reliability_curve(
        y, p, n_bins=2, sample_weight=100 * w, weights="probability"
    )
    assert_allclose([scaled.lower, scaled.upper], [curve.lower, curve.upper])
    assert_allclose(scaled.weight, 100 * curve.weight)


def test_probability_weights_of_one_are_rows():
    y, p, _ = make_sample(0)
    expected = reliability_curve(y, p).frame()
    for weights in (None, np.ones(len(y))):
        curve = reliability_curve(y, p, sample_weight=weights, weights="probability")
        assert_frame_equal(curve.frame(), expected)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_confidence_level(level):
    curve = reliability_curve([0, 1, 1, 0, 1], [0.4] * 5, confidence_level=level)
    interval = binomtest(3, 5).proportion_ci(level, method="exact")
    assert_allclose([curve.lower[0], curve.upper[0]], interval, rtol=1e-9)
    assert curve.confidence_level == level


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, np.nan])
def test_bad_confidence_levels_are_refused(level):
    with pytest.raises(ValueError, match="confidence_level must lie between 0 and 1"):
        reliability_curve([0, 1], [0.2, 0.3], confidence_level=level)


def test_intervals_without_events_and_without_others():
    curve = reliability_curve([0, 0, 1, 1], [0.1, 0.1, 0.9, 0.9], n_bins=2)
    assert (curve.lower[0], curve.upper[1]) == (0.0, 1.0)
    assert_allclose([curve.upper[0], curve.lower[1]], [1 - 0.025**0.5, 0.025**0.5])


def test_exact_intervals_cover():
    """Coverage, summed exactly over the binomial distribution, is at least 95 %."""
    n, truth = 12, 0.3
    covered = 0.0
    for events in range(n + 1):
        y = (np.arange(n) < events).astype(int)
        curve = reliability_curve(y, np.full(n, 0.4))
        if curve.lower[0] <= truth <= curve.upper[0]:
            covered += np.exp(
                np.log(truth) * events
                + np.log1p(-truth) * (n - events)
                + np.sum(np.log(np.arange(1, n + 1)))
                - np.sum(np.log(np.arange(1, events + 1)))
                - np.sum(np.log(np.arange(1, n - events + 1)))
            )
    assert 0.95 <= covered < 1


def test_empty_bins_are_left_out():
    curve = reliability_curve([1, 0, 1], [0.01, 0.99, 0.5], n_bins=10)
    assert curve.count.tolist() == [1, 1, 1]
    assert_allclose(curve.mean_predicted, [0.01, 0.5, 0.99])


def test_frame_and_frozen_result():
    curve = reliability_curve(*make_sample(1)[:2])
    frame = curve.frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame) == [
        "mean_predicted",
        "observed",
        "weight",
        "count",
        "lower",
        "upper",
        "lowest",
        "highest",
    ]
    assert frame["count"].dtype == np.int64
    assert (frame["lower"] <= frame["observed"]).all()
    assert (frame["observed"] <= frame["upper"]).all()
    with pytest.raises(AttributeError, match="cannot assign"):
        curve.observed = None
