"""The command line: what it reads, writes and refuses."""

import gzip
import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose

from skcalfair import __version__
from skcalfair.audit import audit_scores
from skcalfair.audit._tables import VALUE_COLUMNS
from skcalfair.cli import main
from skcalfair.datasets import fetch_ecg_readers, make_subgroup_scores

ROOT = Path(__file__).parents[1]
BASE = ["--target", "sick", "--score", "p", "--group", "sex", "--n-resamples", "40"]


@pytest.fixture(scope="module")
def table():
    frame = make_subgroup_scores(
        {"f": 150, "m": 60}, rows_per_patient=(1, 2), random_state=0
    ).frame
    frame = frame.rename(columns={"outcome": "sick", "score": "p", "group": "sex"})
    frame["p"] = frame["p"].round(6)
    frame["w"] = 1 + np.arange(len(frame)) % 2
    frame["old"] = np.arange(len(frame)) % 2 == 0
    return frame.drop(columns="posterior")


@pytest.fixture
def write(tmp_path, table):
    """Write a variant of the table as CSV, and give its path."""

    def save(name="scores.csv", **columns):
        path = tmp_path / name
        table.assign(**columns).to_csv(path, index=False)
        return path

    return save


def run(path, *options, base=BASE):
    arguments = ["audit", *([] if path is None else [str(path)]), *base, *options]
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
    assert "Traceback" not in result.output
    if "Usage:" not in result.output:
        assert result.output == line + "\n"
    return line


@pytest.fixture(scope="module")
def expected(table, tmp_path_factory):
    """What the table gives as CSV."""
    path = tmp_path_factory.mktemp("expected") / "scores.csv"
    table.to_csv(path, index=False)
    return succeed(path)


@pytest.fixture
def pyarrow():
    """Needed where Parquet is read; skips where it is not there, or not usable."""
    pytest.importorskip("pyarrow", exc_type=ImportError)


class TestReading:
    def test_csv(self, expected):
        assert expected.startswith("210 rows, ")
        assert "f       150" in expected
        assert "m        60" in expected

    @pytest.mark.parametrize("name", ["scores.tsv", "scores.tab", "SCORES.TSV"])
    def test_tabs(self, table, tmp_path, expected, name):
        table.to_csv(tmp_path / name, sep="\t", index=False)
        assert succeed(tmp_path / name) == expected

    @pytest.mark.parametrize("name", ["scores.parquet", "scores.pq"])
    @pytest.mark.usefixtures("pyarrow")
    def test_parquet(self, table, tmp_path, expected, name):
        table.to_parquet(tmp_path / name)
        assert succeed(tmp_path / name) == expected

    @pytest.mark.parametrize("decimal", [",", "."])
    def test_semicolons(self, table, tmp_path, expected, decimal):
        path = tmp_path / "scores.csv"
        table.to_csv(path, sep=";", decimal=decimal, index=False)
        assert succeed(path) == expected

    @pytest.mark.parametrize("name", ["scores.csv.gz", "scores.tsv.gz", "s.csv.bz2"])
    def test_compressed(self, table, tmp_path, expected, name):
        separator = "\t" if ".tsv" in name else ","
        table.to_csv(tmp_path / name, sep=separator, index=False)
        assert succeed(tmp_path / name) == expected

    def test_what_spreadsheets_do_to_a_file(self, table, tmp_path, expected):
        path = tmp_path / "scores.csv"
        table.to_csv(path, index=False, encoding="utf-8-sig", lineterminator="\r\n")
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("sick,", " sick ,", 1), encoding="utf-8")
        assert succeed(path) == expected
        # The mark at the start is no part of the first name.
        first = table[["p", "sick", "sex"]]
        first.to_csv(path, index=False, encoding="utf-8-sig")
        assert succeed(path) == expected

    def test_names_that_are_not_english(self, table, tmp_path, expected):
        renamed = table.rename(columns={"sex": "Körper größe"})
        renamed.to_csv(tmp_path / "größe.csv", index=False)
        base = ["Körper größe" if x == "sex" else x for x in BASE]
        output = succeed(tmp_path / "größe.csv", base=base)
        assert output == expected.replace("by sex", "by Körper größe")


class TestOptions:
    def test_positive_label(self, write, table):
        expected = succeed(write())
        for values, label in [
            (table["sick"].map({0: "no", 1: "yes"}), "yes"),
            (table["sick"].map({0: 2, 1: 1}), "1"),
            (table["sick"].map({0: 2.5, 1: 1.0}), "1"),
            (table["sick"].map({0: False, 1: True}), "True"),
        ]:
            assert succeed(write(sick=values), "--positive", label) == expected
        assert succeed(write(sick=table["sick"] == 1)) == expected
        assert succeed(write(sick=2 * table["sick"] - 1)) == expected

    def test_clusters_and_weights(self, write, table):
        path = write()
        output = succeed(path, "--cluster", "patient", "--weight", "w")
        assert "clusters" in output
        result = audit_scores(
            table["sick"],
            table["p"],
            sensitive_features={"sex": table["sex"]},
            clusters=table["patient"],
            sample_weight=table["w"],
            n_resamples=40,
            random_state=0,
        )
        assert output == result.summary() + "\n"

    def test_several_groups_intersect(self, write, tmp_path):
        output = succeed(write(), "--group", "old", "--csv", tmp_path / "out.csv")
        assert "by sex and old" in output
        assert "f & False" in output
        values = pd.read_csv(tmp_path / "out.csv")
        assert list(values)[:4] == ["group", "sex", "old", "metric"]

    def test_missing_groups(self, write, table):
        path = write(sex=table["sex"].where(table.index > 19, None))
        assert "missing    20" in succeed(path)
        output = succeed(path, "--missing", "drop")
        assert output.startswith("190 rows, ")
        assert "20 rows without a group or of weight zero were left out" in output
        assert "no row a group" in refused(write(sex=None), "--missing", "drop")

    def test_whole_numbers_stay_whole_beside_missing_ones(self, write, table):
        site = pd.Series(np.where(table.index < 30, np.nan, 1.0 + table["old"]))
        output = succeed(write(sex=site))
        assert "missing    30" in output
        assert "\n1.0 " not in output
        assert re.search(r"\n(\[1\] )?1  ", output)

    def test_seed(self, write):
        path = write()
        assert succeed(path) == succeed(path, "--seed", 0)
        assert succeed(path) != succeed(path, "--seed", 1)

    def test_small_groups(self, write, table):
        path = write(sex=table["sex"].where(table.index > 0, "x"))
        assert "not used: fewer than 10 rows" in succeed(path)
        output = succeed(path, "--min-group-size", 61)
        assert "only one group can be used" in output

    def test_one_group(self, write):
        assert "There is nothing to compare" in succeed(write(sex="f"))

    def test_help_and_version(self):
        for arguments in (["--help"], ["-h"], ["audit", "-h"], ["audit", "--help"]):
            result = CliRunner().invoke(main, arguments)
            assert result.exit_code == 0
            assert "--help" in result.output
        result = CliRunner().invoke(main, ["--version"])
        assert result.output == f"skcalfair, version {__version__}\n"


class TestDemo:
    def test_shows_the_point(self):
        output = succeed(None, "--demo", base=[])
        assert "1,494 rows, about 20 light" in output
        assert "dark - light" in output
        assert "- ECE: sample size explains the gap." in output
        assert max(map(len, output.splitlines())) <= 100

    def test_is_what_the_user_guide_shows(self):
        guide = ROOT / "doc" / "user_guide" / "command_line.rst"
        shown = textwrap.indent(succeed(None, "--demo", base=[]), "   ")
        assert shown in guide.read_text(encoding="utf-8")

    def test_seed(self):
        few = ["--n-resamples", 40]
        outputs = {succeed(None, "--demo", "--seed", s, base=few) for s in (0, 0, 1)}
        assert len(outputs) == 2

    @pytest.mark.parametrize(
        "extra", [["scores.csv"], ["--group", "sex"], ["--weight", "w"]]
    )
    def test_takes_no_data(self, extra):
        assert "leave out file and columns" in refused(None, "--demo", *extra, base=[])

    def test_as_a_module(self, tmp_path):
        out = tmp_path / "out.json"
        result = subprocess.run(
            [sys.executable, "-m", "skcalfair", "audit", "--demo", "--json", str(out)],
            capture_output=True,
            cwd=ROOT,
            text=True,
        )
        assert result.returncode == 0
        assert result.stderr == ""  # no progress bar outside of a terminal
        assert "sample size explains the gap" in result.stdout
        assert json.loads(out.read_text())["matched_size"] == 71


class TestOutputs:
    def test_json_holds_every_number(self, write, table, tmp_path):
        out = tmp_path / "out.json"
        succeed(write(), "--json", out, "--group", "old")

        def refuse(name):
            raise ValueError(name)

        found = json.loads(out.read_text(), parse_constant=refuse)
        result = audit_scores(
            table["sick"],
            table["p"],
            sensitive_features={"sex": table["sex"], "old": table["old"]},
            n_resamples=40,
            random_state=0,
        )
        assert found == json.loads(json.dumps(result.to_dict()))
        assert len(found["values"]) == 4 * 2 * 10

    def test_csv_is_tidy(self, write, tmp_path):
        out = tmp_path / "out.csv"
        succeed(write(), "--csv", out, "--json", tmp_path / "out.json")
        found = pd.read_csv(out)
        assert list(found) == list(VALUE_COLUMNS)
        assert not found.duplicated(["group", "metric", "sampling"]).any()
        values = json.loads((tmp_path / "out.json").read_text())["values"]
        assert_allclose(found["value"], [v["value"] for v in values])

    def test_an_existing_file_is_replaced(self, write, tmp_path):
        out = tmp_path / "out.json"
        out.write_text("old")
        link = tmp_path / "link.json"
        link.symlink_to(out)
        succeed(write(), "--json", link)
        assert link.is_symlink()
        assert json.loads(out.read_text())["features"] == ["sex"]
        assert out.stat().st_mode & 0o777 == 0o666 & ~_umask()

    def test_a_failure_leaves_what_was_there(self, write, tmp_path, monkeypatch):
        out = tmp_path / "out.json"
        out.write_text("old")

        def fail(*args):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "replace", fail)
        before = sorted(tmp_path.iterdir())
        path = write()
        assert "No space left on device" in refused(path, "--json", out)
        assert out.read_text() == "old"
        assert sorted(tmp_path.iterdir()) == sorted([*before, path])

    def test_an_interruption_leaves_nothing(self, write, tmp_path, monkeypatch):
        def interrupt(*args):
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "replace", interrupt)
        path = write()
        assert run(path, "--csv", tmp_path / "out.csv").exit_code == 1
        assert list(tmp_path.iterdir()) == [path]

    def test_no_regular_file(self, write, tmp_path):
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        try:
            succeed(write(), "--csv", pipe)
            assert os.read(reader, 6) == b"group,"
        finally:
            os.close(reader)
        assert pipe.is_fifo()

    def test_a_pipe_without_a_path(self, write):
        """What /dev/stdout stands for in a pipeline."""
        reader, writer = os.pipe()
        try:
            succeed(write(), "--csv", f"/dev/fd/{writer}")
            assert os.read(reader, 6) == b"group,"
        finally:
            os.close(reader)
            os.close(writer)

    @pytest.mark.parametrize("option", ["--json", "--csv"])
    def test_refused_before_the_work(self, write, tmp_path, option):
        path = write()
        assert "- is no file here" in refused(path, option, "-")
        assert "is a folder" in refused(path, option, tmp_path)
        assert "no folder" in refused(path, option, tmp_path / "none" / "out")
        assert "would be overwritten" in refused(path, option, path)
        before = path.read_text()
        link = tmp_path / "same.csv"
        link.symlink_to(path)
        assert "would be overwritten" in refused(path, option, link)
        assert path.read_text() == before

    def test_one_file_for_both(self, write, tmp_path):
        out = tmp_path / "out"
        line = refused(write(), "--json", out, "--csv", out)
        assert line.endswith("is named for two outputs")

    def test_no_permission(self, write, tmp_path, monkeypatch):
        monkeypatch.setattr(os, "access", lambda *args: False)
        line = refused(write(), "--json", tmp_path / "out.json")
        assert "permission denied" in line

    def test_no_permission_after_all(self, write, tmp_path, monkeypatch):
        def fail(*args, **options):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("tempfile.mkstemp", fail)
        assert "Permission denied" in refused(write(), "--json", tmp_path / "out.json")


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


class TestRefused:
    @pytest.mark.parametrize(
        ("base", "message"),
        [
            ([], "missing --target, --score, --group"),
            (["--target", "sick", "--group", "sex"], "missing --score"),
        ],
    )
    def test_columns_not_named(self, write, base, message):
        assert message in refused(write(), base=base)

    def test_no_file_named(self):
        assert "try: skcalfair audit --demo" in refused(None, base=[])

    @pytest.mark.parametrize(
        ("option", "value"),
        [("--n-resamples", 39), ("--seed", -1), ("--min-group-size", 0)],
    )
    def test_numbers(self, write, option, value):
        assert option in refused(write(), option, value)

    def test_missing_file(self, tmp_path):
        assert refused(tmp_path / "none.csv").endswith("none.csv: no such file")

    def test_folder(self, tmp_path):
        assert "is a folder, not a table" in refused(tmp_path)

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("empty.csv", b"", "is empty"),
            ("blank.csv", b"\n\n", "is empty"),
            ("header.csv", b"sick,p,sex\n", "a header but no rows"),
            ("header.csv", b"sick;p;sex\n", "a header but no rows"),
            ("binary.csv", bytes(range(256)) * 9, "cannot be read"),
            ("latin.csv", "größe\n1\n".encode("latin-1"), "is not UTF-8 text"),
            ("utf16.tsv", "sick\tp\n0\t.5\n".encode("utf-16"), "is not UTF-8 text"),
            ("scores.csv.gz", b"sick,p,sex\n1,.5,f\n", "cannot be read"),
            (
                "cut.csv.gz",
                gzip.compress(os.urandom(9999).hex().encode())[:5000],
                "cannot be read",
            ),
            ("long.csv", b"sick,p\n1,.5,f\n0,.5,m\n", "more fields than the header"),
            ("ragged.csv", b"sick,p,sex\n1,.5,f\n0,.5,m,x\n", "cannot be read"),
            ("quote.csv", b'sick,p,sex\n"1,.5,f\n', "cannot be read"),
        ],
    )
    def test_files(self, tmp_path, name, content, message):
        (tmp_path / name).write_bytes(content)
        line = refused(tmp_path / name)
        assert message in line
        assert name in line

    @pytest.mark.usefixtures("pyarrow")
    def test_what_is_no_parquet(self, tmp_path):
        (tmp_path / "scores.parquet").write_bytes(b"sick,p,sex\n1,.5,f\n")
        assert "scores.parquet cannot be read" in refused(tmp_path / "scores.parquet")

    def test_unreadable_file(self, write, monkeypatch):
        def fail(*args, **options):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(pd, "read_csv", fail)
        assert "cannot be read: [Errno 13] Permission denied" in refused(write())

    def test_no_pyarrow(self, tmp_path, monkeypatch):
        (tmp_path / "scores.parquet").write_bytes(b"PAR1")
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        line = refused(tmp_path / "scores.parquet")
        assert 'pip install "skcalfair[parquet]"' in line

    @pytest.mark.parametrize("option", ["--target", "--score", "--group"])
    def test_missing_column(self, write, option):
        base = list(BASE)
        base[base.index(option) + 1] = "nowhere"
        line = refused(write(), base=base)
        assert "there is no column 'nowhere'; the columns are: sick, p, sex" in line

    @pytest.mark.parametrize("option", ["--cluster", "--weight"])
    def test_missing_column_of_an_option(self, write, option):
        assert "no column 'nowhere'" in refused(write(), option, "nowhere")

    @pytest.mark.parametrize("separator", [",", ";"])
    def test_a_name_twice(self, table, tmp_path, separator):
        path = tmp_path / "scores.csv"
        double = table.set_axis(["sick", "p", "sex", "p", "w", "old"], axis=1)
        double.to_csv(path, index=False, sep=separator)
        assert "2 columns are named 'p'; rename all but one" in refused(path)

    def test_a_name_twice_does_not_matter_elsewhere(self, table, tmp_path):
        path = tmp_path / "scores.csv"
        double = table.set_axis(["sick", "p", "sex", "x", "x", "x"], axis=1)
        double.to_csv(path, index=False)
        succeed(path)

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            (["high"], "'p' must be numeric; data row 4 holds 'high'"),
            ([None], "'p' must be numeric; data row 4 is empty"),
            (["nan", "nan"], "data row 4 is empty (2 such rows)"),
            ([np.inf], "'p' must be numeric; data row 4 holds inf"),
            ([1.5], "must hold probabilities between 0 and 1; data row 4 holds 1.5"),
            ([-0.1, 2], "data row 4 holds -0.1 (2 such rows)"),
        ],
    )
    def test_scores(self, write, table, values, message):
        column = table["p"].astype(object)
        column.iloc[3 : 3 + len(values)] = values
        assert message in refused(write(p=column))

    def test_scores_in_percent(self, write, table):
        line = refused(write(p=100 * table["p"]))
        assert "must hold probabilities between 0 and 1" in line

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda y: y * 0, "holds one class only (0); two are needed"),
            (lambda y: np.arange(len(y)), "holds 210 classes (0, 1, 10, 100, 101, 10"),
            (lambda y: y.where(y.index > 1), "'sick' must hold the outcome of every"),
            (lambda y: y.map({0: "no", 1: "yes"}), "holds no, yes; say which is posi"),
            (lambda y: y + 1, "holds 1, 2; say which is positive by --positive"),
        ],
    )
    def test_outcomes(self, write, table, change, message):
        assert message in refused(write(sick=change(table["sick"])))

    def test_positive_label(self, write, table):
        path = write(sick=table["sick"].map({0: "no", 1: "yes"}))
        line = refused(path, "--positive", "Yes")
        assert line == "Error: --positive 'Yes' is not in column 'sick': no, yes"
        assert "--positive '2' is not in" in refused(write(), "--positive", "2")

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda w: -w, "'w' must hold weights of at least 0; data row 1 holds -1"),
            (lambda w: w.where(w.index > 0), "'w' must be numeric; data row 1 is em"),
            (lambda w: "heavy", "'w' must be numeric; data row 1 holds 'heavy' (210"),
            (lambda w: w * 0, "'w' holds no weight above 0"),
        ],
    )
    def test_weights(self, write, table, change, message):
        assert message in refused(write(w=change(table["w"])), "--weight", "w")

    def test_clusters(self, write, table):
        path = write(patient=table["patient"].where(table.index > 1))
        line = refused(path, "--cluster", "patient")
        assert "'patient' must name the cluster of every row; data row 1" in line

    def test_the_library_s_own_refusal(self, write, monkeypatch):
        def fail(*args, **options):
            raise ValueError("one\n  thing")

        monkeypatch.setattr("skcalfair.cli.audit_scores", fail)
        assert refused(write()) == "Error: one thing"


@pytest.mark.parametrize("diagnosis", ["AF", "RBBB"])
def test_ecg_readers(data_home, tmp_path, diagnosis):
    ecg = fetch_ecg_readers(data_home, download_if_missing=False)
    frame = pd.DataFrame(
        {
            "truth": ecg.truth[diagnosis],
            "score": ecg.scores[diagnosis],
            "sex": ecg.sex,
            "age": pd.cut(ecg.age, [0, 40, 65, 120], labels=["<40", "40-65", ">65"]),
        }
    )
    frame.to_csv(tmp_path / "ecg.csv", index=False)
    base = ["--target", "truth", "--score", "score", "--n-resamples", "200"]
    by_sex = succeed(tmp_path / "ecg.csv", "--group", "sex", base=base)
    assert by_sex.startswith("827 rows, ")
    by_age = succeed(tmp_path / "ecg.csv", "--group", "age", base=base)
    assert "40-65" in by_age
    assert max(map(len, (by_sex + by_age).splitlines())) <= 100
