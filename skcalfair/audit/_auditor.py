"""SubgroupAuditor: train, calibrate and audit a classifier by group, many times."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, _fit_context
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import (
    ClassifierTags,
    assert_all_finite,
    column_or_1d,
    get_tags,
    indexable,
)
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    check_is_fitted,
    validate_data,
)
from tqdm.auto import tqdm

from .._random import RANDOM_STATE_CONSTRAINT, RandomStateLike, seed_sequence
from .._validation import (
    check_sample_weight,
    encode_clusters,
    encode_labels,
    unique_labels,
)
from ..calibration import CalibratedClassifier, PlattCalibrator
from ..metrics._as_metric import as_metric
from ..metrics._registry import METRICS, Metric
from ._run_splits import Split, StudyRows, known_groups, make_splits, shared_clusters
from ._run_tests import gap_means, run_tests
from ._runs import Plan, Run, check_failures, perform, weight_params
from ._tables import group_table, quiet, tidy, unusable

# Those of the calibration-bias study.
STUDY_METRICS = (
    "roc_auc",
    "average_precision",
    "normalized_average_precision",
    "balanced_accuracy_at_threshold",
    "expected_calibration_error",
    "maximum_calibration_error",
    "adaptive_calibration_error",
    "log_loss",
    "brier_score_loss",
    "calibration_loss_log_loss",
    "calibration_loss_brier",
)


class SubgroupAuditor(MetaEstimatorMixin, BaseEstimator):
    """Train a classifier again and again, and audit its calibration by group.

    Each run trains on one part of the rows, fits a calibrator on a second and scores a
    third by sensitive group: on all rows of the group, and on subsamples as large as
    the smallest group. Patients stay on one side.

    Parameters
    ----------
    estimator : classifier, default=None
        Has `predict_proba`, or a `decision_function` whose values are then read as
        log-odds. By default logistic regression on standardised features.
    metrics : sequence of str or callable, default=None
        Names from `skcalfair.metrics.metric_table`, or functions
        ``metric(y_true, y_prob)`` with y_true in {0, 1}. By default the eleven of the
        study [1]_. Scores are evaluated as they come, uncalibrated;
        ``"calibration_loss_log_loss"`` and ``"calibration_loss_brier"`` are what the
        calibrator of the run takes away from log loss and Brier score.
    calibrator : transformer, default=None
        Fitted on the validation rows' log-odds or decision scores, of shape
        (n_samples, 1), and their outcomes in {0, 1}; gives probabilities. By default
        `PlattCalibrator` with unsmoothed targets, the maximum-likelihood fit.
    cv : int, splitter or iterable, default=None
        Rows of the runs. None is ``NestedStratifiedGroupKFold(5, 5)``: 25 runs. Other
        splitters and iterables give (train, validation, test) or (train, test); of the
        latter's training rows a fifth (stratified, patients whole) is held out for the
        calibrator. An int k stands for k test folds, with one run each.
    size_match : "smallest", int or None, default="smallest"
        Rows of the subsamples in each run: those of the smallest group of the run that
        can be used, a number, or no subsamples.
    n_resamples : int, default=100
        Subsamples of each larger group in each run.
    min_group_size : int, default=10
        Groups with fewer test rows are not estimable in a run.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; by default the greater of the two sorted labels.
    store_estimators : bool, default=False
        Keep the fitted classifiers and calibrators.
    n_jobs : int, default=None
        Runs at the same time; the result does not depend on it.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the default splits, of the subsamples, and of every `random_state` of
        the classifier that is None.
    progress : bool, default=None
        Whether to show a progress bar; by default only in a terminal.

    Attributes
    ----------
    results_ : DataFrame
        One row per run, group, metric and sampling: `run`, `fold` (number of the test
        fold), `group`, `metric`, `sampling` ("naive": all test rows of the group;
        "size_matched": subsamples of them), `size` in rows, `value` (the mean over
        subsamples) and the `reason` where it is not estimable.
    predictions_ : DataFrame
        One row per run and test row: `run`, `fold`, `row` (its position in X),
        `outcome` (1 for the positive class), `score` (probability by the classifier),
        `calibrated` (by the calibrator), `group`, `cluster` (code of its `groups`; the
        row itself without them) and `sample_weight`.
    tests_ : DataFrame
        Result of `compare`: each group against the largest.
    gaps_ : DataFrame
        One row per metric and pair of groups: `group`, `reference` (the larger of the
        two), the mean over runs of the difference of `group` from `reference` on all
        rows (`naive`) and at equal size (`size_matched`), the number of runs each
        could be estimated in (`n_naive`, `n_size_matched`), and whether the metric is
        `size_robust`.
    runs_ : DataFrame
        One row a run: `run`, `fold`, `n_train`, `n_validation`, `n_test` (rows of
        known group) and the `reason` why it could not be fitted.
    groups_ : DataFrame
        One row a group: `group`, `n`, `positives`, `clusters`, and the `reason` where
        it cannot be used even as a whole. Several features have columns of their own.
    classes_ : ndarray of shape (2,)
        The two labels, sorted.
    pos_label_ : int, float, bool or str
        Label of the positive class.
    estimators_ : list
        Fitted classifier of each run, None where it failed; with
        ``store_estimators=True`` only.
    calibrators_ : list
        Fitted calibrator of each run; with ``store_estimators=True`` only.
    n_features_in_ : int
        Number of features seen by the classifier, if it says so.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features seen by the classifier, if it says so.

    See Also
    --------
    audit_scores : Audit scores that already exist.
    skcalfair.model_selection.NestedStratifiedGroupKFold : The default splits.

    Notes
    -----
    Rows whose sensitive feature is missing train and calibrate, but are left out of the
    test. Rows of weight zero are not there.

    A run whose classifier cannot be fitted, or a calibrator that cannot be, leaves its
    values "not estimable" with the reason, and the study goes on. Only when no run at
    all can be fitted is the first error raised.

    Gaps and tests depend on what was done: the runs that share a test fold differ only
    in their training rows. `compare` allows for that by default.

    A calibration loss by the held-out map measures what *that* map, fitted to everyone,
    gains for a group. It is not the group's own calibration loss, and can be negative.

    Sample weights reach the classifier where it takes them (in a pipeline, each step
    that does), the calibrator and the metrics. With metadata routing enabled, the
    classifier gets what it requests.

    References
    ----------
    .. [1] Ricci Lara, M. A., Mosquera, C., Ferrante, E. and Echeveste, R. (2023).
       "Towards unraveling calibration biases in medical image analysis".
       arXiv:2305.05101.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skcalfair.audit import SubgroupAuditor
    >>> X, y = make_classification(600, flip_y=0.3, random_state=0)
    >>> site = ["A"] * 500 + ["B"] * 100
    >>> auditor = SubgroupAuditor(
    ...     metrics=["expected_calibration_error", "brier_score_loss"],
    ...     cv=3,
    ...     random_state=0,
    ... ).fit(X, y, sensitive_features=site)
    >>> columns = ["metric", "group", "reference", "naive", "size_matched"]
    >>> auditor.gaps_[columns].round(2)
                           metric group reference  naive  size_matched
    0  expected_calibration_error     B         A   0.12          0.04
    1            brier_score_loss     B         A   0.04          0.04
    """

    _parameter_constraints: dict = {
        "estimator": [
            HasMethods(["fit", "predict_proba"]),
            HasMethods(["fit", "decision_function"]),
            None,
        ],
        "metrics": ["array-like", str, None],
        "calibrator": [HasMethods(["fit", "transform"]), None],
        "cv": ["cv_object", HasMethods(["split_nested"])],
        "size_match": [
            StrOptions({"smallest"}),
            Interval(Integral, 1, None, closed="left"),
            None,
        ],
        "n_resamples": [Interval(Integral, 1, None, closed="left")],
        "min_group_size": [Interval(Integral, 1, None, closed="left")],
        "pos_label": [Real, str, "boolean", None],
        "store_estimators": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": RANDOM_STATE_CONSTRAINT,
        "progress": ["boolean", None],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        metrics: Sequence[str | Callable] | None = None,
        calibrator: Any = None,
        cv: Any = None,
        size_match: str | int | None = "smallest",
        n_resamples: int = 100,
        min_group_size: int = 10,
        pos_label: Any = None,
        store_estimators: bool = False,
        n_jobs: int | None = None,
        random_state: RandomStateLike = None,
        progress: bool | None = None,
    ) -> None:
        self.estimator = estimator
        self.metrics = metrics
        self.calibrator = calibrator
        self.cv = cv
        self.size_match = size_match
        self.n_resamples = n_resamples
        self.min_group_size = min_group_size
        self.pos_label = pos_label
        self.store_estimators = store_estimators
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train, calibrate and score every run.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, ...)
            Data as the classifier takes it: a frame, images, a list of paths; only the
            number of rows is checked here.
        y : array-like of shape (n_samples,)
            Labels of two classes.
        sensitive_features : array-like, Series, dict or DataFrame, default=None
            Group of each row; several columns intersect. Rows where it is missing
            train but are not tested. By default all rows are one group, "all".
        groups : array-like of shape (n_samples,), default=None
            Patient of each row, for example: kept on one side by the default splits,
            subsampled whole, and the unit of the tests.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights.

        Returns
        -------
        SubgroupAuditor
            The fitted auditor itself.

        Raises
        ------
        ValueError
            For input that does not fit.
        Exception
            If no run can be fitted: the error of the first one.

        Warns
        -----
        FitFailedWarning
            If some runs cannot be fitted.
        UserWarning
            If patients are on two sides of a split, or the classifier does not take
            weights or has no probabilities.
        """
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is "
                "None"
            )
        if self.estimator is None:
            # Other classifiers know best what they take.
            X = validate_data(self, X, dtype=np.float64)
        X, y = indexable(X, y)
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        rows = self._rows(y, sensitive_features, groups, sample_weight)
        metadata = {"groups": groups, "sensitive_features": sensitive_features}
        plan, metadata = self._plan(rows, metadata)
        split_seed, run_seed = seed_sequence(self.random_state).spawn(2)
        splits = make_splits(self.cv, X, rows, metadata, split_seed)
        self._warn_of_leaks(splits, rows)
        seeds = run_seed.spawn(len(splits))
        runs = self._perform(X, rows, splits, plan, seeds)
        check_failures(runs)
        self._keep(runs, splits, rows, plan)
        return self

    def compare(self, *, method: str = "pooled", reference: Any = None) -> pd.DataFrame:
        """Test the difference of each group from a reference group.

        Parameters
        ----------
        method : str, default="pooled"
            How the runs are brought together:

            - "pooled": for metrics that are a mean over rows (Brier score, log loss and
              their calibration losses), what each row adds is averaged over the runs
              that test it, and the rows of two groups are compared by Welch's test with
              the variance between patients (``groups``), corrected for skewness [2]_.
              Other metrics fall back on "t_fold_means".
            - "pooled_welch": the same without the correction.
            - "t_fold_means": Student's t test of the gaps, averaged over the runs of
              each test fold.
            - "wilcoxon_as_published": Wilcoxon's signed rank test with each run as a
              pair, as in [1]_. Runs that share a test fold are not independent, so
              that it rejects far too often; here to reproduce published results.

        reference : object, default=None
            Group to compare the others with; by default the largest.

        Returns
        -------
        DataFrame
            One row per metric, group and sampling: `metric`, `group`, `reference`,
            `sampling`, `method` (the one used), the `unit` that is compared ("row",
            "cluster", "fold" or "run") and the number of them (`n_units`), `statistic`,
            two-sided `p_value` (not adjusted for the number of tests) and `note`.

        Raises
        ------
        ValueError
            If the method or the reference is not known.

        Notes
        -----
        In simulated studies without a true gap (1,494 rows, 20 times more in one group,
        5 test folds of 5 runs), tests at the level of 5 % rejected: Wilcoxon over runs
        100 % for the ECE on all rows, 19 to 26 % for the size-matched ECE and 40 % for
        the Brier score; t on the means of the folds 5 to 6 % for the size-matched ECE.
        Pooled tests of the Brier score, the log loss and their calibration losses
        rejected 4 to 7 %, without the correction up to 8 %, nearly all on one side.
        With less than 20 rows of a class in a group they rejected up to 10 %; the
        `note` says so. No p value makes the difference of a size-biased metric on all
        rows one of the groups: see the `note` there, and "size_matched".

        References
        ----------
        .. [1] Ricci Lara, M. A., Mosquera, C., Ferrante, E. and Echeveste, R. (2023).
           "Towards unraveling calibration biases in medical image analysis".
           arXiv:2305.05101.
        .. [2] P. Hall, "On the removal of skewness by transformation", Journal of the
           Royal Statistical Society B 54(1), 1992.
        """
        check_is_fitted(self)
        return run_tests(
            self.results_,
            self.predictions_,
            method=method,
            reference=reference,
            clustered=self._clustered,
            min_rows=self.min_group_size,
        )

    def get_metadata_routing(self) -> MetadataRouter:
        """Which metadata goes to the classifier and to the splitter.

        Returns
        -------
        MetadataRouter
            See scikit-learn's user guide on metadata routing.
        """
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                estimator=self._estimator(),
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
            .add(
                splitter=self.cv,
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        # Not a classifier, but what is said about its target holds here as well.
        tags.classifier_tags = ClassifierTags(multi_class=False)
        tags.no_validation = self.estimator is not None  # X is left to the classifier
        of_estimator = get_tags(self._estimator()).input_tags
        tags.input_tags.sparse = of_estimator.sparse
        tags.input_tags.pairwise = of_estimator.pairwise
        tags.input_tags.allow_nan = of_estimator.allow_nan
        return tags

    def _estimator(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        scaler, classifier = StandardScaler(), LogisticRegression()
        if _routing_enabled():
            scaler.set_fit_request(sample_weight=True)
            classifier.set_fit_request(sample_weight=True)
        return make_pipeline(scaler, classifier)

    def _rows(
        self, y: NDArray, sensitive_features: Any, groups: Any, sample_weight: Any
    ) -> StudyRows:
        """Validate everything but X; set the two classes."""
        n = len(y)
        weights = check_sample_weight(sample_weight, n)
        kept = np.arange(n) if weights is None else np.flatnonzero(weights)
        labels = unique_labels(y[kept], "y")
        if len(labels) != 2:
            found = "only one class" if len(labels) == 1 else f"{len(labels)} classes"
            raise ValueError(
                f"y must hold two classes; got {found}: {labels.tolist()[:5]}"
            )
        wanted = labels.tolist()[1] if self.pos_label is None else self.pos_label
        _, self.pos_label_ = encode_labels(y[kept], wanted, "y")
        self.classes_ = labels
        return StudyRows(
            y=y,
            labels=labels.tolist(),
            outcome=(y == self.pos_label_).astype(np.uint8),
            pos_label=self.pos_label_,
            groups=known_groups(sensitive_features, n, kept),
            clusters=None if groups is None else encode_clusters(groups, n, "groups"),
            weights=weights,
            kept=kept,
        )

    def _plan(
        self, rows: StudyRows, metadata: dict[str, Any]
    ) -> tuple[Plan, dict[str, Any]]:
        estimator = self._estimator()
        fit_params, metadata = self._route(estimator, rows.weights, metadata)
        if not hasattr(estimator, "predict_proba"):
            warnings.warn(
                f"{type(estimator).__name__} has no predict_proba: its decision scores "
                "are read as log-odds; metrics of uncalibrated scores depend on that",
                stacklevel=4,
            )
        default = PlattCalibrator(input="log_odds", smooth_targets=False)
        calibrator = default if self.calibrator is None else self.calibrator
        plan = Plan(
            estimator,
            CalibratedClassifier(calibrator=calibrator)._new_calibrator(),
            _as_metrics(self.metrics),
            self.size_match,
            self.n_resamples,
            self.min_group_size,
            fit_params,
            self.store_estimators,
        )
        return plan, metadata

    def _route(
        self, estimator: Any, weights: Any, metadata: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Parameters for the classifier's fit and for the splitter."""
        if _routing_enabled():
            given = metadata | {"sample_weight": weights}
            given = {name: v for name, v in given.items() if v is not None}
            routed = process_routing(self, "fit", **given)
            own = self.cv is None or isinstance(self.cv, Integral)
            return routed.estimator.fit, metadata if own else routed.splitter.split
        if weights is None:
            return {}, metadata
        params = weight_params(estimator, weights)
        if not params and not isinstance(estimator, FrozenEstimator):
            warnings.warn(
                f"{type(estimator).__name__} does not accept sample_weight: the "
                "weights are used for the calibration and the metrics only",
                stacklevel=5,
            )
        return params, metadata

    def _warn_of_leaks(self, splits: list[Split], rows: StudyRows) -> None:
        leaks = shared_clusters(splits, rows)
        if leaks:
            warnings.warn(
                f"in {leaks} of {len(splits)} runs a value of groups is in more than "
                "one of the training, validation and test rows: scores are too good. "
                "Use a splitter by group",
                stacklevel=4,
            )

    def _perform(
        self,
        X: Any,
        rows: StudyRows,
        splits: list[Split],
        plan: Plan,
        seeds: list[np.random.SeedSequence],
    ) -> list[Run]:
        """Train, calibrate and score every run."""
        parallel = Parallel(n_jobs=self.n_jobs, return_as="generator")
        done = parallel(
            delayed(perform)(number, X, rows, split, plan, seed)
            for number, (split, seed) in enumerate(zip(splits, seeds, strict=True))
        )
        options = {"desc": "runs", "disable": quiet(self.progress), "leave": False}
        return list(tqdm(done, total=len(splits), **options))

    def _keep(
        self, runs: list[Run], splits: list[Split], rows: StudyRows, plan: Plan
    ) -> None:
        """Set the fitted attributes."""
        self.results_ = tidy([value for run in runs for value in run.values])
        self.predictions_ = pd.concat(
            [run.predictions for run in runs], ignore_index=True
        )
        self.runs_ = tidy(
            [
                {
                    "run": number,
                    "fold": split.fold,
                    "n_train": len(split.train),
                    "n_validation": len(split.validation),
                    "n_test": int((rows.groups.codes[split.test] >= 0).sum()),
                    "reason": run.reason,
                }
                for number, (run, split) in enumerate(zip(runs, splits, strict=True))
            ]
        )
        for name in ("estimators_", "calibrators_"):
            self.__dict__.pop(name, None)  # those of an earlier fit
        if self.store_estimators:
            self.estimators_ = [run.model for run in runs]
            self.calibrators_ = [run.calibrator for run in runs]
        fitted = next(run for run in runs if run.reason is None)
        for name, value in fitted.features.items():
            setattr(self, name, value)
        self._clustered = rows.clusters is not None
        self.groups_ = _group_counts(rows, self.min_group_size)
        by_size = self.groups_.sort_values("n", ascending=False, kind="stable")
        robust = {name: metric.size_robust for name, metric in plan.metrics.items()}
        self.gaps_ = gap_means(self.results_, by_size["group"].tolist(), robust)
        self.tests_ = self.compare()


def _as_metrics(
    metrics: str | Sequence[str | Callable] | None,
) -> dict[str, Metric]:
    chosen: Iterable[Any] = STUDY_METRICS if metrics is None else metrics
    if isinstance(chosen, str):
        chosen = [chosen]
    found = {}
    for metric in chosen:
        if isinstance(metric, str):
            if metric not in METRICS:
                raise ValueError(
                    f"metrics must be names of built-in metrics or callables; got "
                    f"{metric!r}. Known are {sorted(METRICS)}"
                )
            own = METRICS[metric]
        else:
            # Built-in functions know their direction; here none needs it.
            known = [m for m in METRICS.values() if m.function is metric]
            own = as_metric(metric, None if known else True, {})
        found[own.name] = own
    if not found:
        raise ValueError("metrics must name at least one metric; got none")
    return found


def _group_counts(rows: StudyRows, min_group_size: int) -> pd.DataFrame:
    zeros = np.zeros(len(rows))
    parts = {}
    for code, label in enumerate(rows.groups.labels):
        own = rows.kept[rows.groups.codes[rows.kept] == code]
        parts[label] = rows.scored(own, zeros[own])
    reasons = {
        label: unusable(len(part), part.clusters, min_group_size)
        for label, part in parts.items()
    }
    return group_table(parts, reasons, rows.groups.names)
