"""CORP decomposition against scikit-learn's isotonic regression."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss

from skcalfair._log_odds import sigmoid
from skcalfair.metrics import corp_decomposition

both_scores = pytest.mark.parametrize("score", ["brier", "log_loss"])

ROWS = st.tuples(
    # IsotonicRegression takes scores closer than 1e-15 for equal.
    st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.integers(0, 999)).map(
        lambda value: value if value <= 1 else value / 1000
    ),
    st.integers(0, 1),
    st.integers(0, 3),
)


@st.composite
def samples(draw):
    rows = draw(st.lists(ROWS, min_size=1, max_size=20))
    p, y, w = map(np.array, zip(*rows, strict=True))
    return y, p, w + (np.arange(len(w)) == 0)


def psr(y, p, w, score):
    """Mean score by its definition; infinite where a certain forecast failed."""
    if score == "brier":
        return np.average((p - y) ** 2, weights=w)
    with np.errstate(divide="ignore"):
        return np.average(-np.log(np.where(y == 1, p, 1 - p)), weights=w)


def parts_by_isotonic_regression(y, p, w, score):
    kept = w > 0
    y, p, w = y[kept], p[kept], w[kept]
    q = IsotonicRegression().fit(p, y, sample_weight=w).predict(p)
    prevalence = np.full(len(y), np.average(y, weights=w))
    scores = [psr(y, a, w, score) for a in (p, q, prevalence)]
    total, recalibrated, uncertainty = scores
    return [total, total - recalibrated, uncertainty - recalibrated, uncertainty]


def as_list(parts):
    return [
        parts.total,
        parts.miscalibration,
        parts.discrimination,
        parts.uncertainty,
    ]


@both_scores
@settings(max_examples=60)
@given(sample=samples(), weighted=st.booleans())
def test_agrees_with_isotonic_regression(score, sample, weighted):
    y, p, w = sample
    parts = corp_decomposition(y, p, score=score, sample_weight=w if weighted else None)
    w = w if weighted else np.ones(len(y))
    expected = parts_by_isotonic_regression(y, p, w, score)
    assert_allclose(as_list(parts), expected, rtol=1e-9, atol=1e-9)
    assert parts.score == score


@both_scores
@settings(max_examples=60)
@given(sample=samples())
def test_parts_add_up_and_have_signs(score, sample):
    y, p, w = sample
    parts = corp_decomposition(y, p, score=score, sample_weight=w)
    assert not np.isnan(as_list(parts)).any()
    combined = parts.miscalibration - parts.discrimination + parts.uncertainty
    assert_allclose(combined, parts.total, rtol=1e-12, atol=1e-14)
    assert parts.miscalibration >= -1e-14
    assert parts.discrimination >= -1e-14


def test_fractional_weights():
    rng = np.random.default_rng(0)
    p, w = np.round(rng.random(200), 2), rng.exponential(size=200)
    y = (rng.random(200) < p).astype(int)
    parts = corp_decomposition(y, p, sample_weight=w)
    assert_allclose(parts.total, brier_score_loss(y, p, sample_weight=w), rtol=1e-12)
    expected = parts_by_isotonic_regression(y, p, w, "brier")
    assert_allclose(as_list(parts), expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("y", "p"), [([1, 0, 1], [0.0, 0.3, 0.8]), ([0, 1, 0], [1.0, 0.4, 0.2])]
)
def test_a_certain_forecast_that_fails_is_infinite(y, p):
    parts = corp_decomposition(y, p, score="log_loss")
    assert parts.total == parts.miscalibration == np.inf
    assert np.isfinite([parts.discrimination, parts.uncertainty]).all()
    assert parts.miscalibration - parts.discrimination + parts.uncertainty == np.inf


def test_certain_forecasts_that_hold_cost_nothing():
    parts = corp_decomposition([0, 1, 0, 1], [0.0, 1.0, 0.0, 1.0], score="log_loss")
    assert_allclose(as_list(parts), [0, 0, np.log(2), np.log(2)], atol=1e-15)


def test_calibrated_groups_have_no_miscalibration():
    y, p = np.array([0, 0, 0, 1, 0, 1, 1, 1]), np.repeat([0.25, 0.75], 4)
    parts = corp_decomposition(y, p)
    assert_allclose(as_list(parts), [0.1875, 0, 0.0625, 0.25], atol=1e-15)


@both_scores
def test_only_miscalibration_sees_a_distortion(score):
    rng = np.random.default_rng(1)
    p = np.clip(np.round(rng.random(300), 2), 0.01, 0.99)
    y = (rng.random(300) < p).astype(int)
    parts = corp_decomposition(y, p, score=score)
    distorted = corp_decomposition(y, p**3, score=score)
    assert_allclose(distorted.discrimination, parts.discrimination, rtol=1e-12)
    assert_allclose(distorted.uncertainty, parts.uncertainty, rtol=1e-12)
    assert distorted.miscalibration > parts.miscalibration + 0.01


@both_scores
def test_one_class_has_no_uncertainty(score):
    parts = corp_decomposition([1, 1, 1], [0.5, 0.7, 0.9], score=score)
    assert_allclose([parts.discrimination, parts.uncertainty], 0, atol=1e-15)
    assert parts.miscalibration == parts.total > 0


@pytest.mark.parametrize(
    ("n", "n_replicates", "published"), [(200, 300, 0.015), (5000, 30, 0.002)]
)
def test_miscalibration_of_calibrated_scores_is_sample_size(n, n_replicates, published):
    rng = np.random.default_rng(n)
    values = []
    for _ in range(n_replicates):
        p = sigmoid(rng.normal(0, 1.5, n))
        values.append(corp_decomposition(rng.random(n) < p, p).miscalibration)
    error = np.std(values) / np.sqrt(n_replicates)
    assert abs(np.mean(values) - published) < 0.0005 + 4 * np.sqrt(2) * error


def test_unknown_score_is_refused():
    with pytest.raises(ValueError, match="score must be 'brier' or 'log_loss'; got"):
        corp_decomposition([0, 1], [0.2, 0.3], score="spherical")
