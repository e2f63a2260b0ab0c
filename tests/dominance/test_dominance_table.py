"""DominanceTable as an estimator: points, tables, decisions, bad input, real data."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix, roc_curve
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from skcalfair.datasets import fetch_ecg_readers
from skcalfair.dominance import DominanceTable, OperatingPoints
from skcalfair.dominance._costs import expected_cost, normalized_expected_cost

GRADIENTS = np.logspace(-3, 3, 200)


@parametrize_with_checks(
    [
        DominanceTable(),
        DominanceTable(n_bootstrap=3, random_state=0),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def make_study(n=300, n_models=2, n_readers=3, seed=0, decimals=1):
    """A small study with many ties; returns frame and truth."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    columns = {
        f"model{j}": (rng.normal(size=n) + 1.2 * y).round(decimals)
        for j in range(n_models)
    }
    for r in range(n_readers):
        columns[f"reader{r}"] = (
            rng.normal(size=n) + (1.2 + 0.2 * r) * y > r / 2
        ).astype(float)
    return pd.DataFrame(columns), y.astype(int)


@pytest.fixture
def study():
    return make_study()


# -- exactness -------------------------------------------------------------------------


def every_point(X, y, readers, weights=None):
    """Rates of every threshold of every model, and of every reader, one by one."""
    w = np.ones(len(y)) if weights is None else weights
    points = [("always positive", 1.0, 1.0), ("never positive", 0.0, 0.0)]
    for name in X:
        values = X[name].to_numpy()
        read = ~np.isnan(values)
        thresholds = [1.0] if name in readers else np.unique(values[read])
        for t in thresholds:
            called = values >= t
            tpr = w[called & (y == 1) & read].sum() / w[(y == 1) & read].sum()
            fpr = w[called & (y == 0) & read].sum() / w[(y == 0) & read].sum()
            if name in readers or tpr < 1 or fpr < 1:
                points.append((name, tpr, fpr))
    return points


def assert_owners_by_brute_force(table, X, y, readers, weights=None):
    points = every_point(X, y, readers, weights)
    tpr = np.array([t for _, t, _ in points])
    fpr = np.array([f for _, _, f in points])
    rows = table.table_
    for m in GRADIENTS:
        cost = normalized_expected_cost(tpr, fpr, m)
        owners = {points[i][0] for i in np.flatnonzero(cost <= cost.min() + 1e-12)}
        found = rows[(rows["cpg_from"] < m) & (m < rows["cpg_to"])]
        assert set(found["owners"].iloc[0]) == owners
        assert {name for name, _ in table._hull.best(m)} == owners


@settings(max_examples=15)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, 3),
    st.integers(0, 3),
    st.sampled_from(["none", "integer", "dyadic", "any"]),
    st.booleans(),
)
def test_owner_is_the_brute_force_minimum(seed, n_models, n_readers, kind, missing):
    if n_models + n_readers == 0:
        n_models = 1
    rng = np.random.default_rng(seed)
    X, y = make_study(40, n_models, n_readers, seed)
    weights = {
        "none": None,
        "integer": rng.integers(1, 4, 40).astype(float),
        "dyadic": rng.integers(1, 9, 40) / 8,
        "any": rng.uniform(0.1, 3, 40),
    }[kind]
    readers = [f"reader{r}" for r in range(n_readers)]
    if missing and n_readers:
        X.loc[rng.random(40) < 0.2, "reader0"] = np.nan
    table = DominanceTable(readers=readers).fit(X, y, weights)
    assert_owners_by_brute_force(table, X, y, readers, weights)


def test_weights_are_repetition(study):
    X, y = study
    weights = np.random.default_rng(1).integers(0, 4, len(y))
    repeated = np.repeat(np.arange(len(y)), weights)
    one = DominanceTable().fit(X, y, weights)
    other = DominanceTable().fit(X.iloc[repeated], y[repeated])
    pd.testing.assert_frame_equal(one.table_, other.table_)
    pd.testing.assert_frame_equal(one.dominated_, other.dominated_)
    # Scaled weights change nothing but the unit of the counts.
    third = DominanceTable().fit(X, y, weights / 3)
    pd.testing.assert_frame_equal(one.table_, third.table_)
    assert third.prevalence_ == pytest.approx(one.prevalence_)
    counts = third.operating_points_.to_frame()[["TP", "FN", "FP", "TN"]]
    assert_allclose(counts.sum(axis=1), weights.sum() / 3)


def test_order_of_cases_and_monotone_maps_of_scores_never_matter(study):
    X, y = study
    order = np.random.default_rng(2).permutation(len(y))
    table = DominanceTable().fit(X, y)
    columns = [c for c in table.table_ if not c.startswith("threshold")]
    shuffled = DominanceTable().fit(X.iloc[order], y[order])
    pd.testing.assert_frame_equal(table.table_, shuffled.table_)
    mapped = DominanceTable().fit(X.assign(model0=np.exp(3 * X["model0"])), y)
    pd.testing.assert_frame_equal(table.table_[columns], mapped.table_[columns])


def test_points_are_those_of_scikit_learn(study):
    X, y = study
    points = DominanceTable().fit(X, y).operating_points_.to_frame()
    for name in ("model0", "model1"):
        fpr, tpr, thresholds = roc_curve(y, X[name], drop_intermediate=False)
        curve = {t: (f, s) for f, s, t in zip(fpr, tpr, thresholds, strict=True)}
        mine = points[points["name"] == name]
        assert len(mine) > 3
        for row in mine.itertuples():
            assert_allclose(
                (1 - row.specificity, row.sensitivity), curve[row.threshold]
            )
    for name in ("reader0", "reader1", "reader2"):
        tn, fp, fn, tp = confusion_matrix(y, X[name]).ravel()
        row = points[points["name"] == name].iloc[0]
        assert row[["TP", "FN", "FP", "TN"]].tolist() == [tp, fn, fp, tn]
        assert row["kind"] == "reader"


def test_dominated_by_a_point_of_the_model_that_is_not_on_its_hull():
    # The model's only point above the reader lies inside the model's own hull.
    y = np.array([1] * 10 + [0] * 10)
    model = np.array(
        [9, 9, 9, 9, 9, 5, 2, 2, 2, 2, 9, 7, 7, 7, 5, 2, 1, 1, 1, 1], dtype=float
    )
    reader = np.array([1] * 6 + [0] * 4 + [1] * 6 + [0] * 4, dtype=float)
    table = DominanceTable().fit(np.column_stack([model, reader]), y)
    row = table.dominated_.set_index("name").loc["x1"]
    assert row["status"] == "pareto"
    assert row["by"] == ("x0",)
    on_own_hull = table.hull_["threshold"].dropna().tolist()
    assert 5 not in on_own_hull


def test_regret_is_over_the_stated_gradients(study):
    X, y = study
    table = DominanceTable().fit(X, y)
    everywhere = table.dominated().set_index("name")
    part = table.dominated((5.0, 20.0)).set_index("name")
    assert (part["regret"] >= everywhere["regret"] - 1e-15).all()
    assert part["cpg"].between(5, 20).all()
    for name, row in everywhere.iterrows():
        if not 0 < row["cpg"] < np.inf:
            continue
        best = table.at(1 / (1 + row["cpg"]), 1.0).table.iloc[0]
        cost = normalized_expected_cost(
            [row["sensitivity"], best["sensitivity"]],
            [1 - row["specificity"], 1 - best["specificity"]],
            row["cpg"],
        )
        assert row["regret"] == pytest.approx(cost[0] - cost[1], abs=1e-12), name


# -- published points ------------------------------------------------------------------


WORKED = pd.DataFrame(
    {
        "name": ["Model A", "Specialist A", "Specialist B", "Specialist C", "Model B"],
        "kind": ["model", "reader", "reader", "reader", "model"],
        "sensitivity": [0.93, 0.89, 0.83, 0.75, 0.62],
        "specificity": [0.60, 0.73, 0.85, 0.92, 0.95],
    }
)


def test_worked_example_by_expected_cost():
    table = DominanceTable.from_operating_points(WORKED)
    rows = table.table([0.177, 0.41])
    assert rows["owner"].tolist() == [
        "always positive",
        "Model A",
        "Specialist A",
        "Specialist B",
        "Specialist C",
        "Model B",
        "never positive",
    ]
    slopes = [0.1167, 0.3077, 0.5000, 1.1429, 4.3333, 12.4]
    assert rows["cpg_to"].iloc[:-1].round(4).tolist() == slopes
    assert rows["cpg_from"].iloc[1:].round(4).tolist() == slopes
    at_177 = [0.0251, 0.0662, 0.1075, 0.2458, 0.9320, 2.667]
    at_410 = [0.0811, 0.2138, 0.3475, 0.7942, 3.0113, 8.617]
    assert_allclose(rows["cost_ratio_to@0.177"].iloc[:-1], at_177, atol=5e-4)
    assert_allclose(rows["cost_ratio_to@0.41"].iloc[:-1], at_410, atol=5e-4)
    assert np.isnan(rows["ppv_from@0.177"].iloc[-1])  # nobody is called: 0/0
    assert np.isnan(rows["npv_from@0.177"].iloc[0])


def test_worked_example_as_published():
    table = DominanceTable.from_operating_points(WORKED, convention="as_published")
    rows = table.table([0.177, 0.41]).round(2)

    def columns(name):
        return list(zip(rows[f"{name[0]}"], rows[f"{name[1]}"], strict=True))

    def ends(stem, mark=""):
        return columns((f"{stem}_from{mark}", f"{stem}_to{mark}"))

    inf = np.inf
    assert rows["owner"].tolist() == WORKED["name"].tolist()
    assert ends("cpg") == [
        (0, 0.31),
        (0.31, 0.5),
        (0.5, 1.14),
        (1.14, 4.33),
        (4.33, inf),
    ]
    assert ends("sensitivity") == [
        (1, 0.93),
        (0.93, 0.89),
        (0.89, 0.83),
        (0.83, 0.75),
        (0.75, 0),
    ]
    assert ends("specificity") == [
        (0, 0.6),
        (0.6, 0.73),
        (0.73, 0.85),
        (0.85, 0.92),
        (0.92, 1),
    ]
    # The one cell printed otherwise is 20.14; from the printed points it is 20.149.
    assert ends("cost_ratio", "@0.177") == [
        (0, 1.43),
        (1.43, 2.32),
        (2.32, 5.31),
        (5.31, 20.15),
        (20.15, inf),
    ]
    assert ends("cost_ratio", "@0.41") == [
        (0, 0.44),
        (0.44, 0.72),
        (0.72, 1.64),
        (1.64, 6.24),
        (6.24, inf),
    ]
    assert ends("ppv", "@0.177") == [
        (0.18, 0.41),
        (0.41, 0.54),
        (0.54, 0.67),
        (0.67, 0.73),
        (0.73, 1),
    ]
    assert ends("npv", "@0.177") == [
        (1, 0.97),
        (0.97, 0.96),
        (0.96, 0.94),
        (0.94, 0.92),
        (0.92, 0.82),
    ]
    assert ends("ppv", "@0.41") == [
        (0.41, 0.7),
        (0.7, 0.79),
        (0.79, 0.87),
        (0.87, 0.9),
        (0.9, 1),
    ]
    assert ends("npv", "@0.41") == [
        (1, 0.91),
        (0.91, 0.88),
        (0.88, 0.84),
        (0.84, 0.78),
        (0.78, 0.59),
    ]


def test_worked_example_decision():
    table = DominanceTable.from_operating_points(WORKED)
    decision = table.at(0.177, 1.0)
    assert decision.winners == ("Model B",)  # not Model A, as was printed
    best = decision.table.iloc[0]
    assert (best["sensitivity"], best["specificity"]) == (0.62, 0.95)
    assert_allclose(best[["TP", "FN", "FP", "TN"]].sum(), 1000)
    costs = {
        row.name_: 1000
        * float(expected_cost(row.sensitivity, row.specificity, 0.177, 1))
        for row in WORKED.rename(columns={"name": "name_"}).itertuples()
    }
    assert min(costs, key=costs.get) == "Model B"
    for row in decision.table.rename(columns={"name": "name_"}).itertuples():
        if row.name_ in costs:
            assert row.expected_cost == pytest.approx(costs[row.name_])
            extra = costs[row.name_] - costs["Model B"]
            assert row.extra_cost == pytest.approx(extra)
    assert table.at(0.41, 5.0).winners == ("Model B",)
    assert "Model B" in decision.summary()


def test_points_as_counts_rates_index_dict_and_polars_agree():
    counts = pd.DataFrame(
        {"name": ["A", "B"], "TP": [9, 7], "FN": [1, 3], "FP": [30, 5], "TN": [70, 95]}
    )
    rates = pd.DataFrame(
        {"sensitivity": [0.9, 0.7], "Specificity": [0.7, 0.95]}, index=["A", "B"]
    )
    columns = ["cpg_from", "cpg_to", "owner", "sensitivity_from", "specificity_from"]
    expected = DominanceTable.from_operating_points(counts).table_[columns]
    for points in (rates, counts.to_dict("list"), pl.DataFrame(counts.to_dict("list"))):
        found = DominanceTable.from_operating_points(points).table_[columns]
        pd.testing.assert_frame_equal(found, expected)
    assert (
        DominanceTable.from_operating_points(rates)
        .breakpoints_["fieller"]
        .eq("not known")
        .all()
    )
    assert np.isnan(OperatingPoints.from_frame(rates).to_frame()["TP"]).all()


def test_a_blank_kind_is_the_usual_one():
    points = WORKED.assign(kind=["model", None, None, None, "model"])
    found = DominanceTable.from_operating_points(points).operating_points_.kind
    assert found.tolist() == WORKED["kind"].tolist()


def test_collinear_published_decimals_are_collinear():
    points = pd.DataFrame(
        {
            "name": list("ABC"),
            "sensitivity": [0.7, 0.8, 0.9],
            "specificity": [0.9, 0.8, 0.7],
        }
    )
    table = DominanceTable.from_operating_points(points)
    assert table.dominated_["status"].tolist() == ["on an edge"]
    assert table.at(0.5, 1.0).winners == ("A", "B", "C")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sensitivity": [93, 0.5]}, "sensitivity must lie in .* percentages"),
        ({"specificity": [np.nan, 0.5]}, "specificity must lie in"),
        ({"name": [None, "B"]}, "row 0 has no name"),
        ({"kind": ["robot", "reader"]}, "kind must be 'model' or 'reader'"),
        (
            {"name": ["A", "A"], "kind": ["model", "reader"]},
            "kind of 'A' must be the same in all its rows",
        ),
        (
            {"name": ["A", "never positive"]},
            "'never positive' is the name of a trivial",
        ),
        ({"TP": [1, 2]}, "must have the columns TP, FN, FP and TN, or"),
    ],
)
def test_bad_points_are_refused(change, message):
    good = {"name": ["A", "B"], "sensitivity": [0.9, 0.7], "specificity": [0.7, 0.9]}
    with pytest.raises(ValueError, match=message):
        DominanceTable.from_operating_points(good | change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"TP": [1.5]}, "TP must hold numbers of cases"),
        ({"FP": [-1]}, "FP must hold numbers of cases"),
        ({"TP": [0], "FN": [0]}, "has no positive"),
        ({"TN": [0], "FP": [0]}, "has no negative"),
        ({"name": [], "TP": [], "FN": [], "FP": [], "TN": []}, "points are empty"),
    ],
)
def test_bad_counts_are_refused(change, message):
    good = {"name": ["A"], "TP": [3], "FN": [1], "FP": [2], "TN": [8]}
    with pytest.raises(ValueError, match=message):
        DominanceTable.from_operating_points(good | change)


def test_published_points_cannot_act_on_columns():
    table = DominanceTable.from_operating_points(WORKED)
    with pytest.raises(ValueError, match="prevalence is needed"):
        table.at()
    assert DominanceTable.from_operating_points(WORKED, prevalence=0.2).at().winners
    for method in (table.predict, table.transform):
        with pytest.raises(sklearn.exceptions.NotFittedError, match="no columns to"):
            method(np.zeros((2, 5)))


# -- decisions -------------------------------------------------------------------------


@pytest.mark.parametrize("cost_ratio", [0.001, 0.05, 0.6, 1.0, 3.0, 30.0, 5000.0])
def test_predict_is_the_decision_of_least_cost(study, cost_ratio):
    X, y = study
    table = DominanceTable(cost_ratio=cost_ratio).fit(X, y)
    prevalence = y.mean()
    assert table.prevalence_ == prevalence

    def cost(called):
        sens, spec = called[y == 1].mean(), 1 - called[y == 0].mean()
        return float(expected_cost(sens, spec, prevalence, cost_ratio))

    candidates = [
        (X[name] >= t).astype(float) for name in X for t in [*X[name].unique(), np.inf]
    ]
    least = min(cost(c) for c in candidates)
    assert cost(table.predict(X)) == pytest.approx(least)
    decisions = table.transform(X)
    assert set(np.unique(decisions)) <= {0, 1}
    assert_array_equal(decisions[:, 2:], X.iloc[:, 2:])
    decision = table.at()
    assert decision.table["expected_cost"].iloc[0] == pytest.approx(1000 * least)
    assert decision.table["extra_cost"].is_monotonic_increasing


def test_winning_reader_must_have_read_every_case():
    X, y = make_study(n_models=1)
    X["reader0"] = y.astype(float)
    table = DominanceTable().fit(X, y)
    assert table.winners_ == ("reader0",)
    assert_array_equal(table.predict(X), y)
    unread = X.copy()
    unread.loc[[3, 7], "reader0"] = np.nan
    with pytest.raises(ValueError, match=r"reader 'reader0' .* row 3 \(2 of 300"):
        table.predict(unread)
    assert np.isnan(table.transform(unread)[[3, 7], 1]).all()


def test_pairing_loss_is_said():
    X, y = make_study()
    X.loc[:99, "reader1"] = np.nan
    table = DominanceTable().fit(X, y)
    row = table.pairing_.set_index("reader").loc["reader1"]
    assert (row["n_read"], row["n_unread"]) == (200, 100)
    assert row["positives_read"] == y[100:].sum()
    assert row["positives_read"] + row["negatives_read"] == 200
    assert table.operating_points_.unread == {
        "reader0": 0,
        "reader1": 100,
        "reader2": 0,
    }
    point = table.operating_points_.to_frame().set_index("name").loc["reader1"]
    read = X["reader1"].notna().to_numpy()
    assert point["sensitivity"] == pytest.approx(X["reader1"][read & (y == 1)].mean())


def test_fixed_threshold_classifier_makes_the_models_decision():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(400, 3))
    y = (features[:, 0] + rng.normal(size=400) > 0.5).astype(int)
    classifier = LogisticRegression().fit(features, y)
    X = pd.DataFrame({"lr": classifier.predict_proba(features)[:, 1]})
    X["reader"] = rng.integers(0, 2, 400)
    table = DominanceTable(cost_ratio=2.0).fit(X, y)
    fixed = table.to_fixed_threshold_classifier(
        FrozenEstimator(classifier), response_method="predict_proba"
    )
    assert isinstance(fixed, FixedThresholdClassifier)
    assert_array_equal(fixed.fit(features, y).predict(features), table.predict(X))
    with pytest.raises(ValueError, match="'reader' was named"):
        table.to_fixed_threshold_classifier(classifier, model="reader")


def test_no_model_wins_then_none_can_be_fixed():
    X, y = make_study(n_models=1)
    X["reader0"] = y.astype(float)
    table = DominanceTable().fit(X, y)
    with pytest.raises(ValueError, match="'reader0' decides best here"):
        table.to_fixed_threshold_classifier(LogisticRegression())


# -- columns ---------------------------------------------------------------------------


def test_ratings_need_and_take_a_threshold():
    X, y = make_study(n_models=1, n_readers=1)
    ratings = X.assign(reader0=np.where(X["reader0"] == 1, 120.0, 40.0))
    ratings.loc[::7, "reader0"] += 3
    with pytest.raises(ValueError, match=r"'reader0' .* readers=\{'reader0': thr"):
        DominanceTable(readers=["reader0"]).fit(ratings, y)
    table = DominanceTable(readers={"reader0": 101}).fit(ratings, y)
    plain = DominanceTable().fit(X, y)
    columns = ["cpg_from", "cpg_to", "owner", "sensitivity_to"]
    pd.testing.assert_frame_equal(table.table_[columns], plain.table_[columns])
    # Without being named, ratings are a model's scores.
    assert set(DominanceTable().fit(ratings, y).operating_points_.kind) == {"model"}


def test_calls_may_be_labels_text_bools_or_polars():
    X, y = make_study()
    labels = np.where(y == 1, "malignant", "benign")
    calls = X.copy().astype(object)
    for r in range(3):
        calls[f"reader{r}"] = np.where(X[f"reader{r}"] == 1, "malignant", "benign")
    calls.loc[5, "reader2"] = None
    plain = X.copy()
    plain.loc[5, "reader2"] = np.nan
    expected = DominanceTable().fit(plain, y)
    found = DominanceTable(pos_label="malignant").fit(calls, labels)
    pd.testing.assert_frame_equal(found.table_, expected.table_)
    assert_array_equal(found.transform(calls), expected.transform(plain))
    frame = pl.DataFrame(
        {
            c: calls[c].astype(float).to_numpy()
            if "model" in c
            else [call if isinstance(call, str) else None for call in calls[c]]
            for c in calls
        }
    )
    polars = DominanceTable(pos_label="malignant").fit(frame, labels)
    pd.testing.assert_frame_equal(polars.table_, expected.table_)
    bools = X.assign(reader0=X["reader0"] == 1)
    pd.testing.assert_frame_equal(
        DominanceTable().fit(bools, y).table_, DominanceTable().fit(X, y).table_
    )


def test_positive_label_turns_calls_and_truth_alike():
    X, y = make_study(n_models=0)
    coded = X.where(X == 0, 2).where(X == 1, 1) * 0 + np.where(X == 1, 1, 2)
    truth = np.where(y == 1, 1, 2)  # 1 is cancer, 2 is none
    found = DominanceTable(pos_label=1).fit(coded, truth)
    pd.testing.assert_frame_equal(found.table_, DominanceTable().fit(X, y).table_)
    assert_array_equal(found.predict(coded) == 1, DominanceTable().fit(X, y).predict(X))


def test_the_coding_of_calls_is_that_of_fit():
    # Truth in 1 and 2, calls in 0 and 1: a batch of ones alone is of positive calls.
    X, y = make_study(n_models=0)
    table = DominanceTable(prevalence=0.5).fit(X, y + 1)
    decisions = table.transform(X)
    assert_array_equal(decisions, X)
    for row in range(0, 300, 25):
        assert_array_equal(table.transform(X.iloc[[row]]), decisions[[row]])
    # -1 and 1 are calls as well, whatever the truth is coded in.
    signed = DominanceTable(prevalence=0.5).fit(2 * X - 1, y)
    assert_array_equal(signed.transform(2 * X - 1), decisions)
    pd.testing.assert_frame_equal(signed.table_, table.table_)


def test_what_is_no_call_is_refused_in_later_rows_too():
    X, y = make_study(n_models=1)
    table = DominanceTable().fit(X, y)
    for method in (table.predict, table.transform):
        with pytest.raises(ValueError, match="reader 'reader1' does not hold calls"):
            method(X.assign(reader1=X["reader1"] * 3))


def test_a_second_fit_forgets_the_first(study):
    X, y = study
    table = DominanceTable(n_bootstrap=20, cross_fit=True, random_state=0).fit(X, y)
    assert "Bootstrap support" in table.summary()
    table.set_params(n_bootstrap=0, cross_fit=False).fit(X, y)
    fresh = DominanceTable(random_state=0).fit(X, y)
    assert table.summary() == fresh.summary()
    assert {k for k in vars(table) if k.endswith("_")} == {
        k for k in vars(fresh) if k.endswith("_")
    }


def test_a_reader_of_ones_alone_is_coded_as_the_others_are():
    X, y = make_study(n_models=1)
    X["reader0"] = 1.0
    table = DominanceTable(readers=["reader0", "reader1", "reader2"]).fit(X, y + 1)
    assert (table.transform(X)[:, 1] == 1).all()
    with pytest.raises(ValueError, match="'reader0' has only the value 1, which can"):
        DominanceTable(readers=["reader0"]).fit(X[["model0", "reader0"]], y + 1)


@pytest.mark.parametrize("as_input", [list, np.array, tuple])
def test_text_calls_in_lists_and_arrays(as_input):
    X, y = make_study(40, 1, 2)
    words = np.array(["well", "ill"], dtype=object)
    rows = [
        [float(row.model0), words[int(row.reader0)], words[int(row.reader1)]]
        for row in X.itertuples()
    ]
    rows = np.array(rows, dtype=object) if as_input is np.array else as_input(rows)
    found = DominanceTable(pos_label="ill").fit(rows, words[y])
    expected = DominanceTable().fit(X.to_numpy(), y)
    pd.testing.assert_frame_equal(found.table_, expected.table_)
    assert_array_equal(found.transform(rows), expected.transform(X.to_numpy()))


def test_readers_below_chance_and_the_positive_class_are_said():
    X, y = make_study(n_models=1)
    words = np.where(y == 1, "ill", "well")
    turned = DominanceTable().fit(X, words)  # by the alphabet, "well" is positive
    assert "positive ('well')" in turned.summary()
    assert "Every reader does worse than chance" in turned.summary()
    right = DominanceTable(pos_label="ill").fit(X, words)
    assert "positive ('ill')" in right.summary()
    assert "worse than chance" not in right.summary()


def test_words_of_constant_scores_few_cases_and_cross_fitting():
    X = pd.DataFrame({"c": [3.0] * 6})
    text = DominanceTable().fit(X, [0, 1, 0, 1, 1, 0]).summary()
    assert "a constant score" in text
    X, y = make_study(60, 1, 1)
    text = DominanceTable(cross_fit=True, random_state=0).fit(X, y).summary()
    assert f"With {y.sum()} positive cases" not in text or y.sum() < 20
    assert "Chosen on half of the cases" in text
    lone = np.zeros(60, dtype=int)
    lone[X["model0"].argmax()] = 1
    text = DominanceTable(cross_fit=True, random_state=0).fit(X, lone).summary()
    assert "With 1 positive case, sets, ranges and shares" in text
    assert "Too few cases of a class" in text


def test_arrays_and_positions_serve_as_well():
    X, y = make_study()
    by_name = DominanceTable(readers=["reader0", "reader2"]).fit(X, y)
    by_position = DominanceTable(readers=[2, -1]).fit(X.to_numpy(), y)
    columns = ["cpg_from", "cpg_to", "sensitivity_from"]
    pd.testing.assert_frame_equal(by_name.table_[columns], by_position.table_[columns])
    assert by_position.operating_points_.names == ["x0", "x1", "x3", "x2", "x4"]


@pytest.mark.parametrize(
    ("readers", "message"),
    [
        (["nobody"], "readers names 'nobody', which is not a column of X: model0"),
        ([1, "reader0"], "readers names 1, which is not a column"),
        (["reader0", "reader0", "reader1"], ""),
        ({"reader0": np.inf}, "threshold of reader 'reader0' must be a finite number"),
        ({"reader0": "high"}, "threshold of reader 'reader0' must be a finite number"),
    ],
)
def test_bad_readers_are_refused(study, readers, message):
    X, y = study
    if not message:
        DominanceTable(readers=readers).fit(X, y)  # naming one twice changes nothing
        return
    with pytest.raises(ValueError, match=message):
        DominanceTable(readers=readers).fit(X, y)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("model0", np.nan, r"X contains NaN \(missing\) in column 'model0' at row 4"),
        ("model0", np.inf, "X contains infinity in column 'model0' at row 4"),
        ("reader0", -np.inf, "X contains infinity in column 'reader0' at row 4"),
    ],
)
def test_missing_and_infinite_scores_are_refused(study, column, value, message):
    X, y = study
    X.loc[4, column] = value
    table = DominanceTable(readers=["reader0", "reader1", "reader2"])
    with pytest.raises(ValueError, match=message):
        table.fit(X, y)
    # Rows of weight zero before it do not change its number.
    with pytest.raises(ValueError, match=message):
        table.fit(X, y, np.arange(len(y)) >= 2)


def test_reader_of_one_class_only_is_refused(study):
    X, y = study
    X.loc[y == 1, "reader1"] = np.nan
    with pytest.raises(ValueError, match="reader 'reader1' read no positive case"):
        DominanceTable().fit(X, y)
    X.loc[:, "reader1"] = np.nan
    with pytest.raises(ValueError, match="reader 'reader1' read no case"):
        DominanceTable().fit(X, y)


def test_one_class_and_constant_scores():
    X, y = make_study()
    with pytest.raises(ValueError, match="only one class"):
        DominanceTable().fit(X, np.ones(len(y), dtype=int))
    table = DominanceTable().fit(X.assign(model0=0.5), y)
    row = table.dominated_.set_index("name").loc["model0"]
    assert row["status"] == "no point of its own"
    assert "model0" not in table.operating_points_.names
    alone = DominanceTable().fit(X[["model0"]] * 0 + 0.5, y)
    assert alone.table_["owner"].tolist() == ["always positive", "never positive"]
    assert alone.table_["cpg_to"].iloc[0] == 1.0
    assert len(set(alone.predict(X[["model0"]]))) == 1


def test_text_that_is_no_label_is_refused(study):
    X, y = study
    X["reader0"] = "perhaps"
    with pytest.raises(
        ValueError, match=r"column 'reader0' of X holds text .* 'perhaps'"
    ):
        DominanceTable().fit(X, y)


def test_integer_column_names_are_found_by_name_or_position(study):
    X, y = study
    numbered = X.set_axis(range(5), axis=1)
    columns = ["cpg_from", "cpg_to", "sensitivity_from"]
    expected = DominanceTable(readers=["reader0"]).fit(X, y).table_[columns]
    found = DominanceTable(readers=[2]).fit(numbered, y).table_[columns]
    pd.testing.assert_frame_equal(found, expected)


def test_names_of_the_trivial_strategies_are_refused(study):
    X, y = study
    with pytest.raises(ValueError, match="'always positive' is the name of a trivial"):
        DominanceTable().fit(X.rename(columns={"model0": "always positive"}), y)


def test_prevalences_that_print_alike_have_their_own_columns(study):
    X, y = study
    rows = DominanceTable().fit(X, y).table([0.1234567, 0.12345674])
    assert {"ppv_to@0.1234567", "ppv_to@0.12345674"} <= set(rows)


def test_duplicate_columns_are_refused(study):
    X, y = study
    twice = pd.concat([X, X[["model0"]]], axis=1)
    with pytest.raises(ValueError, match="column 'model0' twice"):
        DominanceTable().fit(twice, y)


# -- scikit-learn's manners ------------------------------------------------------------


def test_clone_pickle_and_set_output(study):
    X, y = study
    table = DominanceTable(readers=["reader0"], cost_ratio=2.0).set_output(
        transform="pandas"
    )
    fitted = clone(table).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    pd.testing.assert_frame_equal(again.table_, fitted.table_)
    assert_array_equal(again.predict(X), fitted.predict(X))
    out = table.fit(X, y).transform(X.set_index(X.index + 100))
    assert out.columns.tolist() == X.columns.tolist()
    assert out.index[0] == 100


@pytest.mark.parametrize("routing", [False, True])
def test_metadata_routing(study, routing):
    X, y = study
    with sklearn.config_context(enable_metadata_routing=routing):
        table = (
            DominanceTable().set_fit_request(sample_weight=True, clusters=True)
            if (routing)
            else DominanceTable()
        )
        pipeline = sklearn.pipeline.make_pipeline(table)
        weights = np.ones(len(y))
        if routing:
            pipeline.fit(X, y, sample_weight=weights, clusters=np.arange(len(y)))
        else:
            pipeline.fit(X, y, dominancetable__sample_weight=weights)
    assert pipeline[-1].table_.equals(DominanceTable().fit(X, y).table_)


@pytest.mark.parametrize("value", [0.0, 1.0, 17.7, "half", np.nan])
def test_prevalence_must_be_a_fraction(study, value):
    X, y = study
    table = DominanceTable().fit(X, y)
    with pytest.raises(
        ValueError, match="prevalence must lie strictly between 0 and 1"
    ):
        table.at(value, 1.0)
    with pytest.raises(
        ValueError, match="prevalence must lie strictly between 0 and 1"
    ):
        table.table([0.2, value])


@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan, "one"])
def test_cost_ratio_must_be_positive(study, value):
    X, y = study
    with pytest.raises(ValueError, match=r"cost_ratio .* must be positive and finite"):
        DominanceTable().fit(X, y).at(0.2, value)


@pytest.mark.parametrize("value", [(2, 1), (-1, 1), 3, ("a", "b")])
def test_cpg_range_must_rise(study, value):
    X, y = study
    with pytest.raises(ValueError, match="cpg_range must be two rising numbers"):
        DominanceTable().fit(X, y).dominated(value)


# -- real data -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ecg(data_home):
    return fetch_ecg_readers(data_home=data_home)


def ecg_study(ecg, diagnosis):
    X = pd.DataFrame({"DNN": ecg.scores[diagnosis]})
    for reader, calls in ecg.readers.items():
        X[reader] = calls[diagnosis].to_numpy()
    return X, ecg.truth[diagnosis].to_numpy()


@pytest.mark.parametrize(
    ("diagnosis", "together", "counts"),
    [
        ("SB", ("cardiologist1", "cardiologist2"), (13, 0)),
        ("ST", ("DNN", "emergency_residents"), (35, 2)),
        ("LBBB", ("DNN", "cardiologist2"), (30, 0)),
    ],
)
def test_ecg_readers_at_one_point(ecg, diagnosis, together, counts):
    X, y = ecg_study(ecg, diagnosis)
    table = DominanceTable().fit(X, y)
    points = table.operating_points_.to_frame()
    here = points[(points["TP"] == counts[0]) & (points["FP"] == counts[1])]
    assert sorted(here["name"]) == sorted(together)
    assert together in table.table_["owners"].tolist()


@pytest.mark.parametrize("diagnosis", ["1dAVb", "RBBB", "LBBB", "SB", "AF", "ST"])
def test_ecg_owners_by_brute_force(ecg, diagnosis):
    X, y = ecg_study(ecg, diagnosis)
    table = DominanceTable().fit(X, y)
    assert_owners_by_brute_force(table, X, y, list(ecg.readers))
    names = set(table.dominated_["name"]) | {
        owner for owners in table.table_["owners"] for owner in owners
    }
    assert names - {"never positive", "always positive"} == set(X)


@pytest.mark.parametrize("modality", ["FFDM", "SFM"])
def test_viper_readers_of_different_cases(data_home, modality):
    reads = pd.read_csv(data_home / "viper" / "viperObs.csv")
    reads = reads[reads["modalityID"] == modality]
    calls = reads.pivot(index="caseID", columns="readerID", values="recall")
    truth = reads.groupby("caseID")["cancerStatus365"].first().loc[calls.index] == 1
    # Unread cases are no calls of "no recall".
    known = (calls == 1).astype(float).where(calls.notna())
    table = DominanceTable(readers=list(calls)).fit(known, truth.astype(int))
    assert len(table.pairing_) == calls.shape[1] == 43
    assert_array_equal(table.pairing_["n_read"], calls.notna().sum())
    assert (table.pairing_["n_unread"] > 0).any()
    assert_owners_by_brute_force(
        table, known, truth.to_numpy().astype(int), list(known)
    )
    assert len(table.dominated_) > 30
