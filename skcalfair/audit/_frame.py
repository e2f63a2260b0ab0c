"""GroupMetricFrame: a fairlearn MetricFrame that matches sizes."""

from typing import Any

import numpy as np
import pandas as pd
from fairlearn.metrics import MetricFrame
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length

from .._random import RandomStateLike, seed_sequence
from .._validation import encode_clusters
from ._compose import compose
from ._fairlearn import DUPLICATE_FEATURE_NAME, as_squeezed_array
from ._frame_bootstrap import bootstrap, check_bootstrap, interval_cache
from ._frame_features import Feature, find_cells, read_features, take_rows, with_values
from ._frame_gaps import Gaps
from ._frame_matched import Matcher
from ._frame_metrics import as_functions, recognise
from ._frame_options import check_fractions, check_frame_options, check_match_on
from ._frame_results import evaluate, positions
from ._frame_sample import Sample, make_weightings
from ._frame_tables import FrameTables


class GroupMetricFrame(MetricFrame):
    """A fairlearn MetricFrame that compares groups at equal size.

    Everything that :class:`fairlearn.metrics.MetricFrame` offers is there under the
    same name and with the same values: `overall`, `by_group`, `group_min`,
    `group_max`, `difference`, `ratio`, their ``*_ci`` forms, control features and
    plotting. Added are results that do not take a small group for a badly calibrated
    one.

    Parameters
    ----------
    metrics : str, callable, list or dict
        A name from `skcalfair.metrics.metric_table`, a callable
        ``metric(y_true, y_pred)``, a list of these, or a dict of them by name. As in
        fairlearn, a single one gives scalars and Series, several give Series and
        DataFrames.
    y_true : array-like of shape (n_samples,)
        True labels.
    y_pred : array-like of shape (n_samples,) or (n_samples, 2)
        Predictions. Built-in metrics need probabilities of the positive class, or
        `predict_proba` output.
    sensitive_features : array-like, Series, dict or DataFrame
        Group of each row; several columns intersect. Names are kept, whatever they
        are.
    control_features : array-like, Series, dict or DataFrame, default=None
        Features to control for: groups are compared, and sizes matched, within their
        levels.
    sample_params : dict, default=None
        Further arrays for the metrics, such as ``{"sample_weight": weights}`` for one
        metric, or a dict of such dicts by metric. Sizes are matched by rows, whatever
        their weights.
    n_boot : int, default=None
        Number of bootstrap samples for the ``*_ci`` results.
    ci_quantiles : list of float, default=None
        Quantiles of the bootstrap samples, needed with `n_boot`.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the bootstrap and of all subsamples.
    clusters : array-like of shape (n_samples,), default=None
        Cluster of each row, for example the patient: whole clusters are resampled,
        and the size-robust metrics leave pairs within a cluster out.
    size_match : "smallest", int or None, default="smallest"
        Number of rows at which groups are compared: that of the smallest group that
        can be used (in `gaps`: of the smaller one of the two), a number, or no
        comparison at equal size.
    match_on : {"rows", "classes"}, default="rows"
        Draw rows whatever their class, or the same number of positives and the same
        number of negatives in every group (`size_match` then counts the rows of each
        class). The
        latter is for AUC, sensitivity and specificity only: it changes the prevalence.
    n_resamples : int, default=1000
        Subsamples of each larger group, at least 40.
    min_group_size : int, default=10
        Groups with fewer rows are not estimable in the results that are added here.
        What is inherited shows every group, as fairlearn does.
    missing : {"raise", "own_group", "drop"}, default="raise"
        What to do with rows where a feature is missing.
    pos_label : int, float, bool or str, default=None
        Label of the positive class for the built-in metrics, scikit-learn's among
        them; needed for text labels.
    n_jobs : int, default=None
        Workers; the results do not depend on it.
    progress : bool, default=None
        Whether to show progress bars; by default only in a terminal.

    Raises
    ------
    ValueError
        For input that does not fit; the message names the argument.

    See Also
    --------
    audit_scores : An audit of built-in metrics in one call.

    Notes
    -----
    Built-in metrics, by name or by function, and the functions of scikit-learn that
    equal them (`roc_auc_score`, `average_precision_score`, `brier_score_loss` and
    `log_loss`) are evaluated by fast kernels that agree with the functions to 1e-12.
    Any other callable is called as fairlearn calls it. The two can be mixed.

    Bootstrap ranges: with a callable among the metrics, samples are drawn one by one,
    as fairlearn draws them from the same seed. Built-in metrics alone take faster
    draws, statistically the same and not number for number; in metrics of pairs of
    rows, a row does not pair with its own copy. With `clusters`, whole clusters are
    drawn.

    `difference` and `ratio` are NaN, and not 0 or 1, where fewer than two of several
    groups can be estimated, for example the AUC of a group of one class.

    The added results are computed when asked for, from rows that the frame keeps: a
    pickle of it holds the scores, until `drop_data` is called.

    Examples
    --------
    >>> from skcalfair.audit import GroupMetricFrame
    >>> from skcalfair.datasets import make_subgroup_scores
    >>> cohort = make_subgroup_scores(random_state=0).frame
    >>> frame = GroupMetricFrame(
    ...     metrics="expected_calibration_error",
    ...     y_true=cohort["outcome"],
    ...     y_pred=cohort["score"],
    ...     sensitive_features=cohort["group"],
    ...     random_state=0,
    ... )
    >>> frame.by_group.round(3)
    group
    dark     0.118
    light    0.016
    Name: expected_calibration_error, dtype: float64
    >>> float(round(frame.difference(), 3))
    0.102
    >>> float(round(frame.size_matched_difference(), 3))
    0.0
    """

    def __init__(
        self,
        *,
        metrics: Any,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        sensitive_features: Any,
        control_features: Any = None,
        sample_params: dict[str, Any] | None = None,
        n_boot: int | None = None,
        ci_quantiles: list[float] | None = None,
        random_state: RandomStateLike = None,
        clusters: ArrayLike | None = None,
        size_match: str | int | None = "smallest",
        match_on: str = "rows",
        n_resamples: int = 1000,
        min_group_size: int = 10,
        missing: str = "raise",
        pos_label: Any = None,
        n_jobs: int | None = None,
        progress: bool | None = None,
    ) -> None:
        check_consistent_length(y_true, y_pred)
        check_frame_options(size_match, match_on, n_resamples, min_group_size, missing)
        raw = {"y_true": as_squeezed_array(y_true), "y_pred": as_squeezed_array(y_pred)}
        functions, given = as_functions(metrics)
        annotated = self._get_annotated_metric_functions(functions, sample_params, raw)
        check_consistent_length(*raw.values())
        n = len(raw["y_true"])
        codes = None if clusters is None else encode_clusters(clusters, n)
        sensitive, controls = self._read_features(
            sensitive_features, control_features, raw["y_true"], missing
        )
        kept = with_values([*controls, *sensitive])
        if kept is not None:
            raw = {name: column[kept] for name, column in raw.items()}
            sensitive = [take_rows(feature, kept) for feature in sensitive]
            controls = [take_rows(feature, kept) for feature in controls]
            codes = None if codes is None else codes[kept]
        asked = [
            recognise(
                name,
                given[name] if name in given else given[""],
                {k: raw[c] for k, c in function.kw_argument_mapping.items()},
            )
            for name, function in annotated.items()
        ]
        found, weightings = make_weightings(asked, raw, codes, pos_label)
        called = {m.name: annotated[m.name] for m in found if m.function is not None}
        cells = find_cells(controls, sensitive)
        sample = Sample(found, raw, called, weightings, codes, cells, pos_label)
        check_match_on(match_on, sample)
        result = evaluate(sample)
        self._result_cache: dict[str, Any] = {}
        self._populate_results(result)
        self._ci_quantiles, self._n_boot = ci_quantiles, n_boot
        self._replicates = None
        quantiles = check_bootstrap(n_boot, ci_quantiles)
        if quantiles:
            # An int serves the bootstrap and, below, everything else.
            self._replicates = bootstrap(sample, n_boot, random_state, n_jobs)
            self._result_cache |= interval_cache(
                sample, self._replicates, quantiles, self._extract_result
            )
        self._sample: Sample | None = sample
        by_group = result.by_group.to_numpy(dtype=object)
        self._values = by_group[positions(cells)]
        self._options: dict[str, Any] = {
            "size_match": size_match,
            "match_on": match_on,
            "n_resamples": n_resamples,
            "min_group_size": min_group_size,
            "seed": seed_sequence(random_state),
            "n_jobs": n_jobs,
        }
        self._progress = progress
        self._computed: dict[Any, Any] = {}
        self._lazy: FrameTables | None = None

    def _read_features(
        self, sensitive: Any, controls: Any, y: NDArray, missing: str
    ) -> tuple[list[Feature], list[Feature]]:
        """Encode the features, and note their names as fairlearn does."""
        read = self._process_features
        first = read_features(read, "sensitive_feature_", sensitive, y, missing)
        second = []
        if controls is not None:
            second = read_features(read, "control_feature_", controls, y, missing)
        self._sf_names = [feature.name for feature in first]
        self._cf_names = (
            None if controls is None else [feature.name for feature in second]
        )
        names = [*self._sf_names, *(self._cf_names or [])]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(DUPLICATE_FEATURE_NAME.format(name))
        return first, second

    def __getstate__(self) -> dict[str, Any]:
        """State for pickling: the rows too, until `drop_data` is called."""
        state = self.__dict__.copy()
        state["_lazy"] = None
        if self._sample is not None:
            state["_sample"] = self._sample.picklable()
        return state

    @property
    def _tables(self) -> FrameTables:
        if self._sample is None:
            raise ValueError(
                "drop_data() was called: the rows are gone, and only what was computed "
                "before is left"
            )
        if self._lazy is None:
            matcher = Matcher(self._sample, **self._options)
            self._lazy = FrameTables(
                self._sample, matcher, self._values, self._replicates, self._progress
            )
        return self._lazy

    def _once(self, key: Any, compute: Any) -> Any:
        """A copy of what `compute` returned when it was first called."""
        if key not in self._computed:
            self._computed[key] = compute(self._tables)
        return self._computed[key].copy()

    @property
    def size_matched(self) -> pd.DataFrame:
        """Every metric by group on subsamples of one size.

        Returns
        -------
        pandas.DataFrame
            One row per group and metric: the features, `group`, `metric`, `size` (rows
            of a subsample), `value` (mean over the subsamples), `low` and `high` (their
            2.5 and 97.5 % points, which are no confidence interval; NaN for a group
            that is taken whole) and the `reason` where the value is not estimable.
            Empty where there is no common size.
        """
        return self._once("size_matched", FrameTables.matched)

    def size_matched_difference(self) -> Any:
        """Largest difference between groups at equal size.

        Returns
        -------
        float, pandas.Series or pandas.DataFrame
            Of the type that `difference` has. NaN where fewer than two groups can be
            estimated.
        """
        found = self._once("difference", lambda tables: tables.matched_difference())
        if self._cf_names is None:
            found = found.iloc[0].rename(None)
        return self._extract_result(found, no_control_levels=False)

    def gaps(self, reference: Any = None) -> pd.DataFrame:
        """Compare groups, on all rows and at equal size.

        Parameters
        ----------
        reference : None, "rest" or a group, default=None
            Compare every pair of groups, every group with all other rows, or every
            group with one of them.

        Returns
        -------
        pandas.DataFrame
            One row per metric and comparison: the control features, `metric`, `group`,
            `reference`, `naive` (difference on all rows), `size` and, for metrics with
            a size bias, `size_matched` (difference of the means over subsamples of that
            size; NaN for those whose expectation hardly depends on size), the 95 %
            confidence interval `low` to `high` with the `p_value` of no gap,
            `p_adjusted` (Holm, over the comparisons of the first metric), whether the
            metric is `exploratory` (any but the first), the `method` of the interval,
            and the `reason` where there is none. The interval is that of the difference
            on all rows for metrics whose expectation hardly depends on size, and of the
            difference at equal size for the expected calibration error.
        """
        key = tuple(reference) if isinstance(reference, list) else reference
        return self._once(("gaps", key), lambda tables: Gaps(tables).against(reference))

    def rarefaction(
        self, fractions: ArrayLike | None = None, *, overall: bool = False
    ) -> pd.DataFrame:
        """Follow the metrics as the sample shrinks.

        Parameters
        ----------
        fractions : array-like of float, default=None
            Parts of the rows, above 0 and up to 1; by default 0.1, 0.2, ... 1.
        overall : bool, default=False
            Subsample all rows instead of each group.

        Returns
        -------
        pandas.DataFrame
            One row per group, metric and fraction: the features, `group`, `metric`,
            `fraction`, `size`, `value` (mean over the subsamples; for the squared
            calibration error of independent rows its exact expectation), `low` and
            `high` (range of 95 % of the subsamples), `method` and `reason`.
        """
        chosen = [0.1 * k for k in range(1, 11)] if fractions is None else fractions
        values = check_fractions(chosen)
        key = ("rarefaction", tuple(values), overall)
        return self._once(key, lambda tables: tables.rarefaction(values, overall))

    def equal_calibration_test(self, method: str = "auto", **options: Any) -> Any:
        """Test whether all groups have one calibration curve.

        Parameters
        ----------
        method : str, default="auto"
            How to test; see `skcalfair.audit.equal_calibration_test`.
        **options : dict
            Further arguments of that function.

        Returns
        -------
        object
            Result of the test; with control features, a dict of results by level.
        """
        # Imported here: the frame does without the test until it is asked for.
        from ._equal_calibration import equal_calibration_test

        seed = np.random.default_rng(self._options["seed"])
        options = dict[str, Any](method=method, random_state=seed) | options
        found = {
            level: equal_calibration_test(**rows, **options)
            for level, rows in self._tables.rows_by_level().items()
        }
        return found if self._cf_names else found[()]

    def to_frame(self) -> pd.DataFrame:
        """Every number by group in one long table.

        Returns
        -------
        pandas.DataFrame
            One row per group that has rows, metric and sampling ("naive": all rows;
            "size_matched": subsamples): the features, `group`, `n`, `positives`,
            `clusters`, `metric`, `sampling`, `size`, `value`, `low`, `high`, the
            `method` of that range (a confidence interval for all rows) and the
            `reason` where the value is not estimable or has no interval.
        """
        return self._once("long", lambda tables: tables.long(self.size_matched))

    def summary(self, reference: Any = None) -> str:
        """Describe the audit in words and tables.

        Parameters
        ----------
        reference : None, "rest" or a group, default=None
            What groups are compared with, as in `gaps`; by default two groups with each
            other, and several with the rest.

        Returns
        -------
        str
            Text for a terminal: values by group, and for each metric the gap on all
            rows, the part that sample size explains, what remains with its interval and
            p-value, the test of equal calibration, and what this amounts to.
        """
        return compose(self, reference).summary()

    def drop_data(self) -> "GroupMetricFrame":
        """Forget the rows, so that a pickle holds no scores.

        Returns
        -------
        GroupMetricFrame
            The frame itself. What was computed before stays; the rest is an error.
        """
        self._sample = self._lazy = None
        return self
