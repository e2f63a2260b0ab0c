"""What a user names as a metric: a built-in one, its function, or any callable."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._sorted_scores import SortedScores
from ._registry import METRICS, Metric, check_parameters, parameter_names

Floats = NDArray[np.float64]


def as_metric(
    metric: str | Callable, greater_is_better: bool | None, parameters: dict[str, Any]
) -> Metric:
    """Built-in metric, or a callable dressed as one."""
    if isinstance(metric, str):
        found = METRICS.get(metric)
    elif callable(metric):
        found = _built_in(metric, parameters)
        if found is None:
            return _own_metric(metric, greater_is_better, parameters)
    else:
        found = None
    if found is None:
        raise ValueError(
            f"metric must be callable or one of {sorted(METRICS)}; got {metric!r}"
        )
    if greater_is_better not in (None, found.greater_is_better):
        raise ValueError(
            f"greater_is_better={greater_is_better} contradicts {found.name}; leave it "
            "out for built-in metrics"
        )
    return _with_parameters(found, parameters)


def _built_in(metric: Callable, parameters: dict[str, Any]) -> Metric | None:
    """Built-in metric that a public function with these parameters is."""
    for known in METRICS.values():
        fixed = dict(known.parameters)
        fits = all(
            parameters.get(name, value) == value for name, value in fixed.items()
        )
        if known.function is metric and fits:
            return known
    return None


def _with_parameters(metric: Metric, parameters: dict[str, Any]) -> Metric:
    """Built-in metric whose kernel has the parameters set."""
    fixed = dict(metric.parameters)
    free = {k: v for k, v in parameters.items() if k not in fixed or v != fixed[k]}
    check_parameters(metric, free)
    known = [
        name
        for name in parameter_names(metric.kernel, metric)
        if name in parameter_names(metric.function or metric.kernel, metric)
    ]
    unknown = [name for name in free if name not in known]
    if unknown:
        listing = f"only {known}" if known else "nor any other"
        raise ValueError(
            f"make_group_scorer does not offer the parameter {unknown[0]!r} of "
            f"{metric.name}, {listing}"
        )
    return replace(metric, kernel=partial(metric.kernel, **free))


def _own_metric(
    function: Callable, greater_is_better: bool | None, parameters: dict[str, Any]
) -> Metric:
    """Any ``function(y_true, y_prob, **parameters)`` dressed as a metric."""
    name = getattr(function, "__name__", repr(function))
    if greater_is_better is None:
        raise ValueError(
            f"greater_is_better must be given for {name}, a metric that is not built in"
        )
    try:
        inspect.signature(function).bind([0, 1], [0.2, 0.8], **parameters)
    except TypeError as error:
        raise ValueError(
            f"metric {name} cannot be called as {name}(y_true, y_prob, ...): {error}"
        ) from error
    kernel = partial(_callable_kernel, function=function, parameters=parameters)
    return Metric(name, name, kernel, bool(greater_is_better), False, "both", function)


def _callable_kernel(
    scores: SortedScores, function: Callable, parameters: dict[str, Any]
) -> Floats:
    """Any ``function(y_true, y_prob)`` as a kernel: one call a replicate."""
    if scores.weights is None:
        return np.array([_call(function, scores.y, scores.p, parameters)])
    weighted = "sample_weight" in inspect.signature(function).parameters
    out = np.empty(scores.n_replicates)
    for r, weights in enumerate(scores.weights):
        rows = np.flatnonzero(weights)
        y, p, w = scores.y[rows], scores.p[rows], weights[rows].astype(np.float64)
        if weighted:
            out[r] = _call(function, y, p, parameters | {"sample_weight": w})
            continue
        if (w != np.floor(w)).any():
            raise ValueError(f"{function!r} takes no sample_weight, but weights came")
        repeats = w.astype(np.intp)
        y, p = np.repeat(y, repeats), np.repeat(p, repeats)
        out[r] = _call(function, y, p, parameters)
    return out


def _call(function: Callable, y: NDArray, p: Floats, options: dict[str, Any]) -> float:
    """Value of a user's metric; NaN where it refuses rows of one class only."""
    try:
        return float(function(y, p, **options))
    except ValueError:
        if y.min() == y.max():
            return np.nan
        raise
