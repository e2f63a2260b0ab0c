"""The ECG reader study: on a tiny made-up copy, and on the real one where there is one.

Nothing here needs a network: downloads come from a server on this machine.
"""

import hashlib
import io
import shutil
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import combinations
from threading import Thread

import numpy as np
import pandas as pd
import pytest

from skcalfair.datasets import _ecg, fetch_ecg_readers

N = 3
COLUMNS = "1dAVb,RBBB,LBBB,SB,AF,ST"
ANNOTATORS = ["gold_standard", *_ecg.READERS]


def fake_files():
    """Files like the published ones, with three recordings."""
    files = {"data/attributes.csv": b"age,sex\n34,M\n70,F\n41,F\n"}
    for number, annotator in enumerate(ANNOTATORS):
        calls = np.zeros((N, 6), dtype=int)
        calls[0, number % 6] = 1
        text = pd.DataFrame(calls, columns=COLUMNS.split(",")).to_csv(
            index=False, lineterminator="\n"
        )
        files[f"data/annotations/{annotator}.csv"] = text.encode()
    files["data/annotations/dnn.csv"] = (
        f",{COLUMNS}\n0,1,0,0,0,0,0\n1,0,0,0,0,0,0\n2,0,0,0,0,0,1\n".encode()
    )
    array = io.BytesIO()
    np.save(array, np.linspace(0, 1, N * 6, dtype=np.float32).reshape(N, 6))
    files["dnn_predicts/model.npy"] = array.getvalue()
    return files


def write(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def files_below(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def without_data(files):
    """The layout of a copy: no ``data/``."""
    return {name.removeprefix("data/"): content for name, content in files.items()}


@pytest.fixture
def files(monkeypatch):
    """Made-up files, taken for the published ones; downloads fail at once."""
    files = fake_files()
    sums = {
        name: hashlib.sha256(content).hexdigest() for name, content in files.items()
    }
    assert set(sums) == set(_ecg.SHA256)
    monkeypatch.setattr(_ecg, "SHA256", sums)
    monkeypatch.setattr(_ecg, "BASE_URL", "http://127.0.0.1:9/")
    for name in ["NO_PROXY", "no_proxy"]:
        monkeypatch.setenv(name, "127.0.0.1")
    return files


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder; a file named in `cut` breaks off in the middle."""

    def __init__(self, *args, requested, cut, **kwargs):
        self.requested = requested
        self.cut = cut
        super().__init__(*args, **kwargs)

    def log_message(self, *args):
        pass

    def do_GET(self):
        self.requested.append(self.path.lstrip("/"))
        super().do_GET()

    def copyfile(self, source, outputfile):
        content = source.read()
        if self.path.lstrip("/") in self.cut:
            content = content[: len(content) // 2]
        outputfile.write(content)


@pytest.fixture
def server(files, monkeypatch, tmp_path):
    """A server of the made-up files, in place of the original project."""
    root = tmp_path / "served"
    write(root, files)
    requested, cut = [], set()
    handler = partial(Handler, directory=str(root), requested=requested, cut=cut)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        http.root, http.requested, http.cut = root, requested, cut
        monkeypatch.setattr(_ecg, "BASE_URL", f"http://127.0.0.1:{http.server_port}/")
        yield http
        http.shutdown()
        thread.join()


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


def check_members(ecg, n=N):
    tables = [ecg.truth, ecg.scores, ecg.dnn_calls, *ecg.readers.values()]
    for table in tables:
        assert list(table.columns) == ecg.diagnoses == COLUMNS.split(",")
        assert table.shape == (n, 6)
    assert list(ecg.readers) == _ecg.READERS
    assert (ecg.scores.dtypes == np.float64).all()
    for table in [ecg.truth, ecg.dnn_calls, *ecg.readers.values()]:
        assert (table.dtypes == np.int64).all()
        assert set(np.unique(table)) <= {0, 1}
    assert len(ecg.age) == len(ecg.sex) == n
    assert set(ecg.sex) == {"F", "M"}


class TestLocalCopy:
    @pytest.mark.parametrize("layout", ["copy", "clone"])
    def test_both_layouts(self, files, home, layout):
        tree = files if layout == "clone" else without_data(files)
        write(home / _ecg.FOLDER, tree)
        ecg = fetch_ecg_readers(home)
        check_members(ecg)
        assert files_below(home / _ecg.FOLDER) == tree
        assert ecg.age.tolist() == [34, 70, 41]
        assert ecg.truth["1dAVb"].tolist() == [1, 0, 0]
        assert ecg.readers["cardiologist1"]["RBBB"].tolist() == [1, 0, 0]
        assert ecg.dnn_calls["ST"].tolist() == [0, 0, 1]
        assert ecg.scores.iloc[-1, -1] == 1

    def test_environment_variable(self, files, home, monkeypatch):
        write(home / _ecg.FOLDER, without_data(files))
        monkeypatch.setenv("SKCALFAIR_DATA", str(home))
        check_members(fetch_ecg_readers())

    def test_read_only_folder(self, files, home):
        write(home / _ecg.FOLDER, files)
        folders = [home, *(path for path in home.rglob("*") if path.is_dir())]
        for folder in folders:
            folder.chmod(0o555)
        try:
            check_members(fetch_ecg_readers(home))
        finally:
            for folder in folders:
                folder.chmod(0o755)

    def test_line_ends_of_a_clone_on_windows(self, files, home):
        converted = {
            name: content.replace(b"\n", b"\r\n") if name.endswith(".csv") else content
            for name, content in files.items()
        }
        write(home / _ecg.FOLDER, converted)
        check_members(fetch_ecg_readers(home))

    @pytest.mark.parametrize("name", ["data/attributes.csv", "dnn_predicts/model.npy"])
    def test_other_content_is_refused_and_kept(self, files, home, name):
        files[name] += b"\n"
        write(home / _ecg.FOLDER, files)
        with pytest.raises(OSError, match=r"is not the published file") as caught:
            fetch_ecg_readers(home)
        assert str(home / _ecg.FOLDER / name) in str(caught.value)
        assert files_below(home / _ecg.FOLDER) == files

    def test_results_can_be_changed_without_harm(self, files, home):
        write(home / _ecg.FOLDER, files)
        fetch_ecg_readers(home).diagnoses.clear()
        check_members(fetch_ecg_readers(home))


class TestMissing:
    def test_download_not_wanted(self, files, home):
        del files["data/attributes.csv"]
        write(home / _ecg.FOLDER, without_data(files))
        with pytest.raises(FileNotFoundError, match="download_if_missing") as caught:
            fetch_ecg_readers(home, download_if_missing=False)
        message = str(caught.value)
        assert "attributes.csv" in message
        assert "gold_standard.csv" not in message
        assert "SKCALFAIR_DATA" in message

    def test_folder_is_not_created_without_a_download(self, files, home):
        with pytest.raises(FileNotFoundError, match="not complete"):
            fetch_ecg_readers(home, download_if_missing=False)
        assert not home.exists()

    @pytest.mark.parametrize(
        "bad", [{"data_home": 1}, {"download_if_missing": "yes"}], ids=str
    )
    def test_types_are_checked(self, bad):
        with pytest.raises(ValueError, match=next(iter(bad))):
            fetch_ecg_readers(**bad)


class TestDownload:
    def test_everything_then_nothing(self, files, server, home):
        check_members(fetch_ecg_readers(home))
        assert sorted(server.requested) == sorted(files)
        assert files_below(home / _ecg.FOLDER) == without_data(files)
        server.requested.clear()
        check_members(fetch_ecg_readers(home))
        assert server.requested == []

    @pytest.mark.parametrize("layout", ["copy", "clone"])
    def test_only_what_is_missing(self, files, server, home, layout):
        tree = files if layout == "clone" else without_data(files)
        write(home / _ecg.FOLDER, tree)
        gone = "data/annotations/dnn.csv"
        path = gone if layout == "clone" else gone.removeprefix("data/")
        (home / _ecg.FOLDER / path).unlink()
        check_members(fetch_ecg_readers(home))
        assert server.requested == [gone]
        assert files_below(home / _ecg.FOLDER) == tree

    def test_wrong_content_is_not_kept(self, files, server, home):
        last = list(files)[-1]
        (server.root / last).write_bytes(b"something else")
        with pytest.raises(OSError, match="could not download") as caught:
            fetch_ecg_readers(home)
        assert last in str(caught.value)
        del files[last]
        assert files_below(home / _ecg.FOLDER) == without_data(files)

    def test_interrupted_download_leaves_no_part_and_can_go_on(
        self, files, server, home
    ):
        name = "data/annotations/medical_students.csv"
        server.cut.add(name)
        with pytest.raises(OSError, match=r"could not download .*medical_students"):
            fetch_ecg_readers(home)
        left = files_below(home / _ecg.FOLDER)
        assert left.items() <= without_data(files).items()
        assert "annotations/medical_students.csv" not in left
        server.cut.clear()
        server.requested.clear()
        check_members(fetch_ecg_readers(home))
        assert len(server.requested) == len(files) - len(left)

    def test_absent_upstream(self, files, server, home):
        shutil.rmtree(server.root / "data")
        with pytest.raises(OSError, match=r"could not download .*404"):
            fetch_ecg_readers(home)
        assert files_below(home) == {}

    def test_offline(self, files, home):
        with pytest.raises(OSError, match="could not download") as caught:
            fetch_ecg_readers(home)
        message = str(caught.value)
        assert "automatic-ecg-diagnosis" in message
        assert "data_home=" in message
        assert "SKCALFAIR_DATA" in message
        assert files_below(home) == {}

    def test_no_folder_can_be_made(self, files, server, home):
        home.write_text("a file in the way")
        with pytest.raises(OSError, match="could not download"):
            fetch_ecg_readers(home)
        assert home.read_text() == "a file in the way"


@pytest.fixture(scope="module")
def ecg(data_home):
    if not (data_home / _ecg.FOLDER).is_dir():
        pytest.skip(f"no folder {_ecg.FOLDER} in the local data")
    return fetch_ecg_readers(data_home, download_if_missing=False)


def operating_point(truth, calls):
    """True and false positives."""
    return int((calls & truth).sum()), int((calls & (1 - truth)).sum())


class TestPublishedData:
    """Facts of the published files; skipped where there is no local copy."""

    def test_members(self, ecg):
        check_members(ecg, 827)
        assert ecg.truth.sum().tolist() == [28, 34, 30, 16, 13, 37]
        assert ecg.sex.value_counts().to_dict() == {"F": 506, "M": 321}
        assert (ecg.age.min(), ecg.age.max()) == (17, 97)
        assert ecg.scores.to_numpy().min() >= 0
        assert ecg.scores.to_numpy().max() <= 1

    @pytest.mark.parametrize(
        ("reader", "expected"),
        [
            ("dnn", [(26, 4), (34, 4), (30, 0), (15, 3), (10, 0), (36, 2)]),
            (
                "cardiology_residents",
                [(19, 2), (33, 5), (27, 0), (15, 3), (10, 3), (30, 1)],
            ),
            (
                "emergency_residents",
                [(23, 13), (26, 1), (26, 1), (14, 3), (8, 2), (35, 2)],
            ),
            (
                "medical_students",
                [(26, 17), (32, 3), (27, 2), (12, 4), (12, 9), (31, 3)],
            ),
        ],
    )
    def test_confusion_matrices_of_the_authors(self, ecg, reader, expected):
        """The original repository's outputs/tables/confusion matrices.csv."""
        calls = {"dnn": ecg.dnn_calls, **ecg.readers}[reader]
        found = [operating_point(ecg.truth[name], calls[name]) for name in ecg.truth]
        assert found == expected

    def test_identical_operating_points(self, ecg):
        """Ties that a comparison of readers has to get along with."""
        calls = {"dnn": ecg.dnn_calls, **ecg.readers}
        ties = {
            (name, one, other)
            for name in ecg.diagnoses
            for one, other in combinations(calls, 2)
            if operating_point(ecg.truth[name], calls[one][name])
            == operating_point(ecg.truth[name], calls[other][name])
        }
        assert ties == {
            ("LBBB", "dnn", "cardiologist2"),
            ("SB", "cardiologist1", "cardiologist2"),
            ("SB", "dnn", "cardiology_residents"),
            ("AF", "dnn", "cardiologist1"),
        }

    def test_calls_of_the_network_are_nearly_its_scores_above_a_threshold(self, ecg):
        """What the description says of the two published files."""
        scores, calls = ecg.scores.to_numpy(), ecg.dnn_calls.to_numpy(dtype=bool)
        least = [
            ((column > column[:, np.newaxis]) != call).sum(axis=1).min()
            for column, call in zip(scores.T, calls.T, strict=True)
        ]
        assert least == [2, 0, 0, 1, 1, 1]

    def test_description(self, ecg):
        for word in ["827", "MIT", "favoured", "11, 1760", *ecg.diagnoses]:
            assert word in ecg.DESCR
