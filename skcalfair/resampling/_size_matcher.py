"""Size matching of groups as an imbalanced-learn sampler."""

import warnings
from collections.abc import Hashable
from numbers import Integral
from typing import Any, Self

import numpy as np
import pandas as pd
from imblearn.base import BaseSampler
from imblearn.utils import check_target_type
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from .._random import RANDOM_STATE_CONSTRAINT, RandomStateLike, child_seeds
from .._validation import (
    Groups,
    encode_clusters,
    encode_groups,
    unique_labels,
)
from ._clusters import of_clusters
from ._columns import check_floats, check_rows, read_columns
from ._draws import subsample_clusters, subsample_counts

Indices = NDArray[np.intp]


class GroupSizeMatcher(BaseSampler):
    """Subsample the larger groups of a sensitive feature to the smallest one's size.

    An imbalanced-learn sampler that balances groups, not classes: in a pipeline, a
    model is trained on equally many rows of each group.

    Parameters
    ----------
    column : str, int, or list of these, default=None
        Column(s) of X that hold the groups: a name in a DataFrame, or a position.
        Several columns intersect. By default the groups arrive as
        `sensitive_features`.
    sampling_strategy : "smallest" or int, default="smallest"
        Rows of each group: as many as the smallest group has, or this number, which
        every group must have. With ``match_on="classes"`` the rows of each class.
    match_on : {"rows", "classes"}, default="rows"
        "rows" draws from a group whatever the class. "classes" draws class by class, so
        that all groups have equally many rows of each class; this changes the
        prevalence.
    missing : {"raise", "own_group", "drop"}, default="raise"
        What to do with rows whose group is missing: an error, a group of their own, or
        leave them out.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draws.

    Attributes
    ----------
    sample_indices_ : ndarray of shape (n_samples_new,)
        Positions of the rows kept, ascending.
    sampling_strategy_ : dict
        Rows wanted by group (a tuple for several columns), or by (group, class) with
        ``match_on="classes"``. Empty when no groups were known.
    n_features_in_ : int
        Number of columns of X, when it has two dimensions.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns of X, when all are text.

    See Also
    --------
    subsample_counts : The same draws as weights, many at a time.
    skcalfair.audit.audit_scores : Compares groups at matched sizes.

    Notes
    -----
    Rows are drawn without replacement: every subset of a group's rows of the wanted
    size is equally likely. With `clusters`, whole clusters are taken in random order
    as long as they fit, so a group may end a little below the wanted size; a single
    cluster that is larger is taken all the same.

    Without `column`, the matcher asks for `sensitive_features` through scikit-learn's
    metadata routing; `clusters` must be requested by
    ``set_fit_resample_request(clusters=True)``. With `column`, it does not ask for
    them. Inside :class:`imblearn.pipeline.Pipeline` metadata needs routing to be
    enabled; otherwise the pipeline drops it in silence, and the matcher warns and keeps
    all rows. Later steps receive fewer rows, but the pipeline does not shorten their
    metadata: put a step that takes `sample_weight` before the matcher, or leave the
    weights out.

    X may be an array with any number of dimensions (images), a one-dimensional array
    or Series of paths, a sparse matrix, a list, or a pandas or polars frame. Values
    are not looked at, apart from `column`. As everywhere in imbalanced-learn, y holds
    two classes or more.

    Examples
    --------
    >>> import pandas as pd
    >>> from skcalfair.resampling import GroupSizeMatcher
    >>> X = pd.DataFrame({"tone": ["light"] * 8 + ["dark"] * 3, "age": range(11)})
    >>> y = [0, 1] * 5 + [0]
    >>> matcher = GroupSizeMatcher(column="tone", random_state=0)
    >>> X_matched, y_matched = matcher.fit_resample(X, y)
    >>> X_matched["tone"].value_counts().to_dict()
    {'light': 3, 'dark': 3}

    Groups that are not a column of X:

    >>> matcher = GroupSizeMatcher(random_state=0)
    >>> X_matched, y_matched = matcher.fit_resample(
    ...     X[["age"]], y, sensitive_features=X["tone"]
    ... )
    >>> len(X_matched)
    6
    """

    # The base class then leaves y alone: classes are not what is balanced.
    _sampling_type = "bypass"

    _parameter_constraints: dict = {
        "column": [str, Integral, list, tuple, None],
        "sampling_strategy": [
            StrOptions({"smallest"}),
            Interval(Integral, 1, None, closed="left"),
        ],
        "match_on": [StrOptions({"rows", "classes"})],
        "missing": [StrOptions({"raise", "own_group", "drop"})],
        "random_state": RANDOM_STATE_CONSTRAINT,
    }

    def __init__(
        self,
        *,
        column: str | int | list | tuple | None = None,
        sampling_strategy: str | int = "smallest",
        match_on: str = "rows",
        missing: str = "raise",
        random_state: RandomStateLike = None,
    ) -> None:
        super().__init__(sampling_strategy=sampling_strategy)
        self.column = column
        self.match_on = match_on
        self.missing = missing
        self.random_state = random_state

    # Named parameters would be metadata of `fit` as well, which pipelines route too.
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, **params: Any) -> Self:
        """Check the input and choose the rows, without returning them.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, ...)
            Data, one row for each sample.
        y : array-like of shape (n_samples,)
            Class labels.
        **params : dict
            `sensitive_features` and `clusters`, as for `fit_resample`.

        Returns
        -------
        GroupSizeMatcher
            The matcher itself.
        """
        self._choose(*self._check_X_y(X, y)[:2], **params)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_resample(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        clusters: ArrayLike | None = None,
    ) -> tuple[Any, Any]:
        """Keep equally many rows of each group.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, ...)
            Data, one row for each sample.
        y : array-like of shape (n_samples,)
            Class labels, two or more.
        sensitive_features : array-like, Series, dict or DataFrame, default=None
            Group of each row; several columns intersect.
        clusters : array-like of shape (n_samples,), default=None
            Cluster of each row, for example the patient; clusters are kept or left out
            as a whole.

        Returns
        -------
        X_resampled : same type as X
            The rows kept, in their order.
        y_resampled : same type as y
            Their labels.

        Raises
        ------
        ValueError
            If a column is not there, a group is smaller than asked for or lacks a class
            that is matched, a group is missing, or a cluster spans groups.

        Warns
        -----
        UserWarning
            If there is neither `column` nor `sensitive_features`, so that all rows are
            kept, or if there is only one group.
        """
        checked, labels, _ = self._check_X_y(X, y)
        self._choose(
            checked, labels, sensitive_features=sensitive_features, clusters=clusters
        )
        if not self.sampling_strategy_:
            warnings.warn(
                f"{type(self).__name__} keeps all rows: it has no column= and received "
                "no sensitive_features. Name column(s) of X by column=, or pass "
                "sensitive_features= to fit_resample. A pipeline passes them only with "
                "sklearn.set_config(enable_metadata_routing=True) and where the "
                "matcher requests them, set_fit_resample_request("
                "sensitive_features=True); with routing off, it drops them in silence",
                stacklevel=3,  # past scikit-learn's wrapper
            )
        return self._fit_resample(
            X if isinstance(X, list) else checked,
            y if isinstance(y, list) or hasattr(y, "shape") else labels,
        )

    def _fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]:
        rows = self.sample_indices_
        return _safe_indexing(X, rows), _safe_indexing(y, rows)

    def _check_X_y(self, X: Any, y: Any) -> tuple[Any, NDArray, bool]:
        """X that rows can be taken of, the labels, and whether y had a column each."""
        # Feature counts and names, and the one message for a missing y.
        validate_data(self, X=X, y=y, skip_check_array=True, ensure_2d=False)
        X = check_rows(X)
        self._count_features(X)
        check_classification_targets(y)
        y = y.to_numpy() if hasattr(y, "columns") else y
        labels, one_vs_all = check_target_type(y, indicate_one_vs_all=True)
        check_consistent_length(X, labels)
        if len(unique_labels(labels, "y")) < 2:
            raise ValueError(
                "y must hold two classes or more, as in every sampler of "
                f"imbalanced-learn; got 1 class: {labels[0]!r}"
            )
        return X, labels, one_vs_all

    def _count_features(self, X: Any) -> None:
        shape: tuple[int, ...] = getattr(X, "shape", ())
        if len(shape) == 2:
            self.n_features_in_ = shape[1]
        elif hasattr(self, "n_features_in_"):
            del self.n_features_in_

    def _choose(
        self,
        X: Any,
        labels: NDArray,
        sensitive_features: Any = None,
        clusters: ArrayLike | None = None,
    ) -> None:
        """Set which rows are kept."""
        n = len(labels)
        codes = None if clusters is None else encode_clusters(clusters, n)
        features = self._features(X, sensitive_features)
        if features is None:
            self.sampling_strategy_: dict[Hashable, int] = {}
            self.sample_indices_: Indices = np.arange(n)
            return
        name = "sensitive_features" if self.column is None else "column"
        groups = encode_groups(features, n, missing=self.missing, name=name)
        if not groups.labels:
            raise ValueError("no row has a group: all values are missing")
        if len(groups.labels) == 1 and self.sampling_strategy == "smallest":
            warnings.warn(
                f"there is only one group, {groups.labels[0]!r}: nothing to match",
                stacklevel=4,  # past scikit-learn's wrapper
            )
        cells, names, wanted = self._cells(groups, labels)
        self.sampling_strategy_ = dict(zip(names, wanted, strict=True))
        self.sample_indices_ = self._draw(cells, wanted, codes)

    def _features(self, X: Any, sensitive_features: Any) -> Any:
        if self.column is None:
            return sensitive_features
        if sensitive_features is not None:
            raise ValueError(
                f"the groups come from column={self.column!r} of X or from "
                "sensitive_features, but both were given; with metadata routing, "
                "set_fit_resample_request(sensitive_features=False) keeps the latter "
                "for other steps"
            )
        columns = read_columns(X, self.column)
        for key, values in columns.items():
            check_floats(values, key, self.missing)
        return columns

    def _cells(
        self, groups: Groups, labels: NDArray
    ) -> tuple[Indices, list[Hashable], list[int]]:
        """Cell of each row (-1 for none), name of each cell, and rows wanted of it."""
        cells, names = groups.codes, list(groups.labels)
        classes = [None]
        if self.match_on == "classes":
            found = unique_labels(labels[cells >= 0], "y")
            classes = found.tolist()
            position = pd.Index(found).get_indexer(pd.Index(labels))
            cells = np.where(cells < 0, -1, cells * len(classes) + position)
            names = [(group, label) for group in groups.labels for label in classes]
        sizes = np.bincount(cells[cells >= 0], minlength=len(names))
        sizes = sizes.reshape(len(groups.labels), len(classes))
        smallest = sizes.min(axis=0)
        wanted = smallest
        if self.sampling_strategy != "smallest":
            wanted = np.full(len(classes), self.sampling_strategy)
        short = np.argwhere((sizes < wanted) | (sizes == 0))
        if short.size:
            group, label = short[0]
            of = "" if classes == [None] else f" of class {classes[label]!r}"
            need = "at least one" if not wanted[label] else f"the {wanted[label]}"
            raise ValueError(
                f"group {groups.labels[group]!r} has {sizes[group, label]} rows{of}, "
                f"but {need} of sampling_strategy={self.sampling_strategy!r} is needed "
                f"in every group; the smallest has {smallest[label]}"
            )
        return cells, names, np.tile(wanted, len(groups.labels)).tolist()

    def _draw(
        self, cells: Indices, wanted: list[int], clusters: Indices | None
    ) -> Indices:
        order = np.argsort(cells, kind="stable")[np.count_nonzero(cells < 0) :]
        if clusters is not None and order.size:
            _, known = np.unique(clusters[order], return_inverse=True)
            of_clusters(cells[order], known, *_SPANNING[self.match_on])
        ends = np.cumsum(np.bincount(cells[order], minlength=len(wanted)))
        seeds = child_seeds(self.random_state, len(wanted))
        kept = []
        for rows, size, seed in zip(
            np.split(order, ends[:-1]), wanted, seeds, strict=True
        ):
            rng = np.random.default_rng(seed)
            if clusters is None:
                counts = subsample_counts(len(rows), size, 1, random_state=rng)
            else:
                counts = subsample_clusters(clusters[rows], size, 1, random_state=rng)
            kept.append(rows[counts[0] > 0])
        return np.sort(np.concatenate(kept))

    def _get_metadata_request(self) -> Any:
        requests = super()._get_metadata_request()
        if not hasattr(self, "_metadata_request"):  # nothing was set by the user
            requests.fit_resample.add_request(
                param="sensitive_features", alias=self.column is None
            )
        return requests

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Only the groups themselves may not be NaN.
        tags.input_tags.allow_nan = self.column is None or self.missing != "raise"
        tags.input_tags.string = True
        tags.sampler_tags.sample_indices = True
        return tags


# What a cluster must not span, and what to do about it.
_SPANNING = {
    "rows": (
        "group",
        "whole clusters cannot be matched then. Leave clusters out, or give the part "
        "in each group a cluster of its own",
    ),
    "classes": (
        "group and class",
        "match_on='classes' cannot keep such clusters whole. Leave clusters out, or "
        "match on rows",
    ),
}
