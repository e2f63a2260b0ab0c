"""DominanceTable: who decides better, at which cost and prevalence."""

from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    OneToOneFeatureMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .._random import RANDOM_STATE_CONSTRAINT, RandomStateLike, child_seeds
from .._validation import (
    check_cost_ratio,
    check_prevalence,
    check_sample_weight,
    encode_clusters,
    encode_two_classes,
)
from ._bootstrap import GRID, bootstrap_study
from ._breakpoints import (
    breakpoint_frame,
    breakpoints,
    fieller_from_cases,
    fieller_from_points,
    vertex_calls,
)
from ._cases import Cases
from ._columns import (
    check_calls,
    check_scores,
    encode_text_calls,
    find_codings,
    find_roles,
    may_hold_text,
    reader_calls,
    text_labels,
    whole_weights,
)
from ._costs import as_prevalences, gradient
from ._cross_fit import cross_fit
from ._decision import OptimalDecision, decide
from ._operating_points import OperatingPoints
from ._pooled import ALWAYS, TRIVIAL, PooledHull, check_names
from ._table import CONVENTIONS, dominated_frame, hull_frame, table_frame
from ._words import describe

Floats = NDArray[np.float64]


class DominanceTable(
    OneToOneFeatureMixin, TransformerMixin, ClassifierMixin, BaseEstimator
):
    """Who decides best, at which cost and prevalence: models against readers.

    A reader has one operating point, a model one for each threshold. The dominance
    table compares points with points: for every cost-prevalence gradient (CPG) it names
    who decides at the least expected cost. At a chosen prevalence and cost ratio the
    estimator makes that decision.

    Parameters
    ----------
    readers : list of str or int, or dict, default=None
        Columns of human readers, by name or position; the other columns are models. A
        dict maps every reader to the threshold from which on a rating is a positive
        call, or to None for calls. By default all columns of calls (two values: 0 and
        1, or the labels of `y`) are readers.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. By default the greater of the two sorted labels:
        name it where labels are text.
    prevalence : float, default=None
        Share of positives in the population of use, in (0, 1): where `predict` and
        `transform` act. By default that of the sample.
    cost_ratio : float, default=1.0
        Cost of a false positive over that of a false negative, likewise. An assumption
        about the use, nothing to tune: `score` is the accuracy, as of any classifier.
    convention : {"expected_cost", "as_published"}, default="expected_cost"
        How `table` is laid out; see the Notes. `at` and `predict` go by the expected
        cost always.
    n_bootstrap : int, default=0
        Bootstrap samples of the cases for `support_`, `dominance_support_` and
        `breakpoints_`; 0 for none.
    resample_readers : bool, default=False
        Whether the bootstrap draws readers too, as a sample of all readers there could
        be. A named reader then has no support.
    cross_fit : bool, default=False
        Whether to choose on one half of the cases and judge on the other; see
        `cross_fit_`.
    random_state : int, Generator, RandomState or None, default=None
        Seed of bootstrap and halves.
    n_jobs : int, default=None
        Bootstrap blocks run in parallel; the result does not depend on it.

    Attributes
    ----------
    operating_points_ : OperatingPoints
        One point for each reader, and for each model those of its thresholds that can
        matter: the vertices of its own hull, and its best threshold at the specificity
        of each reader.
    hull_ : DataFrame
        One row per vertex of the pooled hull, from low to high gradients: `cpg_from`,
        `cpg_to`, `owner`, `owners`, `threshold`, `sensitivity`, `specificity`.
    table_ : DataFrame
        The dominance table: result of `table()`.
    dominated_ : DataFrame
        Those who are best nowhere: result of `dominated()`.
    pairing_ : DataFrame
        One row per reader: `n_read`, `n_unread`, `positives_read`, `negatives_read`.
        The point of a reader who left cases out rests on other cases than those of the
        models.
    breakpoints_ : DataFrame
        One row for each gradient at which the table changes owner: see the Notes.
    support_ : DataFrame
        With `n_bootstrap`, for each name the share of bootstrap samples in which it has
        a vertex (`on_hull`).
    dominance_support_ : DataFrame
        With `n_bootstrap`, for each gradient of a grid and each name the share of
        samples in which it is best (`cpg`, `name`, `kind`, `support`). For other
        gradients: `dominance_support`.
    cross_fit_ : DataFrame
        With `cross_fit`, per gradient of a grid: the cost of the best on the same cases
        (`in_sample`) and on cases that did not choose it (`cross_fitted`), and the same
        for models and readers apart.
    n_cases_ : int
        Number of cases of positive weight.
    sample_prevalence_ : float
        Weighted share of positive cases among them.
    prevalence_ : float
        Prevalence at which `predict` and `transform` act.
    winners_ : tuple of str
        Who decides best there.
    decision_thresholds_ : ndarray of shape (n_features,)
        Threshold of each column there; NaN for readers' calls.
    classes_ : ndarray of shape (2,)
        The two labels, sorted.
    pos_label_ : int, float, bool or str
        Label of the positive class.
    n_features_in_ : int
        Number of columns seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns seen during `fit`, if all are strings.

    See Also
    --------
    OperatingPoints : Points by themselves.
    compare_mean_reader : A common comparison, and what it gets wrong.

    Notes
    -----
    With N/P the negatives per positive in the population of use, the gradient is ::

        CPG = (N / P) * (cost of a false positive / cost of a false negative)

    and the expected cost of a case at prevalence pi, in costs of a false negative, ::

        pi * (1 - sensitivity) + (1 - pi) * (1 - specificity) * cost ratio

    A vertex of the upper convex hull of all points and the two trivial strategies
    (never and always positive) has the least expected cost exactly for gradients
    between the slopes of its two edges [1]_. Counts are whole numbers, so that ties and
    convexity are decided exactly, and all co-owners are named.

    ``convention="as_published"`` lays the table out as the study that proposed it for
    humans and machines [2]_ printed its own: no rows for the trivial strategies, ranges
    of rates from the previous vertex to the row's, predictive values one vertex ahead,
    and cost ratios of ``CPG * (1 - pi) / pi``. The last contradicts the expected cost,
    which gives ``CPG * pi / (1 - pi)``, the default here.

    `breakpoints_` has, for the change from the vertex `from_owner` (lower gradients)
    to `to_owner`, the gradient `cpg` at which these two points, thresholds held fixed,
    cost the same; its 95 % Fieller set as text (it can be unbounded), with
    `fieller_low` and `fieller_high` (low is above high where the set leaves out what
    lies between them); and the 95 % percentile range over bootstrap samples, but for
    those in which the two change places. The variances of the Fieller set are those of
    the paired decisions, by cluster if there are any, but never below what two cases
    spread over the combinations of the two decisions would leave [4]_: where all
    positives were found, it is not sure that all would be. Bootstrap support is no
    evidence: of two equal readers, one has more than .95 in 8 to 10 % of studies.

    References
    ----------
    .. [1] F. Provost, T. Fawcett and R. Kohavi, "The case against accuracy estimation
       for comparing induction algorithms", Proceedings of the 15th International
       Conference on Machine Learning, 1998.
    .. [2] M. Merry, P. J. Riddle and J. Warren, "Human versus machine: how do we know
       who is winning? ROC analysis for comparing human and machine performance under
       varying cost-prevalence assumptions", Methods of Information in Medicine 61
       (S 01), 2022.
    .. [3] C. Drummond and R. C. Holte, "Cost curves: an improved method for visualizing
       classifier performance", Machine Learning 65, 2006.
    .. [4] A. Agresti and Y. Min, "Simple improved confidence intervals for comparing
       matched proportions", Statistics in Medicine 24, 2005.

    Examples
    --------
    >>> import pandas as pd
    >>> from skcalfair.dominance import DominanceTable
    >>> study = pd.DataFrame(
    ...     {
    ...         "model": [0.1, 0.2, 0.3, 0.4, 0.7, 0.35, 0.45, 0.5, 0.6, 0.9],
    ...         "reader": [0, 0, 0, 0, 0, 1, 1, 1, 1, 0],
    ...     }
    ... )
    >>> truth = [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
    >>> table = DominanceTable().fit(study, truth)
    >>> table.table_[["cpg_from", "cpg_to", "owner", "threshold_from"]].round(2)
       cpg_from  cpg_to   owner  threshold_from
    0       0.0     0.5   model            0.35
    1       0.5     inf  reader             NaN
    >>> table.at(prevalence=0.1, cost_ratio=1.0).winners
    ('reader',)
    """

    _parameter_constraints: dict = {
        "readers": ["array-like", dict, str, Integral, None],
        "pos_label": [Real, str, "boolean", None],
        "prevalence": [Interval(Real, 0, 1, closed="neither"), None],
        "cost_ratio": [Interval(Real, 0, None, closed="neither")],
        "convention": [StrOptions(set(CONVENTIONS))],
        "n_bootstrap": [Interval(Integral, 0, None, closed="left")],
        "resample_readers": ["boolean"],
        "cross_fit": ["boolean"],
        "random_state": RANDOM_STATE_CONSTRAINT,
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        *,
        readers: Iterable[str | int] | Mapping[Any, float | None] | None = None,
        pos_label: Any = None,
        prevalence: float | None = None,
        cost_ratio: float = 1.0,
        convention: str = "expected_cost",
        n_bootstrap: int = 0,
        resample_readers: bool = False,
        cross_fit: bool = False,
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
    ) -> None:
        self.readers = readers
        self.pos_label = pos_label
        self.prevalence = prevalence
        self.cost_ratio = cost_ratio
        self.convention = convention
        self.n_bootstrap = n_bootstrap
        self.resample_readers = resample_readers
        self.cross_fit = cross_fit
        self.random_state = random_state
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        clusters: ArrayLike | None = None,
    ) -> Self:
        """Find who decides best at each gradient.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            One column per model (scores, higher means more likely positive) and per
            reader (calls, or ratings with a threshold named in `readers`). A reader's
            column may have missing values: cases not read. Calls may be given as labels
            of `y`, as text too.
        y : array-like of shape (n_samples,)
            The truth: two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights. By default every case weighs one.
        clusters : array-like of shape (n_samples,), default=None
            Cluster (patient) of each case, drawn as a whole for uncertainty.

        Returns
        -------
        DominanceTable
            The fitted table itself.

        Raises
        ------
        ValueError
            If `y` does not hold two classes, a score is missing or infinite, a reader's
            column holds more than two values and no threshold was stated, or a reader
            read no positive or no negative case.
        """
        cases = self._check_cases(X, y, sample_weight, clusters)
        self._kinds = cases.roles.kinds
        self.pairing_ = cases.pairing
        self.n_cases_, self.sample_prevalence_ = len(cases), cases.prevalence
        self.prevalence_ = (
            cases.prevalence
            if self.prevalence is None
            else check_prevalence(self.prevalence)
        )
        self._set_points(cases.operating_points())
        self._set_decision(cases)
        self._set_uncertainty(cases)
        return self

    @classmethod
    def from_operating_points(
        cls,
        points: Any,
        *,
        prevalence: float | None = None,
        cost_ratio: float = 1.0,
        convention: str = "expected_cost",
    ) -> Self:
        """Make the table of published points.

        Parameters
        ----------
        points : DataFrame, dict of columns or OperatingPoints
            One row per point: the column ``name``, and either the counts ``TP``,
            ``FN``, ``FP``, ``TN`` or the rates ``sensitivity`` and ``specificity``;
            optionally ``kind`` (``"model"`` or ``"reader"``) and ``threshold``.
        prevalence : float, default=None
            Prevalence assumed where `at` is not told one. Without it, `at` needs one.
        cost_ratio : float, default=1.0
            Cost ratio, likewise.
        convention : {"expected_cost", "as_published"}, default="expected_cost"
            How the table is laid out.

        Returns
        -------
        DominanceTable
            A fitted table. It has no columns to act on, so it cannot `predict` or
            `transform`. Intervals of its breakpoints need counts, and take the points
            as those of independent cases.

        Raises
        ------
        ValueError
            As `OperatingPoints.from_frame`, and for a prevalence outside (0, 1), a cost
            ratio that is not positive or an unknown convention.

        Examples
        --------
        >>> import pandas as pd
        >>> from skcalfair.dominance import DominanceTable
        >>> published = pd.DataFrame(
        ...     {
        ...         "name": ["model", "model", "doctor"],
        ...         "sensitivity": [0.95, 0.6, 0.85],
        ...         "specificity": [0.5, 0.95, 0.9],
        ...     }
        ... )
        >>> table = DominanceTable.from_operating_points(published)
        >>> table.table(prevalence=0.2)[["owner", "cpg_to", "cost_ratio_to@0.2"]].round(
        ...     2
        ... )
                     owner  cpg_to  cost_ratio_to@0.2
        0  always positive    0.10               0.02
        1            model    0.25               0.06
        2           doctor    5.00               1.25
        3            model   12.00               3.00
        4   never positive     inf                inf
        """
        if convention not in CONVENTIONS:
            raise ValueError(
                f"convention must be 'expected_cost' or 'as_published'; got "
                f"{convention!r}"
            )
        check_cost_ratio(cost_ratio)
        if prevalence is not None:
            check_prevalence(prevalence)
        if not isinstance(points, OperatingPoints):
            points = OperatingPoints.from_frame(points)
        check_names(points.names)
        table = cls(prevalence=prevalence, cost_ratio=cost_ratio, convention=convention)
        table._kinds = points.kinds
        table._set_points(points)
        changes = breakpoints(table._hull)
        sets = [fieller_from_points(points, change) for change in changes]
        table.breakpoints_ = breakpoint_frame(changes, sets, None)
        return table

    def _check_cases(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, clusters: Any
    ) -> Cases:
        """Validate everything once; cases of zero weight are gone afterwards."""
        if y is not None and may_hold_text(X):
            X = encode_text_calls(X, *text_labels(y, self.pos_label))
        X, y = validate_data(
            self, X, y, dtype=np.float64, ensure_all_finite=False, order="F"
        )
        check_classification_targets(y)
        weights = check_sample_weight(sample_weight, len(y))
        codes = None if clusters is None else encode_clusters(clusters, len(y))
        kept = None
        if weights is not None and not weights.all():
            kept = np.flatnonzero(weights)
            X, y, weights = X[kept], y[kept], weights[kept]
            codes = None if codes is None else codes[kept]
        self.classes_, outcome, self.pos_label_ = encode_two_classes(
            y, self.pos_label, type(self).__name__
        )
        names = self._column_names()
        named = hasattr(self, "feature_names_in_")
        self._roles = find_roles(X, names, self.readers, self.classes_, named)
        check_scores(X, self._roles, kept)
        self._codings = find_codings(X, self._roles, self.classes_, self.pos_label_)
        whole, unit = whole_weights(weights)
        scores, calls = self._split(X)
        return Cases(outcome == 1, scores, calls, self._roles, whole, unit, codes)

    def _column_names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return [f"x{j}" for j in range(self.n_features_in_)]
        check_names(names)
        return [str(name) for name in names]

    def _split(self, X: Floats) -> tuple[list[Floats], list[Floats]]:
        """Columns of scores, and calls as 1, 0 and NaN."""
        calls = [
            reader_calls(X[:, j], self._roles, j, self._codings.get(j))
            for j in self._roles.readers
        ]
        return [X[:, j] for j in self._roles.models], calls

    def _set_points(self, points: OperatingPoints) -> None:
        """Everything that follows from the points alone."""
        self.operating_points_ = points
        self._hull = PooledHull(points)
        self.hull_ = hull_frame(self._hull)
        self.table_ = self.table()
        self.dominated_ = self.dominated()

    def _set_uncertainty(self, cases: Cases) -> None:
        """Intervals, support and cross-fitted costs."""
        # What an earlier fit with other parameters found is not of these cases.
        for name in ("_bootstrap", "support_", "dominance_support_", "cross_fit_"):
            self.__dict__.pop(name, None)
        changes = breakpoints(self._hull)
        decisions = [
            (
                vertex_calls(cases, self.operating_points_, change.lower),
                vertex_calls(cases, self.operating_points_, change.upper),
            )
            for change in changes
        ]
        sets = [fieller_from_cases(cases, calls) for calls in decisions]
        seeds = child_seeds(self.random_state, 2)
        gradients = None
        if self.n_bootstrap:
            result = bootstrap_study(
                cases,
                decisions,
                self.n_bootstrap,
                resample_readers=self.resample_readers,
                random_state=np.random.default_rng(seeds[0]),
                n_jobs=self.n_jobs,
            )
            self._bootstrap = result
            self.support_ = result.support
            self.dominance_support_ = result.dominance(GRID)
            gradients = result.gradients
        self.breakpoints_ = breakpoint_frame(changes, sets, gradients)
        if self.cross_fit:
            self.cross_fit_ = cross_fit(cases, np.random.default_rng(seeds[1]))

    def _set_decision(self, cases: Cases) -> None:
        """What `predict` and `transform` do at the chosen prevalence and costs."""
        cpg = gradient(self.prevalence_, self.cost_ratio)
        best = self._hull.best(cpg)
        self.winners_ = tuple(name for name, _ in best)
        costs = self._hull.costs_by_name(cpg)
        thresholds = np.full(self.n_features_in_, np.nan)
        for j, name in enumerate(self._roles.names):
            if name in costs:
                thresholds[j] = self.operating_points_.threshold[costs[name][1]]
            else:
                # A constant score can only call everybody or nobody.
                thresholds[j] = -np.inf if cpg <= 1 else np.inf
        self.decision_thresholds_ = thresholds

    def table(self, prevalence: float | Iterable[float] | None = None) -> pd.DataFrame:
        """Lay out the dominance table, with columns for assumed prevalences.

        Parameters
        ----------
        prevalence : float or list of float, default=None
            Prevalences in (0, 1) to add columns for.

        Returns
        -------
        DataFrame
            A row for each maximal run of vertices with the same owners, from low to
            high gradients: `cpg_from`, `cpg_to`, `owner` (co-owners joined by " = "),
            `owners` (tuple), `n_points`, and at both ends (`_from`, `_to`)
            `sensitivity`, `specificity` and `threshold` (of the first owner that has
            one). For a prevalence of 0.2, at both ends, `cost_ratio_from@0.2`,
            `ppv_from@0.2`, `npv_from@0.2` and so on; 0/0 is NaN.

        Raises
        ------
        ValueError
            If a prevalence does not lie in (0, 1).
        """
        self._check_has_points()
        prevalences = as_prevalences(prevalence)
        return table_frame(self._hull, self.convention, prevalences)

    def dominated(self, cpg_range: tuple[float, float] = (0.0, np.inf)) -> pd.DataFrame:
        """List those who are best at no gradient, and how far they are from it.

        Parameters
        ----------
        cpg_range : tuple of two floats, default=(0, inf)
            Gradients over which the regret is taken.

        Returns
        -------
        DataFrame
            `name`, `kind`, `sensitivity` and `specificity` (of the point that comes
            nearest), `status`, `by` (names), `regret` and the `cpg` of it. The status
            is "pareto" (a single point of each named is at least as good in both rates
            and better in one), "hull" (only a mixture of two is better), "on an edge"
            (as good as such a mixture: best at one gradient only, in a tie) or "no
            point of its own" (a constant score). The regret is the smallest extra
            normalised expected cost ``[(1 - TPR) + m FPR] / (1 + m)`` over the
            gradients m [1]_.

        Raises
        ------
        ValueError
            If the range is not two rising numbers from 0 on.

        References
        ----------
        .. [1] C. Drummond and R. C. Holte, "Cost curves: an improved method for
           visualizing classifier performance", Machine Learning 65, 2006.
        """
        self._check_has_points()
        try:
            low, high = (float(m) for m in cpg_range)
        except (TypeError, ValueError):
            low, high = np.nan, np.nan
        if not 0.0 <= low <= high:
            raise ValueError(
                f"cpg_range must be two rising numbers from 0 on; got {cpg_range!r}"
            )
        return dominated_frame(self._hull, self._kinds, (low, high))

    def at(
        self, prevalence: float | None = None, cost_ratio: float | None = None
    ) -> OptimalDecision:
        """Say who decides best at one prevalence and cost ratio.

        Parameters
        ----------
        prevalence : float, default=None
            Share of positives in the population of use, in (0, 1). By default the
            estimator's, or else that of the sample.
        cost_ratio : float, default=None
            Cost of a false positive over that of a false negative. By default the
            estimator's.

        Returns
        -------
        OptimalDecision
            The winners and, for everybody at their best threshold there, what happens
            to 1,000 people and what it costs. A model's threshold is the best of those
            that call some and not all.

        Raises
        ------
        ValueError
            If the prevalence does not lie in (0, 1) or is not known, or the cost ratio
            is not positive.
        """
        self._check_has_points()
        if prevalence is None:
            prevalence = getattr(self, "prevalence_", self.prevalence)
        if prevalence is None:
            raise ValueError(
                "prevalence is needed: published points do not say how common the "
                "condition is where the decision is used"
            )
        ratio = self.cost_ratio if cost_ratio is None else cost_ratio
        return decide(
            self._hull,
            self._kinds,
            check_prevalence(prevalence),
            check_cost_ratio(ratio),
        )

    def dominance_support(self, cpg: float | Iterable[float]) -> pd.DataFrame:
        """Say how often each name is best at chosen gradients, over bootstrap samples.

        Parameters
        ----------
        cpg : float or list of float
            Cost-prevalence gradients, from 0 on.

        Returns
        -------
        DataFrame
            As `dominance_support_`: `cpg`, `name`, `kind` and `support`, in [0, 1].

        Raises
        ------
        ValueError
            If a gradient is negative or missing, or the table was fitted without
            `n_bootstrap`.
        """
        check_is_fitted(self, "operating_points_")
        if not hasattr(self, "_bootstrap"):
            raise ValueError(
                "there is no support: fit the table on cases, with n_bootstrap above 0"
            )
        gradients = [float(m) for m in np.atleast_1d(np.asarray(cpg, dtype=float))]
        if not all(m >= 0 for m in gradients):
            raise ValueError(f"cpg must hold numbers from 0 on; got {cpg!r}")
        return self._bootstrap.dominance(gradients)

    def summary(
        self,
        prevalence: float | Iterable[float] | None = None,
        cost_ratio: float | None = None,
    ) -> str:
        """Say the whole table in words.

        Parameters
        ----------
        prevalence : float or list of float, default=None
            Prevalences in (0, 1) to decide at. By default the estimator's, or else that
            of the sample.
        cost_ratio : float, default=None
            Cost of a false positive over that of a false negative. By default the
            estimator's.

        Returns
        -------
        str
            What was compared, the table, the decision at each prevalence, who is
            dominated, what is known of chance, and which reader left cases out.
        """
        self._check_has_points()
        return describe(self, as_prevalences(prevalence), cost_ratio)

    def predict(self, X: Any) -> NDArray:
        """Make the winner's decision.

        Of several winners a model goes before a reader, and an earlier column before a
        later one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The columns seen in `fit`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels.

        Raises
        ------
        ValueError
            If the winning reader did not read a case.
        """
        scores, calls = self._split(self._check_columns(X))
        n = len((scores + calls)[0])
        winner = self._acting_winner()
        if winner in TRIVIAL:
            positive = np.full(n, winner == ALWAYS)
        else:
            j = self._roles.names.index(winner)
            positive = self._decision(j, scores, calls)
        unread = np.isnan(positive)
        if unread.any():
            raise ValueError(
                f"reader {winner!r} decides best at prevalence {self.prevalence_:.3g} "
                f"and cost ratio {self.cost_ratio:g}, but did not read the case at row "
                f"{int(unread.argmax())} ({int(unread.sum())} of {n} are unread)"
            )
        negative_label = self.classes_[self.classes_ != self.pos_label_][0]
        return np.where(positive == 1, self.pos_label_, negative_label).astype(
            self.classes_.dtype
        )

    def transform(self, X: Any) -> Floats:
        """Make every column's decision.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The columns seen in `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            1 where the column decides for positive, 0 for negative, NaN where a reader
            did not read the case. Models decide at `decision_thresholds_`.
        """
        scores, calls = self._split(self._check_columns(X))
        decisions = [
            self._decision(j, scores, calls) for j in range(self.n_features_in_)
        ]
        return np.column_stack(decisions)

    def to_fixed_threshold_classifier(
        self, estimator: Any, *, model: str | None = None, response_method: str = "auto"
    ) -> FixedThresholdClassifier:
        """Put a model's threshold at this prevalence and cost ratio on its classifier.

        Parameters
        ----------
        estimator : classifier
            The classifier whose scores are the model's column; a fitted one goes in as
            ``FrozenEstimator(classifier)``.
        model : str, default=None
            Column of the model. By default the winner, which must be a model then.
        response_method : {"auto", "decision_function", "predict_proba"}, default="auto"
            Which of the classifier's outputs the column holds.

        Returns
        -------
        FixedThresholdClassifier
            The classifier of scikit-learn with that threshold, not fitted.

        Raises
        ------
        ValueError
            If no model decides best, or `model` is not the column of a model.
        """
        check_is_fitted(self, "decision_thresholds_")
        models = [self._roles.names[j] for j in self._roles.models]
        name = self._acting_winner() if model is None else model
        if name not in models:
            what = "decides best here, which" if model is None else "was named, which"
            raise ValueError(
                f"{name!r} {what} is not the column of a model; name one by model=: "
                f"{', '.join(models) or 'there is none'}"
            )
        threshold = float(self.decision_thresholds_[self._roles.names.index(name)])
        return FixedThresholdClassifier(
            estimator,
            threshold=threshold,
            pos_label=self.pos_label_,
            response_method=response_method,
        )

    def _check_has_points(self) -> None:
        check_is_fitted(self, "operating_points_")

    def _check_columns(self, X: Any) -> Floats:
        if hasattr(self, "operating_points_") and not hasattr(self, "_roles"):
            raise NotFittedError(
                "this table was made from operating points and has no columns to "
                "decide from; fit a table on the cases"
            )
        check_is_fitted(self, "decision_thresholds_")
        X = encode_text_calls(X, self.classes_, self.pos_label_)
        X = validate_data(
            self, X, reset=False, dtype=np.float64, ensure_all_finite=False
        )
        check_scores(X, self._roles)
        check_calls(X, self._roles, self.classes_)
        return X

    def _acting_winner(self) -> str:
        models = [self._roles.names[j] for j in self._roles.models]
        return next(
            (name for name in self.winners_ if name in models), self.winners_[0]
        )

    def _decision(self, j: int, scores: list[Floats], calls: list[Floats]) -> Floats:
        """Calls of column j as 1, 0 and NaN."""
        if j in self._roles.readers:
            return calls[list(self._roles.readers).index(j)]
        model = scores[self._roles.models.index(j)]
        return (model >= self.decision_thresholds_[j]).astype(np.float64)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "operating_points_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        # It decides from the columns as they are, and does not learn from them.
        tags.classifier_tags.poor_score = True
        tags.input_tags.allow_nan = False
        return tags
