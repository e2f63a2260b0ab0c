"""The study of groups on real data: every run kept, so that it can be continued."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import joblib
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import validate_params

from .._random import RandomStateLike
from ..audit import SubgroupAuditor
from ..audit._run_splits import Split, StudyRows
from ..audit._runs import Plan, Run, _Cells, _Part, perform
from ..audit._tables import group_names, tidy
from ._blocks import check_resumable, digest, run_blocks, seed_key
from ._sample_size import FRACTIONS, check_fractions

Floats = NDArray[np.float64]
Seed = np.random.SeedSequence

# Raised when results of an older version must not be taken for those of this one.
FORMAT = 1
TOO_FEW = "undefined in this sample"
NO_CALIBRATOR = "the calibrator could not be fitted"


@dataclass(frozen=True)
class SubgroupStudyResult:
    """What a study of groups found, as tidy tables.

    Attributes
    ----------
    values : pandas.DataFrame
        One row per run, group, metric and sampling ("naive": all test rows of the
        group; "size_matched": subsamples as large as the smallest group): `run`,
        `fold`, `group`, `metric`, `sampling`, `size`, `value` and `reason`.
    fractions : pandas.DataFrame
        One row per run, fraction and metric, all groups together: `run`, `fold`,
        `fraction` of the test rows, their number `n`, `metric`, `value` and the
        `reason` where there is none.
    gaps : pandas.DataFrame
        Mean gap over the runs, on all rows and at equal size, by metric and pair of
        groups.
    tests : pandas.DataFrame
        Tests of each group against the largest that allow for runs which share rows.
    published_tests : pandas.DataFrame
        The same by Wilcoxon's signed rank test over runs as if these were independent,
        as in the published study; it rejects too often.
    predictions : pandas.DataFrame
        One row per run and test row, with the scores before and after calibration.
    runs : pandas.DataFrame
        One row a run: sizes, and the reason why it could not be fitted.
    groups : pandas.DataFrame
        One row a group: its size, positive rows and patients.

    See Also
    --------
    subgroup_study : Makes it.
    skcalfair.audit.SubgroupAuditor : Says more about the tables.
    skcalfair.displays.GroupRunsDisplay : Draws the values by group.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skcalfair.experiments import subgroup_study
    >>> X, y = make_classification(300, flip_y=0.3, random_state=0)
    >>> result = subgroup_study(
    ...     None, X, y, sensitive_features=["A", "B"] * 150, cv=3, random_state=0
    ... )
    >>> result.runs["n_test"].tolist()
    [100, 100, 100]
    """

    values: pd.DataFrame
    fractions: pd.DataFrame
    gaps: pd.DataFrame
    tests: pd.DataFrame
    published_tests: pd.DataFrame
    predictions: pd.DataFrame
    runs: pd.DataFrame
    groups: pd.DataFrame


@validate_params(
    {
        "fractions": ["array-like", None],
        "results_folder": [str, os.PathLike, None],
    },
    prefer_skip_nested_validation=False,  # the auditor checks the rest
)
def subgroup_study(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    sensitive_features: Any,
    groups: ArrayLike | None = None,
    metrics: Sequence[str | Callable] | None = None,
    calibrator: Any = None,
    cv: Any = None,
    size_match: str | int | None = "smallest",
    n_resamples: int = 100,
    min_group_size: int = 10,
    fractions: Sequence[float] | None = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    results_folder: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    random_state: RandomStateLike = None,
    progress: bool | None = None,
) -> SubgroupStudyResult:
    """Study discrimination and calibration by group over many runs of a classifier.

    The real-data study of [1]_ in one call. In each run a classifier is trained,
    calibrated on validation rows and evaluated on test rows: by group, on all rows and
    at equal size (`SubgroupAuditor`), and on smaller and smaller samples of all test
    rows together.

    Parameters
    ----------
    estimator : classifier or None
        Has `predict_proba` or `decision_function`. None is logistic regression on
        standardised features.
    X : array-like or sparse matrix of shape (n_samples, ...)
        Data as the classifier takes it: features, images, a list of paths.
    y : array-like of shape (n_samples,)
        Labels of two classes.
    sensitive_features : array-like, Series, dict or DataFrame
        Group of each row; several columns intersect. Rows where it is missing train but
        are not tested.
    groups : array-like of shape (n_samples,), default=None
        Patient of each row: kept on one side of each split, and drawn as a whole.
    metrics : sequence of str or callable, default=None
        As in `SubgroupAuditor`; by default the eleven of the study.
    calibrator : transformer, default=None
        As in `SubgroupAuditor`; by default Platt scaling.
    cv : int, splitter or iterable, default=None
        As in `SubgroupAuditor`; by default 25 runs: five test folds with five
        divisions of the other rows each.
    size_match : "smallest", int or None, default="smallest"
        Rows of the subsamples by group.
    n_resamples : int, default=100
        Subsamples of each larger group in each run.
    min_group_size : int, default=10
        Groups with fewer test rows are not estimable in a run.
    fractions : sequence of float, default=None
        Increasing parts of a run's test rows, in (0, 1], that all metrics are evaluated
        on. By default 0.1, 0.2, ..., 1.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; by default the greater of the two sorted labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights.
    results_folder : str or path-like, default=None
        Where finished runs are kept, so that a study that was stopped goes on where it
        was. Runs of other data or parameters may lie beside them. Files that X names
        and the code of own metrics are not looked into: take another folder when they
        change. Runs that failed are not kept.
    n_jobs : int, default=None
        Runs at the same time; the result does not depend on it.
    random_state : int, Generator, RandomState instance or None, default=None
        Seed of the splits, the samples and the classifier, as in `SubgroupAuditor`.
        With a `results_folder` it must not be None.
    progress : bool, default=None
        Whether to show a progress bar; by default only in a terminal.

    Returns
    -------
    SubgroupStudyResult
        Tidy tables of values, gaps and tests.

    Raises
    ------
    ValueError
        For input that does not fit; the message names the argument.
    Exception
        If no run can be fitted: the error of the first one.

    See Also
    --------
    sample_size_study : The study of the metrics themselves, on known posteriors.
    skcalfair.audit.SubgroupAuditor : The same audit as an estimator.

    Notes
    -----
    With the same parameters the values by group are those of `SubgroupAuditor`.

    The samples of a run contain each other. With `groups` whole patients are drawn, up
    to the number of rows, so that the last one may be cut. Calibration losses are those
    by the run's own calibrator.

    References
    ----------
    .. [1] Ricci Lara, M. A., Mosquera, C., Ferrante, E. and Echeveste, R. (2023).
       "Towards unraveling calibration biases in medical image analysis".
       arXiv:2305.05101.

    Examples
    --------
    Two sites with the same relation of features and outcome. On all test rows the
    expected calibration error of the small one looks larger:

    >>> from sklearn.datasets import make_classification
    >>> from skcalfair.experiments import subgroup_study
    >>> X, y = make_classification(600, flip_y=0.3, random_state=0)
    >>> result = subgroup_study(
    ...     None,
    ...     X,
    ...     y,
    ...     sensitive_features=["A"] * 500 + ["B"] * 100,
    ...     metrics=["expected_calibration_error"],
    ...     cv=3,
    ...     random_state=0,
    ... )
    >>> result.gaps[["group", "reference", "naive", "size_matched"]].round(2)
      group reference  naive  size_matched
    0     B         A   0.12          0.04
    """
    check_resumable(results_folder, random_state)
    auditor = _Study(
        estimator,
        metrics=metrics,
        calibrator=calibrator,
        cv=cv,
        size_match=size_match,
        n_resamples=n_resamples,
        min_group_size=min_group_size,
        pos_label=pos_label,
        n_jobs=n_jobs,
        random_state=random_state,
        progress=progress,
    )
    auditor.fractions_ = check_fractions(FRACTIONS if fractions is None else fractions)
    auditor.folder_ = results_folder
    auditor.fit(
        X,
        y,
        sensitive_features=sensitive_features,
        groups=groups,
        sample_weight=sample_weight,
    )
    return SubgroupStudyResult(
        values=auditor.results_,
        fractions=auditor.curve_,
        gaps=auditor.gaps_,
        tests=auditor.tests_,
        published_tests=auditor.compare(method="wilcoxon_as_published"),
        predictions=auditor.predictions_,
        runs=auditor.runs_,
        groups=auditor.groups_,
    )


class _Study(SubgroupAuditor):
    """An auditor that also samples all test rows, and keeps its runs in a folder."""

    fractions_: list[float]
    folder_: str | os.PathLike[str] | None

    def _perform(
        self,
        X: Any,
        rows: StudyRows,
        splits: list[Split],
        plan: Plan,
        seeds: list[Seed],
    ) -> list[Run]:
        shown = list(group_names(rows.groups.labels).values())
        keys = (
            []
            if self.folder_ is None
            else _keys(X, rows, splits, plan, seeds, self.fractions_)
        )
        found = run_blocks(
            _run,
            [
                (number, X, rows, split, plan, seed, self.fractions_)
                for number, (split, seed) in enumerate(zip(splits, seeds, strict=True))
            ],
            folder=self.folder_,
            keys=keys,
            encode=partial(_encode, shown=shown),
            decode=partial(_decode, shown=shown),
            n_jobs=self.n_jobs,
            progress=self.progress,
            what="runs",
        )
        self.curve_ = tidy([record for _, curve in found for record in curve])
        return [run for run, _ in found]


def _run(
    number: int,
    X: Any,
    rows: StudyRows,
    split: Split,
    plan: Plan,
    seed: Seed,
    fractions: list[float],
) -> tuple[Run, list[dict[str, Any]]]:
    """One run of the auditor, and its metrics on samples of all test rows."""
    run = perform(number, X, rows, split, plan, seed)
    # The auditor spawns two children of its own; this is the third.
    own = Seed(entropy=seed.entropy, spawn_key=(*seed.spawn_key, 2))
    labels = {"run": number, "fold": split.fold}
    curve = _curve(run, rows, plan, fractions, np.random.default_rng(own))
    return run, [labels | record for record in curve]


# -- samples of all test rows ---------------------------------------------------------


def _curve(
    run: Run,
    rows: StudyRows,
    plan: Plan,
    fractions: list[float],
    rng: np.random.Generator,
) -> list[dict[str, Any]]:
    """One record per fraction and metric."""
    table = run.predictions
    assert table is not None
    test = table["row"].to_numpy()
    sizes = [round(fraction * len(test)) for fraction in fractions]
    values: dict[str, Floats] = {}
    lost = None
    if run.reason is None and len(test):
        calibrated = table["calibrated"].to_numpy()
        lost = NO_CALIBRATOR if np.isnan(calibrated).any() else None
        part = _Part(rows.scored(test, table["score"].to_numpy()), calibrated)
        cells = _Cells(part, rows.weights_are_counts, plan, lost, Seed(0))
        values = _sampled(cells, sizes, rng)
    records = []
    for k, fraction in enumerate(fractions):
        for metric in plan.metrics:
            value = float(values[metric][k]) if metric in values else np.nan
            reason = run.reason or (TOO_FEW if metric in values else lost)
            records.append(
                {
                    "fraction": fraction,
                    "n": sizes[k],
                    "metric": metric,
                    "value": value,
                    "reason": reason if np.isnan(value) else None,
                }
            )
    return records


def _sampled(
    cells: _Cells, sizes: list[int], rng: np.random.Generator
) -> dict[str, Floats]:
    """Every metric on nested samples of these sizes; NaN for a sample without rows."""
    scores = cells.scores
    rank = np.empty(len(scores), dtype=np.intp)
    rank[_random_order(scores.clusters, len(scores), rng)] = np.arange(len(scores))
    filled = np.flatnonzero(sizes)
    held = rank < np.array(sizes)[filled, np.newaxis]
    weights = held.astype(np.uint8)
    if scores.weights is not None:
        weights = weights * scores.weights[0]
    samples = scores.reweighted(weights)
    out = {}
    for name, kernel in cells.kernels.items():
        out[name] = np.full(len(sizes), np.nan)
        out[name][filled] = kernel(samples)
    return out


def _random_order(
    clusters: NDArray[np.intp] | None, n: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Rows in random order, those of a cluster together."""
    if clusters is None:
        return rng.permutation(n)
    _, codes = np.unique(clusters, return_inverse=True)
    place = rng.permutation(codes.max() + 1)[codes]
    return np.lexsort((rng.random(n), place))


# -- runs in files --------------------------------------------------------------------


def _keys(
    X: Any,
    rows: StudyRows,
    splits: list[Split],
    plan: Plan,
    seeds: list[Seed],
    fractions: list[float],
) -> list[dict[str, Any]]:
    """What each run depends on."""
    groups = (rows.groups.codes, rows.groups.labels)
    data = joblib.hash([X, rows.y, rows.pos_label, groups, rows.clusters, rows.weights])
    models = joblib.hash([plan.estimator, plan.calibrator, plan.fit_params])
    common = {
        "study": "subgroup",
        "format": FORMAT,
        "data": data,
        "models": models,
        "metrics": list(plan.metrics),
        "sizes": [plan.size_match, plan.n_resamples, plan.min_group_size],
        "fractions": fractions,
    }
    return [
        common
        | {
            "run": [number, split.fold],
            "split": digest(split.train, split.validation, split.test),
            "seed": seed_key(seed),
        }
        for number, (split, seed) in enumerate(zip(splits, seeds, strict=True))
    ]


def _encode(
    result: tuple[Run, list[dict[str, Any]]], shown: list[Any]
) -> dict[str, Any] | None:
    """A run ready for JSON, groups by number; None for one that failed."""
    run, curve = result
    if run.error is not None or run.predictions is None:
        return None
    code = {name: number for number, name in enumerate(shown)}
    table = run.predictions.assign(group=run.predictions["group"].map(code))
    return {
        "values": [
            _plain(record | {"group": code[record["group"]]}) for record in run.values
        ],
        "predictions": {name: table[name].tolist() for name in table},
        "reason": run.reason,
        "curve": [_plain(record) for record in curve],
    }


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    """Plain numbers instead of NumPy's."""
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in record.items()
    }


def _decode(kept: dict[str, Any], shown: list[Any]) -> tuple[Run, list[dict[str, Any]]]:
    names = np.array([*shown, None], dtype=object)[:-1]
    table = pd.DataFrame(kept["predictions"])
    table["group"] = names[table["group"].to_numpy(dtype=np.intp)]
    values = [record | {"group": shown[record["group"]]} for record in kept["values"]]
    return Run(values, table, kept["reason"]), kept["curve"]
