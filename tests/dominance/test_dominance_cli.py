"""The command ``skcalfair dominance``: what it reads, writes, says and refuses."""

import json
import re
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose

from skcalfair.cli import main
from skcalfair.datasets import fetch_ecg_readers
from skcalfair.dominance import DominanceTable
from skcalfair.dominance._words import blocks, describe, gradient, markdown, owner_text

GUIDE = Path(__file__).parents[2] / "doc" / "user_guide" / "command_line.rst"
BASE = ["--target", "sick", "--model", "p", "--reader", "anna", "--reader", "ben"]


@pytest.fixture(scope="module")
def study():
    """120 cases: a model, two readers with calls, one with ratings and with gaps."""
    rng = np.random.default_rng(0)
    sick = np.repeat([0, 1], [80, 40])
    signal = rng.normal(sick * 2.2, 1.0, (3, 120))
    rating = np.clip(np.round(signal[2] + 2), 1, 5)
    frame = pd.DataFrame(
        {
            "sick": sick,
            "p": np.round(rng.normal(sick * 1.5, 1.0), 2),
            "anna": (signal[0] > 0.6).astype(int),
            "ben": (signal[1] > 1.6).astype(int),
            "rating": np.where(np.arange(120) % 4 == 1, np.nan, rating),
            "patient": np.arange(120) // 2,
            "w": 1 + np.arange(120) % 2,
        }
    )
    return frame


@pytest.fixture
def write(tmp_path, study):
    """Write a variant of the study as CSV, and give its path."""

    def save(name="reads.csv", **columns):
        path = tmp_path / name
        study.assign(**columns).to_csv(path, index=False)
        return path

    return save


@pytest.fixture
def points(tmp_path):
    """Write published points as CSV, and give the path."""

    def save(**columns):
        path = tmp_path / "points.csv"
        pd.DataFrame(columns).to_csv(path, index=False)
        return path

    return save


def run(path, *options, base=BASE):
    arguments = ["dominance", *([] if path is None else [path]), *base, *options]
    return CliRunner().invoke(main, [str(a) for a in arguments])


def succeed(*arguments, **options):
    result = run(*arguments, **options)
    assert result.exit_code == 0, result.output
    return result.output


def refused(*arguments, **options):
    """The one line of a refusal."""
    result = run(*arguments, **options)
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    (line,) = [x for x in result.output.splitlines() if x.startswith("Error: ")]
    if "Usage:" not in result.output:
        assert result.output == line + "\n"
    return line


def fitted(study, columns=("p", "anna", "ben"), **params):
    params = {"readers": ["anna", "ben"], "pos_label": 1} | params
    return DominanceTable(**params).fit(study[list(columns)], study["sick"])


class TestReads:
    def test_says_what_the_table_says(self, write, study):
        output = succeed(write())
        table = fitted(study)
        assert output == describe(table) + "\n"
        assert output.startswith(
            "120 cases, 33.3 % positive: 1 model (p) and 2 readers (anna, ben)."
        )
        assert max(map(len, output.splitlines())) <= 100
        for owner in table.table_["owner"]:
            assert owner in output
        flat = " ".join(output.split())
        assert " ".join(table.at().summary().split()) in flat

    def test_every_row_with_its_numbers(self, write, study):
        output = succeed(write())
        head = output[output.index("CPG  ") :].split("\n\n")[0].splitlines()[2:]
        table = fitted(study).table_
        assert len(head) == len(table)
        for line, row in zip(head, table.itertuples(), strict=True):
            assert line.startswith(
                f"{gradient(row.cpg_from)} to {gradient(row.cpg_to)} "
            )
            assert f" {row.sensitivity_from:.3f}" in line
            assert f" {row.specificity_to:.3f}" in line

    def test_prevalences_and_costs(self, write, study):
        options = ["--prevalence", 0.1, "--prevalence", 0.02, "--cost-ratio", 0.5]
        output = succeed(write(), *options)
        table = fitted(study)
        flat = " ".join(output.split())
        for prevalence in (0.1, 0.02):
            decision = table.at(prevalence, 0.5)
            assert " ".join(decision.summary().split()) in flat
        assert "33.3 %:" not in output
        assert output == describe(table, [0.1, 0.02], 0.5) + "\n"
        twice = succeed(write(), *options, "--prevalence", 0.1)
        assert twice == output

    def test_ratings_need_a_threshold(self, write, study):
        line = refused(write(), "--reader", "rating")
        assert "'rating' must hold calls (0 and 1), but holds" in line
        assert line.endswith("--reader rating=THRESHOLD")
        output = succeed(write(), "--reader", "rating=3")
        calls = np.where(study["rating"].isna(), np.nan, study["rating"] >= 3)
        frame = study.assign(rating=calls)
        readers = ["anna", "ben", "rating"]
        table = fitted(frame, ["p", *readers], readers=readers)
        pattern = r"^.* (rating|anna|ben) .*$"
        said = re.findall(pattern, output.split("Least")[1], flags=re.M)
        assert said == re.findall(pattern, describe(table).split("Least")[1], re.M)

    def test_a_name_with_an_equals_sign(self, write, study):
        path = write(**{"a=1": study["anna"]})
        base = ["--target", "sick", "--model", "p", "--reader"]
        output = succeed(path, base=[*base, "a=1"])
        assert "1 reader (a=1)" in output
        output = succeed(path, base=[*base, "a=1=1"])
        assert "1 reader (a=1)" in output

    def test_cases_not_read(self, write, study):
        output = succeed(write(), "--reader", "rating=3")
        n = study["rating"].notna()
        told = f"Of 120 cases, rating read {n.sum()} ({study['sick'][n].sum()} of them"
        assert told in output
        assert "Of 120 cases" not in succeed(write())

    def test_many_readers_with_gaps(self, write, study):
        rng = np.random.default_rng(1)
        many = {
            f"r{j}": study["anna"].where(rng.random(120) > 0.1 + j / 30, np.nan)
            for j in range(15)
        }
        base = ["--target", "sick", *[x for r in many for x in ("--reader", r)]]
        output = succeed(write(**many), base=base)
        assert "15 readers (r0, r1, r2, r3, r4, r5, 9 more)" in output
        assert re.search(r"15 of 15 readers left cases out: they\s+read \d+ to", output)
        hidden = re.search(r"And (\d+) more, with a greater regret", output)
        frame = study[[]].assign(**many)
        table = DominanceTable(readers=list(many)).fit(frame, study["sick"])
        assert int(hidden[1]) == len(table.dominated_) - 12

    def test_only_models_or_only_readers(self, write):
        assert "1 model (p)." in succeed(write(), base=BASE[:4])
        assert ": 2 readers (anna, ben)." in succeed(write(), base=BASE[:2] + BASE[4:])

    def test_labels_in_text(self, write, study):
        words = {0: "well", 1: "ill"}
        path = write(
            "words.csv",
            sick=study["sick"].map(words),
            anna=study["anna"].map(words).where(study.index > 0),
        )
        output = succeed(path, "--positive", "ill")
        other = succeed(write(anna=study["anna"].where(study.index > 0)))
        assert output == other.replace(" positive: 1", " positive ('ill'): 1")
        assert "say which is positive by --positive" in refused(path)

    def test_weights_and_clusters(self, write, study):
        output = succeed(write(), "--weight", "w", "--cluster", "patient")
        table = DominanceTable(readers=["anna", "ben"]).fit(
            study[["p", "anna", "ben"]],
            study["sick"],
            study["w"],
            clusters=study["patient"],
        )
        assert output == describe(table) + "\n"
        assert output != succeed(write())

    def test_as_published(self, write, study):
        output = succeed(write(), "--convention", "as-published", "--prevalence", 0.1)
        assert "CPG * (1 - prevalence) / prevalence" in " ".join(output.split())
        table = fitted(study, convention="as_published")
        assert output == describe(table, [0.1]) + "\n"

    def test_a_constant_score(self, write):
        output = succeed(write(p=1))
        assert re.search(r"^p +a constant score$", output, re.M)

    def test_nobody_is_dominated(self, write):
        output = succeed(write(), base=BASE[:4])
        assert "Everybody is best at some CPG: nobody is dominated." in output

    def test_seed_and_bootstrap_reach_the_table(self, write, monkeypatch):
        seen = {}

        def fit(self, *args, **options):
            seen.update(self.get_params())
            return original(self, *args, **options)

        original = DominanceTable.fit
        monkeypatch.setattr(DominanceTable, "fit", fit)
        succeed(write(), "--bootstrap", 7, "--seed", 3)
        assert (seen["n_bootstrap"], seen["random_state"]) == (7, 3)


class TestRealUncertainty:
    def test_support_and_ranges_are_shown(self, write, study):
        output = succeed(write(), "--bootstrap", "40", "--seed", "1")
        table = fitted(study, n_bootstrap=40, random_state=1)
        assert output == table.summary() + "\n"
        assert "Bootstrap support" in output
        for text in table.breakpoints_["fieller"]:
            assert text in output


class TestUncertainty:
    """What is said of attributes that only some tables have."""

    @pytest.fixture
    def table(self, study):
        table = fitted(study)
        table.n_bootstrap = 200
        table.support_ = pd.DataFrame(
            {"name": ["anna", "p"], "kind": ["reader", "model"], "on_hull": [0.4, 1.0]}
        )
        table.dominance_support_ = pd.DataFrame(
            {
                "cpg": [2.0, 2.0],
                "name": ["anna", "p"],
                "kind": ["reader", "model"],
                "support": [0.75, 0.25],
            }
        )
        table.dominance_support = lambda cpg: table.dominance_support_
        table.breakpoints_ = pd.DataFrame(
            {
                "from_owner": ["p", "anna"],
                "to_owner": ["anna", "p"],
                "cpg": [0.5, 2.0],
                "fieller": ["[0.2, 1.3]", "(-inf, inf)"],
                "fieller_low": [0.2, -np.inf],
                "fieller_high": [1.3, np.inf],
                "percentile_low": [0.25, np.nan],
                "percentile_high": [1.2, np.nan],
            }
        )
        return table

    def test_in_words(self, table):
        text = describe(table, [1 / 3])
        flat = " ".join(text.split())
        assert re.search(r"p +anna +0.5 +\[0.2, 1.3\] +0.25 to 1.2$", text, re.M)
        assert re.search(r"anna +p +2 +\(-inf, inf\)$", text, re.M)
        assert re.search(r"p +100.0 %\nanna +40.0 %", text)
        assert "Bootstrap support here: anna 75 %, p 25 %." in flat
        assert "share of 200 samples of the cases" in flat
        assert "It is no evidence" in flat

    def test_no_support_of_named_readers(self, table):
        table.support_.loc[0, "on_hull"] = np.nan
        table.dominance_support_["support"] = np.nan
        text = describe(table, [1 / 3])
        assert "Bootstrap support here" not in text

    def test_nothing_without_it(self, study):
        table = fitted(study)
        for name in ("breakpoints_", "support_", "dominance_support_"):
            if hasattr(table, name):
                delattr(table, name)
        assert "upport" not in describe(table)

    def test_as_json(self, table, monkeypatch, write, tmp_path):
        monkeypatch.setattr(
            "skcalfair.dominance._reads.fit_reads", lambda *a, **k: table
        )
        out = tmp_path / "out.json"
        succeed(write(), "--json", out)
        found = json.loads(out.read_text())
        assert found["support"][0] == {"name": "anna", "kind": "reader", "on_hull": 0.4}
        assert found["breakpoints"][1]["fieller_high"] == "inf"
        assert found["breakpoints"][1]["percentile_low"] is None


class TestPoints:
    RATES = {
        "name": ["Model", "Model", "Doctor"],
        "sensitivity": [0.95, 0.6, 0.85],
        "specificity": [0.5, 0.95, 0.9],
    }

    def test_rates(self, points):
        output = succeed(None, "--points", points(**self.RATES), base=[])
        assert output.startswith(
            "3 operating points as rates: 1 model (Model) and 1 re"
        )
        assert "Rates without counts: nothing can be said of chance" in output
        assert "No decision is named" in output

    def test_counts_and_a_prevalence(self, points):
        path = points(
            name=["Model", "Doctor"],
            kind=["model", "reader"],
            TP=[93, 89],
            FN=[7, 11],
            FP=[40, 27],
            TN=[60, 73],
        )
        output = succeed(None, "--points", path, "--prevalence", 0.4, base=[])
        assert "2 operating points with counts" in output
        assert "Rates without counts" not in output
        table = DominanceTable.from_operating_points(pd.read_csv(path))
        flat = " ".join(output.split())
        assert " ".join(table.at(0.4).summary().split()) in flat

    def test_options(self, points):
        options = ["--cost-ratio", 3, "--prevalence", 0.2]
        path = points(**self.RATES)
        output = succeed(
            None, "--points", path, *options, "--convention", "as-published", base=[]
        )
        table = DominanceTable.from_operating_points(
            self.RATES, cost_ratio=3, convention="as_published"
        )
        assert output == describe(table, [0.2]) + "\n"

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"sensitivity": [95, 60, 85]}, "give fractions, not percentages"),
            ({"specificity": [0.5, None, 0.9]}, "specificity"),
            ({"sensitivity": ["a", 0.6, 0.85]}, "sensitivity must be numeric"),
            ({"name": ["a", None, "b"]}, "row 1 has no name"),
            ({"kind": ["model", "model", "doctor"]}, "'Doctor' has 'doctor'"),
            ({"TP": [1, 2, 3]}, "TP, FN, FP and TN, or sensitivity"),
        ],
    )
    def test_refused(self, points, change, message):
        path = points(**self.RATES | change)
        assert message in refused(None, "--points", path, base=[])

    def test_counts_refused(self, points):
        counts = {"name": ["a"], "TP": [0], "FN": [0], "FP": [1], "TN": [2]}
        line = refused(None, "--points", points(**counts), base=[])
        assert "'a' has no positive" in line
        counts |= {"TP": [1.5]}
        line = refused(None, "--points", points(**counts), base=[])
        assert "TP must hold numbers of cases; got 1.5" in line

    def test_a_column_twice(self, tmp_path):
        path = tmp_path / "points.csv"
        path.write_text("name,sensitivity,specificity,name\na,.9,.8,b\n")
        line = refused(None, "--points", path, base=[])
        assert line == "Error: several columns are named 'name'"

    def test_not_with_reads(self, points, write):
        path = points(**self.RATES)
        for options in (BASE, ["--bootstrap", "9"]):
            line = refused(None, "--points", path, base=options)
            assert "leave out reads, columns and --bootstrap" in line
        assert "leave out reads" in refused(write(), "--points", path, base=[])

    def test_missing_file(self, tmp_path):
        line = refused(None, "--points", tmp_path / "none.csv", base=[])
        assert line.endswith("none.csv: no such file")


class TestDemo:
    def test_both_conventions_side_by_side(self):
        output = succeed(None, "--demo", base=[])
        assert max(map(len, output.splitlines())) <= 100
        for left, right in [
            ("0.00-0.31  (1.00, 0.00)-(0.93, 0.60)", "0.12-0.31   (0.93, 0.60)"),
            ("4.33-inf   (0.75, 0.92)-(0.00, 1.00)", "4.33-12.40  (0.62, 0.95)"),
            ("0.00-1.43   0.18-0.41  1.00-0.97", "0.03-0.07   0.33  0.98"),
            ("6.24-inf    0.90-1.00  0.78-0.59", "3.01-8.62   0.90  0.78"),
        ]:
            (line,) = [x for x in output.splitlines() if left in x and right in x]
            assert line.index(left) < line.index("|") < line.index(right)

    def test_the_erratum_takes_two_sentences(self):
        output = succeed(None, "--demo", base=[])
        erratum = output[output.index("Erratum: ") :].split("\n\n")[0]
        flat = " ".join(erratum.split())
        assert len(re.findall(r"\.(?= [A-Z]|$)", flat)) == 2
        assert "Model B decides at the least expected cost, not Model A" in flat

    def test_decisions_of_the_study(self):
        output = succeed(None, "--demo", base=[])
        assert "CPG 4.65: Model B. The study names Model A." in output
        assert "CPG 7.20: Model B. The study names Specialist C." in output
        # 1,000 people by hand: 177 ill, 823 well.
        model_b = 177 * 0.38 + 823 * 0.05
        model_a = 177 * 0.07 + 823 * 0.40
        assert f"{model_b:.1f} and {model_a:.1f}." in output

    def test_is_what_the_user_guide_shows(self):
        shown = textwrap.indent(succeed(None, "--demo", base=[]), "   ")
        assert shown in GUIDE.read_text(encoding="utf-8")

    def test_writes_the_table(self, tmp_path):
        out = tmp_path / "out.csv"
        succeed(None, "--demo", "--csv", out, base=[])
        found = pd.read_csv(out)
        assert_allclose(
            found["cost_ratio_to@0.177"][:-1],
            [0.0251, 0.0662, 0.1075, 0.2458, 0.9320, 2.667],
            atol=5e-4,
        )

    @pytest.mark.parametrize(
        "extra",
        [["reads.csv"], ["--model", "p"], ["--points", "x"], ["--bootstrap", 9]],
    )
    def test_takes_no_data(self, extra):
        assert "leave out file and columns" in refused(None, "--demo", *extra, base=[])

    @pytest.mark.parametrize(
        "extra",
        [
            ["--prevalence", 0.3],
            ["--cost-ratio", 2],
            ["--convention", "as-published"],
        ],
    )
    def test_takes_no_assumptions(self, extra):
        assert "leave out --prevalence" in refused(None, "--demo", *extra, base=[])


class TestOutputs:
    def test_json_holds_every_number(self, write, study, tmp_path):
        out = tmp_path / "out.json"
        succeed(write(), "--json", out, "--prevalence", 0.1)

        def refuse(name):
            raise ValueError(name)

        found = json.loads(out.read_text(), parse_constant=refuse)
        table = fitted(study)
        frame = table.table(0.1)
        read = pd.DataFrame(found["table"])
        assert read["owners"].map(tuple).tolist() == frame["owners"].tolist()
        for name in frame.columns.drop(["owner", "owners"]):
            assert_allclose(read[name].astype(float), frame[name])
        assert read["cpg_to"].iloc[-1] == "inf"
        (decision,) = found["decisions"]
        assert tuple(decision["winners"]) == table.at(0.1).winners
        assert len(decision["table"]) == 5
        assert found["pairing"][0]["n_read"] == 120
        points = pd.DataFrame(found["operating_points"])
        pd.testing.assert_frame_equal(
            points[["name", "TP", "FN", "FP", "TN"]],
            table.operating_points_.to_frame()[["name", "TP", "FN", "FP", "TN"]],
            check_dtype=False,
        )

    def test_csv_is_the_table(self, write, study, tmp_path):
        out = tmp_path / "out.csv"
        succeed(write(), "--csv", out, "--prevalence", 0.1)
        found = pd.read_csv(out)
        expected = fitted(study).table(0.1).drop(columns="owners")
        pd.testing.assert_frame_equal(found, expected, check_dtype=False)

    def test_markdown_says_the_same(self, write, study, tmp_path):
        out = tmp_path / "out.md"
        succeed(write(), "--markdown", out)
        text = out.read_text()
        table = fitted(study)
        assert text == markdown(table)
        assert text.startswith("# Dominance table\n\n120 cases")
        tables = [x for x in text.split("\n\n") if x.startswith("|")]
        for lines in map(str.splitlines, tables):
            assert len({line.count("|") for line in lines}) == 1
            assert set(lines[1]) <= set("|:- ")
        assert len(tables[0].splitlines()) == len(table.table_) + 2
        assert f" PPV {table.at().table['ppv'][0]:.3f}" in text

    def test_markdown_escapes_names(self, write, study, tmp_path):
        path = write(**{"a|b_*c*": study["anna"]})
        out = tmp_path / "out.md"
        base = ["--target", "sick", "--reader", "a|b_*c*"]
        assert "a|b_*c*" in succeed(path, "--markdown", out, base=base)
        assert "a\\|b\\_\\*c\\*" in out.read_text()

    @pytest.mark.parametrize("option", ["--json", "--csv", "--markdown"])
    def test_refused_before_the_work(self, write, tmp_path, option):
        path = write()
        before = path.read_text()
        assert "is a folder" in refused(path, option, tmp_path)
        assert "no folder" in refused(path, option, tmp_path / "none" / "out")
        assert "would be overwritten" in refused(path, option, path)
        assert path.read_text() == before

    def test_points_are_not_overwritten(self, points):
        path = points(**TestPoints.RATES)
        line = refused(None, "--points", path, "--csv", path, base=[])
        assert "would be overwritten" in line

    def test_one_file_for_two(self, write, tmp_path):
        out = tmp_path / "out"
        line = refused(write(), "--json", out, "--markdown", out)
        assert line.endswith("is named for two outputs")


class TestRefused:
    def test_nothing_named(self, write):
        assert "try: skcalfair dominance --demo" in refused(None, base=[])
        for base in (BASE[:2], BASE[2:], []):
            line = refused(write(), base=base)
            assert "missing --target, or any --model or --reader" in line

    def test_missing_file(self, tmp_path):
        assert refused(tmp_path / "none.csv").endswith("none.csv: no such file")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--prevalence", 17.7], "give a fraction, not a percentage"),
            (["--prevalence", 0], "strictly between 0 and 1; got 0"),
            (["--prevalence", "nan"], "strictly between 0 and 1; got nan"),
            (["--cost-ratio", 0], "must be positive and finite; got 0"),
            (["--cost-ratio", "inf"], "must be positive and finite; got inf"),
            (["--prevalence", "half"], "--prevalence"),
            (["--bootstrap", -1], "--bootstrap"),
            (["--convention", "new"], "--convention"),
        ],
    )
    def test_assumptions(self, write, options, message):
        assert message in refused(write(), *options)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--model", "nowhere"], "no column 'nowhere'; the columns are: sick, p"),
            (["--reader", "nowhere"], "no column 'nowhere'"),
            (["--reader", "nowhere=3"], "no column 'nowhere'"),
            (["--weight", "nowhere"], "no column 'nowhere'"),
            (["--cluster", "nowhere"], "no column 'nowhere'"),
            (["--model", "p"], "column 'p' is named twice"),
            (["--model", "anna"], "column 'anna' is named twice"),
            (["--reader", "anna=1"], "column 'anna' is named twice"),
            (["--reader", "sick"], "column 'sick' is named twice"),
            (["--weight", "p"], "column 'p' is named twice"),
            (["--reader", "rating=high"], "'high' is no number; give COL, or COL=TH"),
            (["--reader", "rating=nan"], "must be a finite number; got nan"),
        ],
    )
    def test_columns(self, write, options, message):
        assert message in refused(write(), *options)

    def test_a_name_twice_in_the_file(self, study, tmp_path):
        path = tmp_path / "reads.csv"
        double = study.rename(columns={"rating": "p"})
        double.to_csv(path, index=False)
        assert "2 columns are named 'p'; rename all but one" in refused(path)

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            ("high", "'p' must be numeric; data row 4 holds 'high'"),
            (None, "'p' must be numeric; data row 4 is empty"),
            (np.inf, "'p' must be numeric; data row 4 holds inf"),
        ],
    )
    def test_scores(self, write, study, value, message):
        column = study["p"].astype(object)
        column.iloc[3] = value
        assert message in refused(write(p=column))

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            (["yes", "no"], "'anna' must hold calls (0 and 1), but holds yes, no"),
            ([None], "'anna' is empty: the reader read no case"),
            ([1, 2], "'anna' must hold calls (0 and 1), but holds 1, 2"),
            (list("abcdefgh"), "but holds a, b, c, d, e, ...; for ratings"),
        ],
    )
    def test_calls(self, write, values, message):
        assert message in refused(write(anna=np.resize(values, 120)))

    def test_ratings_in_text(self, write):
        path = write(rating=np.resize(["1", "low"], 120))
        line = refused(path, "--reader", "rating=3")
        assert "'rating' must hold ratings in numbers; data row 2 holds 'low'" in line

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda y: y * 0, "holds one class only (0); two are needed"),
            (lambda y: y + np.arange(120), "classes (0, 1, 10, 1"),
            (lambda y: y.where(y.index > 1), "'sick' must hold the outcome of every"),
        ],
    )
    def test_truth(self, write, study, change, message):
        assert message in refused(write(sick=change(study["sick"])))

    def test_a_reader_of_one_class(self, write, study):
        path = write(anna=study["anna"].where(study["sick"] == 0))
        assert "'anna' read no positive case" in refused(path)


class TestWords:
    def test_names_are_cut(self, study):
        long = "the cardiologists of the university hospital of a city"
        frame = study.rename(columns={"anna": long})
        table = fitted(frame, ["p", long, "ben"], readers=[long, "ben"])
        text = describe(table)
        lines = re.findall("^the card.*$", text, re.M)
        assert lines
        for line in lines:
            assert line.startswith("the cardiologists of the un...  ")
        assert max(map(len, text.splitlines())) <= 100

    def test_owners(self):
        assert owner_text(["a"]) == "a"
        assert owner_text(["a", "b"]) == "a = b"
        assert owner_text([f"reader{j:02d}" for j in range(9)]).endswith(" = 6 more")

    def test_a_tie_of_two(self):
        on_one_line = {
            "name": ["a", "b", "c"],
            "sensitivity": [0.5, 0.7, 0.9],
            "specificity": [0.9, 0.8, 0.7],
        }
        text = describe(DominanceTable.from_operating_points(on_one_line))
        (line,) = re.findall("^b .*$", text, re.M)
        assert "a tie with c and a" in line
        assert "0.0000 (2)" in line

    def test_gradients(self):
        shown = [gradient(x) for x in (0, 0.0251, 4.3333, 814, 12345.6, np.inf, np.nan)]
        assert shown == ["0", "0.0251", "4.33", "814", "12,346", "inf", ""]

    def test_a_range_never_looks_empty(self):
        frame = pd.DataFrame(
            {
                "name": ["a", "b", "c"],
                "sensitivity": [0.5, 0.6000, 0.69999],
                "specificity": [0.8, 0.7, 0.6],
            }
        )
        text = describe(DominanceTable.from_operating_points(frame), [0.5])
        assert "0.9999 to 1" in text

    def test_the_decision_of_a_fitted_table(self, study):
        table = fitted(study, prevalence=0.05, cost_ratio=0.2)
        found = blocks(table)
        assert table.at().summary() in found
        assert found[0].startswith("120 cases, 33.3 % positive: 1 model")


def test_ecg_readers(data_home, tmp_path):
    ecg = fetch_ecg_readers(data_home, download_if_missing=False)
    calls = {reader: frame["AF"] for reader, frame in ecg.readers.items()}
    path = tmp_path / "reads.csv"
    pd.DataFrame({"truth": ecg.truth["AF"], "dnn": ecg.scores["AF"]} | calls).to_csv(
        path, index=False
    )
    base = ["--target", "truth", "--model", "dnn"]
    base += [x for reader in calls for x in ("--reader", reader)]
    output = succeed(path, "--prevalence", 0.02, "--cost-ratio", 0.1, base=base)
    assert output.startswith("827 cases, 1.57 % positive: 1 model (dnn) and 5 readers")
    assert "Least expected cost: cardiologist2, sensitivity 0.923" in output


def test_viper(data_home, tmp_path):
    path = data_home / "viper" / "viperObs.csv"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    reads = pd.read_csv(path)
    for modality in ("FFDM", "SFM"):
        own = reads[reads["modalityID"] == modality]
        calls = own.pivot(index="caseID", columns="readerID", values="recall").eq(1)
        read = own.pivot(index="caseID", columns="readerID", values="recall").notna()
        truth = own.drop_duplicates("caseID").set_index("caseID")["cancerStatus365"]
        frame = calls.astype(float).where(read).assign(cancer=truth)
        frame.to_csv(tmp_path / "reads.csv", index=False)
        base = [x for reader in calls for x in ("--reader", reader)]
        output = succeed(
            tmp_path / "reads.csv",
            "--prevalence",
            0.005,
            base=["--target", "cancer", *base],
        )
        assert "43 of 43 readers left cases out" in output
        assert "Least expected cost: never positive" in output
