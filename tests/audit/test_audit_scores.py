"""Audit of scores: what the tables hold, and what is concluded from them."""

import json
from collections import Counter
from datetime import date
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from pandas.testing import assert_frame_equal
from sklearn.metrics import accuracy_score

from skcalfair.audit import AuditResult, GroupMetricFrame, audit_scores
from skcalfair.audit._compose import reading
from skcalfair.audit._words import spread
from skcalfair.datasets import fetch_ecg_readers, make_subgroup_scores
from skcalfair.metrics import (
    calibration_loss,
    expected_calibration_error,
    metric_table,
    squared_calibration_error,
)

ECE = "expected_calibration_error"
CE2 = "squared_calibration_error"


def cohort(sizes, seed=0, **options):
    return make_subgroup_scores(sizes, random_state=seed, **options).frame


def audit(rows, by="group", **options):
    features = rows[by] if isinstance(by, str) else {name: rows[name] for name in by}
    defaults = {"random_state": 0, "n_resamples": 100, "metrics": [ECE, CE2]}
    return audit_scores(
        rows["outcome"],
        rows["score"],
        sensitive_features=features,
        **(defaults | options),
    )


def cell(result, metric, group, sampling="size_matched"):
    """Row of the table of values."""
    values = result.values
    (row,) = values[
        (values["metric"] == metric)
        & (values["group"] == group)
        & (values["sampling"] == sampling)
    ].itertuples()
    return row


def same(one, other):
    for table in ("groups", "values", "gaps"):
        assert_frame_equal(
            getattr(one, table), getattr(other, table), check_dtype=False
        )


@pytest.fixture(scope="module")
def rows():
    return cohort({"a": 600, "b": 90, "c": 200}, rows_per_patient=(1, 3))


class TestValues:
    def test_naive_values_are_the_metrics(self, rows):
        result = audit(rows, metrics=[ECE, CE2, "calibration_loss_brier"])
        for group, part in rows.groupby("group"):
            y, p = part["outcome"], part["score"]
            for metric, expected in {
                ECE: expected_calibration_error(y, p),
                CE2: squared_calibration_error(y, p),
                "calibration_loss_brier": calibration_loss(y, p, score="brier"),
            }.items():
                found = cell(result, metric, group, "naive")
                assert_allclose(found.value, expected)
                assert found.size == len(part)
                assert found.low <= found.high
                assert found.method is not None
                assert found.reason is None

    @pytest.mark.parametrize("size", ["smallest", 50])
    def test_matched_values_against_a_loop(self, rows, size):
        result = audit(rows, n_resamples=1000, size_match=size)
        n = 90 if size == "smallest" else size
        assert result.matched_size == n
        rng = np.random.default_rng(1)
        for metric, function in {
            ECE: expected_calibration_error,
            CE2: squared_calibration_error,
        }.items():
            for group, part in rows.groupby("group"):
                y, p = part["outcome"].to_numpy(), part["score"].to_numpy()
                draws = np.array(
                    [
                        function(y[i], p[i])
                        for i in (
                            rng.choice(len(y), n, replace=False) for _ in range(400)
                        )
                    ]
                )
                found = cell(result, metric, group)
                error = draws.std() * np.sqrt(1 / 400 + 1 / 1000)
                assert_allclose(found.value, draws.mean(), atol=4 * error + 1e-12)
                if len(part) > n:
                    low, high = np.quantile(draws, [0.025, 0.975])
                    assert_allclose(found.low, low, atol=draws.std() / 2)
                    assert_allclose(found.high, high, atol=draws.std() / 2)

    def test_the_smallest_group_is_not_drawn_from(self, rows):
        result = audit(rows)
        for metric in (ECE, CE2):
            naive = cell(result, metric, "b", "naive")
            matched = cell(result, metric, "b")
            assert matched.value == naive.value
            assert np.isnan([matched.low, matched.high]).all()

    def test_whole_clusters_are_drawn(self, rows):
        result = audit(rows, clusters=rows["patient"], n_resamples=400)
        clusters = rows.groupby("group")["patient"].nunique()
        assert result.groups["clusters"].tolist() == clusters.tolist()
        part = rows[rows["group"] == "a"]
        y, p = part["outcome"].to_numpy(), part["score"].to_numpy()
        patients = part["patient"].to_numpy()
        rng = np.random.default_rng(1)
        draws = []
        for _ in range(400):
            kept = np.zeros(len(y), dtype=bool)
            for patient in rng.permutation(np.unique(patients)):
                its = patients == patient
                if kept.sum() + its.sum() > 90:
                    break
                kept |= its
            draws.append(expected_calibration_error(y[kept], p[kept]))
        assert_allclose(
            cell(result, ECE, "a").value,
            np.mean(draws),
            atol=4 * np.std(draws) * np.sqrt(2 / 400),
        )
        expected = squared_calibration_error(y, p, clusters=patients)
        assert_allclose(cell(result, CE2, "a", "naive").value, expected)

    def test_whole_weights_are_rows_where_metrics_are_concerned(self, rows):
        w = np.random.default_rng(0).integers(0, 3, len(rows))
        weighted = audit(rows, sample_weight=w, size_match=None)
        repeated = audit(rows.loc[rows.index.repeat(w)], size_match=None)
        assert_allclose(weighted.values["value"], repeated.values["value"])
        assert weighted.groups["n"].sum() == (w > 0).sum()
        assert weighted.n_left_out == (w == 0).sum()

    def test_what_weights_mean_is_one_decision_for_all_groups(self, rows):
        w = np.where(rows["group"] == "a", 2.0, 1.5)
        result = audit(rows, sample_weight=w)
        for group, part in rows.groupby("group"):
            expected = squared_calibration_error(
                part["outcome"],
                part["score"],
                sample_weight=w[part.index],
                weights="probability",
            )
            assert_allclose(cell(result, CE2, group, "naive").value, expected)

    def test_every_metric(self, rows):
        names = list(metric_table().index)
        result = audit(rows, metrics=names, n_resamples=40)
        assert result.gaps["metric"].unique().tolist() == names
        assert result.values["value"].notna().all()
        without = result.values[result.values["reason"].notna()]
        assert without["reason"].str.startswith("no interval").all()
        assert set(without["sampling"]) == {"naive"}
        assert len(result.values) == len(names) * 3 * 2
        for name in names:
            assert result.summary().count(metric_table().loc[name, "label"])


class TestInput:
    @pytest.mark.parametrize(
        "convert",
        [
            pd.DataFrame,
            pl.from_pandas,
            lambda f: {name: f[name].to_numpy() for name in f},
            lambda f: {name: f[name].tolist() for name in f},
        ],
        ids=["pandas", "polars", "arrays", "lists"],
    )
    def test_libraries(self, rows, convert):
        given = convert(rows)
        result = audit_scores(
            given["outcome"],
            given["score"],
            sensitive_features=given["group"],
            metrics=[ECE, CE2],
            n_resamples=100,
            random_state=0,
        )
        same(result, audit(rows))

    def test_features_of_any_form(self, rows):
        wide = rows.assign(half=rows["patient"] % 2)[["group", "half"]]
        options = {"metrics": [ECE], "n_resamples": 40, "random_state": 0}
        results = [
            audit_scores(
                rows["outcome"], rows["score"], sensitive_features=features, **options
            )
            for features in (wide, pl.from_pandas(wide), wide.to_dict("list"))
        ]
        assert results[0].features == ["group", "half"]
        assert results[0].groups["group"].tolist()[:3] == ["a & 0", "a & 1", "b & 0"]
        assert results[0].groups["half"].tolist() == [0, 1] * 3
        for other in results[1:]:
            same(results[0], other)

    def test_columns_of_features_do_not_hide_those_of_the_tables(self, rows):
        features = {"n": rows["group"], "value": rows["patient"] % 2}
        result = audit_scores(
            rows["outcome"], rows["score"], sensitive_features=features, metrics=[ECE]
        )
        assert {"n", "feature_n", "feature_value"} <= set(result.groups)
        assert result.groups["n"].sum() == len(rows)

    def test_names_of_intersections_differ(self, rows):
        features = {"x": rows["group"].replace({"a": "a & b", "c": "a"})}
        features["y"] = np.where(features["x"] == "a & b", "c", "b & c")
        result = audit_scores(
            rows["outcome"], rows["score"], sensitive_features=features, metrics=[ECE]
        )
        assert result.groups["group"].is_unique

    def test_predict_proba_and_text_labels(self, rows):
        p = np.column_stack([1 - rows["score"], rows["score"]])
        y = np.where(rows["outcome"] == 1, "sick", "healthy")
        options = {"metrics": [ECE, CE2], "n_resamples": 100, "random_state": 0}
        result = audit_scores(y, p, sensitive_features=rows["group"], **options)
        same(result, audit(rows))
        flipped = audit_scores(
            y, p, sensitive_features=rows["group"], pos_label="healthy", **options
        )
        assert (
            flipped.groups["positives"] + result.groups["positives"]
            == result.groups["n"]
        ).all()

    def test_groups_that_are_no_text(self, rows):
        for values in (rows["group"] == "a", (rows["group"] == "a") + 0.5):
            result = audit(rows.assign(group=values))
            assert result.groups["n"].tolist() == [290, 600]
            assert str(result.groups["group"][1]) in result.summary()

    def test_missing_groups(self, rows):
        holes = rows.assign(group=rows["group"].where(rows["group"] != "c", None))
        with pytest.raises(ValueError, match="'group' has 200 missing values"):
            audit(holes)
        own = audit(holes, missing="own_group")
        assert own.groups["group"].tolist() == ["a", "b", "missing"]
        dropped = audit(holes, missing="drop")
        assert dropped.groups["group"].tolist() == ["a", "b"]
        assert (own.n_left_out, dropped.n_left_out) == (0, 200)
        assert "200 rows without a group or of weight zero were left" in (
            dropped.summary()
        )
        with pytest.raises(ValueError, match="gives no row a group"):
            audit(rows.assign(group=None), missing="drop")

    def test_a_group_that_is_called_missing(self, rows):
        group = rows["group"].replace({"b": "missing"})
        group = group.where(group != "c", None)
        result = audit(rows.assign(group=group), missing="own_group")
        assert result.groups["n"].tolist() == [600, 290]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"metrics": ["ece"]}, r"metrics must be names.*\['ece'\]"),
            ({"metrics": []}, "metrics must be names"),
            ({"size_match": "largest"}, "size_match must be 'smallest', an int or"),
            ({"size_match": 0}, "size_match must be an integer of at least 1"),
            ({"size_match": 2.5}, "size_match must be an integer"),
            ({"n_resamples": 39}, "n_resamples must be an integer of at least 40"),
            ({"min_group_size": 0}, "min_group_size must be an integer"),
            ({"missing": "ignore"}, "missing must be"),
            ({"random_state": "x"}, "random_state must be"),
            ({"pos_label": 2}, "pos_label=2 is not among"),
            ({"clusters": [1, 2]}, "clusters must have one value per row"),
            ({"sample_weight": [1, 2]}, "sample_weight must have one value per row"),
        ],
    )
    def test_refused(self, rows, options, message):
        with pytest.raises(ValueError, match=message):
            audit(rows, **options)

    def test_one_metric_by_name_and_a_metric_twice(self, rows):
        assert audit(rows, metrics=ECE).gaps["metric"].unique().tolist() == [ECE]
        same(audit(rows, metrics=[ECE, ECE]), audit(rows, metrics=ECE))


class TestSizes:
    def test_equal_sizes(self):
        rows = cohort({"a": 100, "b": 100})
        result = audit(rows)
        assert result.matched_size == 100
        assert set(result.gaps["reading"]) == {"chance"}
        biased = result.gaps[result.gaps["metric"] == ECE]
        assert_allclose(biased["naive"], biased["size_matched"])
        assert_allclose(result.gaps["explained_by_size"], 0.0)

    def test_no_matching(self, rows):
        result = audit(rows, size_match=None)
        assert result.matched_size is None
        assert set(result.values["sampling"]) == {"naive"}
        readings = result.gaps.groupby("metric")["reading"].unique()
        assert readings[ECE].tolist() == ["not matched"]
        assert "not matched" not in readings[CE2]
        text = result.summary()
        assert "groups were compared on all their rows only." in text
        assert "ECE depends on the number of rows" in text.replace("\n  ", " ")
        assert "subsamples" not in text

    def test_groups_below_a_given_size_are_not_compared(self, rows):
        result = audit(rows, size_match=150)
        found = cell(result, ECE, "b")
        assert np.isnan(found.value)
        assert found.reason == "fewer than 150 rows"
        assert np.isfinite(cell(result, ECE, "a").value)
        gaps = result.gaps[result.gaps["metric"] == ECE].set_index("group")
        assert gaps.loc["b", "reading"] == "not matched"
        assert np.isfinite(gaps.loc["b", "naive"])
        assert np.isfinite(gaps.loc["a", "size_matched"])
        assert "(1) fewer than 150 rows" in result.summary()

    def test_small_groups(self):
        rows = cohort({"a": 300, "b": 100, "tiny": 9})
        result = audit(rows)
        assert result.matched_size == 100
        assert result.groups["reason"].tolist() == [None, None, "fewer than 10 rows"]
        assert np.isnan(cell(result, ECE, "tiny", "naive").value)
        assert cell(result, ECE, "tiny", "naive").reason == "fewer than 10 rows"
        gaps = result.gaps.set_index("group")
        assert set(gaps.loc["tiny", "reading"]) == {"not estimable"}
        assert "fewer than 10 rows" in gaps.loc["tiny", "reason"].iloc[0]
        assert "tiny      9" in result.summary()
        assert audit(rows, min_group_size=9).matched_size == 9

    def test_one_group_can_be_used(self):
        for sizes in ({"a": 300}, {"a": 300, "tiny": 3}):
            result = audit(cohort(sizes))
            assert result.matched_size is None
            assert np.isfinite(cell(result, ECE, "a", "naive").value)
            assert set(result.gaps["reading"]) <= {"not estimable"}
            assert result.test is None or result.test.reason
            assert "only one group can be used" in result.summary()

    def test_no_group_can_be_used(self):
        result = audit(cohort({"a": 5, "b": 4}))
        assert result.values["value"].isna().all()
        assert "no group can be used" in result.summary()
        json.dumps(result.to_dict(), allow_nan=False)

    def test_one_cluster(self, rows):
        patients = np.where(rows["group"] == "b", -1, rows["patient"])
        result = audit(rows, clusters=patients)
        assert result.groups["reason"].tolist() == [None, "one cluster only", None]

    def test_one_class(self, rows):
        outcome = np.where(rows["group"] == "b", 0, rows["outcome"])
        result = audit(rows.assign(outcome=outcome), metrics=["roc_auc", ECE])
        found = cell(result, "roc_auc", "b", "naive")
        assert np.isnan(found.value)
        assert found.reason == "only one class is present (no positive rows)"
        assert np.isfinite(cell(result, ECE, "b", "naive").value)
        gaps = result.gaps[result.gaps["metric"] == "roc_auc"].set_index("group")
        assert gaps.loc["b", "reading"] == "not estimable"
        assert np.isfinite(gaps.loc["a", "naive"])
        assert "(1) only one class is present (no positive rows)" in result.summary()

    def test_no_group_has_two_classes(self):
        rows = cohort({"a": 100, "b": 40})
        outcome = (rows["group"] == "a").astype(int)
        result = audit(rows.assign(outcome=outcome), metrics=["roc_auc", ECE])
        gap = result.gaps.set_index("metric").loc["roc_auc"]
        assert np.isnan(gap["naive"])
        assert gap["reading"] == "not estimable"
        assert "AUC: no comparison: only one class is present" in result.summary()

    def test_subsamples_of_one_class(self):
        rows = cohort({"a": 300, "b": 12})
        a = rows["group"] == "a"
        few = rows.index[a][:6]
        outcome = np.where(a, rows.index.isin(few), rows["outcome"]).astype(int)
        result = audit(rows.assign(outcome=outcome), metrics=["roc_auc"])
        found = cell(result, "roc_auc", "a")
        assert np.isfinite(found.value)
        assert found.reason.startswith("estimable in ")
        assert found.reason.endswith(" of 100 subsamples only")


class TestGaps:
    @pytest.mark.parametrize("size_match", ["smallest", 80])
    def test_each_group_against_the_rest(self, rows, size_match):
        result = audit(rows, size_match=size_match, metrics=[ECE, CE2, "roc_auc"])
        sizes = result.groups.set_index("group")["n"]
        assert result.gaps["group"].tolist() == ["a", "b", "c"] * 3
        for gap in result.gaps.itertuples():
            two = rows.assign(group=np.where(rows["group"] == gap.group, "x", "rest"))
            alone = audit(two, size_match=size_match, metrics=[gap.metric])
            biased = not metric_table().loc[gap.metric, "size_robust"]
            for column, sampling in (("naive", "naive"), ("size_matched",) * 2):
                if column == "size_matched" and not biased:
                    assert np.isnan(gap.size_matched)
                    continue
                group = cell(alone, gap.metric, "x", sampling)
                rest = cell(alone, gap.metric, "rest", sampling)
                # Matched values come from other subsamples.
                error = 0.0 if column == "naive" else 0.01
                assert_allclose(
                    getattr(gap, column), group.value - rest.value, atol=error + 1e-12
                )
            smaller = min(sizes[gap.group], len(rows) - sizes[gap.group])
            assert gap.size == (smaller if size_match == "smallest" else 80)
            gone = gap.naive - gap.size_matched if biased else 0.0
            assert_allclose(gap.explained_by_size, gone)

    def test_two_groups_are_compared_with_each_other(self):
        result = audit(cohort({"a": 300, "b": 100}))
        pairs = set(zip(result.gaps["group"], result.gaps["reference"], strict=True))
        assert pairs == {("a", "b")}

    def test_against_one_group(self, rows):
        result = audit(rows, reference="c", metrics=[ECE])
        pairs = list(zip(result.gaps["group"], result.gaps["reference"], strict=True))
        assert pairs == [("a", "c"), ("b", "c")]
        with pytest.raises(ValueError, match="reference must be"):
            audit(rows, reference="d")

    def test_a_large_group_that_is_off_is_not_taken_for_size(self):
        # The small calibrated group looks worst on all rows.
        rows = cohort(
            {"large": 3000, "off": 3000, "small": 80},
            seed=3,
            slope={"large": 1.0, "off": 0.3, "small": 1.0},
        )
        result = audit(rows, metrics=["calibration_loss_log_loss", ECE])
        readings = result.gaps.set_index(["metric", "group"])["reading"]
        assert readings[ECE, "off"] == "remains"
        assert readings["calibration_loss_log_loss", "off"] == "remains"
        assert result.test.p_value < 0.001

    def test_holm_over_the_comparisons_of_the_first_metric(self, rows):
        gaps = audit(rows, metrics=["brier_score_loss", CE2]).gaps
        first = gaps[gaps["metric"] == "brier_score_loss"]
        assert not first["exploratory"].any()
        p = first["p_value"].to_numpy()
        order = np.argsort(p)
        steps = np.minimum(1, np.maximum.accumulate(p[order] * [3, 2, 1]))
        assert_allclose(first["p_adjusted"].to_numpy()[order], steps)
        rest = gaps[gaps["metric"] == CE2]
        assert rest["exploratory"].all()
        assert rest["p_adjusted"].isna().all()

    def test_equal_values_are_two_groups(self):
        rows = cohort({"a": 50})
        twice = pd.concat([rows, rows.assign(group="b")])
        gap = audit(twice, metrics=[ECE]).gaps.iloc[0]
        assert (gap["group"], gap["reference"]) == ("a", "b")
        assert gap["naive"] == 0
        assert gap["reading"] == "chance"

    @pytest.mark.parametrize(
        ("numbers", "size_robust", "expected"),
        [
            ((0.1, 0.02, -0.01, 0.05), False, "size"),
            ((0.1, 0.02, -0.01, 0.15), True, "chance"),
            ((0.1, 0.08, -0.01, 0.15), False, "chance"),
            ((0.1, -0.04, -0.09, 0.01), False, "size"),
            ((0.1, 0.08, 0.01, 0.15), False, "remains"),
            ((0.1, 0.08, 0.01, 0.15), True, "remains"),
            ((0.1, -0.08, -0.15, -0.01), False, "reverses"),
            ((0.1, 0.02, np.nan, np.nan), False, "size, untested"),
            ((0.1, 0.09, np.nan, np.nan), False, "untested"),
            ((0.1, np.nan, np.nan, np.nan), False, "not matched"),
            ((0.1, 0.02, np.nan, np.nan, 0.3), False, "size"),
            ((0.1, 0.09, np.nan, np.nan, 0.01), True, "remains"),
            ((0.1, 0.09, 0.01, 0.2, 0.04, 0.2), True, "chance"),
            ((0.1, 0.09, 0.01, 0.2, 0.01, 0.04), True, "remains"),
            ((np.nan, np.nan, np.nan, np.nan), True, "not estimable"),
            ((1e-15, 1e-15, np.nan, np.nan), False, "chance"),
        ],
    )
    def test_reading(self, numbers, size_robust, expected):
        names = ("naive", "size_matched", "low", "high", "p_value", "p_adjusted")
        numbers = (*numbers, np.nan, np.nan)[:6]
        gap = SimpleNamespace(**dict(zip(names, numbers, strict=True)))
        assert reading(gap, size_robust=size_robust) == expected


class TestConclusions:
    def test_groups_that_are_equally_calibrated(self):
        counts = {ECE: Counter(), CE2: Counter()}
        rejected = 0
        for seed in range(40):
            result = audit(cohort(None, seed))
            rejected += result.test.p_value <= 0.05
            for gap in result.gaps.itertuples():
                counts[gap.metric][gap.reading] += 1
        assert counts[ECE]["size"] + counts[ECE]["chance"] >= 34
        assert counts[ECE]["size"] > 28
        assert counts[CE2]["chance"] >= 34
        assert counts[CE2]["size"] == 0
        assert rejected <= 6

    def test_a_group_that_is_not(self):
        metric = "calibration_loss_log_loss"
        counts = Counter()
        for seed in range(20):
            rows = cohort(None, seed, slope={"light": 1.0, "dark": 0.4})
            result = audit(rows, metrics=[metric])
            (gap,) = result.gaps.itertuples()
            counts[gap.naive > 0, gap.reading] += 1
        assert counts[True, "remains"] >= 13


class TestReproducible:
    def test_seed(self, rows):
        same(audit(rows), audit(rows))
        other = audit(rows, random_state=1)
        assert not other.values.equals(audit(rows).values)
        generator = audit(rows, random_state=np.random.default_rng(0))
        assert generator.values["value"].notna().all()

    def test_workers_do_not_matter(self, rows):
        same(audit(rows, n_jobs=2), audit(rows))

    def test_row_order_does_not_matter_on_all_rows(self, rows):
        shuffled = audit(rows.sample(frac=1, random_state=0), size_match=None)
        straight = audit(rows, size_match=None)
        assert_allclose(shuffled.values["value"], straight.values["value"])


class TestResult:
    def test_dict_is_plain_json(self, rows):
        features = rows.assign(half=rows["patient"] % 2 == 0)
        result = audit(features, by=["group", "half"], clusters=rows["patient"])
        found = json.loads(json.dumps(result.to_dict(), allow_nan=False))
        assert found["features"] == ["group", "half"]
        assert found["matched_size"] == result.matched_size
        assert found["n_resamples"] == 100
        assert found["n_left_out"] == 0
        for name in ("groups", "values", "gaps"):
            table = getattr(result, name)
            assert len(found[name]) == len(table)
            assert list(found[name][0]) == list(table)
        values = [np.nan if v["low"] is None else v["low"] for v in found["values"]]
        assert_allclose(values, result.values["low"])
        assert found["groups"][0]["half"] in (True, False)

    def test_labels_that_json_does_not_know(self, rows):
        a = rows["group"] == "a"
        for one, other, shown in (
            (np.int64(1), np.int64(2), 1),
            (date(2020, 1, 1), date(2021, 1, 1), "2020-01-01"),
        ):
            labels = np.array([one if of_a else other for of_a in a], dtype=object)
            found = audit(rows.assign(group=labels)).to_dict()["groups"][0]["group"]
            assert found == shown
            assert type(found) is type(shown)

    def test_columns_are_always_the_same(self, rows):
        tables = [
            audit(rows),
            audit(rows, size_match=None),
            audit(cohort({"a": 5, "b": 5})),
            audit(cohort({"a": 50})),
        ]
        for name in ("groups", "values", "gaps"):
            assert len({tuple(getattr(t, name)) for t in tables}) == 1

    def test_frozen(self, rows):
        result = audit(rows)
        assert isinstance(result, AuditResult)
        with pytest.raises(AttributeError):
            result.features = []

    @pytest.mark.parametrize("show", [True, False, None])
    def test_progress(self, rows, capsys, show):
        audit(rows, progress=show)
        assert ("groups" in capsys.readouterr().err) == bool(show)


class TestSummary:
    LONG = "Hospital Nossa Senhora da Conceicao, intensive care unit"

    @pytest.mark.parametrize(
        "sizes",
        [
            {"a": 2345, "b": 1000},
            {"female": 300, "male": 700},
            {LONG: 3000, LONG + " 2": 500, "c": 40, "d": 11, "e": 3},
            {f"group number {i}": 100 * i for i in range(1, 6)},
            {"40 to 65": 427, "over 65": 235, "under 40": 165},
        ],
    )
    @pytest.mark.parametrize("size_match", ["smallest", None, 200])
    def test_fits_a_terminal(self, sizes, size_match):
        rows = cohort(sizes)
        options = {"metrics": None, "n_resamples": 40, "size_match": size_match}
        for clusters in (None, rows["patient"]):
            text = audit(rows, clusters=clusters, **options).summary()
            widest = max(text.splitlines(), key=len)
            assert len(widest) <= 100, widest
            assert "nan" not in text
            assert "None" not in text

    def test_long_names_are_numbered(self):
        rows = cohort({self.LONG: 300, self.LONG + " 2": 50})
        text = audit(rows).summary()
        assert "[1] Hospital Nossa Senhora" in text
        assert "[1] - [2]" in text

    def test_says_plainly_that_a_gap_is_sample_size(self):
        text = audit(cohort(None)).summary()
        assert "sample size" in text
        assert "- ECE: sample size explains the gap. This metric depends" in text
        assert "- CE2: no difference is shown." in text
        assert "No difference is shown" in text

    def test_says_that_a_gap_remains(self):
        rows = cohort({"a": 4000, "b": 500}, slope={"a": 1.0, "b": 0.4})
        text = audit(rows).summary()
        assert "gap remains" in text
        assert "a difference remains that sample size and chance do not explain" in (
            text.replace("\n  ", " ")
        )
        assert "not equally calibrated" in text

    @pytest.mark.parametrize(
        ("sizes", "words"),
        [
            ({"a": 300, "b": 20}, "- b has fewer than 20 rows of one class"),
            ({"a": 15, "b": 20}, "- a and b have fewer than 20 rows of one class"),
            ({"a": 300, "b": 100}, None),
        ],
    )
    def test_few_events(self, sizes, words):
        text = audit(cohort(sizes)).summary()
        assert ("rows of one class" in text) == (words is not None)
        assert words is None or words in text

    def test_numbers_agree_with_the_tables(self):
        result = audit(cohort({"a": 300, "b": 30}))
        text = result.summary()
        assert text.startswith("330 rows, ")
        for value in result.values.itertuples():
            decimals = 3 if value.metric == ECE else 4
            shown = f"{value.value:.{decimals}f}"
            assert shown.replace("-0.0000", "0.0000") in text

    def test_reasons_are_quoted(self):
        rows = cohort({"a": 300, "b": 30})
        text = audit(rows, metrics=[CE2, "maximum_calibration_error"]).summary()
        joined = text.replace("\n  ", " ")
        assert "CE2: not tested: fewer than 20 rows of one class" in joined
        assert "MCE: " in joined
        assert "no interval with the stated coverage is known" in joined

    def test_labels_of_several_classes(self):
        frame = GroupMetricFrame(
            metrics={"accuracy": accuracy_score},
            y_true=list("xyz") * 40,
            y_pred=list("xyy") * 40,
            sensitive_features=["a"] * 60 + ["b"] * 60,
            n_resamples=40,
            random_state=0,
        )
        text = frame.summary()
        assert text.startswith("120 rows, by sensitive_feature_0")
        assert "positive" not in text.splitlines()[2]

    def test_an_interval_without_0_shows_it(self):
        cell = SimpleNamespace(low=-0.05, high=-0.0001)
        assert spread(cell, "roc_auc") == "-0.0500 to -0.0001"
        cell = SimpleNamespace(low=-0.05, high=0.0001)
        assert spread(cell, "roc_auc") == "-0.050 to 0.000"

    def test_one_row(self):
        rows = cohort({"a": 30, "b": 1})
        assert "b         1  " in audit(rows).summary()
        dropped = audit(
            rows.assign(group=rows["group"].where(rows["group"] == "a", None)),
            missing="drop",
        )
        assert "1 row without a group or of weight zero was left" in dropped.summary()


@pytest.mark.parametrize("diagnosis", ["AF", "RBBB"])
def test_ecg_readers_by_sex(data_home, diagnosis):
    ecg = fetch_ecg_readers(data_home, download_if_missing=False)
    result = audit_scores(
        ecg.truth[diagnosis],
        ecg.scores[diagnosis],
        sensitive_features=ecg.sex,
        random_state=0,
    )
    assert result.groups["n"].sum() == 827
    assert result.groups["positives"].sum() == {"AF": 13, "RBBB": 34}[diagnosis]
    assert result.gaps["naive"].notna().all()
    assert len(result.summary()) > 1000


def test_a_gap_of_rounding_is_none():
    y = np.arange(300) % 2
    result = audit_scores(
        y,
        y.astype(float),
        sensitive_features=["a"] * 240 + ["b"] * 60,
        metrics=["log_loss", "expected_calibration_error"],
        n_resamples=40,
        random_state=0,
    )
    assert set(result.gaps["reading"]) == {"chance"}
