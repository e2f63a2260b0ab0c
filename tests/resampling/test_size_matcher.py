"""GroupSizeMatcher: an imbalanced-learn sampler that balances a sensitive feature."""

import pickle
import subprocess
import sys
import warnings
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from imblearn.base import is_sampler
from imblearn.pipeline import Pipeline, make_pipeline
from imblearn.under_sampling import RandomUnderSampler
from imblearn.utils.estimator_checks import (
    parametrize_with_checks as parametrize_with_imblearn_checks,
)
from joblib import parallel_config
from scipy import sparse
from scipy.stats import chisquare
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from skcalfair.metrics import make_group_scorer
from skcalfair.resampling import GroupSizeMatcher

MATCHERS = [
    GroupSizeMatcher(),
    GroupSizeMatcher(column=0, random_state=0),
    GroupSizeMatcher(column=[0, -1], missing="own_group", random_state=0),
]


@pytest.mark.filterwarnings("ignore:GroupSizeMatcher keeps all rows")
@parametrize_with_imblearn_checks(MATCHERS)
def test_imbalanced_learn_contract(estimator, check):
    check(estimator)


@parametrize_with_checks(MATCHERS)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def cohort(sizes=(40, 9), rng=0):
    """Frame with a group, a patient of one to three rows, and a feature; and y."""
    rng = np.random.default_rng(rng)
    group = np.repeat([f"g{i}" for i in range(len(sizes))], sizes)
    patient = np.concatenate(
        [np.arange(n) // 3 + 1000 * i for i, n in enumerate(sizes)]
    )
    order = rng.permutation(len(group))
    X = pd.DataFrame(
        {"group": group, "patient": patient, "x": rng.normal(size=len(group))}
    ).iloc[order]
    return X, pd.Series(np.arange(len(X)) % 2, index=X.index, name="y")


def sizes_of(groups):
    return dict(Counter(np.asarray(groups).tolist()))


# -- what is kept ---------------------------------------------------------------------


@given(
    codes=st.lists(st.sampled_from("abcd"), min_size=2, max_size=60),
    seed=st.integers(0, 99),
)
def test_every_group_has_the_size_of_the_smallest(codes, seed):
    if len(set(codes)) < 2:
        codes = [*codes, "z"]
    y = [0, 1] + [0] * (len(codes) - 2)
    matcher = GroupSizeMatcher(random_state=seed)
    rows, labels = matcher.fit_resample(
        np.arange(len(codes))[:, np.newaxis], y, sensitive_features=codes
    )
    smallest = min(Counter(codes).values())
    kept = rows[:, 0]
    assert Counter(np.array(codes)[kept]) == dict.fromkeys(codes, smallest)
    assert matcher.sampling_strategy_ == dict.fromkeys(codes, smallest)
    np.testing.assert_array_equal(kept, matcher.sample_indices_)
    assert (np.diff(kept) > 0).all()  # in their order, none twice
    np.testing.assert_array_equal(labels, np.array(y)[kept])


def test_every_subset_is_equally_likely():
    y = [0, 1, 0, 1, 0, 1]
    groups = ["a", "b", "a", "b", "a", "a"]
    found = Counter()
    rng = np.random.default_rng(0)
    for _ in range(600):
        matcher = GroupSizeMatcher(random_state=rng)
        matcher.fit_resample(np.zeros((6, 1)), y, sensitive_features=groups)
        found[tuple(matcher.sample_indices_)] += 1
    expected = {(*sorted((*pair, 1, 3)),) for pair in combinations([0, 2, 4, 5], 2)}
    assert set(found) == expected
    assert chisquare(list(found.values())).pvalue > 1e-3


def test_a_number_of_rows():
    X, y = cohort((40, 9, 20))
    matcher = GroupSizeMatcher(column="group", sampling_strategy=5, random_state=0)
    X_matched, _ = matcher.fit_resample(X, y)
    assert sizes_of(X_matched["group"]) == {"g0": 5, "g1": 5, "g2": 5}


def test_a_number_that_a_group_does_not_have():
    X, y = cohort((40, 9))
    matcher = GroupSizeMatcher(column="group", sampling_strategy=10)
    with pytest.raises(ValueError, match=r"'g1' has 9 rows.*10.*the smallest has 9"):
        matcher.fit_resample(X, y)


def test_several_columns_intersect():
    X, y = cohort((30, 30))
    X["sex"] = np.where(X["x"] > 0, "f", "m")
    matcher = GroupSizeMatcher(column=["group", "sex"], random_state=0)
    X_matched, _ = matcher.fit_resample(X, y)
    counts = X_matched.groupby(["group", "sex"]).size()
    assert len(counts) == 4
    assert counts.nunique() == 1
    assert set(matcher.sampling_strategy_) == set(counts.index)
    same = GroupSizeMatcher(random_state=0)
    same.fit_resample(X, y, sensitive_features=X[["group", "sex"]])
    np.testing.assert_array_equal(same.sample_indices_, matcher.sample_indices_)


def test_classes_are_matched_one_by_one():
    X, _ = cohort((60, 20))
    rng = np.random.default_rng(0)
    y = rng.choice(["benign", "malignant", "naevus"], size=len(X), p=[0.5, 0.3, 0.2])
    table = pd.crosstab(X["group"].to_numpy(), y)
    matcher = GroupSizeMatcher(column="group", match_on="classes", random_state=0)
    X_matched, y_matched = matcher.fit_resample(X, y)
    matched = pd.crosstab(X_matched["group"].to_numpy(), y_matched)
    for label in table:
        assert matched[label].tolist() == [table[label].min()] * 2
    assert matcher.sampling_strategy_["g0", "naevus"] == table["naevus"].min()


def test_a_group_without_a_class_cannot_be_matched_on_classes():
    X, _ = cohort((10, 6))
    y = (X["group"] == "g0") & (X["x"] > 0)
    matcher = GroupSizeMatcher(column="group", match_on="classes")
    with pytest.raises(ValueError, match="group 'g1' has 0 rows of class True"):
        matcher.fit_resample(X, y)


def test_one_group_is_kept_with_a_warning():
    X, y = cohort((7,))
    with pytest.warns(UserWarning, match="only one group, 'g0'") as caught:
        X_matched, _ = GroupSizeMatcher(column="group").fit_resample(X, y)
    assert len(X_matched) == 7
    assert caught[0].filename == __file__


# -- missing groups -------------------------------------------------------------------


@pytest.mark.parametrize("routed", [True, False])
@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, float("nan")])
def test_missing_groups(missing, routed):
    X = pd.DataFrame({"group": ["a"] * 6 + ["b"] * 4, "x": range(10)}, dtype=object)
    X.loc[[1, 3, 5], "group"] = missing
    y = [0, 1] * 5

    def kept(option):
        matcher = GroupSizeMatcher(
            column=None if routed else "group", missing=option, random_state=0
        )
        features = {"sensitive_features": X["group"]} if routed else {}
        X_matched, _ = matcher.fit_resample(X, y, **features)
        return X_matched["group"]

    with pytest.raises(ValueError, match="3 missing values"):
        kept("raise")
    assert sizes_of(kept("drop")) == {"a": 3, "b": 3}
    own = kept("own_group")
    assert own.isna().sum() == (own == "a").sum() == (own == "b").sum() == 3


def test_numbers_as_groups():
    X = np.array([[0.0, 5], [0, 6], [1, 7], [np.nan, 8]])
    with pytest.raises(ValueError, match=r"column '0' contains NaN at row 3"):
        GroupSizeMatcher(column=0).fit_resample(X, [0, 1, 0, 1])
    matcher = GroupSizeMatcher(column=0, missing="drop", random_state=0)
    X_matched, _ = matcher.fit_resample(X, [0, 1, 0, 1])
    assert X_matched[:, 0].tolist() == [0, 1]
    X[3, 0] = np.inf
    with pytest.raises(ValueError, match="contains inf at row 3"):
        matcher.fit_resample(X, [0, 1, 0, 1])


def test_only_missing_groups():
    matcher = GroupSizeMatcher(missing="drop")
    with pytest.raises(ValueError, match="no row has a group"):
        matcher.fit_resample(
            [[1], [2]], [0, 1], sensitive_features=np.array([None, None])
        )


def test_classes_of_rows_without_group_do_not_count():
    matcher = GroupSizeMatcher(match_on="classes", missing="drop")
    X, y = matcher.fit_resample(
        [[0], [1], [2]], ["a", "a", "b"], sensitive_features=["g", "h", None]
    )
    assert (X, y) == ([[0], [1]], ["a", "a"])


# -- clusters -------------------------------------------------------------------------


def test_clusters_are_kept_whole():
    X, y = cohort((90, 12))
    matcher = GroupSizeMatcher(column="group", random_state=1)
    X_matched, _ = matcher.fit_resample(X, y, clusters=X["patient"])
    dropped = X.drop(index=X_matched.index)
    assert not set(X_matched["patient"]) & set(dropped["patient"])
    assert sizes_of(X_matched["group"]) == {"g0": 12, "g1": 12}


def test_text_clusters_that_do_not_fill_a_group():
    groups = ["a"] * 5 + ["b"] * 4
    clusters = ["p", "p", "p", "q", "q", "r", "r", "s", "s"]
    seen = set()
    for seed in range(20):
        matcher = GroupSizeMatcher(random_state=seed)
        matcher.fit_resample(
            np.zeros((9, 1)),
            [0, 1] * 4 + [0],
            sensitive_features=groups,
            clusters=clusters,
        )
        seen.add(tuple(matcher.sample_indices_.tolist()))
    assert seen == {(0, 1, 2, 5, 6, 7, 8), (3, 4, 5, 6, 7, 8)}


def test_clusters_that_span_groups_are_refused():
    X = np.zeros((4, 1))
    features = {"sensitive_features": ["a", "a", "b", "b"]}
    with pytest.raises(ValueError, match=r"one group.*cluster of row 0.*\(row 2\)"):
        GroupSizeMatcher().fit_resample(
            X, [0, 1, 0, 1], clusters=["p", "q", "p", "r"], **features
        )
    # A part without group spans nothing.
    features = {"sensitive_features": ["a", "a", None, "b"]}
    GroupSizeMatcher(missing="drop").fit_resample(
        X, [0, 1, 0, 1], clusters=["p", "q", "p", "r"], **features
    )


def test_clusters_of_both_classes_cannot_be_matched_on_classes():
    with pytest.raises(ValueError, match="group and class"):
        GroupSizeMatcher(match_on="classes").fit_resample(
            np.zeros((4, 1)),
            [0, 1, 0, 1],
            sensitive_features=["a", "a", "b", "b"],
            clusters=[1, 1, 2, 3],
        )


def test_missing_and_short_clusters():
    X, y = cohort((6, 6))
    matcher = GroupSizeMatcher(column="group")
    with pytest.raises(ValueError, match="clusters contains a missing value"):
        matcher.fit_resample(X, y, clusters=[None] * 12)
    with pytest.raises(ValueError, match="got 3 for 12 rows"):
        matcher.fit_resample(X, y, clusters=[1, 2, 3])


# -- kinds of data --------------------------------------------------------------------

GROUPS = np.array(["a"] * 6 + ["b"] * 4)
Y = np.array([0, 1] * 5)
PATHS = [f"image_{i}.png" for i in range(10)]
VALUES = np.arange(30.0).reshape(10, 3)

KINDS = {
    "array": VALUES,
    "float32": VALUES.astype(np.float32),
    "text array": VALUES.astype(str),
    "list": VALUES.tolist(),
    "images": np.arange(10 * 2 * 3 * 4, dtype=np.uint8).reshape(10, 2, 3, 4),
    "list of images": list(np.zeros((10, 2, 3, 4))),
    "path array": np.array(PATHS),
    "object paths": np.array([Path(p) for p in PATHS], dtype=object),
    "path list": PATHS,
    "path series": pd.Series(PATHS, index=range(5, 15), name="path"),
    "polars path series": pl.Series("path", PATHS),
    "csr": sparse.csr_matrix(VALUES),
    "csc array": sparse.csc_array(VALUES),
    "frame": pd.DataFrame(VALUES, columns=list("xyz"), index=range(5, 15)),
    "mixed frame": pd.DataFrame(
        {
            "path": PATHS,
            "kind": pd.Categorical(["u", "v"] * 5),
            "when": pd.date_range("2020", periods=10),
            "count": pd.array([1, None] * 5, dtype="Int64"),
        }
    ),
    "polars": pl.DataFrame({"path": PATHS, "x": VALUES[:, 0]}),
}


def plain(X):
    X = X.toarray() if sparse.issparse(X) else X
    return X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)


@pytest.mark.parametrize("X", KINDS.values(), ids=KINDS)
def test_kind_of_X_is_kept(X):
    matcher = GroupSizeMatcher(random_state=0)
    X_matched, y_matched = matcher.fit_resample(X, Y, sensitive_features=GROUPS)
    kept = matcher.sample_indices_
    assert len(kept) == 8
    assert type(X_matched) is type(X)
    assert getattr(X_matched, "dtype", None) == getattr(X, "dtype", None)
    for attribute in ("dtypes", "schema", "name"):
        here, there = (getattr(x, attribute, None) for x in (X_matched, X))
        assert np.all(here == there)
    if hasattr(X, "iloc"):
        np.testing.assert_array_equal(X_matched.index, X.index[kept])
    expected = pd.DataFrame({"v": list(plain(X)[kept])})
    assert expected["v"].astype(str).tolist() == [str(v) for v in plain(X_matched)]
    np.testing.assert_array_equal(y_matched, Y[kept])


TARGETS = {
    "text": np.where(Y, "sick", "healthy"),
    "list": Y.tolist(),
    "text list": ["sick", "healthy"] * 5,
    "bool": Y.astype(bool),
    "series": pd.Series(Y, index=range(5, 15), name="y"),
    "category": pd.Series(pd.Categorical(["u", "v"] * 5)),
    "frame": pd.DataFrame({"y": Y}),
    "polars": pl.Series("y", Y),
    "polars text": pl.Series("y", ["u", "v"] * 5),
    "column each": np.column_stack([Y == 0, Y == 1, np.zeros(10)]).astype(int),
}


@pytest.mark.parametrize("y", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("match_on", ["rows", "classes"])
def test_kind_of_y_is_kept(y, match_on):
    matcher = GroupSizeMatcher(match_on=match_on, random_state=0)
    _, y_matched = matcher.fit_resample(VALUES, y, sensitive_features=GROUPS)
    assert type(y_matched) is type(y)
    np.testing.assert_array_equal(
        np.asarray(y_matched), np.asarray(y)[matcher.sample_indices_]
    )
    assert getattr(y_matched, "dtype", None) == getattr(y, "dtype", None)


FEATURES = {
    "array": GROUPS,
    "list": GROUPS.tolist(),
    "series": pd.Series(GROUPS, index=range(10, 20), name="tone"),
    "category": pd.Series(pd.Categorical(GROUPS)),
    "polars": pl.Series("tone", GROUPS),
    "frame": pd.DataFrame({"tone": GROUPS}),
    "polars frame": pl.DataFrame({"tone": GROUPS}),
    "dict": {"tone": GROUPS},
    "codes": (GROUPS == "b").astype(int),
}


@pytest.mark.parametrize("features", FEATURES.values(), ids=FEATURES)
def test_kinds_of_sensitive_features(features):
    matcher = GroupSizeMatcher(random_state=0)
    matcher.fit_resample(VALUES, Y, sensitive_features=features)
    expected = GroupSizeMatcher(random_state=0)
    expected.fit_resample(VALUES, Y, sensitive_features=GROUPS)
    np.testing.assert_array_equal(matcher.sample_indices_, expected.sample_indices_)


CODES = (GROUPS == "b") * 1.0
COLUMNS = {
    "array": (np.column_stack([VALUES, CODES]), 3),
    "from the end": (np.column_stack([VALUES, CODES]), -1),
    "list": (np.column_stack([VALUES, CODES]).tolist(), 3),
    "csr": (sparse.csr_array(np.column_stack([VALUES, CODES])), 3),
    "csc": (sparse.csc_matrix(np.column_stack([VALUES, CODES])), -1),
    "coo": (sparse.coo_matrix(np.column_stack([VALUES, CODES])), 3),
    "frame": (pd.DataFrame({"x": Y, "tone": GROUPS}), "tone"),
    "frame by position": (pd.DataFrame({"x": Y, "tone": GROUPS}), 1),
    "numbered frame": (pd.DataFrame(np.column_stack([VALUES, CODES])), 3),
    "polars": (pl.DataFrame({"x": Y, "tone": GROUPS}), "tone"),
    "polars by position": (pl.DataFrame({"x": Y, "tone": GROUPS}), -1),
}


@pytest.mark.parametrize(("X", "column"), COLUMNS.values(), ids=COLUMNS)
def test_column_of_X(X, column):
    matcher = GroupSizeMatcher(column=column, random_state=0)
    matcher.fit_resample(X, Y)
    expected = GroupSizeMatcher(random_state=0)
    expected.fit_resample(VALUES, Y, sensitive_features=GROUPS)
    np.testing.assert_array_equal(matcher.sample_indices_, expected.sample_indices_)


def test_names_and_numbers_of_features():
    matcher = GroupSizeMatcher(column="group")
    X, y = cohort()
    matcher.fit(X, y)
    assert matcher.n_features_in_ == 3
    assert matcher.feature_names_in_.tolist() == ["group", "patient", "x"]
    assert matcher.get_feature_names_out().tolist() == ["group", "patient", "x"]
    matcher.set_params(column=None).fit(np.zeros((2, 4, 4, 3)), [0, 1])
    assert not hasattr(matcher, "n_features_in_")
    assert not hasattr(matcher, "feature_names_in_")


# -- refusals -------------------------------------------------------------------------

BAD_COLUMNS = {
    "no such name": ("tone", pd.DataFrame({"x": Y}), r"'tone' not found.*\['x'\]"),
    "no names": ("tone", VALUES, "'tone' not found.*ndarray, has no named columns"),
    "too far": (3, VALUES, "column 3 is out of range: X has 3 columns"),
    "too far back": (-4, VALUES, "column -4 is out of range"),
    "none": ([], VALUES, "column must be a name or a position"),
    "bool": (True, VALUES, "column must be a name or a position"),
    "float": ([1.0], VALUES, "column must be a name or a position"),
    "images": (0, np.zeros((10, 2, 2, 3)), "pass the groups as sensitive_features"),
    "paths": ("path", pd.Series(PATHS), "X of two dimensions"),
    "path list": (0, PATHS, "X of two dimensions"),
}


@pytest.mark.parametrize(
    ("column", "X", "message"), BAD_COLUMNS.values(), ids=BAD_COLUMNS
)
def test_bad_columns(column, X, message):
    with pytest.raises(ValueError, match=message):
        GroupSizeMatcher(column=column).fit_resample(X, Y)


def test_two_sources_of_groups():
    X, y = cohort()
    with pytest.raises(ValueError, match="but both were given"):
        GroupSizeMatcher(column="group").fit_resample(
            X, y, sensitive_features=X["group"]
        )


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (VALUES[:, 0], Y, "Expected 2D array, got 1D array"),
        (pd.Series(VALUES[:, 0]), Y, "2-dimensional"),
        (np.zeros((0, 3)), [], "0 sample"),
        (VALUES, Y[:9], "inconsistent numbers of samples"),
        (VALUES, np.linspace(0, 1, 10), "Unknown label type"),
        (VALUES, np.zeros(10), "1 class"),
        (VALUES, np.where(Y, "a", None), "missing|NaN|label type"),
        (VALUES, None, "requires y to be passed"),
    ],
)
def test_bad_data(X, y, message):
    with pytest.raises(ValueError, match=message):
        GroupSizeMatcher().fit_resample(X, y, sensitive_features=GROUPS)


@pytest.mark.parametrize(
    "parameters",
    [
        {"sampling_strategy": "auto"},
        {"sampling_strategy": 0},
        {"sampling_strategy": 0.5},
        {"sampling_strategy": {"a": 1}},
        {"match_on": "labels"},
        {"missing": "ignore"},
        {"column": 1.5},
        {"random_state": "seed"},
    ],
)
def test_bad_parameters(parameters):
    (name,) = parameters
    for method in ("fit", "fit_resample"):
        with pytest.raises(ValueError, match=f"The '{name}' parameter"):
            getattr(GroupSizeMatcher(**parameters), method)(VALUES, Y)


# -- without groups -------------------------------------------------------------------


def test_without_groups_all_rows_are_kept_and_a_warning_says_what_to_do():
    y = [0] * 8 + [1] * 2
    matcher = GroupSizeMatcher()
    with pytest.warns(UserWarning, match="keeps all rows") as caught:
        X_matched, y_matched = matcher.fit_resample(VALUES, y)
    np.testing.assert_array_equal(X_matched, VALUES)
    assert y_matched == y  # y is never balanced
    assert matcher.sampling_strategy_ == {}
    message = str(caught[0].message)
    for remedy in (
        "column=",
        "set_config(enable_metadata_routing=True)",
        "set_fit_resample_request(sensitive_features=True)",
    ):
        assert remedy in message
    assert caught[0].filename == __file__


def test_fit_alone_resamples_nothing_and_does_not_warn():
    GroupSizeMatcher().fit(VALUES, Y)
    matcher = GroupSizeMatcher().fit(VALUES, Y, sensitive_features=GROUPS)
    assert matcher.sampling_strategy_ == {"a": 4, "b": 4}


# -- pipelines ------------------------------------------------------------------------


class Remember(ClassifierMixin, BaseEstimator):
    """Classifier that keeps what it was fitted on."""

    def __init__(self, tag=0):
        self.tag = tag

    def fit(self, X, y):
        self.X_, self.y_, self.classes_ = X, y, np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_pipeline_with_routing(routing):
    X, y = cohort((40, 9))
    pipeline = make_pipeline(
        FunctionTransformer(), GroupSizeMatcher(random_state=0), Remember()
    )
    pipeline.fit(X[["x"]], y, sensitive_features=X["group"])
    kept = pipeline[-1].X_.index
    assert sizes_of(X.loc[kept, "group"]) == {"g0": 9, "g1": 9}
    np.testing.assert_array_equal(pipeline[-1].y_, y[kept])
    # Samplers act in fit only.
    assert len(pipeline.predict(X[["x"]])) == 49


def test_pipeline_with_routing_and_clusters(routing):
    X, y = cohort((60, 12))
    matcher = GroupSizeMatcher(random_state=0)
    # Asking for clusters leaves the request for the groups as it was.
    matcher.set_fit_resample_request(clusters=True)
    pipeline = make_pipeline(matcher, Remember())
    pipeline.fit(
        X[["x"]], y, sensitive_features=X["group"], clusters=X["patient"].to_numpy()
    )
    kept = X.loc[pipeline[-1].X_.index]
    assert kept.groupby("patient").size().eq(3).all()
    assert sizes_of(kept["group"]) == {"g0": 12, "g1": 12}


def test_request_set_by_hand(routing):
    matcher = GroupSizeMatcher()
    same = clone(matcher).set_fit_resample_request(sensitive_features=True)
    renamed = clone(matcher).set_fit_resample_request(sensitive_features="tone")
    requests = {
        name: m.get_metadata_routing().fit_resample.requests
        for name, m in {"default": matcher, "same": same, "renamed": renamed}.items()
    }
    assert requests["default"] == requests["same"]
    assert requests["default"] == {"sensitive_features": True, "clusters": None}
    assert requests["renamed"]["sensitive_features"] == "tone"
    assert matcher.get_metadata_routing().fit.requests == {}
    assert (
        clone(renamed).get_metadata_routing().fit_resample.requests
        == requests["renamed"]
    )


@pytest.mark.parametrize("parameters", [{}, {"matcher__sensitive_features": GROUPS}])
def test_pipeline_without_routing_warns(parameters):
    """imbalanced-learn drops the metadata of samplers in silence."""
    pipeline = Pipeline([("matcher", GroupSizeMatcher()), ("model", Remember())])
    with pytest.warns(UserWarning, match="keeps all rows"):
        pipeline.fit(VALUES, Y, **parameters)
    assert len(pipeline[-1].X_) == 10


def test_column_needs_no_routing():
    X, y = cohort((40, 9))
    pipeline = make_pipeline(
        GroupSizeMatcher(column="group", random_state=0),
        make_column_transformer((StandardScaler(), ["x"])),
        Remember(),
    )
    pipeline.fit(X, y)
    assert pipeline[-1].X_.shape == (18, 1)


def test_column_after_a_step_that_drops_names():
    X, y = cohort()
    pipeline = make_pipeline(StandardScaler(), GroupSizeMatcher(column="x"), Remember())
    with pytest.raises(ValueError, match="before steps that drop columns"):
        pipeline.fit(X[["x", "patient"]], y)


def test_column_leaves_routed_groups_to_the_scorer(routing):
    X, y = cohort((120, 60))
    X["other"] = np.where(np.arange(len(X)) % 3, "u", "v")
    pipeline = make_pipeline(
        GroupSizeMatcher(column="group", random_state=0),
        make_column_transformer((StandardScaler(), ["x"])),
        LogisticRegression(),
    )
    scores = cross_validate(
        pipeline,
        X,
        y,
        scoring=make_group_scorer("brier_score_loss"),
        params={"sensitive_features": X["other"]},
        cv=3,
        error_score="raise",
    )
    assert np.isfinite(scores["test_score"]).all()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_cross_validate(routing, n_jobs):
    X, y = cohort((120, 30))
    pipeline = make_pipeline(GroupSizeMatcher(random_state=0), Remember())
    with parallel_config("threading"):
        result = cross_validate(
            pipeline,
            X[["x"]],
            y,
            params={"sensitive_features": X["group"]},
            cv=3,
            n_jobs=n_jobs,
            return_estimator=True,
            return_indices=True,
            error_score="raise",
        )
    folds = zip(result["estimator"], result["indices"]["train"], strict=True)
    for fitted, train in folds:
        kept = fitted[-1].X_.index
        assert set(kept) <= set(X.index[train])
        counts = sizes_of(X.loc[kept, "group"])
        smallest = sizes_of(X["group"].iloc[train])["g1"]
        assert counts == {"g0": smallest, "g1": smallest}


def test_search_over_the_matcher():
    X, y = cohort((120, 30))
    search = GridSearchCV(
        make_pipeline(
            GroupSizeMatcher(column="group", random_state=0),
            make_column_transformer((StandardScaler(), ["x"])),
            LogisticRegression(),
        ),
        {"groupsizematcher__sampling_strategy": ["smallest", 10]},
        error_score="raise",
    )
    search.fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_images_through_a_pipeline(routing):
    images = np.arange(10 * 4 * 4 * 3, dtype=np.float32).reshape(10, 4, 4, 3)
    flatten = FunctionTransformer(lambda x: x.reshape(len(x), -1))
    pipeline = make_pipeline(GroupSizeMatcher(random_state=0), flatten, Remember())
    pipeline.fit(images, Y, sensitive_features=GROUPS)
    assert pipeline[-1].X_.shape == (8, 48)


# -- other ----------------------------------------------------------------------------


def test_same_rows_as_a_class_balancer_when_groups_are_the_classes():
    """Only the sizes agree with imbalanced-learn's: its generator is another one."""
    y = (np.arange(50) % 5 == 0).astype(int)
    X = np.arange(50.0)[:, np.newaxis]
    _, ours = GroupSizeMatcher(random_state=0).fit_resample(X, y, sensitive_features=y)
    _, theirs = RandomUnderSampler(random_state=0).fit_resample(X, y)
    assert sizes_of(ours) == sizes_of(theirs)


@pytest.mark.parametrize("make", [int, np.random.default_rng, np.random.RandomState])
def test_reproducible_by_any_seed(make):
    X, y = cohort((200, 50))
    drawn = [
        GroupSizeMatcher(column="group", random_state=make(seed))
        .fit(X, y)
        .sample_indices_
        for seed in (3, 3, 4)
    ]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert (drawn[0] != drawn[2]).any()


def test_input_is_not_changed_and_the_matcher_pickles():
    X, y = cohort()
    before = X.copy(deep=True)
    matcher = GroupSizeMatcher(column="group", random_state=0)
    X_matched, _ = matcher.fit_resample(X, y)
    X_matched["x"] = 0.0
    pd.testing.assert_frame_equal(X, before)
    again = pickle.loads(pickle.dumps(matcher))
    np.testing.assert_array_equal(again.sample_indices_, matcher.sample_indices_)
    assert is_sampler(matcher)


def test_imbalanced_learn_is_imported_when_it_is_needed():
    code = (
        "import sys, skcalfair.resampling as r\n"
        "assert 'imblearn' not in sys.modules\n"
        "assert 'GroupSizeMatcher' in dir(r)\n"
        "r.GroupSizeMatcher\n"
        "assert 'imblearn' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_other_name_is_found():
    import skcalfair.resampling

    assert dir(skcalfair.resampling) == skcalfair.resampling.__all__
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = skcalfair.resampling.nothing


def test_large_samples_are_matched_without_warnings():
    n = 30_000
    groups = np.random.default_rng(0).choice(["a", "b"], p=[0.95, 0.05], size=n)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        matcher = GroupSizeMatcher(random_state=0)
        matcher.fit(np.zeros((n, 1)), np.arange(n) % 2, sensitive_features=groups)
    assert len(matcher.sample_indices_) == 2 * (groups == "b").sum()
