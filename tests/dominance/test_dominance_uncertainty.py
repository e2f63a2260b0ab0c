"""Bootstrap, Fieller sets and cross-fitting of the dominance table."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from skcalfair.dominance import DominanceTable
from skcalfair.dominance._bootstrap import GRID, draw_cases
from skcalfair.dominance._cross_fit import draw_halves
from skcalfair.dominance._fieller import fieller_set
from skcalfair.dominance._replicates import Study, replicate_hulls


def make_study(n=200, seed=0, missing=False, decimals=1):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.4).astype(int)
    X = pd.DataFrame(
        {
            "m0": (rng.normal(size=n) + 1.3 * y).round(decimals),
            "m1": (1.5 * rng.normal(size=n) + 1.5 * y).round(decimals),
            "r0": (rng.normal(size=n) + 1.5 * y > 0.6).astype(float),
            "r1": (rng.normal(size=n) + 1.5 * y > 1.2).astype(float),
        }
    )
    if missing:
        X.loc[rng.random(n) < 0.3, "r1"] = np.nan
    return X, y


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_each_resampled_hull_is_that_of_the_estimator(missing, weighted):
    X, y = make_study(missing=missing)
    weights = np.random.default_rng(5).integers(1, 4, len(y)) if weighted else None
    table = DominanceTable()
    cases = table._check_cases(X, y, weights, None)
    study = Study(cases)
    counts = draw_cases(cases, 12, np.random.default_rng(1))
    hulls = replicate_hulls(study, counts)
    best = hulls.owners_of_place[hulls.best_places(GRID)]
    for row, on_hull, owned in zip(counts, hulls.on_hull, best, strict=True):
        w = row.astype(float) * (1 if weights is None else weights)
        fitted = DominanceTable(readers=["r0", "r1"]).fit(X, y, w)
        owners = {name for owners in fitted.table_["owners"] for name in owners}
        found = {study.names[i] for i in np.flatnonzero(on_hull)}
        assert found == owners
        for k in range(0, len(GRID), 5):
            names = {study.names[i] for i in np.flatnonzero(owned[k])}
            assert names == {name for name, _ in fitted._hull.best(float(GRID[k]))}


def test_bootstrap_frames():
    X, y = make_study()
    table = DominanceTable(n_bootstrap=200, random_state=0).fit(X, y)
    support = table.support_.set_index("name")["on_hull"]
    assert support.between(0, 1).all()
    assert support["any model"] >= support[["m0", "m1"]].max()
    wide = table.dominance_support_.pivot(index="cpg", columns="name", values="support")
    everybody = ["any model", "any reader", "never positive", "always positive"]
    # Ties make a gradient count for several.
    assert (wide[everybody].sum(axis=1) >= 1 - 1e-12).all()
    assert (wide.max() <= support.reindex(wide.columns) + 1e-12).all()
    rows = table.breakpoints_
    inside = (rows["percentile_low"] <= rows["cpg"]) & (
        rows["cpg"] <= rows["percentile_high"]
    )
    assert inside.mean() > 0.7


def test_same_result_for_any_number_of_jobs_and_equal_seeds():
    X, y = make_study()
    one = DominanceTable(n_bootstrap=130, random_state=3).fit(X, y)
    two = DominanceTable(n_bootstrap=130, random_state=3, n_jobs=2).fit(X, y)
    pd.testing.assert_frame_equal(one.support_, two.support_)
    pd.testing.assert_frame_equal(one.dominance_support_, two.dominance_support_)
    pd.testing.assert_frame_equal(one.breakpoints_, two.breakpoints_)


def test_no_support_of_a_named_reader_when_readers_are_drawn():
    X, y = make_study()
    table = DominanceTable(n_bootstrap=100, resample_readers=True, random_state=0)
    support = table.fit(X, y).support_.set_index("name")["on_hull"]
    assert support[["r0", "r1"]].isna().all()
    assert support[["m0", "m1", "any model", "any reader"]].notna().all()
    fixed = DominanceTable(n_bootstrap=100, random_state=0).fit(X, y)
    any_reader = fixed.support_.set_index("name")["on_hull"]["any reader"]
    assert support["any reader"] < any_reader


def test_cases_are_drawn_within_each_class_and_patients_whole():
    X, y = make_study()
    rng = np.random.default_rng(0)

    def draw(clusters):
        cases = DominanceTable()._check_cases(X, y, None, clusters)
        return draw_cases(cases, 50, rng), draw_halves(cases, 20, rng)

    counts, halves = draw(None)
    assert_array_equal(counts @ y, np.full(50, y.sum()))
    assert (np.abs(halves @ y - y.sum() / 2) <= 0.5).all()
    mixed = np.arange(len(y)) // 2
    for clusters in (mixed, 2 * mixed + y):  # patients of both truths, and of one
        counts, halves = draw(clusters)
        for sample in (counts, halves):
            for cluster in np.unique(clusters):
                drawn = sample[:, clusters == cluster]
                assert (drawn == drawn[:, :1]).all()
    n_units = np.unique((2 * mixed + y)[y == 1]).size
    first = np.unique(2 * mixed + y, return_index=True)[1]
    assert_array_equal((counts[:, first] * y[first]).sum(axis=1), np.full(50, n_units))


def test_clusters_widen_the_intervals():
    X, y = make_study(60)
    repeated = pd.concat([X] * 5, ignore_index=True)
    many = np.tile(y, 5)
    patient = np.tile(np.arange(60), 5)
    honest = DominanceTable().fit(repeated, many, clusters=patient).breakpoints_
    plain = DominanceTable().fit(X, y).breakpoints_
    naive = DominanceTable().fit(repeated, many).breakpoints_
    assert_allclose(honest["fieller_low"], plain["fieller_low"])
    assert_allclose(honest["fieller_high"], plain["fieller_high"])
    assert (naive["fieller_low"] >= honest["fieller_low"]).all()


@given(
    st.floats(-1, 1),
    st.floats(-1, 1),
    st.floats(1e-3, 0.5),
    st.floats(1e-3, 0.5),
    st.floats(-0.95, 0.95),
)
def test_fieller_set_is_what_the_test_does_not_reject(a, b, sa, sb, correlation):
    covariance = np.array(
        [[sa * sa, correlation * sa * sb], [correlation * sa * sb, sb * sb]]
    )
    found = fieller_set(np.array([a, b]), covariance)
    z = norm.ppf(0.975)
    for m in [0.0, *np.logspace(-6, 6, 121)]:
        variance = np.array([1, -m]) @ covariance @ np.array([1, -m])
        statistic = abs(a - m * b) / np.sqrt(variance)
        if abs(statistic - z) > 1e-6:
            inside = any(low <= m <= high for low, high in found.ranges)
            assert inside == (statistic <= z)


def test_unbounded_fieller_sets_are_shown_as_such():
    small = np.diag([1e-4, 1e-4])
    assert str(fieller_set(np.array([0.2, 0.1]), small)).startswith("[1.6")
    assert str(fieller_set(np.array([0.2, 0.001]), small)).endswith("inf)")
    assert str(fieller_set(np.array([0.001, 0.001]), small)) == "[0, inf)"
    paired = np.array([[1e-4, 9e-5], [9e-5, 1e-4]])
    two = fieller_set(np.array([0.018, -0.018]), paired)
    assert len(two.ranges) == 2
    assert two.high < two.low
    assert str(two) == f"[0, {two.high:.3g}] or [{two.low:.3g}, inf)"


def test_fieller_set_of_points_is_that_of_independent_cases():
    points = pd.DataFrame(
        {
            "name": ["A", "B"],
            "TP": [90, 60],
            "FN": [10, 40],
            "FP": [60, 10],
            "TN": [140, 190],
        }
    )
    table = DominanceTable.from_operating_points(points)
    row = table.breakpoints_.iloc[1]
    assert (row["from_owner"], row["to_owner"]) == ("A", "B")

    def variance(count, n):
        # One more of either kind, as where all of them are alike.
        rate = (count + 1) / (n + 2)
        return rate * (1 - rate) / n

    variances = [
        variance(90, 100) + variance(60, 100),
        variance(60, 200) + variance(10, 200),
    ]
    expected = fieller_set(np.array([0.3, 0.25]), np.diag(variances))
    assert_allclose([row["fieller_low"], row["fieller_high"]], expected.ranges[0])
    assert row["cpg"] == pytest.approx(1.2)


@pytest.mark.parametrize("clustered", [False, True])
def test_a_class_without_an_error_is_not_certain(clustered):
    # All of 5 positives found: not even a true sensitivity of .6 can be excluded.
    y = np.repeat([1, 0], [5, 200])
    calls = np.r_[np.ones(5), np.arange(200) < 40]
    clusters = np.arange(205) if clustered else None
    X = pd.DataFrame({"r": calls.astype(float)})
    row = DominanceTable().fit(X, y, clusters=clusters).breakpoints_.iloc[-1]
    assert row["cpg"] == pytest.approx(5.0)
    assert row["fieller_low"] < 0.7 * 5
    one = DominanceTable().fit(X.iloc[4:], y[4:]).breakpoints_
    assert (one["fieller"] == "not known").all()
    counts = {"name": ["r"], "TP": [1], "FN": [0], "FP": [10], "TN": [90]}
    points = DominanceTable.from_operating_points(counts)
    assert (points.breakpoints_["fieller"] == "not known").all()


def test_sets_of_few_positives_cover_the_truth():
    hits = []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        y = np.repeat([1, 0], [5, 100])
        calls = rng.random(105) < np.where(y == 1, 0.8, 0.2)
        X = pd.DataFrame({"r": calls.astype(float)})
        rows = DominanceTable(readers=["r"]).fit(X, y).breakpoints_
        row = rows[rows["to_owner"] == "never positive"]
        if len(row):
            hits.append(row["fieller_low"].iloc[0] <= 4 <= row["fieller_high"].iloc[0])
    assert np.mean(hits) > 0.9


def test_support_at_a_gradient_is_counted_there():
    X, y = make_study()
    table = DominanceTable(n_bootstrap=60, random_state=0).fit(X, y)
    grid = table.dominance_support_
    again = table.dominance_support(grid["cpg"].unique())
    pd.testing.assert_frame_equal(again, grid)
    here = table.dominance_support(2.37)
    assert here["cpg"].tolist() == [2.37] * len(here)
    for bad in (-1.0, np.nan):
        with pytest.raises(ValueError, match="cpg must hold numbers from 0 on"):
            table.dominance_support(bad)
    with pytest.raises(ValueError, match="with n_bootstrap above 0"):
        DominanceTable().fit(X, y).dominance_support(1.0)


def test_paired_fieller_set_covers_the_true_gradient():
    # Model B thresholds the score of A higher; the gradient between them is known.
    hits, n = 0, 100
    cuts = (0.3, 1.0)
    tpr, fpr = norm.sf(np.array(cuts) - 1.2), norm.sf(cuts)
    truth = (tpr[0] - tpr[1]) / (fpr[0] - fpr[1])
    for seed in range(n):
        rng = np.random.default_rng(seed)
        y = np.repeat([0, 1], 100)
        score = rng.normal(size=200) + 1.2 * y
        X = pd.DataFrame({"low": score > cuts[0], "high": score > cuts[1]}).astype(
            float
        )
        rows = DominanceTable().fit(X, y).breakpoints_
        row = rows[(rows["from_owner"] == "low") & (rows["to_owner"] == "high")]
        if len(row):
            hits += row["fieller_low"].iloc[0] <= truth <= row["fieller_high"].iloc[0]
        else:
            n -= 1
    # Four standard errors of a coverage of 95 %.
    assert n > 90
    assert 0.88 <= hits / n <= 1.0


def test_cross_fitting_takes_back_the_winners_advantage():
    # A reader exactly on the model's own curve: the true gain of the model is 0.
    naive, honest = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y = np.repeat([0, 1], 100)
        X = pd.DataFrame(
            {
                "model": rng.normal(size=200) + y,
                "reader": (rng.normal(size=200) + y > 0.5).astype(float),
            }
        )
        table = DominanceTable(cross_fit=True, random_state=seed).fit(X, y)
        row = table.cross_fit_.iloc[len(GRID) // 2]
        assert row["cpg"] == pytest.approx(1.0)
        # Differences of TPR - FPR, which is what a gradient of 1 weighs.
        naive.append(2 * (row["reader_in_sample"] - row["model_in_sample"]))
        honest.append(2 * (row["reader_in_sample"] - row["model_cross_fitted"]))
    assert np.mean(naive) > 0.02
    assert np.mean(honest) < 0.0


def test_cross_fitted_costs_by_brute_force():
    X, y = make_study(60, seed=4)
    table = DominanceTable(cross_fit=True, random_state=0).fit(X, y)
    frame = table.cross_fit_
    for column in ("in_sample", "model_in_sample", "reader_in_sample"):
        names = {"in_sample": X.columns, "model_in_sample": ["m0", "m1"]}.get(
            column, ["r0", "r1"]
        )
        for row in frame.iloc[::8].itertuples():
            m, costs = row.cpg, [1 / (1 + row.cpg), row.cpg / (1 + row.cpg)]
            for name in names:
                for t in X[name].unique():
                    called = X[name] >= t
                    miss, alarm = 1 - called[y == 1].mean(), called[y == 0].mean()
                    costs.append((miss + m * alarm) / (1 + m))
            assert getattr(row, column) == pytest.approx(min(costs))
    assert (frame["cross_fitted"] >= frame["in_sample"] - 0.02).all()
    lonely = DominanceTable(cross_fit=True).fit(X[["m0"]], y).cross_fit_
    assert lonely["reader_cross_fitted"].isna().all()


def test_equal_readers_reach_high_support_by_chance():
    # Why support is no evidence: it exceeds .95 for one of two equal readers.
    high = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        y = np.repeat([0, 1], 100)
        latent = rng.normal(size=(2, 200)) + 1.5 * y
        X = pd.DataFrame({"a": latent[0] > 0.75, "b": latent[1] > 0.75}).astype(float)
        table = DominanceTable(n_bootstrap=100, random_state=seed).fit(X, y)
        frame = table.dominance_support_
        at_one = frame[np.isclose(frame["cpg"], 1.0)].set_index("name")["support"]
        high += at_one[["a", "b"]].max() > 0.95
    assert 1 <= high <= 11
