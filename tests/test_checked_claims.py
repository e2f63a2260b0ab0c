"""The page of checked claims says what its kept tables say, and these hold up."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest

from skcalfair.datasets import fetch_ecg_readers, make_skin_tone_cohort
from skcalfair.metrics import expected_calibration_error

ROOT = Path(__file__).parents[1]

# Numbers that the text may hold without looking them up, and what they are.
CONSTANTS = {
    "0.1 0.2": "axis of a figure, in words for those who cannot see it",
    "1 1,423 71 25": "the claims; the cohort's shape; the study's runs",
    "2 3 4": "headings and names",
    "5 90 95 .05 .0625 1.1": "levels, bands; see validity_runs.txt for 1.1",
    "506 321 151 340 287 49 827 13 37 16 20": "the ECG study",
    "17.7 41 .62 .95": "the worked example of dominance",
    "10 1,000 0 1/10 15 1998 2023 2305.05101": "scales, references",
}


@pytest.fixture
def benchmark(monkeypatch):
    """Import a file of `benchmarks/`, which finds its neighbours as a script does."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module


@pytest.fixture
def tables(benchmark):
    return benchmark("_claims_tables")


def frames_equal(found, expected):
    assert found.fillna("").astype(str).to_dict("list") == expected.to_dict("list")


def ends(interval):
    return tuple(float(end) for end in interval.split(" to "))


# -- the page --------------------------------------------------------------------------


def test_page_is_the_text_filled_with_the_kept_tables(tables):
    assert tables.PAGE.read_text(encoding="utf-8") == tables.rendered()


def test_no_other_number_is_in_the_text(tables):
    text = re.sub(r"\{[^{}]*\}", "", tables.TEMPLATE.read_text(encoding="utf-8"))
    text = re.sub(r":file:.*|``[^`]*``|\.\. \[\d\].*|\[\d\]_|CE2|1dAVb", "", text)
    allowed = set(" ".join(CONSTANTS).split())
    found = set(re.findall(r"(?<![\w.])\.?\d[\d.,/]*", text))
    assert {number.rstrip(".,") for number in found} <= allowed


def test_files_that_the_page_shows_exist(tables):
    page = tables.PAGE.read_text(encoding="utf-8")
    shown = re.findall(r"(?:figure::|:file:) (\S+)", page)
    assert len(shown) >= len(tables.KEYS) - 3
    for path in shown:
        assert (tables.PAGE.parent / path).is_file()
    assert "checked_claims" in (tables.PAGE.parent / "index.rst").read_text("utf-8")


def test_a_cell_that_does_not_exist_is_an_error(tables, monkeypatch, tmp_path):
    wrong = tmp_path / "page.rst"
    wrong.write_text("{synthetic[calibrated ECE][no such column]}", encoding="utf-8")
    monkeypatch.setattr(tables, "TEMPLATE", wrong)
    with pytest.raises(KeyError, match="no such column"):
        tables.rendered()


def test_sizes_are_those_of_the_script(benchmark, tables):
    frames_equal(benchmark("checked_claims").setup()["setup"], tables.kept("setup"))


# -- claim 1 ---------------------------------------------------------------------------


def test_synthetic_table_is_that_of_the_benchmark(tables):
    """Two scripts, one study: the same means as in `sample_size_study.txt`."""
    kept = tables.kept("synthetic")
    text = (ROOT / "doc/benchmarks/sample_size_study.txt").read_text("utf-8")
    for row in kept.itertuples(index=False):
        (line,) = re.findall(rf"^{row[0]} +{re.escape(row[1])} +(.*)$", text, re.M)
        small, large = (float(value) for value in line.split()[:2])
        assert float(row[2]) == pytest.approx(small, abs=6e-6)
        assert float(row[3]) == pytest.approx(large, abs=6e-6)


def test_binned_errors_grow_and_losses_do_not(tables):
    kept = tables.kept("replicated").set_index(["scores", "metric"])
    growth = kept["growth"].astype(float)
    for (_, metric), row in kept.iterrows():
        low, high = ends(row["95 % interval"])
        assert (low > 0) if metric in {"ECE", "MCE", "AdaECE"} else (low <= 0 <= high)
    for metric in ("ECE", "MCE", "AdaECE"):
        assert growth["calibrated", metric] > growth["moderate", metric]
        assert growth["moderate", metric] > growth["strong", metric]


# -- claim 2 ---------------------------------------------------------------------------


def test_cohort_has_the_shape_that_the_text_names():
    sizes = make_skin_tone_cohort()["skin_tone"].value_counts()
    assert sizes.to_dict() == {"light": 1423, "dark": 71}


def test_one_cohort_again(benchmark, tables):
    groups = benchmark("_claims_groups")
    found = groups.study_table(groups.cohort_study(0)).set_index("metric")
    kept = tables.kept("study").set_index("metric")
    for column in ("gap, all rows", "gap, equal size"):
        difference = found[column].astype(float) - kept[column].astype(float)
        assert np.abs(difference).max() < 0.002


def test_gaps_of_cohorts_disappear_at_equal_size(tables):
    kept = tables.kept("cohorts").set_index("metric")
    for metric, row in kept.iterrows():
        low, high = ends(row["95 % interval, equal size"])
        assert low <= 0 <= high or metric == "MCE"  # the text says so
        if metric in {"ECE", "MCE", "AdaECE"}:
            assert ends(row["95 % interval, all rows"])[0] > 0.1
            naive, matched = float(row["gap, all rows"]), float(row["gap, equal size"])
            assert abs(matched) < 0.1 * naive
    assert ends(kept.loc["MCE", "95 % interval, equal size"])[1] < 0


def test_wilcoxon_rejects_where_valid_tests_do_not(tables):
    kept = tables.kept("cohort_tests").set_index("metric")
    n = int(tables.kept("setup").set_index("what").loc["cohorts", "value"])
    assert kept.loc["ECE", "Wilcoxon, all rows"] == str(n)
    assert int(kept.loc["ECE", "Wilcoxon, equal size"]) > 2 * 0.05 * n
    assert int(kept.loc["equal calibration", "shared rows, all rows"]) <= 3 * 0.05 * n
    assert int(kept.loc["ECE", "shared rows, equal size"]) <= 3 * 0.05 * n


def test_runs_are_those_of_the_kept_simulation(benchmark, tables):
    frames_equal(benchmark("_claims_groups").runs_table(), tables.kept("runs"))


def test_matching_misleads_where_scores_lie_elsewhere(tables):
    kept = tables.kept("scenarios").set_index(["scores of dark skin", "metric"])
    column = "95 % interval, equal size"
    low, high = ends(kept.loc[("equal", "ECE"), column])
    assert low <= 0 <= high
    assert ends(kept.loc[("lower risk, equally calibrated", "ECE"), column])[1] < 0
    truth = float(kept.loc[("over-confident", "ECE"), "true gap"])
    assert ends(kept.loc[("over-confident", "ECE"), column])[1] < 0.5 * truth
    low, high = ends(kept.loc[("over-confident", "CE2"), "95 % interval, all rows"])
    assert low <= float(kept.loc[("over-confident", "CE2"), "true gap"]) <= high


def test_ecg_gaps_on_all_rows_again(benchmark, tables, data_home):
    ecg = fetch_ecg_readers(data_home, download_if_missing=False)
    kept = tables.kept("ecg_sex").set_index("diagnosis")
    female = ecg.sex == "F"
    assert (female.sum(), len(female)) == (506, 827)
    assert (ecg.truth.sum().min(), ecg.truth.sum().max()) == (13, 37)
    assert ecg.truth["SB"].sum() == 16
    bands = np.histogram(ecg.age, [0, 39.5, 59.5, 79.5, 200])[0]
    assert bands.tolist() == [151, 340, 287, 49]
    for diagnosis in ecg.diagnoses:
        y, p = ecg.truth[diagnosis], ecg.scores[diagnosis]
        gap = expected_calibration_error(y[female], p[female])
        gap -= expected_calibration_error(y[~female], p[~female])
        shown = float(kept.loc[diagnosis, "ECE gap, all rows"])
        assert shown == pytest.approx(gap, abs=6e-5)


def test_ecg_gaps_stay_and_no_test_proves_them_unfair(tables):
    kept = tables.kept("ecg_summary").set_index("what")["value"]
    at_least_halved = int(kept["gaps that at least halve at equal size"])
    assert at_least_halved < 0.2 * int(kept["gaps"])
    assert float(kept["smallest p by Holm"]) > 0.05
    assert int(kept["gaps with an interval"]) == 0
    everybody = tables.kept("ecg_sex").set_index("diagnosis").loc["all six"]
    assert ends(everybody["95 % interval"])[1] < 0
    low, high = ends(everybody["CE2 interval"])
    assert low < 0 < high


# -- claim 3 ---------------------------------------------------------------------------


def test_dominance_tables_again(benchmark, tables):
    for name, found in benchmark("_claims_dominance").tables().items():
        frames_equal(found, tables.kept(name))


def test_printed_cost_ratios_are_those_of_the_study(tables):
    kept = tables.kept("worked").set_index("owner")
    owners = ["Model A", "Specialist A", "Specialist B", "Specialist C", "Model B"]
    printed = {
        "17.7": [0.0, 1.43, 2.32, 5.31, 20.14],
        "41": [0, 0.44, 0.72, 1.64, 6.24],
    }
    for prevalence, values in printed.items():
        found = kept.loc[owners, f"printed, {prevalence} %"].astype(float)
        # One cell, 20.14, is 20.15 when it is computed from the printed points.
        np.testing.assert_allclose(found, values, atol=0.0101)


@pytest.mark.parametrize(
    ("prevalence", "ratio", "best"), [(0.177, 1, "Model B"), (0.41, 5, "Model B")]
)
def test_decisions_by_brute_force(benchmark, prevalence, ratio, best):
    points = benchmark("_claims_dominance").PUBLISHED.set_index("name")
    missed = prevalence * (1 - points["sensitivity"])
    false_alarms = (1 - prevalence) * (1 - points["specificity"])
    assert (missed + ratio * false_alarms).idxmin() == best


# -- claim 4 ---------------------------------------------------------------------------


def test_reader_tables_again(benchmark, tables, data_home):
    readers = benchmark("_claims_readers")
    ecg = fetch_ecg_readers(data_home, download_if_missing=False)
    found = readers.dominance_rows(readers.fits(ecg, n_bootstrap=0))
    frames_equal(found, tables.kept("readers"))
    errors = readers.error_rows(ecg)
    frames_equal(errors.drop(columns="p"), tables.kept("reader_errors"))
    summary = readers.summary(tables.kept("reader_costs"), errors)
    frames_equal(summary, tables.kept("reader_summary"))


def test_only_cardiologists_make_fewer_errors_and_nobody_significantly(tables):
    kept = tables.kept("reader_summary").set_index("what")["value"]
    assert kept["of them others"] == "0"
    assert kept["p below .05, reader better"] == "0"
    assert kept["by Holm, reader better"] == kept["by Holm, network better"] == "0"
    assert float(kept["without cardiologists, 1: largest support"]) < 0.95
    costs = tables.kept("reader_costs")
    alone = costs.query("readers == 'without cardiologists' and `cost ratio` == '1'")
    ahead = alone[
        (alone["lower"] == "readers") & (alone["best"] == "cardiology residents")
    ]
    assert ahead["diagnosis"].tolist() == ["SB"]
