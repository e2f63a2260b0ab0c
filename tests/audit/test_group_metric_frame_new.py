"""What GroupMetricFrame adds: sizes matched, gaps, tables; and what it refuses."""

import pickle
import sys
from itertools import combinations
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import true_positive_rate
from joblib import parallel_config
from numpy.testing import assert_allclose
from pandas.testing import assert_frame_equal
from scipy.special import comb
from sklearn.metrics import brier_score_loss, recall_score

from skcalfair import metrics as own
from skcalfair._sorted_scores import SortedScores
from skcalfair._validation import ScoredRows, check_scored_rows
from skcalfair.audit import GroupMetricFrame
from skcalfair.audit._frame_matched import expected_squared_error
from skcalfair.audit._intervals import GroupRows, gap_interval
from skcalfair.audit._multiplicity import adjust
from skcalfair.datasets import make_subgroup_scores
from skcalfair.metrics._calibration_error import squared_error_kernel

ECE, CE2, AUC = "expected_calibration_error", "squared_calibration_error", "roc_auc"


def cohort(n=300, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 2, n)
    return pd.DataFrame(
        {
            "y": (rng.random(n) < p).astype(int),
            "p": p,
            "group": np.where(np.arange(n) % 5, "large", "small"),
            "site": np.where(np.arange(n) % 3, "north", "south"),
        }
    )


def mean_prediction(y_true, y_pred):
    return float(np.mean(y_pred))


def frame(data, metrics=(ECE, CE2), by="group", controls=None, **options):
    arguments = {
        "metrics": list(metrics) if isinstance(metrics, tuple) else metrics,
        "y_true": data["y"],
        "y_pred": data["p"],
        "sensitive_features": data[by],
        "control_features": None if controls is None else data[controls],
        "n_resamples": 200,
        "random_state": 0,
    }
    return GroupMetricFrame(**arguments | options)


def only(table, **values):
    """The one row of a table with these values."""
    chosen = table
    for column, value in values.items():
        chosen = chosen[chosen[column] == value]
    (row,) = chosen.to_dict("records")
    return row


# -- equal size ----------------------------------------------------------------


@pytest.mark.parametrize("named", [True, False])
def test_the_mean_over_subsamples_is_that_over_all_subsets(named):
    rng = np.random.default_rng(4)
    p = np.round(rng.random(12), 1)
    y = np.array([0, 1] * 6)
    group = np.array(["a"] * 8 + ["b"] * 4)

    def called(y, p):
        return own.expected_calibration_error(y, p)

    made = GroupMetricFrame(
        metrics=ECE if named else called,
        y_true=y,
        y_pred=p,
        sensitive_features=group,
        min_group_size=2,
        n_resamples=(n_resamples := 2000 if named else 100),
        random_state=1,
    )
    subsets = [list(rows) for rows in combinations(range(8), 4)]
    values = np.array([own.expected_calibration_error(y[s], p[s]) for s in subsets])
    row = only(made.size_matched, group="a")
    assert row["size"] == 4
    assert abs(row["value"] - values.mean()) < 4 * values.std() / np.sqrt(n_resamples)
    ends = np.quantile(values, [0.025, 0.975])
    assert_allclose([row["low"], row["high"]], ends, atol=0.03)
    whole = only(made.size_matched, group="b")
    assert_allclose(whole["value"], own.expected_calibration_error(y[8:], p[8:]))
    assert np.isnan(whole["low"])
    assert_allclose(made.size_matched_difference(), abs(row["value"] - whole["value"]))


@pytest.mark.parametrize("size_match", [None, 40, 100])
def test_sizes(size_match):
    made = frame(cohort(), size_match=size_match)
    table = made.size_matched
    if size_match is None:
        assert table.empty
        assert made.size_matched_difference().isna().all()
        assert made.gaps()["size"].isna().all()
        assert set(made.to_frame()["sampling"]) == {"naive"}
        return
    assert (table["size"] == size_match).all()
    small = table["group"] == "small"
    if size_match > 60:
        assert set(table.loc[small, "reason"]) == {"fewer than 100 rows"}
        assert made.size_matched_difference().isna().all()
    else:
        assert table["value"].notna().all()


def test_sizes_are_matched_within_control_levels():
    data = cohort(600)
    made = frame(data, controls="site")
    sizes = data.groupby(["site", "group"]).size().groupby("site").min()
    found = made.size_matched.groupby("site")["size"].unique()
    assert {k: v.tolist() for k, v in found.items()} == {
        site: [size] for site, size in sizes.items()
    }
    assert made.size_matched_difference().index.tolist() == ["north", "south"]
    assert made.size_matched_difference().columns.tolist() == [ECE, CE2]
    assert len(made.gaps()) == 4


def test_size_explains_a_small_groups_error():
    data = make_subgroup_scores(random_state=0).frame.rename(
        columns={"outcome": "y", "score": "p"}
    )
    made = frame(data, ECE)
    assert made.difference() > 0.05
    assert made.size_matched_difference() < 0.02
    (gap,) = made.gaps().to_dict("records")
    assert gap["low"] < 0 < gap["high"]
    assert gap["p_value"] > 0.05


def test_results_do_not_depend_on_workers():
    metrics = {"ece": ECE, "mean": mean_prediction}
    one, two = (
        frame(cohort(), metrics, n_jobs=n_jobs, n_resamples=40, size_match=60)
        for n_jobs in (1, 2)
    )
    with parallel_config(backend="threading"):
        assert_frame_equal(one.size_matched, two.size_matched)


def test_results_do_not_depend_on_the_order_of_questions():
    data = cohort()
    one, two = (frame(data, (ECE, AUC)) for _ in range(2))
    gaps = two.gaps()
    assert_frame_equal(one.size_matched, two.size_matched)
    assert_frame_equal(one.gaps(), gaps)
    assert_frame_equal(one.to_frame(), pickle.loads(pickle.dumps(two)).to_frame())


def test_whole_clusters_are_drawn():
    data = cohort()
    data["p"] = np.arange(300) // 10 / 30

    def whole(y, p):
        return float((np.unique(p, return_counts=True)[1] == 10).all())

    data["group"] = np.where(np.arange(300) < 100, "small", "large")
    made = frame(data, {"whole": whole}, clusters=data["p"], n_resamples=40)
    assert (made.size_matched["value"] == 1.0).all()
    assert (made.size_matched["size"] == 100).all()
    assert made.to_frame()["clusters"].tolist() == [20, 20, 10, 10]


# -- classes -------------------------------------------------------------------


@pytest.mark.parametrize("metric", [AUC, recall_score, true_positive_rate])
def test_classes_are_matched(metric):
    data = cohort()
    if metric != AUC:
        data["p"] = (data["p"] > 0.5).astype(int)
    made = frame(data, {"metric": metric}, match_on="classes", n_resamples=40)
    counts = data.groupby("group")["y"].agg(["sum", "size"])
    positives, negatives = counts["sum"].min(), (counts["size"] - counts["sum"]).min()
    assert (made.size_matched["size"] == positives + negatives).all()
    large = only(made.size_matched, group="large")
    assert abs(large["value"] - made.by_group.loc["large", "metric"]) < 0.05


def test_an_int_counts_the_rows_of_each_class():
    made = frame(cohort(), (AUC,), match_on="classes", size_match=20)
    assert (made.size_matched["size"] == 40).all()


@pytest.mark.parametrize("metric", [ECE, CE2, "average_precision", brier_score_loss])
def test_classes_are_not_matched_for_what_depends_on_prevalence(metric):
    with pytest.raises(ValueError, match="changes the prevalence"):
        frame(cohort(), {"metric": metric}, match_on="classes")


def test_classes_and_clusters():
    data = cohort()
    with pytest.raises(ValueError, match="cannot keep clusters whole"):
        frame(data, AUC, match_on="classes", clusters=np.arange(300))


# -- gaps ----------------------------------------------------------------------


def test_gaps_are_those_of_the_interval_functions():
    data = cohort()
    made = frame(data, (AUC, CE2, ECE))
    table = made.gaps()
    groups = {
        name: GroupRows(check_scored_rows(part["y"], part["p"]))
        for name, part in data.groupby("group")
    }
    for metric in (AUC, CE2):
        row = only(table, metric=metric)
        assert (row["group"], row["reference"]) == ("large", "small")
        expected = gap_interval(groups["large"], groups["small"], metric)
        values = made.by_group[metric]
        assert_allclose(row["naive"], values["large"] - values["small"])
        assert_allclose(row["naive"], expected.value, atol=1e-12)
        assert row["method"] == expected.method
        if metric == AUC:  # no Monte Carlo
            assert_allclose([row["low"], row["high"]], [expected.low, expected.high])
        assert np.isnan(row["size_matched"])  # size hardly matters
    matched = made.size_matched.set_index(["metric", "group"])["value"]
    row = only(table, metric=ECE)
    assert_allclose(row["size_matched"], matched[ECE, "large"] - matched[ECE, "small"])


def holm(p_values):
    return adjust(np.array(p_values), family=len(p_values))


def test_references():
    data = cohort(600)
    data["group"] = np.array(["a", "b", "c", "c"])[np.arange(600) % 4]
    made = frame(data, (AUC, ECE))
    pairs = made.gaps()
    assert list(zip(pairs["group"], pairs["reference"], strict=True))[:3] == [
        ("a", "b"),
        ("a", "c"),
        ("b", "c"),
    ]
    assert pairs["exploratory"].tolist() == [False] * 3 + [True] * 3
    assert_allclose(pairs["p_adjusted"][:3], holm(pairs["p_value"][:3].tolist()))
    assert pairs["p_adjusted"][3:].isna().all()
    against = made.gaps("c")
    assert against["group"].tolist() == ["a", "b"] * 2
    assert_allclose(against["naive"][:2], pairs["naive"][1:3])
    rest = made.gaps("rest")
    assert rest["reference"].unique().tolist() == ["rest"]
    others = data[data["group"] != "a"]
    expected = made.by_group.loc["a", ECE] - own.expected_calibration_error(
        others["y"], others["p"]
    )
    assert_allclose(only(rest, metric=ECE, group="a")["naive"], expected)
    assert only(rest, metric=ECE, group="c")["size"] == 300
    with pytest.raises(ValueError, match="reference must be"):
        made.gaps("d")


def test_a_group_called_rest():
    data = cohort()
    data["group"] = data["group"].replace("large", "rest")
    with pytest.raises(ValueError, match="ambiguous"):
        frame(data).gaps("rest")


def test_holm():
    assert_allclose(holm([0.01, 0.04, 0.03]), [0.03, 0.06, 0.06])
    assert_allclose(holm([0.02, np.nan, 0.5]), [0.06, np.nan, 1.0])


def test_metrics_without_an_interval_say_so():
    data = cohort()
    metrics = {
        "mine": mean_prediction,
        "mce": "maximum_calibration_error",
    }
    table = frame(data, metrics, n_resamples=40).gaps()
    assert table["low"].isna().all()
    assert table["reason"].notna().all()
    assert table["size_matched"].notna().all()
    boot = {"n_boot": 50, "ci_quantiles": [0.5], "n_resamples": 40}
    booted = frame(data, metrics, **boot).gaps()
    row = only(booted, metric="mine")
    assert row["low"] < row["naive"] < row["high"]
    assert row["method"] == "percentiles of 50 bootstrap samples of rows"


# -- long table ----------------------------------------------------------------


def test_long_table():
    data = cohort()
    data["band"] = np.arange(300) // 100
    data = data[(data["group"] == "large") | (data["band"] > 0)]
    table = frame(data, (ECE, AUC), by=["group", "band"]).to_frame()
    groups = data.groupby(["group", "band"])["y"].agg(["size", "sum"])
    assert table["group"].unique().tolist() == [
        "large & 0",
        "large & 1",
        "large & 2",
        "small & 1",
        "small & 2",
    ]
    assert table.columns.tolist() == [
        "feature_group",
        "band",
        "group",
        "n",
        "positives",
        "clusters",
        "metric",
        "sampling",
        "size",
        "value",
        "low",
        "high",
        "method",
        "reason",
    ]
    row = only(table, group="small & 2", metric=AUC, sampling="naive")
    assert (row["n"], row["positives"]) == tuple(groups.loc["small", 2])
    assert all(str(table[c].dtype) == "Int64" for c in ("n", "positives", "size"))
    assert table["clusters"].isna().all()
    assert row["low"] < row["value"] < row["high"]


def test_what_is_not_estimable_says_why():
    data = cohort()
    data["group"] = np.select(
        [np.arange(300) < 100, np.arange(300) < 105, np.arange(300) < 145],
        ["a", "tiny", "one class"],
        "b",
    )
    data.loc[data["group"] == "one class", "y"] = 0
    made = frame(data, (AUC, CE2))
    table = made.to_frame()
    tiny = table[table["group"] == "tiny"]
    assert tiny["value"].isna().all()
    assert set(tiny["reason"]) == {"fewer than 10 rows"}
    lone = only(table, group="one class", metric=AUC, sampling="naive")
    assert lone["reason"] == "only one class is present (no positive rows)"
    assert np.isnan(lone["value"])
    assert only(made.size_matched, group="a", metric=AUC)["size"] == 40
    gaps = made.gaps("one class")
    row = only(gaps, metric=AUC, group="a")
    assert np.isnan(row["naive"])
    assert row["reason"].startswith("one class: only one class")
    assert np.isfinite(only(gaps, metric=CE2, group="a")["naive"])
    clusters = np.where(data["group"] == "a", 0, np.arange(300))
    table = frame(data, CE2, clusters=clusters).to_frame()
    assert only(table, group="a", sampling="naive")["reason"] == "one cluster only"


def test_weights_of_zero_are_rows_that_are_not_there():
    data = cohort()
    weights = (np.arange(300) % 7 > 0).astype(float)
    left = data[weights > 0]
    options = {"sample_params": {ECE: {"sample_weight": weights}}}
    made = frame(data, (ECE,), **options, size_match=30)
    expected = frame(left, (ECE,), size_match=30)
    assert_frame_equal(made.by_group, expected.by_group, rtol=1e-12)
    a, b = (f.size_matched["value"] for f in (made, expected))
    assert_allclose(a, b, atol=0.01)


# -- rarefaction ---------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 4, 7, 9])
def test_the_expected_squared_error_is_exact(size):
    rng = np.random.default_rng(5)
    p = np.sort(np.round(rng.random(9), 2))[::-1]
    rows = SortedScores(p, rng.integers(0, 2, 9).astype(np.uint8))
    values = [
        squared_error_kernel(rows.take(np.array(kept)), 3)[0]
        for kept in combinations(range(9), size)
    ]
    assert len(values) == comb(9, size)
    found = expected_squared_error(rows, 3, size)
    assert_allclose(found, np.mean(values), atol=1e-14)


def test_rarefaction():
    data = cohort(1000)
    made = frame(data, {"ece": ECE, "ce2": CE2})
    table = made.rarefaction([0.1, 0.5, 1.0])
    large = table[(table["group"] == "large") & (table["metric"] == "ece")]
    assert large["size"].tolist() == [80, 400, 800]
    assert (np.diff(large["value"]) < 0).all()
    assert large["method"].tolist()[-1] == "all rows"
    assert_allclose(large["value"].iloc[-1], made.by_group.loc["large", "ece"])
    exact = only(table, group="large", metric="ce2", fraction=0.1)
    assert exact["method"] == "exact expectation"
    error = (exact["high"] - exact["low"]) / 4 / np.sqrt(200)
    part = data[data["group"] == "large"]
    drawn = made._tables.matcher.cells((0,), 80)["ce2"].value
    assert abs(drawn - exact["value"]) < 5 * error
    assert len(part) == 800
    whole = made.rarefaction([0.5], overall=True)
    assert whole["group"].tolist() == ["all", "all"]
    assert whole["size"].tolist() == [500, 500]
    assert len(made.rarefaction()) == 2 * 2 * 10
    with pytest.raises(ValueError, match="fractions"):
        made.rarefaction([0.0])


# -- the test of calibration ---------------------------------------------------


def test_the_test_gets_the_rows(monkeypatch):
    data = cohort()
    module = ModuleType("skcalfair.audit._equal_calibration")
    module.equal_calibration_test = lambda **given: given
    monkeypatch.setitem(sys.modules, "skcalfair.audit._equal_calibration", module)
    given = frame(data, clusters=np.arange(300)).equal_calibration_test(n_draws=7)
    assert (given["y_true"] == data["y"]).all()
    assert_allclose(given["y_prob"], data["p"])
    assert (given["sensitive_features"] == data["group"]).all()
    assert (given["clusters"] == np.arange(300)).all()
    assert (given["method"], given["n_draws"]) == ("auto", 7)
    by_level = frame(data, controls="site").equal_calibration_test()
    assert list(by_level) == [("north",), ("south",)]
    assert (by_level["south",]["y_true"] == data["y"][data["site"] == "south"]).all()
    with pytest.raises(ValueError, match="needs probabilities"):
        frame(data, {"rate": lambda y, p: 0.0}).equal_calibration_test()


def test_rows_take():
    """Rows handed to intervals are those of the group."""
    data = cohort()
    made = frame(data, CE2)
    rows = made._tables.group_rows((1,), made._sample.metrics[0]).rows
    assert isinstance(rows, ScoredRows)
    assert_allclose(rows.p, data["p"][data["group"] == "small"])
