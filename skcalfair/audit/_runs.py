"""Runs of a study: train, calibrate, and score the test rows by group."""

import pickle
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params, has_fit_parameter

from .._log_odds import EPS, log_odds, sigmoid
from .._sorted_scores import SortedScores
from .._validation import ScoredRows, as_probabilities
from ..calibration._pair import _probabilities
from ..metrics._calibration_loss import _score_values, total_kernel
from ..metrics._evaluate import Kernel
from ..metrics._registry import Metric
from ..metrics._subsampled import subsample_values
from ._run_splits import Positions, Split, StudyRows
from ._tables import Cell, group_names, matched_size, unusable

Floats = NDArray[np.float64]
Seed = np.random.SeedSequence

# Proper score whose calibration loss by the held-out map each of these metrics is.
HELD_OUT = {
    "calibration_loss_log_loss": "log_loss",
    "calibration_loss_brier": "brier",
}
# Reasons of failed runs that a warning quotes.
SHOWN_FAILURES = 3


@dataclass(frozen=True)
class Plan:
    """What every run does; `fit_params` hold one value a row."""

    estimator: Any
    calibrator: Any
    metrics: dict[str, Metric]
    size_match: str | int | None
    n_resamples: int
    min_group_size: int
    fit_params: dict[str, Any]
    keep_models: bool


@dataclass
class Run:
    """What a run found. `error` is why it could not be fitted."""

    values: list[dict[str, Any]] = field(default_factory=list)
    predictions: pd.DataFrame | None = None
    reason: str | None = None
    error: Exception | None = None
    model: Any = None
    calibrator: Any = None
    features: dict[str, Any] = field(default_factory=dict)


# -- one run --------------------------------------------------------------------------


def perform(
    number: int, X: Any, rows: StudyRows, split: Split, plan: Plan, seed: Seed
) -> Run:
    """Train, calibrate and score one run; what fails in it becomes its reason."""
    model_seed, resampling_seed = seed.spawn(2)
    run = Run(reason=split.reason)
    known = np.flatnonzero(rows.groups.codes[split.test] >= 0)
    test = split.test[known]
    p = q = np.full(len(test), np.nan)
    calibration = None
    if run.reason is None:
        try:
            model = _train(X, rows, split, plan, model_seed)
            p, x = _scores(model, X, rows, test, split.train)
        except Exception as error:
            run.reason, run.error = _described(error), _picklable(error)
        else:
            q, calibration = _calibrate(run, model, X, rows, split, plan, x)
            run.features = _features(model)
            run.model = model if plan.keep_models else None
    labels = {"run": number, "fold": split.fold}
    run.predictions = _prediction_table(labels, rows, test, p, q)
    parts = _parts(rows, test, p, q)
    values = _values(parts, rows, plan, run.reason, calibration, resampling_seed)
    run.values = [labels | value for value in values]
    return run


def _train(X: Any, rows: StudyRows, split: Split, plan: Plan, seed: Seed) -> Any:
    model = clone(plan.estimator)
    _seed_what_has_none(model, seed)
    X_train, y_train = _safe_split(model, X, rows.y, split.train)
    params = _check_method_params(X, plan.fit_params, split.train)
    return model.fit(X_train, y_train, **params)


def _seed_what_has_none(model: Any, seed: Seed) -> None:
    """Set every random_state that is None, so that the study is reproducible."""
    unset = sorted(
        name
        for name, value in model.get_params(deep=True).items()
        if name.rpartition("__")[2] == "random_state" and value is None
    )
    states = np.random.default_rng(seed).integers(2**31, size=len(unset))
    if unset:
        model.set_params(**dict(zip(unset, states.tolist(), strict=True)))


def _scores(
    model: Any, X: Any, rows: StudyRows, positions: Positions, train: Positions
) -> tuple[Floats, Floats]:
    """Probabilities of the positive class, and log-odds or decision scores."""
    classes = np.asarray(getattr(model, "classes_", rows.labels)).tolist()
    if classes != rows.labels:
        raise ValueError(
            f"the classifier knows the classes {classes}, but y holds {rows.labels}"
        )
    if not positions.size:
        return np.empty(0), np.empty(0)
    X_part, _ = _safe_split(model, X, rows.y, positions, train)
    column = classes.index(rows.pos_label)
    if hasattr(model, "predict_proba"):
        p = as_probabilities(model.predict_proba(X_part), "predict_proba")
        p = p[:, column] if p.ndim == 2 else p
        return p, log_odds(p)
    x = np.asarray(model.decision_function(X_part), dtype=np.float64).ravel()
    x = x if column == 1 else -x
    if not np.isfinite(x).all():
        raise ValueError("decision_function gives NaN or infinity")
    return sigmoid(x), x


def _calibrate(
    run: Run,
    model: Any,
    X: Any,
    rows: StudyRows,
    split: Split,
    plan: Plan,
    x: Floats,
) -> tuple[Floats, str | None]:
    """Calibrated probabilities of the scores x, or why there are none."""
    try:
        _, x_val = _scores(model, X, rows, split.validation, split.train)
        outcome = rows.outcome[split.validation].astype(int)
        options = {}
        if rows.weights is not None:
            options["sample_weight"] = rows.weights[split.validation]
        calibrator = clone(plan.calibrator)
        with warnings.catch_warnings():
            # Separable scores get the smoothed fit, which is as good as there is.
            warnings.filterwarnings("ignore", "the classes are separable")
            calibrator.fit(x_val[:, np.newaxis], outcome, **options)
        if plan.keep_models:
            run.calibrator = calibrator
        q = _probabilities(calibrator, x[:, np.newaxis]) if x.size else x
        return q, None
    except Exception as error:
        return np.full(len(x), np.nan), f"calibrator: {_described(error)}"


def _features(model: Any) -> dict[str, Any]:
    names = ("n_features_in_", "feature_names_in_")
    return {name: getattr(model, name) for name in names if hasattr(model, name)}


def _described(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _picklable(error: Exception) -> Exception:
    """The error itself, if it survives the way back from another process."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(_described(error))
    return error


def _prediction_table(
    labels: dict[str, int], rows: StudyRows, test: Positions, p: Floats, q: Floats
) -> pd.DataFrame:
    shown = group_names(rows.groups.labels)
    names = np.array([*shown.values(), None], dtype=object)[:-1]
    table: dict[str, Any] = labels | {
        "row": test,
        "outcome": rows.outcome[test].astype(np.int64),
        "score": p,
        "calibrated": q,
        "group": names[rows.groups.codes[test]],
    }
    table["cluster"] = test if rows.clusters is None else rows.clusters[test]
    table["sample_weight"] = 1.0 if rows.weights is None else rows.weights[test]
    return pd.DataFrame(table)


# -- metrics by group -----------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
    """Test rows of a group with their calibrated probabilities."""

    rows: ScoredRows
    calibrated: Floats


def _parts(rows: StudyRows, test: Positions, p: Floats, q: Floats) -> dict[Any, _Part]:
    """Test rows by group; groups without a row included."""
    parts = {}
    for code, label in enumerate(rows.groups.labels):
        own = np.flatnonzero(rows.groups.codes[test] == code)
        parts[label] = _Part(rows.scored(test[own], p[own]), q[own])
    return parts


def _values(
    parts: dict[Any, _Part],
    rows: StudyRows,
    plan: Plan,
    run_reason: str | None,
    calibration: str | None,
    seed: Seed,
) -> Iterator[dict[str, Any]]:
    """One record per group, metric and sampling."""
    scored = {label: part.rows for label, part in parts.items()}
    reasons = {label: _why_not(part, plan) for label, part in scored.items()}
    usable = [len(part) for label, part in scored.items() if reasons[label] is None]
    size = matched_size(plan.size_match, usable)
    shown = group_names(list(parts))
    for (label, part), own_seed in zip(
        parts.items(), seed.spawn(len(parts)), strict=True
    ):
        n = len(part.rows)
        reason = run_reason or reasons[label]
        cells = None
        if reason is None:
            cells = _Cells(part, rows.weights_are_counts, plan, calibration, own_seed)
        for sampling, at in {"naive": n, "size_matched": size}.items():
            if at is None:
                continue
            found = {} if cells is None else cells.at(at)
            for metric in plan.metrics:
                cell = found.get(metric, Cell(np.array([np.nan]), reason))
                yield {
                    "group": shown[label],
                    "metric": metric,
                    "sampling": sampling,
                    "size": at,
                    "value": cell.value,
                    "reason": cell.note,
                }


def _why_not(rows: ScoredRows, plan: Plan) -> str | None:
    if not len(rows):
        return "no test rows"
    return unusable(len(rows), rows.clusters, plan.min_group_size)


class _Cells:
    """Metrics of a group on all its test rows or on subsamples of them."""

    def __init__(
        self,
        part: _Part,
        counts: bool,
        plan: Plan,
        calibration: str | None,
        seed: Seed,
    ) -> None:
        self.scores = SortedScores.from_rows(
            part.rows, frequency=counts, keep_order=True
        )
        self.plan, self.calibration, self.seed = plan, calibration, seed
        self.kernels = {
            name: self._kernel(metric, part.calibrated)
            for name, metric in plan.metrics.items()
            if not (calibration and name in HELD_OUT)
        }

    def _kernel(self, metric: Metric, calibrated: Floats) -> Kernel:
        if metric.name not in HELD_OUT:
            return metric.kernel
        q = calibrated[self.scores.order]
        return partial(_gain_kernel, score=HELD_OUT[metric.name], q=q)

    def at(self, size: int) -> dict[str, Cell]:
        """Every metric on all rows, or on subsamples of so many of them."""
        scores, n = self.scores, len(self.scores)
        if size > n:
            short = Cell(np.array([np.nan]), f"fewer than {size} rows")
            return dict.fromkeys(self.plan.metrics, short)
        if size == n:
            draws = {name: kernel(scores) for name, kernel in self.kernels.items()}
        else:
            draws = subsample_values(
                scores,
                self.kernels,
                size,
                self.plan.n_resamples,
                random_state=np.random.default_rng(self.seed),
            )
        cells = {
            name: Cell(values, self._reason(name)) for name, values in draws.items()
        }
        nothing = Cell(np.array([np.nan]), self.calibration)
        return {name: cells.get(name, nothing) for name in self.plan.metrics}

    def _reason(self, name: str) -> str | None:
        requirement = self.plan.metrics[name].requirement
        if requirement is None or name in HELD_OUT:
            return None
        return requirement(self.scores)


def _gain_kernel(scores: SortedScores, score: str, q: Floats) -> Floats:
    """Calibration loss by the held-out map, which gives the sorted rows q."""
    values = scores.row_memo(
        ("held_out_values", score), lambda: _score_values(scores.y, q, score, EPS)
    )
    return total_kernel(scores, score) - scores.mean(values)


# -- all runs --------------------------------------------------------------------------


def weight_params(estimator: Any, weights: NDArray) -> dict[str, NDArray]:
    """Weights as parameters of fit; a pipeline's go to all steps that take them."""
    if isinstance(estimator, Pipeline):
        return {
            f"{name}__sample_weight": weights
            for name, step in estimator.steps
            if hasattr(step, "fit") and has_fit_parameter(step, "sample_weight")
        }
    if has_fit_parameter(estimator, "sample_weight"):
        return {"sample_weight": weights}
    return {}


def check_failures(runs: list[Run]) -> None:
    """Warn of runs that could not be fitted; raise if there are no others."""
    failed = [(number, run) for number, run in enumerate(runs) if run.reason]
    if len(failed) == len(runs):
        error = runs[0].error or ValueError(runs[0].reason)
        error.add_note(f"None of the {len(runs)} runs could be fitted.")
        raise error
    if failed:
        shown = "; ".join(
            f"run {number}: {run.reason}" for number, run in failed[:SHOWN_FAILURES]
        )
        warnings.warn(
            f"{len(failed)} of {len(runs)} runs could not be fitted and are not "
            f"estimable. {shown}",
            FitFailedWarning,
            stacklevel=4,
        )
