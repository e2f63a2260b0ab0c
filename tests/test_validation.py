"""The input gate: what it accepts, what it makes of it, and what it refuses."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from skcalfair._validation import (
    ScoredRows,
    as_1d,
    as_floats,
    as_probabilities,
    check_frequencies,
    check_same_length,
    check_sample_weight,
    check_scored_rows,
    encode_clusters,
    encode_groups,
    encode_labels,
    unique_labels,
)

# -- arrays ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, 3],
        (1, 2, 3),
        np.array([[1], [2], [3]]),
        pd.Series([1, 2, 3], index=[7, 7, 7]),
        pd.DataFrame({"a": [1, 2, 3]}),
        pl.Series([1, 2, 3]),
        pl.DataFrame({"a": [1, 2, 3]}),
        range(1, 4),
    ],
    ids=lambda v: f"{type(v).__module__.split('.')[0]}-{type(v).__name__}",
)
def test_one_column_of_anything(values):
    assert_array_equal(as_1d(values, "column"), [1, 2, 3])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((2, 2)), r"column must be one-dimensional.*shape \(2, 2\)"),
        (np.zeros((1, 1, 1)), "column must be one-dimensional"),
        (np.zeros(()), "column must be one-dimensional"),
        ([], "column is empty: at least one row is needed"),
        (3, "expected an array-like with one value per row; got 3"),
        ("abc", "expected an array-like with one value per row; got 'abc'"),
        (None, "expected an array-like with one value per row; got None"),
        ([[1], [2, 3]], "expected a rectangular array-like"),
        ((i for i in [1, 2]), "column must be one-dimensional"),
    ],
)
def test_no_column(values, message):
    with pytest.raises(ValueError, match=message):
        as_1d(values, "column")


@pytest.mark.parametrize(
    "values",
    [
        [0.5, 1, 0],
        [True, False, True],
        np.array([1, 2, 3], dtype=np.uint8),
        np.array([0.5, 1, None], dtype=object),
        pd.Series([0.5, 1, None], dtype="Float64"),
        pd.Series([1, 2, None], dtype="Int64"),
        pl.Series([0.5, 1, None]),
    ],
)
def test_numbers_become_float64_and_keep_what_is_missing(values):
    floats = as_floats(values, "x")
    assert floats.dtype == np.float64
    assert floats.shape == (3,)
    assert np.isnan(floats).sum() == sum(pd.isna(v) for v in list(values))


def test_float64_is_not_copied():
    values = np.array([0.1, 0.9])
    assert as_probabilities(values) is values


@pytest.mark.parametrize(
    "values",
    [
        ["0.5"],
        np.array(["0.5"], dtype=object),
        np.array([b"0.5"]),
        np.array([0.5 + 0j]),
        np.array([0.5 + 1j], dtype=object),
        np.array([{}], dtype=object),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
    ],
)
def test_anything_else_is_not_numeric(values):
    with pytest.raises(ValueError, match="x must be numeric; got dtype"):
        as_floats(values, "x")


def test_probabilities_of_several_classes():
    p = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    assert_array_equal(as_probabilities(p), p)
    # float32 sums to one within its own precision only
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(40), 200).astype(np.float32)
    assert as_probabilities(p).shape == (200, 40)
    with pytest.raises(ValueError, match="rows of y_prob must sum to 1"):
        as_probabilities(p.astype(np.float64) * (1 + 1e-6))
    with pytest.raises(ValueError, match=r"y_prob is empty"):
        as_probabilities(np.zeros((0, 2)))
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\]; got 1.5 at row 1"):
        as_probabilities([[0.5, 0.5], [1.5, -0.5]])


def test_equal_lengths():
    check_same_length(("a", np.zeros(2)), ("b", None), ("c", np.ones(2)))
    with pytest.raises(ValueError, match="lengths; a has 2 rows, c has 3 rows"):
        check_same_length(("a", np.zeros(2)), ("b", None), ("c", np.ones(3)))


# -- weights ---------------------------------------------------------------------------


def test_weights():
    assert check_sample_weight(None, 3) is None
    weights = check_sample_weight([1, 0, 2], 3)
    assert weights.dtype == np.float64
    assert_array_equal(weights, [1, 0, 2])
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        check_sample_weight([0, 0], 2)
    with pytest.raises(ValueError, match="must not be negative; got -2 at row 1"):
        check_sample_weight([0, -2], 2)


def test_frequencies():
    for fine in (None, np.array([0.0, 2.0, 1e6])):
        check_frequencies(fine, "frequency")
    fractional = np.array([1.0, 0.25])
    check_frequencies(fractional, "probability")
    with pytest.raises(
        ValueError, match=r"example 0\.25\).*pass weights='probability'"
    ):
        check_frequencies(fractional, "frequency")
    with pytest.raises(
        ValueError, match="weights must be 'frequency' or 'probability'"
    ):
        check_frequencies(None, "counts")


# -- labels ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        ([1, 0, 1], [0, 1]),
        ([1, 1], [1]),
        ([-1, 1], [-1, 1]),
        ([3, 1, 2], [1, 2, 3]),
        ([True, False], [False, True]),
        ([0.5, 0.25], [0.25, 0.5]),
        (["b", "a", "b"], ["a", "b"]),
        (np.array(["b", "a"], dtype=object), ["a", "b"]),
    ],
)
def test_unique_labels_are_sorted(y, expected):
    y = np.asarray(y)
    found = unique_labels(y)
    assert_array_equal(found, expected)
    assert found.dtype == y.dtype


@pytest.mark.parametrize(
    ("y", "pos_label", "coded", "used"),
    [
        ([0, 1], None, [0, 1], 1),
        ([-1, 1], None, [0, 1], 1),
        ([False, True], None, [0, 1], 1),
        ([1.0, 0.0], None, [1, 0], 1),
        ([0, 0], None, [0, 0], 1),
        ([-1, -1], None, [0, 0], 1),
        ([0, 1], 0, [1, 0], 0),
        (["a", "b"], "b", [0, 1], "b"),
        ([2, 5], 2, [1, 0], 2),
        ([True, False], True, [1, 0], True),
        # one class, named by the other: all rows are negative
        (["a", "a"], "b", [0, 0], "b"),
        ([3, 3], 4, [0, 0], 4),
    ],
)
def test_labels_are_coded(y, pos_label, coded, used):
    outcome, positive = encode_labels(np.asarray(y), pos_label)
    assert outcome.dtype == np.uint8
    assert_array_equal(outcome, coded)
    assert positive == used


@pytest.mark.parametrize(
    ("y", "pos_label", "message"),
    [
        ([0, 1, 2], None, "y_true must hold two classes; got 3: {0, 1, 2}"),
        (list("abcdefg"), "a", "got 7: {'a', 'b', 'c', 'd', 'e', ...}"),
        ([1, 2], None, "{1, 2} and pos_label is not specified"),
        (["0", "1"], None, "{'0', '1'} and pos_label is not specified"),
        ([0, 1], 2, "pos_label=2 is not among the labels of y_true: {0, 1}"),
        ([0, 0], "a", "pos_label='a' is not among"),
        (["a", "a"], 1, "pos_label=1 is not among"),
    ],
)
def test_labels_that_do_not_fit(y, pos_label, message):
    with pytest.raises(ValueError, match=message):
        encode_labels(np.asarray(y), pos_label)


@pytest.mark.parametrize(
    "y",
    [
        [0.0, np.nan, 1.0],
        ["a", None, "b"],
        ["a", float("nan"), "b"],
        [1, pd.NA, 0],
        pd.Series(["a", None, "b"], dtype="string"),
        pd.Series(["a", None, "b"], dtype="category"),
        pd.Series([True, None, False], dtype="boolean"),
        pl.Series(["a", None, "b"]),
    ],
)
def test_missing_labels_are_named(y):
    with pytest.raises(ValueError, match=r"y_true contains .* at row 1"):
        check_scored_rows(y, [0.2, 0.3, 0.4], pos_label="a")


# -- scored rows -----------------------------------------------------------------------


def test_rows_of_zero_weight_are_not_there():
    """Whatever they hold: a third label there is no third class."""
    rows = check_scored_rows(
        ["a", "b", "c", "a"],
        [0.1, 0.2, 0.3, 0.4],
        pos_label="a",
        sample_weight=[1, 2, 0, 3],
        clusters=["x", "y", "z", "x"],
    )
    assert_array_equal(rows.y, [1, 0, 1])
    assert_array_equal(rows.p, [0.1, 0.2, 0.4])
    assert_array_equal(rows.sample_weight, [1, 2, 3])
    assert_array_equal(rows.clusters, [0, 1, 0])
    assert_array_equal(rows.kept, [0, 1, 3])
    assert rows.pos_label == "a"
    assert len(rows) == 3


def test_all_rows_are_kept_without_copies():
    p = np.array([0.1, 0.9])
    rows = check_scored_rows([0, 1], p, sample_weight=[1, 1])
    assert rows.kept is None
    assert rows.p is p


def test_some_of_the_rows():
    rows = check_scored_rows(
        [0, 1, 1], [0.1, 0.5, 0.9], sample_weight=[1, 2, 3], clusters=[4, 5, 4]
    ).take(np.array([0, 2]))
    assert_array_equal(rows.y, [0, 1])
    assert_array_equal(rows.sample_weight, [1, 3])
    assert_array_equal(rows.clusters, [0, 0])
    plain = check_scored_rows([0, 1, 1], [0.1, 0.5, 0.9]).take(np.array([1]))
    assert plain.sample_weight is plain.clusters is None


@pytest.mark.parametrize(
    ("weights", "expected"), [(None, True), ([1.0, 2.0], True), ([1.0, 0.5], False)]
)
def test_whether_weights_are_counts(weights, expected):
    w = None if weights is None else np.array(weights)
    rows = ScoredRows(np.array([0, 1], np.uint8), np.array([0.2, 0.3]), w)
    assert rows.weights_are_counts == expected


def test_errors_name_the_arguments_of_the_caller():
    names = ("outcome", "score")
    with pytest.raises(ValueError, match=r"score must lie in \[0, 1\]; got 2 at row 1"):
        check_scored_rows([0, 1], [0.5, 2], names=names)
    with pytest.raises(ValueError, match="outcome must hold two classes"):
        check_scored_rows([0, 1, 2], [0.5, 0.2, 0.1], names=names)
    with pytest.raises(ValueError, match="outcome has 2 rows, score has 1 rows"):
        check_scored_rows([0, 1], [0.5], names=names)


@pytest.mark.parametrize(
    ("y", "pos_label", "column"),
    [
        ([0, 1], None, 1),
        ([0, 1], 0, 0),
        (["a", "b"], None, 1),
        (["a", "b"], "a", 0),
        ([1, 1], None, 1),
        ([0, 0], None, 1),
        ([-1, -1], None, 1),
        (["a", "a"], "b", 1),
        (["b", "b"], "a", 0),
        ([7, 9], None, 1),
    ],
)
def test_the_column_of_the_positive_class(y, pos_label, column):
    both = np.array([[0.25, 0.75], [0.375, 0.625]])
    rows = check_scored_rows(y, both, pos_label=pos_label)
    assert_array_equal(rows.p, both[:, column])


def test_two_columns_of_one_class_need_names():
    both = np.array([[0.25, 0.75], [0.375, 0.625]])
    with pytest.raises(ValueError, match=r"2 columns but y_true holds 1 labels: \{7\}"):
        check_scored_rows([7, 7], both)
    rows = check_scored_rows([7, 7], both, labels=[5, 7])
    assert_array_equal(rows.p, both[:, 1])
    assert_array_equal(rows.y, [1, 1])


def test_top_label_of_several_classes():
    labels = ["a", "b", "c"]
    p = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.4, 0.4, 0.2]])
    rows = check_scored_rows(["a", "b", "b"], p, kind="confidence", labels=labels)
    assert_array_equal(rows.p, [0.5, 0.7, 0.4])
    assert_array_equal(rows.y, [1, 0, 0])  # of equal columns the first
    assert rows.pos_label is None


def test_top_label_of_two_classes():
    """0.5 is positive, as at the default threshold."""
    rows = check_scored_rows([0, 1, 1, 0], [0.5, 0.5, 0.2, 0.3], kind="confidence")
    assert_array_equal(rows.p, [0.5, 0.5, 0.8, 0.7])
    assert_array_equal(rows.y, [0, 1, 0, 1])


# -- clusters and groups ---------------------------------------------------------------


def test_clusters_are_coded_by_identity():
    codes = encode_clusters(["p9", "p1", "p9", "p2"], 4)
    assert codes.dtype == np.intp
    assert_array_equal(codes, [0, 1, 0, 2])
    with pytest.raises(ValueError, match="patient must have one value per row; got 2"):
        encode_clusters([1, 2], 3, name="patient")
    with pytest.raises(ValueError, match="patient contains a missing value at row 1"):
        encode_clusters(["a", None, "b"], 3, name="patient")


@pytest.mark.parametrize(
    "features",
    [
        ["m", "f", "m"],
        np.array(["m", "f", "m"]),
        pd.Series(["m", "f", "m"], index=[5, 5, 5]),
        pd.Series(["m", "f", "m"], dtype="category"),
        pl.Series(["m", "f", "m"]),
        pd.DataFrame({"sex": ["m", "f", "m"]}),
        {"sex": ["m", "f", "m"]},
    ],
    ids=["list", "array", "series", "category", "polars", "frame", "dict"],
)
def test_groups_of_one_feature(features):
    groups = encode_groups(features, 3)
    assert groups.labels == ["f", "m"]
    assert_array_equal(groups.codes, [1, 0, 1])
    assert len(groups.names) == 1


def test_groups_carry_the_name_of_their_column():
    assert encode_groups(pd.Series([1, 2], name="site"), 2).names == ["site"]
    assert encode_groups([1, 2], 2).names == ["sensitive_features"]
    assert encode_groups({"sex": [1, 2]}, 2).names == ["sex"]
    frame = pd.DataFrame({"sex": ["f", "m"], "site": [2, 1]})
    assert encode_groups(frame, 2).names == ["sex", "site"]
    array = np.array([["f", 2], ["m", 1]], dtype=object)
    names = ["sensitive_features_0", "sensitive_features_1"]
    assert encode_groups(array, 2).names == names


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_groups_intersect(frame):
    features = frame({"sex": ["m", "f", "m", "f"], "site": [2, 1, 1, 1]})
    groups = encode_groups(features, 4)
    assert groups.labels == [("f", 1), ("m", 1), ("m", 2)]  # those that occur
    assert_array_equal(groups.codes, [2, 0, 1, 0])


def test_groups_that_cannot_be_ordered_are_ordered_as_text():
    groups = encode_groups(np.array(["x", 2, "x"], dtype=object), 3)
    assert groups.labels == [2, "x"]
    assert_array_equal(groups.codes, [1, 0, 1])


@pytest.mark.parametrize("missing_value", [None, np.nan, pd.NA])
def test_missing_groups(missing_value):
    sex = np.array(["m", missing_value, "f", missing_value], dtype=object)
    message = "'sensitive_features' has 2 missing values, the first at row 1"
    with pytest.raises(ValueError, match=message):
        encode_groups(sex, 4)
    own = encode_groups(sex, 4, missing="own_group")
    assert own.labels == ["f", "m", "missing"]
    assert_array_equal(own.codes, [1, 2, 0, 2])
    dropped = encode_groups(sex, 4, missing="drop")
    assert dropped.labels == ["f", "m"]
    assert_array_equal(dropped.codes, [1, -1, 0, -1])
    with pytest.raises(ValueError, match="missing must be 'raise', 'own_group' or"):
        encode_groups(sex, 4, missing="ignore")


def test_missing_in_one_of_two_features():
    features = {"sex": ["m", "f", None], "site": [1, None, 1]}
    dropped = encode_groups(features, 3, missing="drop")
    assert dropped.labels == [("m", 1.0)]
    assert_array_equal(dropped.codes, [0, -1, -1])
    own = encode_groups(features, 3, missing="own_group")
    assert set(own.labels) == {("m", 1.0), ("f", "missing"), ("missing", 1.0)}
    assert [own.labels[c] for c in own.codes] == [
        ("m", 1.0),
        ("f", "missing"),
        ("missing", 1.0),
    ]


def test_groups_of_another_length():
    with pytest.raises(ValueError, match="'sex' has 2 for 3 rows"):
        encode_groups({"sex": ["m", "f"]}, 3)
