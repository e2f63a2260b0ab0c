"""Metrics of a frame: built-in ones by name or function, and any callable."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
import sklearn.metrics
from numpy.typing import NDArray

from .._log_odds import EPS, fit_platt, log_odds
from .._validation import check_eps, check_scored_rows
from ..metrics import calibration_loss
from ..metrics._as_metric import _built_in, _with_parameters
from ..metrics._calibration_loss import SCORES, held_out_loss_kernel
from ..metrics._registry import METRICS, Metric

# scikit-learn's functions that a kernel equals, and the kernel's parameters.
_SKLEARN: dict[Callable, tuple[str, dict[str, Any]]] = {
    sklearn.metrics.roc_auc_score: ("roc_auc", {}),
    sklearn.metrics.average_precision_score: ("average_precision", {}),
    sklearn.metrics.brier_score_loss: ("brier_score_loss", {}),
    sklearn.metrics.log_loss: ("log_loss", {"eps": float(np.finfo(np.float64).eps)}),
}
# Metrics whose expectation does not depend on the prevalence, and functions that are.
CLASS_METRICS = {"roc_auc", "balanced_accuracy_at_threshold"}
CLASS_FUNCTIONS = {
    "false_negative_rate",
    "false_positive_rate",
    "recall_score",
    "roc_auc_score",
    "true_negative_rate",
    "true_positive_rate",
    "sensitivity",
    "specificity",
    "sensitivity_score",
    "specificity_score",
}


@dataclass(frozen=True, eq=False)
class FrameMetric:
    """A metric under its name in the frame.

    `function` is what fairlearn would call (None for a name). `built_in` has the kernel
    where there is one; `params` are the arrays that go with the rows; `weights` says
    which set of weights the kernel takes (-1: none).
    """

    name: str
    function: Callable | None
    built_in: Metric | None
    params: dict[str, NDArray] = field(default_factory=dict)
    weights: int = -1

    @property
    def is_sklearn(self) -> bool:
        """Whether the function is one of scikit-learn's."""
        return any(self.function is known for known in _SKLEARN)

    @property
    def standard(self) -> str | None:
        """Name of the built-in metric with its default parameters, or None."""
        known = self.built_in
        if known is None:
            return None
        kernel = METRICS[known.name].kernel
        return known.name if known.kernel is kernel or self.is_sklearn else None

    @property
    def size_robust(self) -> bool:
        """Whether the metric is known to hardly depend on the number of rows."""
        return self.standard is not None and METRICS[self.standard].size_robust

    @property
    def keeps_own_value(self) -> bool:
        """Whether the function gives a value where its kernel has none.

        scikit-learn's average precision of rows of one class is 0 or 1.
        """
        return self.function is sklearn.metrics.average_precision_score

    @property
    def reads_counts(self) -> bool:
        """Whether the function takes its weights for numbers of rows."""
        if self.function is None or self.is_sklearn:
            return False
        function = self.built_in.function if self.built_in else None
        return function is not None and "weights" in signature(function).parameters

    def weighted_by(self, weights: int) -> "FrameMetric":
        """Return the metric under one of the sample's sets of weights."""
        return replace(self, weights=weights)

    def without_kernel(self) -> "FrameMetric":
        """Return the metric as fairlearn sees it."""
        return replace(self, built_in=None, weights=-1)

    def matches_classes(self) -> bool:
        """Whether matching the classes leaves what it measures as it is."""
        if self.built_in is not None:
            return self.built_in.name in CLASS_METRICS
        return getattr(self.function, "__name__", "") in CLASS_FUNCTIONS


def as_functions(metrics: Any) -> tuple[Any, dict[str, str | Callable]]:
    """Metrics as fairlearn takes them, and as given by the names that it will use.

    A name stands in as a function that is never called.
    """
    if isinstance(metrics, Mapping):
        given = dict(metrics)
    elif isinstance(metrics, str):
        return _stand_in(metrics), {metrics: metrics}
    elif isinstance(metrics, Sequence):
        given = {_name_of(metric): metric for metric in metrics}
        if len(given) < len(metrics):
            raise ValueError(
                f"metrics holds two metrics of one name: {[*map(_name_of, metrics)]}; "
                "use a dict to name them"
            )
    else:
        return metrics, {"": metrics}
    functions = {k: _stand_in(m) if isinstance(m, str) else m for k, m in given.items()}
    return functions, given


def _name_of(metric: Any) -> str:
    if isinstance(metric, str):
        return metric
    name = getattr(metric, "__name__", None)
    if name is None:
        raise ValueError(
            f"metrics must be names or named functions in a list; got {metric!r}; use "
            "a dict to name it"
        )
    return str(name)


def _stand_in(name: str) -> Callable:
    if name not in METRICS:
        raise ValueError(
            f"metrics must be callables or names of built-in metrics; got {name!r}. "
            f"Known are {sorted(METRICS)}"
        )

    def metric(y_true: Any, y_pred: Any) -> float:
        raise NotImplementedError  # the kernel is evaluated

    metric.__name__ = name
    return metric


def recognise(name: str, given: str | Callable, params: dict[str, NDArray]) -> Any:
    """Dress what was given as a metric of the frame."""
    if isinstance(given, str):
        unknown = sorted(set(params) - {"sample_weight"})
        if unknown:
            raise ValueError(
                f"sample_params of the built-in metric {given!r} may hold "
                f"sample_weight; got {unknown}"
            )
        return FrameMetric(name, None, METRICS[given], params)
    known = _kernel_of(given) if set(params) <= {"sample_weight"} else None
    return FrameMetric(name, given, known, params)


def _kernel_of(function: Callable) -> Metric | None:
    """Built-in metric that a function, or a partial of one, is; else None."""
    if isinstance(function, partial):
        if function.args:
            return None
        parameters, function = function.keywords, function.func
    else:
        parameters = {}
    try:
        if function in _SKLEARN:
            if parameters:
                return None
            name, parameters = _SKLEARN[function]
            metric = METRICS[name]
            return replace(metric, kernel=partial(metric.kernel, **parameters))
        if function is calibration_loss and "y_val" in parameters:
            return _held_out(**parameters)
        found = _built_in(function, parameters)
        fixed = {} if found is None else dict(found.parameters)
        if found is None or parameters.items() <= fixed.items():
            return found
        return _with_parameters(found, parameters)
    except (TypeError, ValueError):  # unhashable, or parameters that no kernel has
        return None


def _held_out(
    *,
    recalibrate: str,
    y_val: Any,
    p_val: Any,
    score: str = "log_loss",
    sample_weight_val: Any = None,
    eps: float = EPS,
) -> Metric | None:
    """Calibration loss by a map that is fitted once, not anew for every group."""
    rows = check_scored_rows(y_val, p_val, sample_weight=sample_weight_val)
    if recalibrate != "held_out" or score not in SCORES:
        return None
    if not 0 < rows.y.sum() < len(rows):
        return None
    check_eps(eps)
    fit = fit_platt(log_odds(rows.p, eps=eps), rows.y, rows.sample_weight)
    kernel = partial(
        held_out_loss_kernel,
        score=score,
        slope=float(fit.slope),
        intercept=float(fit.intercept),
        eps=eps,
    )
    known = METRICS[f"calibration_loss_{score}"]
    return replace(known, kernel=kernel, requirement=None)
