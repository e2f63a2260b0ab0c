"""Laws that every metric obeys, and the input that every metric takes or refuses.

Each public metric function is registered once or more in ENTRIES; a test compares the
registry with ``skcalfair.metrics.__all__``, so that a new metric cannot escape.
"""

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass, replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.exceptions import UndefinedMetricWarning

import skcalfair.metrics as metrics
from skcalfair.exceptions import SmallSampleWarning

# Public functions that take no outcomes and scores.
NOT_METRICS = {"get_scorer", "get_scorer_names", "make_group_scorer", "metric_table"}

LAW_EXAMPLES = 15


@dataclass(frozen=True)
class Entry:
    """A metric with fixed parameters, and what it needs and offers."""

    name: str
    function: Callable
    parameters: dict = field(default_factory=dict)
    needs_two_classes: bool = False
    fits: bool = False  # a Platt fit, so that separable and constant data are out
    clustered: bool = False  # evaluated with clusters
    warns: bool = True  # when undefined; a result with a reason does not
    rtol: float = 1e-12

    @property
    def options(self):
        return inspect.signature(self.function).parameters

    def __call__(self, y, p, **options):
        """Value as a flat array, without the warnings about small samples."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SmallSampleWarning)
            return flat(self.function(y, p, **self.parameters, **options))

    def on(self, sample, *, weighted=False):
        options = {"sample_weight": sample.w} if weighted else {}
        if self.clustered:
            options["clusters"] = sample.c
        return self(sample.y, sample.p, **options)


def flat(result):
    """Numbers of a float or of a result object, one after the other."""
    if not is_dataclass(result):
        return np.atleast_1d(np.asarray(result, dtype=float))
    values = [getattr(result, f.name) for f in fields(result)]
    numbers = [v for v in values if v is not None and not isinstance(v, str)]
    return np.concatenate([np.atleast_1d(v).astype(float) for v in numbers])


def loss(name, function=metrics.calibration_loss, **parameters):
    return Entry(name, function, parameters, needs_two_classes=True, fits=True)


ENTRIES = [
    Entry("ece", metrics.expected_calibration_error),
    Entry("ece-l2", metrics.expected_calibration_error, {"norm": "l2", "n_bins": 7}),
    Entry(
        "ece-quantile",
        metrics.expected_calibration_error,
        {"strategy": "quantile", "n_bins": 4},
    ),
    Entry("ece-confidence", metrics.expected_calibration_error, {"kind": "confidence"}),
    Entry("mce", metrics.maximum_calibration_error),
    Entry(
        "mce-quantile",
        metrics.maximum_calibration_error,
        {"strategy": "quantile", "n_bins": 5},
    ),
    Entry("ada-ece", metrics.adaptive_calibration_error),
    Entry(
        "ada-ece-l2", metrics.adaptive_calibration_error, {"n_bins": 3, "norm": "l2"}
    ),
    Entry("ce2", metrics.squared_calibration_error),
    Entry(
        "ce2-clusters",
        metrics.squared_calibration_error,
        {"n_bins": 4},
        clustered=True,
    ),
    Entry("skce", metrics.kernel_calibration_error),
    Entry(
        "skce-clusters",
        metrics.kernel_calibration_error,
        {"bandwidth": 0.02},
        clustered=True,
    ),
    Entry("brier", metrics.brier_score_loss),
    Entry("log-loss", metrics.log_loss),
    Entry(
        "normalized-ap", metrics.normalized_average_precision, needs_two_classes=True
    ),
    Entry("auprg", metrics.precision_recall_gain_auc_score, needs_two_classes=True),
    Entry(
        "balanced-accuracy",
        metrics.balanced_accuracy_at_threshold,
        {"threshold": 0.4},
        needs_two_classes=True,
    ),
    loss("calibration-loss"),
    loss("calibration-loss-in-sample", recalibrate="in_sample"),
    loss("calibration-loss-brier", score="brier"),
    # A cluster that carries nearly all information is freed of a leverage near 1.
    replace(loss("calibration-loss-clusters"), clustered=True, rtol=1e-10),
    replace(
        loss("calibration-loss-clusters-brier", score="brier"),
        clustered=True,
        rtol=1e-10,
    ),
    replace(loss("decomposition", metrics.calibration_decomposition), warns=False),
    # The intercept at unit slope solves sum(q) = sum(y): where all q are near 0 or 1,
    # rounding of the sums moves it by more than their last bit.
    replace(loss("slope-intercept", metrics.calibration_slope_intercept), rtol=1e-10),
    Entry("corp", metrics.corp_decomposition),
    Entry("corp-log-loss", metrics.corp_decomposition, {"score": "log_loss"}),
    Entry("reliability", metrics.reliability_curve),
    Entry(
        "reliability-quantile",
        metrics.reliability_curve,
        {"strategy": "quantile", "n_bins": 4},
    ),
]

FIRST_OF_EACH = list({e.function: e for e in reversed(ENTRIES)}.values())[::-1]

every_entry = pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)
every_function = pytest.mark.parametrize(
    "entry", FIRST_OF_EACH, ids=lambda e: e.function.__name__
)


def test_every_public_metric_is_registered():
    public = {
        name
        for name in metrics.__all__
        if inspect.isfunction(getattr(metrics, name)) and name not in NOT_METRICS
    }
    assert public == {entry.function.__name__ for entry in ENTRIES}


# -- samples -------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """Outcomes, probabilities, integer weights and clusters."""

    y: np.ndarray
    p: np.ndarray
    w: np.ndarray
    c: np.ndarray

    def take(self, rows):
        return Sample(self.y[rows], self.p[rows], self.w[rows], self.c[rows])

    def repeated(self):
        return self.take(np.repeat(np.arange(len(self.y)), self.w))


# Bin edges and their neighbours, the ends, minus zero, and values that collide.
AWKWARD = [
    0.0,
    -0.0,
    1.0,
    0.5,
    0.25,
    1 / 15,
    2 / 15,
    0.2,
    np.nextafter(0.2, 1),
    0.3,
    1e-9,
]
PROBABILITIES = st.one_of(st.sampled_from(AWKWARD), st.floats(0, 1, width=32))
ROWS = st.tuples(PROBABILITIES, st.integers(0, 1), st.integers(0, 4), st.integers(0, 5))
# Both classes on both sides of each other: every metric can be estimated.
OVERLAP = [(0.3, 1, 1, 6), (0.6, 0, 2, 7), (0.3, 0, 1, 8), (0.6, 1, 1, 9)]


@st.composite
def samples(draw):
    """Sample with ties, duplicates, 0/1 scores, few distinct values, zero weights."""
    rows = draw(st.lists(ROWS, max_size=25))
    rows += rows[: draw(st.integers(0, 5))]
    p, y, w, c = zip(*rows, *OVERLAP, strict=True)
    sample = Sample(np.array(y), np.array(p), np.array(w), np.array(c))
    return sample.take(np.array(draw(st.permutations(range(len(y))))))


@pytest.fixture(scope="module")
def sample():
    """Sample for the tests of input: away from bin edges, with ties and both ends."""
    rng = np.random.default_rng(7)
    p = np.floor(rng.random(60) * 100) / 100 + 0.003
    p[:3], p[3:5] = 0.0, 1.0
    y = (rng.random(60) < 0.2 + 0.6 * p).astype(int)
    return Sample(y, p, rng.integers(1, 4, 60), rng.integers(0, 20, 60))


def assert_same(actual, expected, rtol=1e-12):
    assert_allclose(actual, expected, rtol=rtol, atol=1e-12)


# -- laws ----------------------------------------------------------------------------


@every_entry
@settings(max_examples=LAW_EXAMPLES)
@given(sample=samples())
def test_integer_weights_are_repetition(entry, sample):
    assert_same(
        entry.on(sample, weighted=True), entry.on(sample.repeated()), entry.rtol
    )


@every_entry
@settings(max_examples=LAW_EXAMPLES)
@given(sample=samples())
def test_a_zero_weight_drops_the_row(entry, sample):
    kept = sample.take(np.flatnonzero(sample.w))
    value = entry.on(sample, weighted=True)
    assert_same(value, entry.on(kept, weighted=True), entry.rtol)


@every_entry
@settings(max_examples=LAW_EXAMPLES)
@given(sample=samples(), data=st.data())
def test_row_order_does_not_matter(entry, sample, data):
    order = np.array(data.draw(st.permutations(range(len(sample.y)))))
    shuffled = sample.take(order)
    for weighted in (False, True):
        value = entry.on(shuffled, weighted=weighted)
        assert_same(value, entry.on(sample, weighted=weighted), entry.rtol)


@every_entry
def test_weights_of_one_are_no_weights(entry, sample):
    ones = replace(sample, w=np.ones(len(sample.y)))
    assert_same(entry.on(ones, weighted=True), entry.on(sample))


@pytest.mark.parametrize(
    "entry",
    [
        e
        for e in ENTRIES
        if "weights" in e.options and e.function is not metrics.reliability_curve
    ],
    ids=lambda e: e.name,
)
@pytest.mark.parametrize("factor", [1e-3, 1e6])
def test_probability_weights_have_no_scale(entry, factor, sample):
    entry = replace(entry, parameters={**entry.parameters, "weights": "probability"})
    scaled = [replace(sample, w=sample.w / 7 * c) for c in (1, factor)]
    value, expected = (entry.on(s, weighted=True) for s in scaled)
    assert_same(value, expected, rtol=1e-10)


# -- labels --------------------------------------------------------------------------

LABELS = {
    "int": ([0, 1], int, None),
    "uint8": ([0, 1], np.uint8, None),
    "bool": ([False, True], bool, None),
    "float": ([0.0, 1.0], float, None),
    "minus-one-one": ([-1, 1], int, None),
    "int-by-name": ([3, 7], int, 7),
    "text": (["benign", "malignant"], str, "malignant"),
    "text-reversed": (["malignant", "benign"], str, "benign"),
    "object-text": (["no", "yes"], object, "yes"),
    "object-int": ([0, 1], object, 1),
}


@every_entry
@pytest.mark.parametrize("labels", LABELS)
def test_label_types_agree(entry, labels, sample):
    names, dtype, pos_label = LABELS[labels]
    y = np.array(names, dtype=dtype)[sample.y]
    value = entry(y, sample.p, pos_label=pos_label, **clusters_of(entry, sample))
    assert_same(value, entry.on(sample))


@every_entry
@pytest.mark.parametrize("pos_label", ["a", "b"])
def test_pos_label_is_relabelling(entry, pos_label, sample):
    y = np.array(["a", "b"])[sample.y]
    value = entry(y, sample.p, pos_label=pos_label, **clusters_of(entry, sample))
    relabelled = replace(sample, y=(y == pos_label).astype(int))
    assert_same(value, entry.on(relabelled))


def clusters_of(entry, sample):
    return {"clusters": sample.c} if entry.clustered else {}


# -- containers ----------------------------------------------------------------------


def series(values, **options):
    """Series whose index says nothing about the order of the rows."""
    return pd.Series(values, index=np.arange(len(values))[::-1] * 3, **options)


CONTAINERS = {
    "list": lambda v: v.tolist(),
    "tuple": lambda v: tuple(v.tolist()),
    "pandas": series,
    "pandas-nullable": lambda v: series(v).convert_dtypes(
        dtype_backend="numpy_nullable"
    ),
    "pandas-pyarrow": lambda v: series(v).convert_dtypes(dtype_backend="pyarrow"),
    "pandas-frame": lambda v: series(v).to_frame("column"),
    "polars": pl.Series,
    "polars-frame": lambda v: pl.DataFrame({"column": v}),
    "column": lambda v: v[:, np.newaxis],
    "fortran": lambda v: np.asfortranarray(np.stack([v, v], axis=1))[:, 0],
    "reversed-view": lambda v: v[::-1].copy()[::-1],
    "object": lambda v: v.astype(object),
}


@every_function
@pytest.mark.parametrize("container", CONTAINERS)
def test_containers_agree(entry, container, sample):
    wrap = CONTAINERS[container]
    pos_label = 1 if container == "object" else None  # as in scikit-learn
    value = entry(
        wrap(sample.y),
        wrap(sample.p),
        sample_weight=wrap(sample.w),
        pos_label=pos_label,
    )
    assert_same(value, entry.on(sample, weighted=True))


@every_function
def test_input_is_not_changed(entry, sample):
    y, p, w = (a.copy() for a in (sample.y, sample.p, sample.w))
    for array in (y, p, w):
        array.flags.writeable = False
    entry(y, p, sample_weight=w)
    assert (y == sample.y).all()
    assert (p == sample.p).all()


@every_function
@pytest.mark.parametrize(
    "wrap", [np.asarray, pd.DataFrame, lambda v: pl.DataFrame(v, schema=["n", "y"])]
)
def test_predict_proba_output(entry, wrap, sample):
    both = np.stack([1 - sample.p, sample.p], axis=1)
    y = np.array(["no", "yes"])[sample.y]
    expected = entry.on(sample)
    assert_same(entry(sample.y, wrap(both)), expected)
    assert_same(entry(y, wrap(both)), expected)
    assert_same(entry(y, wrap(both), pos_label="yes"), expected)
    first = entry(1 - sample.y, both[:, 0])
    assert_same(entry(y, wrap(both), pos_label="no"), first)


@every_entry
def test_float32_scores_are_cast_once(entry, sample):
    p = sample.p.astype(np.float32)
    value = entry.on(replace(sample, p=p))
    assert_same(value, entry.on(replace(sample, p=p.astype(np.float64))), rtol=0)
    # No score of this sample is near a bin edge, where float32 may differ.
    assert_allclose(value, entry.on(sample), rtol=1e-4, atol=1e-5)


@every_function
def test_float32_predict_proba(entry, sample):
    p = sample.p.astype(np.float32)
    both = np.stack([np.float32(1) - p, p], axis=1)
    assert_same(entry(sample.y, both), entry(sample.y, p.astype(np.float64)))


@every_entry
def test_minus_zero_is_zero(entry, sample):
    minus = replace(sample, p=np.where(sample.p == 0, -0.0, sample.p))
    assert_same(entry.on(minus), entry.on(sample), rtol=0)
    assert_same(entry.on(minus, weighted=True), entry.on(sample, weighted=True), 0)


@every_entry
def test_scores_of_zero_and_one_alone(entry):
    rows = [(0.0, 0), (0.0, 1), (1.0, 0), (1.0, 1), (1.0, 1), (0.0, 0)] * 5
    p, y = (np.array(column) for column in zip(*rows, strict=True))
    value = entry.on(Sample(y, p, np.ones(len(y)), np.arange(len(y)) // 2))
    assert not np.isnan(value).any()


# -- one class -----------------------------------------------------------------------


@every_entry
@pytest.mark.parametrize("label", [0, 1])
def test_one_class(entry, label, sample):
    one = replace(sample, y=np.full(len(sample.y), label))
    if entry.needs_two_classes and entry.warns:
        with pytest.warns(UndefinedMetricWarning, match="only one class is present"):
            value = entry.on(one)
        assert np.isnan(value).all()
    elif entry.needs_two_classes:
        assert np.isnan(entry.on(one)).any()
    else:
        assert not np.isnan(entry.on(one)).any()


@pytest.mark.parametrize(
    "entry", [e for e in ENTRIES if e.fits and e.warns], ids=lambda e: e.name
)
@pytest.mark.parametrize(
    ("p", "reason"),
    [
        ([0.1] * 20 + [0.7] * 20, "separable"),
        ([0.7] * 20 + [0.1] * 20, "separable"),
        ([0.2] * 10 + [0.4] * 10 + [0.4] * 20, "separable"),
        ([0.3] * 40, "constant"),
        # different, but equal once clipped to [1e-12, 1 - 1e-12]
        ([0.0, 1e-13] * 20, "constant"),
        ([0.0] * 10 + [1e-13] * 10 + [0.0] * 10 + [0.5] * 10, "separable"),
    ],
)
def test_no_recalibration_exists(entry, p, reason):
    y = np.repeat([0, 1], 20)
    with pytest.warns(UndefinedMetricWarning, match=reason):
        value = entry.on(Sample(y, np.array(p), np.ones(40), np.arange(40)))
    assert np.isnan(value).all()


# -- refusals ------------------------------------------------------------------------


def put(array, row, value):
    out = np.array(array, dtype=float)
    out[row] = value
    return out


GOOD = {
    "y_true": np.tile([0, 1, 1, 0, 1], 6),
    "y_prob": np.linspace(0.02, 0.97, 30),
    "sample_weight": np.ones(30),
}
TEXT = np.array(["a", "b"])[GOOD["y_true"]]

BAD = {
    "score-nan": ({"y_prob": put(GOOD["y_prob"], 17, np.nan)}, "y_prob.*NaN.*row 17"),
    "score-none": (
        {"y_prob": [None, *GOOD["y_prob"][1:].tolist()]},
        "y_prob.*NaN.*row 0",
    ),
    "score-pandas-na": (
        {"y_prob": pd.Series([*GOOD["y_prob"][:-1], None], dtype="Float64")},
        "y_prob.*NaN.*row 29",
    ),
    "score-inf": (
        {"y_prob": put(GOOD["y_prob"], 3, np.inf)},
        "y_prob.*infinity.*row 3",
    ),
    "score-minus-inf": (
        {"y_prob": put(GOOD["y_prob"], 3, -np.inf)},
        "y_prob.*infinity.*row 3",
    ),
    "score-above-one": (
        {"y_prob": put(GOOD["y_prob"], 17, 1.3)},
        r"y_prob must lie in \[0, 1\]; got 1\.3 at row 17",
    ),
    "score-negative": (
        {"y_prob": put(GOOD["y_prob"], 4, -0.25)},
        r"y_prob must lie in \[0, 1\]; got -0\.25 at row 4",
    ),
    "score-text": ({"y_prob": ["0.5"] * 30}, "y_prob must be numeric"),
    "score-object-text": (
        {"y_prob": np.array(["high", *GOOD["y_prob"][1:]], dtype=object)},
        "y_prob must be numeric",
    ),
    "score-complex": ({"y_prob": GOOD["y_prob"] + 0j}, "y_prob must be numeric"),
    "score-three-columns": (
        {"y_prob": np.full((30, 3), 1 / 3)},
        "y_prob has 3 columns",
    ),
    "score-three-axes": (
        {"y_prob": np.full((30, 2, 2), 0.5)},
        "y_prob must have shape",
    ),
    "score-rows-not-one": (
        {"y_prob": np.full((30, 2), 0.4)},
        "rows of y_prob must sum to 1.*row 0 sums to 0.8",
    ),
    "score-scalar": ({"y_prob": 0.5}, "array-like"),
    "score-ragged": ({"y_prob": [[0.2], [0.3, 0.7]]}, "rectangular"),
    "score-short": (
        {"y_prob": GOOD["y_prob"][:-1]},
        "y_true has 30 rows, y_prob has 29 rows",
    ),
    "weight-short": ({"sample_weight": np.ones(29)}, "sample_weight.*got 29 for 30"),
    "weight-long": ({"sample_weight": np.ones(31)}, "sample_weight.*got 31 for 30"),
    "weight-negative": (
        {"sample_weight": put(GOOD["sample_weight"], 5, -1)},
        "sample_weight must not be negative; got -1 at row 5",
    ),
    "weight-all-zero": ({"sample_weight": np.zeros(30)}, "sample_weight is zero"),
    "weight-nan": (
        {"sample_weight": put(GOOD["sample_weight"], 5, np.nan)},
        "sample_weight contains NaN or infinity at row 5",
    ),
    "weight-inf": (
        {"sample_weight": put(GOOD["sample_weight"], 5, np.inf)},
        "sample_weight contains NaN or infinity at row 5",
    ),
    "weight-two-columns": (
        {"sample_weight": np.ones((30, 2))},
        r"sample_weight must be one-dimensional.*\(30, 2\)",
    ),
    "weight-text": ({"sample_weight": ["1"] * 30}, "sample_weight must be numeric"),
    "three-classes": ({"y_true": np.arange(30) % 3}, "two classes; got 3: {0, 1, 2}"),
    "continuous-labels": ({"y_true": GOOD["y_prob"]}, "two classes; got 30"),
    "label-nan": (
        {"y_true": put(GOOD["y_true"], 9, np.nan)},
        "y_true contains NaN or infinity at row 9",
    ),
    "label-none": (
        {"y_true": [None, *GOOD["y_true"][1:].tolist()]},
        "y_true contains a missing value at row 0",
    ),
    "label-nan-in-text": (
        {"y_true": [*TEXT[:4].tolist(), float("nan"), *TEXT[5:].tolist()]},
        "y_true contains a missing value at row 4",
    ),
    "label-pandas-na": (
        {"y_true": pd.Series([*GOOD["y_true"][:-1], pd.NA], dtype="Int64")},
        "y_true contains (a missing value|NaN or infinity) at row 29",
    ),
    "label-polars-null": (
        {"y_true": pl.Series([*TEXT[:-1].tolist(), None])},
        "y_true contains a missing value at row 29",
    ),
    "label-mixed": (
        {"y_true": np.array([0, "a"] * 15, dtype=object), "pos_label": "a"},
        "y_true mixes labels",
    ),
    "label-two-columns": (
        {"y_true": np.zeros((30, 2))},
        r"y_true must be one-dimensional.*\(30, 2\)",
    ),
    "text-without-pos-label": (
        {"y_true": TEXT},
        "{'a', 'b'} and pos_label is not spec",
    ),
    "numbers-without-pos-label": (
        {"y_true": GOOD["y_true"] + 1},
        "{1, 2} and pos_label is not specified",
    ),
    "pos-label-absent": (
        {"y_true": TEXT, "pos_label": "c"},
        "pos_label='c' is not among the labels of y_true: {'a', 'b'}",
    ),
    "pos-label-of-other-type": ({"pos_label": "1"}, "pos_label='1' is not among"),
    "pos-label-absent-two-columns": (
        {
            "y_true": TEXT,
            "y_prob": np.stack([1 - GOOD["y_prob"], GOOD["y_prob"]], axis=1),
            "pos_label": "c",
        },
        "pos_label='c' is not among the labels of y_true: {'a', 'b'}",
    ),
    "empty": (
        {"y_true": [], "y_prob": [], "sample_weight": None},
        "y_true is empty: at least one row",
    ),
    "empty-scores": ({"y_prob": []}, "y_prob is empty"),
    "none": ({"y_true": None}, "array-like"),
}


@every_function
@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_by_name(entry, case):
    changes, message = BAD[case]
    given = {**GOOD, **changes}
    y, p = given.pop("y_true"), given.pop("y_prob")
    with pytest.raises(ValueError, match=message):
        entry(y, p, **given)


@pytest.mark.parametrize(
    "entry", [e for e in FIRST_OF_EACH if "weights" in e.options], ids=lambda e: e.name
)
def test_fractional_weights_need_the_probability_form(entry):
    weights = np.linspace(0.5, 2, 30)
    with pytest.raises(ValueError, match=r"fractional.*0\.5.*weights='probability'"):
        entry(GOOD["y_true"], GOOD["y_prob"], sample_weight=weights)
    value = entry(
        GOOD["y_true"], GOOD["y_prob"], sample_weight=weights, weights="probability"
    )
    assert np.isfinite(value).all()
    with pytest.raises(
        ValueError, match="weights must be 'frequency' or 'probability'"
    ):
        entry(GOOD["y_true"], GOOD["y_prob"], weights="survey")


@pytest.mark.parametrize(
    "entry", [e for e in FIRST_OF_EACH if "clusters" in e.options], ids=lambda e: e.name
)
@pytest.mark.parametrize(
    ("clusters", "message"),
    [
        (np.arange(29), "clusters must have one value per row; got 29 for 30"),
        ([None, *range(29)], "clusters contains a missing value at row 0"),
        (np.zeros((30, 2)), "clusters must be one-dimensional"),
    ],
)
def test_bad_clusters_are_refused(entry, clusters, message):
    with pytest.raises(ValueError, match=message):
        entry(GOOD["y_true"], GOOD["y_prob"], clusters=clusters)


@pytest.mark.parametrize(
    "entry", [e for e in FIRST_OF_EACH if "clusters" in e.options], ids=lambda e: e.name
)
def test_clusters_may_be_of_any_type(entry, sample):
    expected = entry(sample.y, sample.p, clusters=sample.c)
    for clusters in (
        sample.c.astype(str),
        pd.Series(sample.c).astype("category"),
        pl.Series(sample.c * 1000),
        sample.c.astype(str).tolist(),
    ):
        assert_same(entry(sample.y, sample.p, clusters=clusters), expected)


@pytest.mark.parametrize(
    "entry", [e for e in FIRST_OF_EACH if "n_bins" in e.options], ids=lambda e: e.name
)
@pytest.mark.parametrize("n_bins", [0, -1, 2.5, True, "10", None])
def test_bad_numbers_of_bins_are_refused(entry, n_bins):
    with pytest.raises(ValueError, match="n_bins must be a positive integer"):
        entry(GOOD["y_true"], GOOD["y_prob"], n_bins=n_bins)


@pytest.mark.parametrize("option", ["strategy", "norm", "kind", "score", "recalibrate"])
def test_unknown_choices_are_refused(option):
    offering = [e for e in FIRST_OF_EACH if option in e.options]
    assert offering
    for entry in offering:
        with pytest.raises(ValueError, match=rf"{option} must be .*; got 'nonsense'"):
            entry(GOOD["y_true"], GOOD["y_prob"], **{option: "nonsense"})


@pytest.mark.parametrize(
    "entry",
    [e for e in ENTRIES if "kind" in e.options and not e.needs_two_classes],
    ids=lambda e: e.name,
)
def test_labels_name_columns_that_do_not_occur(entry, sample):
    """One class in the rows, two columns: labels= tells which column is whose."""
    y = np.full(len(sample.y), "a")
    both = np.stack([sample.p, 1 - sample.p], axis=1)
    value = entry(y, both, labels=["a", "b"], pos_label="a")
    assert_same(value, entry(np.ones(len(y), dtype=int), sample.p))
    with pytest.raises(ValueError, match="pos_label='c' is not among the labels"):
        entry(y, both, labels=["a", "b"], pos_label="c")
    with pytest.raises(ValueError, match=r"labels= does not name: {'a'}"):
        entry(y, both, labels=["b", "c"])
    with pytest.raises(ValueError, match=r"2 columns but y_true holds 1 labels"):
        entry(y, both)
