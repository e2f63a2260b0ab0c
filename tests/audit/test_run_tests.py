"""Tests of a difference between groups over the runs of a study."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from skcalfair._log_odds import sigmoid
from skcalfair.audit._run_tests import cluster_mean, compare_means, run_tests

BRIER, ECE = "brier_score_loss", "expected_calibration_error"
LEVEL = 0.05


def ece(y, p):
    """Expected calibration error of 15 uniform bins."""
    bins = np.maximum(np.ceil(p * 15) - 1, 0).astype(int)
    return np.abs(np.bincount(bins, p - y, 15)).sum() / len(y)


def brier(y, p):
    return ((p - y) ** 2).mean()


def study(seed, *, n=(1423, 71), slope=1.0, refits=5, n_matched=1, rows_per_patient=1):
    """Results and predictions as of 5 test folds, each scored by several refits.

    Both groups are scored alike; the refits of a row differ a little. `slope` is that
    of the outcome on the small group's log-odds, 1 for no difference.
    """
    rng = np.random.default_rng(seed)
    group = np.repeat(["large", "small"], n)
    patient = np.arange(sum(n)) // rows_per_patient
    small = group == "small"
    x = 2.0 * rng.normal(size=patient[-1] + 1)[patient]
    x += 0.5 * rng.normal(size=len(x))
    shared = rng.normal(size=patient[-1] + 1)[patient]
    if rows_per_patient == 1:
        u = rng.random(len(x))
    else:
        u = stats.norm.cdf((shared + rng.normal(size=len(x))) / np.sqrt(2))
    y = (u < sigmoid(np.where(small, slope, 1.0) * x)).astype(int)
    fold = rng.permutation(patient[-1] + 1)[patient] % 5
    results, parts_of_runs, scores = [], [], []
    for run in range(5 * refits):
        rows = np.flatnonzero(fold == run // refits)
        p = sigmoid(x[rows] + 0.3 * rng.normal(size=len(rows)))
        parts = {g: np.flatnonzero(group[rows] == g) for g in ("large", "small")}
        size = len(parts["small"])
        matched = [
            rng.choice(parts["large"], size, replace=False) for _ in range(n_matched)
        ]
        for g, part in parts.items():
            draws = [part] if g == "small" else matched
            for name, metric in ((ECE, ece), (BRIER, brier)):
                naive = metric(y[rows][part], p[part])
                mean = np.mean([metric(y[rows][d], p[d]) for d in draws])
                start = (run, run // refits, g, name)
                results.append((*start, "naive", len(part), naive))
                results.append((*start, "size_matched", size, mean))
        parts_of_runs.append(rows)
        scores.append(p)
    rows, score = np.concatenate(parts_of_runs), np.concatenate(scores)
    run = np.repeat(np.arange(5 * refits), [len(part) for part in parts_of_runs])
    predictions = {
        "run": run,
        "fold": run // refits,
        "row": rows,
        "outcome": y[rows],
        "score": score,
        "calibrated": score**1.1,
        "group": group[rows],
        "cluster": patient[rows],
        "sample_weight": np.ones(len(rows)),
    }
    columns = ["run", "fold", "group", "metric", "sampling", "size", "value"]
    return pd.DataFrame(results, columns=columns), pd.DataFrame(predictions)


@pytest.fixture(scope="module")
def data():
    return study(0)


def one(table, metric=BRIER, sampling="naive"):
    found = table[(table["metric"] == metric) & (table["sampling"] == sampling)]
    assert len(found) == 1
    return found.iloc[0]


# -- pooled rows ----------------------------------------------------------------------


def row_means(predictions, values):
    """Mean over refits of a value, by row, with the row's group and cluster."""
    frame = predictions.assign(value=values)
    return frame.groupby("row").agg(
        value=("value", "mean"), group=("group", "first"), cluster=("cluster", "first")
    )


def test_pooled_is_welchs_test_on_the_rows(data):
    results, predictions = data
    values = (predictions["score"] - predictions["outcome"]) ** 2
    rows = row_means(predictions, values)
    expected = stats.ttest_ind(
        rows["value"][rows["group"] == "small"],
        rows["value"][rows["group"] == "large"],
        equal_var=False,
    )
    found = one(run_tests(results, predictions, method="pooled_welch"))
    assert found["method"] == "pooled_welch"
    assert (found["unit"], found["n_units"]) == ("row", 1494)
    assert (found["group"], found["reference"]) == ("small", "large")
    assert_allclose(found["statistic"], expected.statistic, rtol=1e-10)
    assert_allclose(found["p_value"], expected.pvalue, rtol=1e-10)


def test_pooled_of_whole_clusters_is_welchs_test_on_their_means():
    results, predictions = study(1, n=(600, 90), rows_per_patient=3)
    values = (predictions["score"] - predictions["outcome"]) ** 2
    rows = row_means(predictions, values)
    patients = rows.groupby("cluster").agg(
        value=("value", "mean"), group=("group", "first")
    )
    expected = stats.ttest_ind(
        patients["value"][patients["group"] == "small"],
        patients["value"][patients["group"] == "large"],
        equal_var=False,
    )
    found = one(run_tests(results, predictions, method="pooled_welch", clustered=True))
    assert (found["unit"], found["n_units"]) == ("cluster", 230)
    assert_allclose(found["p_value"], expected.pvalue, rtol=1e-10)


def test_calibration_losses_are_pooled_as_well(data):
    _, predictions = data
    names = ("calibration_loss_brier", "calibration_loss_log_loss", "log_loss")
    results = pd.concat(
        [data[0][data[0]["metric"] == BRIER].assign(metric=name) for name in names]
    )
    table = run_tests(results, predictions, method="pooled_welch")
    y = predictions["outcome"]
    p, q = predictions["score"], predictions["calibrated"]

    def cross_entropy(probability):
        return -np.log(np.where(y == 1, probability, 1 - probability))

    values = {
        "calibration_loss_brier": (p - y) ** 2 - (q - y) ** 2,
        "calibration_loss_log_loss": cross_entropy(p) - cross_entropy(q),
        "log_loss": cross_entropy(p),
    }
    for name in names:
        rows = row_means(predictions, values[name])
        expected = stats.ttest_ind(
            rows["value"][rows["group"] == "small"],
            rows["value"][rows["group"] == "large"],
            equal_var=False,
        )
        assert_allclose(one(table, name)["p_value"], expected.pvalue, rtol=1e-8)


def test_weights_are_repetition_within_a_cluster():
    rng = np.random.default_rng(0)
    values, cluster = rng.normal(size=30), np.arange(30) // 3
    weights = rng.integers(1, 4, 30)
    first = cluster_mean(values, weights.astype(float), cluster)
    again = np.repeat(np.arange(30), weights)
    second = cluster_mean(values[again], np.ones(len(again)), cluster[again])
    assert_allclose(first.value, second.value)
    assert_allclose(first.variance, second.variance)
    assert_allclose(first.df, second.df)


def test_variance_of_clusters_of_unequal_size():
    """Unbiased where rows are independent, whatever their clusters are."""
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(12), [1, 1, 1, 2, 2, 3, 3, 4, 5, 6, 8, 10])
    ones = np.ones(len(cluster))
    found = [
        cluster_mean(rng.normal(size=len(cluster)), ones, cluster).variance
        for _ in range(1500)
    ]
    assert_allclose(np.mean(found), 1 / len(cluster), rtol=0.07)


def test_a_cluster_with_rows_in_both_groups_is_allowed_for():
    """Paired rows: the test becomes nearly that of paired differences."""
    rng = np.random.default_rng(0)
    n = 200
    shared, cluster = rng.normal(size=n), np.arange(n)
    a, b = shared + 0.1 * rng.normal(size=n), shared + 0.1 * rng.normal(size=n)
    ones = np.ones(n)
    found = compare_means(
        cluster_mean(a, ones, cluster), cluster_mean(b, ones, cluster)
    )
    expected = stats.ttest_rel(a, b)
    assert_allclose(found.welch, expected.statistic, rtol=1e-10)


def test_the_correction_is_halls(data):
    """Against its formula with the plain sums of two independent samples."""
    results, predictions = data
    values = (predictions["score"] - predictions["outcome"]) ** 2
    rows = row_means(predictions, values)
    thirds, variances = [], []
    for group, sign in (("small", 1), ("large", -1)):
        x = rows["value"][rows["group"] == group].to_numpy()
        n = len(x)
        error = (x - x.mean()) / np.sqrt(1 - 1 / n) / n
        thirds.append(sign * (error**3).sum())
        variances.append(x.var(ddof=1) / n)
    k = sum(thirds) / sum(variances) ** 1.5
    welch = one(run_tests(results, predictions, method="pooled_welch"))["statistic"]
    found = one(run_tests(results, predictions))
    assert found["method"] == "pooled"
    expected = welch + k * welch**2 / 3 + k**2 * welch**3 / 27 + k / 6
    assert_allclose(found["statistic"], expected)


def test_the_correction_makes_both_tails_alike():
    """A small group of skew values, no difference: which side is rejected?"""
    rng = np.random.default_rng(0)
    tails = {"welch": [0, 0], "corrected": [0, 0]}
    n, n_tests = (70, 1400), 600
    cluster = np.arange(sum(n))
    for _ in range(n_tests):
        x = rng.exponential(size=sum(n)) ** 1.5
        small, large = (
            cluster_mean(x[part], np.ones(len(part)), part)
            for part in np.split(cluster, [n[0]])
        )
        found = compare_means(small, large)
        limit = stats.t.isf(0.025, found.df)
        for name, counts in tails.items():
            counts[0] += getattr(found, name) < -limit
            counts[1] += getattr(found, name) > limit
    low, high = np.array(tails["welch"]) / n_tests
    assert low > 0.06
    assert high < 0.015
    low, high = np.array(tails["corrected"]) / n_tests
    assert low < 0.05
    assert low + high < 0.075


# -- tests over runs ------------------------------------------------------------------


def test_other_metrics_fall_back_on_the_means_of_the_folds(data):
    results, predictions = data
    table = run_tests(results, predictions)
    ours = one(table, ECE, "size_matched")
    wide = results[
        (results["metric"] == ECE) & (results["sampling"] == "size_matched")
    ].pivot(index=["fold", "run"], columns="group", values="value")
    means = (wide["small"] - wide["large"]).groupby("fold").mean()
    expected = stats.ttest_1samp(means, 0)
    assert (ours["method"], ours["unit"], ours["n_units"]) == (
        "t_fold_means",
        "fold",
        5,
    )
    assert_allclose(ours["statistic"], expected.statistic)
    assert_allclose(ours["p_value"], expected.pvalue)
    assert ours["note"] is None
    assert "size_matched" in one(table, ECE, "naive")["note"]


def test_fold_means_of_every_metric_on_request(data):
    table = run_tests(*data, method="t_fold_means")
    assert set(table["method"]) == {"t_fold_means"}
    assert len(table) == 4
    assert one(table, BRIER, "naive")["note"] is None


def test_wilcoxon_names_its_unit_and_its_fault(data):
    results, predictions = data
    found = one(run_tests(results, predictions, method="wilcoxon_as_published"), ECE)
    values = results[(results["metric"] == ECE) & (results["sampling"] == "naive")]
    wide = values.pivot(index="run", columns="group", values="value")
    expected = stats.wilcoxon(wide["small"], wide["large"])
    assert (found["unit"], found["n_units"]) == ("run", 25)
    assert_allclose(found["statistic"], expected.statistic)
    assert_allclose(found["p_value"], expected.pvalue)
    assert "pairs 25 runs as if they were independent" in found["note"]
    assert "5 independent folds could not go below p = 0.0625" in found["note"]


def test_five_folds_of_one_run_do_not_reach_significance():
    results, predictions = study(0, refits=1)
    found = one(run_tests(results, predictions, method="wilcoxon_as_published"), ECE)
    assert found["n_units"] == 5
    assert found["p_value"] == 0.0625  # all five gaps have the same sign


# -- edges ----------------------------------------------------------------------------


def test_the_reference_can_be_chosen(data):
    table = run_tests(*data, reference="small")
    assert set(table["group"]) == {"large"}
    first, second = one(table), one(run_tests(*data))
    assert_allclose(first["statistic"], -second["statistic"])
    assert_allclose(first["p_value"], second["p_value"])
    with pytest.raises(ValueError, match="reference must be one of"):
        run_tests(*data, reference="other")
    with pytest.raises(ValueError, match="method must be one of"):
        run_tests(*data, method="wilcoxon")


def test_what_cannot_be_tested_says_why(data):
    results, predictions = data
    rare = predictions["group"].where(predictions["row"] > 0, "rare")
    extra = results[results["group"] == "small"].assign(group="rare", value=np.nan)
    table = run_tests(
        pd.concat([results, extra]), predictions.assign(group=rare), method="pooled"
    )
    found = table[table["group"] == "rare"]
    assert found["p_value"].isna().all()
    assert found["note"].str.contains("not estimable").all()
    found = table[(table["group"] == "rare") & (table["metric"] == BRIER)]
    assert "1 rows of 1 rows" in found["note"].item()


def test_few_rows_of_a_class_are_told(data):
    results, predictions = data
    assert one(run_tests(results, predictions))["note"] is None
    few = (predictions["group"] == "small") & (predictions["row"] % 5 > 0)
    rare = predictions.assign(outcome=predictions["outcome"].mask(few, 0))
    note = one(run_tests(results, rare))["note"]
    assert "rows of a class only" in note


def test_no_variation_is_no_significance(data):
    results, predictions = data
    same = predictions.assign(score=0.5, calibrated=0.5)
    found = one(run_tests(results, same))
    assert np.isnan(found["p_value"])
    assert found["note"] == "not estimable: the rows do not vary"
    constant = results.assign(value=0.2)
    for method, why in (
        ("t_fold_means", "all folds have the same gap"),
        ("wilcoxon_as_published", "no run has a gap"),
    ):
        found = run_tests(constant, predictions, method=method)
        assert found["p_value"].isna().all()
        assert found["note"].str.contains(why).all()
    one_fold = results[results["fold"] == 0]
    found = run_tests(one_fold, predictions, method="t_fold_means")
    assert found["note"].str.contains("fewer than two test folds").all()


def test_a_single_group_has_no_tests(data):
    results, predictions = (frame[frame["group"] == "large"] for frame in data)
    table = run_tests(results, predictions)
    assert len(table) == 0
    assert list(table["p_value"]) == []


def test_runs_that_failed_are_left_out(data):
    results, predictions = data
    bad = results["run"] == 7
    missing = results.assign(value=results["value"].mask(bad))
    lost = predictions.copy()
    lost.loc[lost["run"] == 7, ["score", "calibrated"]] = np.nan
    table = run_tests(missing, lost)
    kept = run_tests(results[~bad], predictions[predictions["run"] != 7])
    pd.testing.assert_frame_equal(table, kept)


# -- what the tests are for -----------------------------------------------------------


@pytest.fixture(scope="module")
def p_values():
    """P values of 120 studies without a true gap, 20:1, 5 folds of 5 refits."""
    tables = []
    for seed in range(120):
        data = study(seed)
        for method in ("pooled", "wilcoxon_as_published"):
            tables.append(run_tests(*data, method=method))
    found = pd.concat(tables)
    return found.groupby(["method", "metric", "sampling"])["p_value"]


def test_wilcoxon_over_runs_finds_gaps_where_there_are_none(p_values):
    rejected = p_values.agg(lambda p: (p < LEVEL).mean())["wilcoxon_as_published"]
    assert rejected[ECE, "naive"] > 0.98
    assert rejected[BRIER, "naive"] > 0.25


def test_pooled_rows_hold_the_level(p_values):
    rejected = p_values.agg(lambda p: (p < LEVEL).mean())
    # a true size of 5 % gives 1 to 11 rejections in 98 of 100 sets of 120 studies
    assert 1 <= 120 * rejected["pooled", BRIER, "naive"] <= 11
    assert rejected["t_fold_means", ECE, "size_matched"] <= 0.13


def test_pooled_rows_find_a_gap_more_often_than_fold_means():
    found = {"pooled": 0, "t_fold_means": 0}
    for seed in range(25):
        data = study(seed, n=(1300, 194), slope=0.5)
        for method in found:
            found[method] += one(run_tests(*data, method=method))["p_value"] < LEVEL
    assert found["pooled"] > found["t_fold_means"]
    assert found["pooled"] >= 13
