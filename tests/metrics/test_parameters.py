"""Parameters of the metrics that make no sense are refused by name."""

import numpy as np
import pytest

from skcalfair.metrics import (
    balanced_accuracy_at_threshold,
    calibration_decomposition,
    calibration_loss,
    calibration_slope_intercept,
    expected_calibration_error,
    log_loss,
)

Y = np.arange(40) % 2
P = np.linspace(0.1, 0.9, 40)


@pytest.mark.parametrize(
    "metric",
    [
        calibration_decomposition,
        calibration_loss,
        calibration_slope_intercept,
        log_loss,
    ],
)
@pytest.mark.parametrize("eps", [0.0, -1e-3, 0.5, np.nan])
def test_eps(metric, eps):
    with pytest.raises(ValueError, match=r"eps must lie between 0 and 0\.5"):
        metric(Y, P, eps=eps)


@pytest.mark.parametrize("threshold", [np.nan, np.inf])
def test_threshold(threshold):
    with pytest.raises(ValueError, match="threshold must be a finite number"):
        balanced_accuracy_at_threshold(Y, P, threshold=threshold)


def test_n_folds():
    with pytest.raises(ValueError, match="n_folds must be at least 2; got 1"):
        calibration_loss(Y, P, recalibrate="cross_fit", n_folds=1)


def test_labels_in_another_order_than_the_columns_have():
    p = np.c_[1 - P, P]
    with pytest.raises(ValueError, match=r"labels must be sorted.*\[1, 0\]"):
        expected_calibration_error(Y, p, labels=[1, 0])
