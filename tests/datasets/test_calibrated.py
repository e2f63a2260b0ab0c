import numpy as np
import pytest
from numpy.testing import assert_allclose
from pandas.testing import assert_frame_equal
from scipy.stats import kstest
from sklearn.metrics import roc_auc_score

from skcalfair._log_odds import log_odds
from skcalfair.datasets import make_calibrated_scores
from skcalfair.datasets._calibrated import _beta_auc
from skcalfair.metrics import calibration_slope_intercept, squared_calibration_error

CHOICES = [
    {"prevalence": 0.5, "separability": 2.0},
    {"prevalence": 0.1, "separability": 1.0},
    {"prevalence": 0.8, "separability": 0.4},
]


@pytest.mark.parametrize("distribution", ["normal", "beta"])
@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_rows_have_the_chosen_properties(distribution, choice):
    n = 200_000
    data = make_calibrated_scores(
        n, distribution=distribution, random_state=1, **choice
    )
    y, p = data.frame["outcome"], data.frame["score"]
    assert data.frame["posterior"].equals(p)
    assert data.parameters["prevalence"] == choice["prevalence"]
    assert_allclose(y.mean(), choice["prevalence"], atol=0.005)
    assert_allclose(roc_auc_score(y, p), data.parameters["roc_auc"], atol=0.006)
    # Calibrated: slope 1 and intercept 0 within 4 standard errors, no squared error.
    fit = calibration_slope_intercept(y, p)
    design = np.column_stack([log_odds(p), np.ones(n)])
    variance = np.linalg.inv(design.T @ (design * (p * (1 - p)).to_numpy()[:, None]))
    assert abs(fit.slope - 1) < 4 * np.sqrt(variance[0, 0])
    assert abs(fit.intercept) < 4 * np.sqrt(variance[1, 1])
    assert abs(squared_calibration_error(y, p)) < 5e-5


def test_normal_log_odds_are_normal_in_each_class():
    frame = make_calibrated_scores(5000, prevalence=0.3, random_state=0).frame
    prior = log_odds(0.3)
    for outcome, mean in ((0, -2.0), (1, 2.0)):
        x = log_odds(frame["score"][frame["outcome"] == outcome]) - prior
        assert kstest((x - mean) / 2.0, "norm").pvalue > 1e-3


def test_beta_is_uniform_at_five_sixths():
    # For uniform scores the area is 5/6.
    assert_allclose(_beta_auc(0.5, 2.0), 5 / 6, rtol=1e-12)
    from scipy.stats import norm

    d = np.sqrt(2) * norm.ppf(5 / 6)
    frame = make_calibrated_scores(
        5000, distribution="beta", separability=d, random_state=0
    ).frame
    assert kstest(frame["score"], "uniform").pvalue > 1e-3


def test_same_seed_same_rows():
    one, other = (make_calibrated_scores(100, random_state=3).frame for _ in range(2))
    assert_frame_equal(one, other)
    rng = np.random.default_rng(0)
    first, second = (make_calibrated_scores(100, random_state=rng).frame for _ in "ab")
    assert not first.equals(second)


def test_default_is_the_size_of_the_study():
    data = make_calibrated_scores(random_state=0)
    assert len(data.frame) == data.parameters["n_samples"] == 1_000_000


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_samples": 0},
        {"prevalence": 1.0},
        {"separability": 0.0},
        {"separability": 6.5},
        {"distribution": "cauchy"},
    ],
    ids=str,
)
def test_refuses(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        make_calibrated_scores(**parameters)


def test_beta_that_cannot_be_that_separable():
    with pytest.raises(ValueError, match="out of reach"):
        make_calibrated_scores(10, distribution="beta", separability=1e-5)
