"""Audits of scores that come from several runs."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from pandas.testing import assert_frame_equal

from skcalfair.audit import audit_scores
from skcalfair.datasets import make_subgroup_scores
from skcalfair.metrics import expected_calibration_error

ECE, BRIER = "expected_calibration_error", "brier_score_loss"


@pytest.fixture(scope="module")
def rows():
    """Two test folds, each scored by three runs that differ a little."""
    cohort = make_subgroup_scores({"a": 600, "b": 120}, random_state=0).frame
    rng = np.random.default_rng(0)
    parts = []
    for run in range(6):
        part = cohort[cohort.index % 2 == run % 2].copy()
        noise = rng.normal(scale=0.01, size=len(part))
        part["score"] = np.clip(part["score"] + noise, 0.001, 0.999)
        parts.append(part.assign(run=f"run {run}"))
    return pd.concat(parts, ignore_index=True)


def audit(rows, **options):
    defaults = {"metrics": [ECE, BRIER], "n_resamples": 50, "random_state": 0}
    return audit_scores(
        rows["outcome"],
        rows["score"],
        sensitive_features=rows["group"],
        run=rows["run"],
        **(defaults | options),
    )


def test_values_are_means_over_the_runs(rows):
    result = audit(rows, clusters=rows["patient"])
    naive = result.runs[result.runs["sampling"] == "naive"]
    for found in naive[naive["metric"] == ECE].itertuples():
        part = rows[(rows["run"] == found.run) & (rows["group"] == found.group)]
        expected = expected_calibration_error(part["outcome"], part["score"])
        assert found.value == pytest.approx(expected)
        assert found.size == len(part)
    for value in result.values.itertuples():
        same = result.runs[
            (result.runs["metric"] == value.metric)
            & (result.runs["group"] == value.group)
            & (result.runs["sampling"] == value.sampling)
        ]["value"]
        assert value.value == pytest.approx(same.mean())
        assert_allclose([value.low, value.high], np.quantile(same, [0.025, 0.975]))
    assert len(result.runs) == 6 * 2 * 2 * 2


def test_runs_of_the_same_cases_share_a_fold(rows):
    result = audit(rows, clusters=rows["patient"])
    folds = result.runs.groupby("run")["fold"].unique().map(list).tolist()
    assert folds == [[0], [1]] * 3
    tests = result.run_tests.set_index(["metric", "sampling"])
    assert tests.loc[(ECE, "size_matched"), "n_units"] == 2
    assert tests.loc[(BRIER, "naive"), "method"] == "pooled"
    assert tests.loc[(BRIER, "naive"), "unit"] == "cluster"
    assert result.test.n_clusters == rows["patient"].nunique()


def test_without_cases_nothing_is_tested_and_that_is_said(rows):
    result = audit(rows)
    assert result.run_tests["p_value"].isna().all()
    assert result.run_tests["note"].str.contains("by clusters=").all()
    assert set(result.gaps["reading"]) <= {"untested", "size, untested"}
    assert result.test is None
    assert "clusters=" in result.test_reason
    assert "name the case of each row by clusters=" in (
        result.summary().replace("\n  ", " ")
    )


def test_one_run_is_an_ordinary_audit(rows):
    part = rows[rows["run"] == "run 0"]
    result = audit(part)
    assert result.runs is None
    assert result.gaps["low"].notna().all()


def test_gaps_are_mean_gaps_from_the_largest_group(rows):
    result = audit(rows, clusters=rows["patient"])
    values = result.values.set_index(["metric", "group", "sampling"])["value"]
    for gap in result.gaps.itertuples():
        assert (gap.group, gap.reference) == ("b", "a")
        naive = values[gap.metric, "b", "naive"] - values[gap.metric, "a", "naive"]
        assert gap.naive == pytest.approx(naive)
        assert np.isnan(gap.low)
    readings = result.gaps.set_index("metric")["reading"]
    assert readings[BRIER] in ("chance", "remains", "reverses")
    text = result.summary()
    assert "95 % of runs" in text
    assert "equal size" in text
    assert "95 % interval" not in text
    json.dumps(result.to_dict(), allow_nan=False)


def test_row_order_and_names_of_runs_do_not_matter(rows):
    result = audit(rows, clusters=rows["patient"], size_match=None)
    shuffled = rows.sample(frac=1, random_state=1)
    other = audit(shuffled, clusters=shuffled["patient"], size_match=None)
    keys = ["metric", "group"]
    assert_frame_equal(
        result.values[[*keys, "value"]].sort_values(keys, ignore_index=True),
        other.values[[*keys, "value"]].sort_values(keys, ignore_index=True),
    )


@pytest.mark.parametrize("bad", [[1, 2], [None] * 3])
def test_refused(bad):
    with pytest.raises(ValueError, match="run"):
        audit_scores(
            [0, 1, 1], [0.2, 0.7, 0.8], sensitive_features=["a", "a", "b"], run=bad
        )
