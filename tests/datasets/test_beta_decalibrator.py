import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.special import beta as beta_function
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from skcalfair._log_odds import log_odds
from skcalfair.datasets import BetaDecalibrator, make_calibrated_scores
from skcalfair.metrics import (
    balanced_accuracy_at_threshold,
    calibration_slope_intercept,
)

SHAPES = st.floats(0.2, 8.0)


@parametrize_with_checks(
    [
        BetaDecalibrator(),
        BetaDecalibrator(alpha=2.0, beta=3.0),
        BetaDecalibrator(alpha=0.5, beta=0.5, input="log_odds"),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture
def column():
    return np.random.default_rng(0).random((500, 1))


@pytest.mark.parametrize(("alpha", "beta"), [(2, 2), (0.5, 0.5), (3, 1.2), (0.7, 2)])
def test_is_the_integral_of_the_beta_density(alpha, beta):
    assert BetaDecalibrator(alpha, beta).fit_transform([[0.0]]) == 0.0
    for p in (0.03, 0.4, 0.5, 0.97, 1.0):
        area, _ = quad(lambda t: t ** (alpha - 1) * (1 - t) ** (beta - 1), 0, p)
        got = BetaDecalibrator(alpha, beta).fit_transform([[p]])[0, 0]
        assert_allclose(got, area / beta_function(alpha, beta), atol=1e-8)


def test_ones_change_nothing(column):
    assert_array_equal(BetaDecalibrator().fit_transform(column), column)


@given(SHAPES, SHAPES, st.floats(0.05, 0.95))
def test_inverse_undoes_the_transform(alpha, beta, p):
    decalibrator = BetaDecalibrator(alpha, beta).fit([[p]])
    q = decalibrator.transform([[p]])
    density = p ** (alpha - 1) * (1 - p) ** (beta - 1) / beta_function(alpha, beta)
    # What the rounding of q leaves of p.
    tolerance = 1e-13 + 1e-14 * q[0, 0] / density
    assert_allclose(decalibrator.inverse_transform(q), [[p]], atol=tolerance)
    assert_allclose(
        decalibrator.transform(decalibrator.inverse_transform([[p]])), [[p]], rtol=1e-9
    )


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20, unique=True), SHAPES, SHAPES)
def test_keeps_the_order(values, alpha, beta):
    p = np.sort(values)[:, np.newaxis]
    assert (
        np.diff(BetaDecalibrator(alpha, beta).fit_transform(p)[:, 0]) >= -1e-15
    ).all()


@given(SHAPES, st.integers(0, 2**20))
def test_equal_shapes_keep_the_threshold_and_the_symmetry(shape, numerator):
    p = numerator / 2**20  # so that 1 - p is exact
    q = BetaDecalibrator(shape, shape).fit_transform([[p], [1 - p], [0.5]])[:, 0]
    assert q[2] == 0.5
    assert_allclose(q[0] + q[1], 1.0, atol=1e-12)
    assert (q[0] >= 0.5) == (p >= 0.5)


def test_discrimination_stays_and_calibration_goes():
    frame = make_calibrated_scores(20_000, random_state=0).frame
    y, p = frame["outcome"], frame[["score"]]
    q = BetaDecalibrator(3, 3).fit_transform(p)[:, 0]
    for metric in (
        roc_auc_score,
        average_precision_score,
        balanced_accuracy_at_threshold,
    ):
        assert_allclose(metric(y, q), metric(y, frame["score"]), rtol=1e-12)
    assert calibration_slope_intercept(y, q).slope < 0.6
    under = BetaDecalibrator(0.5, 0.5).fit_transform(p)[:, 0]
    assert calibration_slope_intercept(y, under).slope > 1.5


def test_log_odds_columns(column):
    x = log_odds(column)
    by_odds = BetaDecalibrator(2, 3).fit(x)
    assert not by_odds.is_probability_.any()
    assert_allclose(
        by_odds.transform(x), BetaDecalibrator(2, 3).fit_transform(column), rtol=1e-12
    )
    assert_allclose(by_odds.inverse_transform(by_odds.transform(x)), x, atol=1e-9)


def test_refuses_what_are_no_probabilities(column):
    decalibrator = BetaDecalibrator(2, 2).fit(column)
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\]; got 1.5 at row 1"):
        decalibrator.transform([[0.5], [1.5]])
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\]; got -1 at row 0"):
        decalibrator.inverse_transform([[-1.0]])
    with pytest.raises(ValueError, match="expecting 1 features"):
        decalibrator.inverse_transform([[0.1, 0.2]])
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
        BetaDecalibrator(input="probability").fit([[2.0]])
