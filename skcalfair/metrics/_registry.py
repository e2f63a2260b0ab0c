"""The table of built-in metrics: function, kernel, direction, what it needs."""

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from .._sorted_scores import SortedScores
from ._calibration_error import (
    adaptive_calibration_error,
    adaptive_error_kernel,
    expected_calibration_error,
    expected_error_kernel,
    kernel_calibration_error,
    kernel_error_kernel,
    maximum_calibration_error,
    maximum_error_kernel,
    squared_calibration_error,
    squared_error_kernel,
)
from ._calibration_loss import calibration_loss, calibration_loss_kernel
from ._corp import corp_decomposition, corp_kernel
from ._discrimination import (
    average_precision_kernel,
    balanced_accuracy_at_threshold,
    balanced_accuracy_kernel,
    normalized_average_precision,
    normalized_average_precision_kernel,
    precision_recall_gain_auc_kernel,
    precision_recall_gain_auc_score,
    roc_auc_kernel,
)
from ._evaluate import Kernel, pairs, recalibration, two_classes
from ._proper import brier_kernel, brier_score_loss, log_loss, log_loss_kernel

Requirement = Callable[[SortedScores], str | None]


@dataclass(frozen=True)
class Metric:
    """A built-in metric.

    `function` is its public face with `parameters` set (None: scikit-learn's).
    `requirement` gives the reason when it cannot be estimated.
    """

    name: str
    label: str
    kernel: Kernel
    greater_is_better: bool
    size_robust: bool
    measures: str
    function: Callable | None = None
    parameters: tuple[tuple[str, object], ...] = ()
    requirement: Requirement | None = None

    @property
    def scorer_name(self) -> str:
        """Name as a scorer: errors and losses are negated."""
        return self.name if self.greater_is_better else f"neg_{self.name}"


def _corp_miscalibration(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    pos_label: object = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Miscalibration (MCB) of the Brier score; see `corp_decomposition`."""
    return corp_decomposition(
        y_true, y_prob, score="brier", pos_label=pos_label, sample_weight=sample_weight
    ).miscalibration


_CALIBRATION, _DISCRIMINATION, _BOTH = "calibration", "discrimination", "both"

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "roc_auc",
            "AUC",
            roc_auc_kernel,
            True,
            True,
            _DISCRIMINATION,
            requirement=two_classes,
        ),
        Metric(
            "average_precision",
            "AP",
            average_precision_kernel,
            True,
            False,
            _DISCRIMINATION,
            requirement=two_classes,
        ),
        Metric(
            "normalized_average_precision",
            "normalized AP",
            normalized_average_precision_kernel,
            True,
            False,
            _DISCRIMINATION,
            normalized_average_precision,
            requirement=two_classes,
        ),
        Metric(
            "precision_recall_gain_auc",
            "AUPRG",
            precision_recall_gain_auc_kernel,
            True,
            False,
            _DISCRIMINATION,
            precision_recall_gain_auc_score,
            requirement=two_classes,
        ),
        Metric(
            "balanced_accuracy_at_threshold",
            "balanced accuracy",
            balanced_accuracy_kernel,
            True,
            True,
            _DISCRIMINATION,
            balanced_accuracy_at_threshold,
            requirement=two_classes,
        ),
        Metric("log_loss", "log loss", log_loss_kernel, False, True, _BOTH, log_loss),
        Metric(
            "brier_score_loss",
            "Brier score",
            brier_kernel,
            False,
            True,
            _BOTH,
            brier_score_loss,
        ),
        Metric(
            "expected_calibration_error",
            "ECE",
            expected_error_kernel,
            False,
            False,
            _CALIBRATION,
            expected_calibration_error,
        ),
        Metric(
            "maximum_calibration_error",
            "MCE",
            maximum_error_kernel,
            False,
            False,
            _CALIBRATION,
            maximum_calibration_error,
        ),
        Metric(
            "adaptive_calibration_error",
            "AdaECE",
            adaptive_error_kernel,
            False,
            False,
            _CALIBRATION,
            adaptive_calibration_error,
        ),
        Metric(
            "squared_calibration_error",
            "CE2",
            squared_error_kernel,
            False,
            True,
            _CALIBRATION,
            squared_calibration_error,
        ),
        Metric(
            "kernel_calibration_error",
            "SKCE",
            kernel_error_kernel,
            False,
            True,
            _CALIBRATION,
            kernel_calibration_error,
            requirement=pairs,
        ),
        Metric(
            "calibration_loss_log_loss",
            "cal. loss (log loss)",
            partial(calibration_loss_kernel, score="log_loss"),
            False,
            True,
            _CALIBRATION,
            calibration_loss,
            (("score", "log_loss"),),
            requirement=recalibration,
        ),
        Metric(
            "calibration_loss_brier",
            "cal. loss (Brier)",
            partial(calibration_loss_kernel, score="brier"),
            False,
            True,
            _CALIBRATION,
            calibration_loss,
            (("score", "brier"),),
            requirement=recalibration,
        ),
        Metric(
            "corp_miscalibration",
            "CORP MCB (Brier)",
            corp_kernel,
            False,
            False,
            _CALIBRATION,
            _corp_miscalibration,
        ),
    )
}


# What a scorer supplies by itself, or cannot know about the rows of a split.
SUPPLIED = {"y_true", "y_prob", "pos_label", "labels", "sample_weight", "clusters"}


def parameter_names(function: Callable, metric: Metric) -> list[str]:
    """Parameters that a user may set on a metric's function or kernel."""
    names = list(inspect.signature(function).parameters)
    return [n for n in names if n not in SUPPLIED | dict(metric.parameters).keys()]


def check_parameters(metric: Metric, parameters: dict[str, Any]) -> None:
    """Refuse parameters of a metric before a search turns their errors into NaN."""
    function = metric.function
    known = parameter_names(function, metric) if function else []
    unknown = [name for name in parameters if name not in known]
    if unknown:
        listing = f"its parameters are {known}" if known else "it has none"
        raise ValueError(f"{metric.name} has no parameter {unknown[0]!r}; {listing}")
    plain = (str, bool, int, float, np.generic, type(None))
    if function and all(isinstance(v, plain) for v in parameters.values()):
        y = np.arange(40) % 2
        p = 0.5 + 0.3 * np.sin(np.arange(40.0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(y, p, **dict(metric.parameters), **parameters)


def metric_table() -> pd.DataFrame:
    """
    List the built-in metrics and whether their size bias allows comparing groups.

    Returns
    -------
    pandas.DataFrame
        Indexed by name, with columns `label`, `measures` ("calibration",
        "discrimination" or "both"), `better` ("higher" or "lower") and `size_robust`:
        whether the expectation hardly depends on the number of rows. Metrics that are
        not size-robust must be compared between groups at matched sizes only.

    See Also
    --------
    get_scorer_names : Names of the scorers made from them.

    Examples
    --------
    >>> from skcalfair.metrics import metric_table
    >>> table = metric_table()
    >>> bool(table.loc["expected_calibration_error", "size_robust"])
    False
    """
    rows = [
        (m.name, m.label, m.measures, _direction(m), m.size_robust)
        for m in METRICS.values()
    ]
    columns = ["name", "label", "measures", "better", "size_robust"]
    return pd.DataFrame(rows, columns=columns).set_index("name")


def _direction(metric: Metric) -> str:
    return "higher" if metric.greater_is_better else "lower"
