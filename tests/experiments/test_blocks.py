import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from pandas.testing import assert_frame_equal

from skcalfair._atomic import write_atomically
from skcalfair.datasets import make_calibrated_scores
from skcalfair.experiments import _sample_size, sample_size_study
from skcalfair.experiments._blocks import (
    ABANDONED_SECONDS,
    digest,
    run_blocks,
)


def scores(n=400):
    frame = make_calibrated_scores(n, random_state=0).frame
    return frame["outcome"], frame["score"]


def study(folder=None, n=400, **options):
    options = {"n_splits": 12, "random_state": 0} | options
    return sample_size_study(*scores(n), results_folder=folder, **options)


@pytest.fixture
def counted(monkeypatch):
    """Number of blocks that are computed and not read."""
    calls = []
    compute = _sample_size._block_of_splits

    def count(*arguments):
        calls.append(1)
        return compute(*arguments)

    monkeypatch.setattr(_sample_size, "_block_of_splits", count)
    return calls


def test_results_from_the_folder_are_the_same(tmp_path, counted):
    folder = tmp_path / "deep" / "results"
    fresh, first, again = study(), study(folder), study(folder)
    assert len(counted) == 3 + 3  # twelve splits are three blocks
    for name in ("frame", "wilcoxon", "curves"):
        assert_frame_equal(getattr(fresh, name), getattr(first, name))
        assert_frame_equal(getattr(fresh, name), getattr(again, name))


def test_only_missing_blocks_are_computed(tmp_path, counted):
    complete = study(tmp_path)
    sorted(tmp_path.iterdir())[0].unlink()
    counted.clear()
    assert_frame_equal(study(tmp_path).frame, complete.frame)
    assert len(counted) == 1
    counted.clear()
    longer = study(tmp_path, n_splits=20)  # two whole blocks are there
    assert len(counted) == 2
    assert_frame_equal(
        longer.frame.query("split < 12").reset_index(drop=True), complete.frame
    )


@pytest.mark.parametrize(
    "other",
    [
        {"random_state": 1},
        {"n": 401},
        {"n_bins": 10},
        {"fractions": [0.5, 1.0]},
        {"metrics": ["log_loss"]},
        {"decalibrations": {"calibrated": (1.0, 1.01)}},
        {"test_size": 0.3},
    ],
    ids=str,
)
def test_other_studies_do_not_share_results(tmp_path, counted, other):
    study(tmp_path)
    counted.clear()
    study(tmp_path, **other)
    assert len(counted) == 3


KILLED = """
import sys, time
from skcalfair.datasets import make_calibrated_scores
from skcalfair.experiments import _sample_size, sample_size_study

compute = _sample_size._block_of_splits
def slow(*arguments):
    time.sleep(0.3)
    return compute(*arguments)
_sample_size._block_of_splits = slow
frame = make_calibrated_scores(400, random_state=0).frame
sample_size_study(
    frame["outcome"], frame["score"], n_splits=40, random_state=0,
    results_folder=sys.argv[1],
)
"""


def test_a_killed_study_goes_on(tmp_path, counted):
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    while len(list(tmp_path.glob("*.json"))) < 2 and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = list(tmp_path.glob("*.json"))
    assert 2 <= len(kept) < 8
    for path in kept:
        assert "result" in json.loads(path.read_text())
    resumed = study(tmp_path, n_splits=40)
    assert len(counted) == 8 - len(kept)
    assert_frame_equal(resumed.frame, study(n_splits=40).frame)


def test_an_error_loses_only_its_own_block(tmp_path):
    def work(number):
        if number == 2:
            raise RuntimeError("no luck")
        return [number, np.pi]

    arguments, keys = [(k,) for k in range(4)], [{"k": k} for k in range(4)]
    with pytest.raises(RuntimeError, match="no luck"):
        run_blocks(work, arguments, folder=tmp_path, keys=keys)
    assert len(list(tmp_path.iterdir())) == 2

    def never(number):
        assert number >= 2
        return [number, np.pi]

    found = run_blocks(never, arguments, folder=tmp_path, keys=keys)
    assert found == [[k, np.pi] for k in range(4)]


def test_what_is_encoded_as_none_is_not_kept(tmp_path):
    options = {"folder": tmp_path, "keys": [{"k": 0}], "encode": lambda result: None}
    assert run_blocks(lambda: 5, [()], **options) == [5]
    assert list(tmp_path.iterdir()) == []


def test_writing_leaves_all_or_nothing(tmp_path, monkeypatch):
    target = tmp_path / "a.json"
    write_atomically(target, "first")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(target, "second")
    assert target.read_text() == "first"
    assert list(tmp_path.iterdir()) == [target]


def test_abandoned_files_are_removed_and_others_left(tmp_path):
    old, new = tmp_path / "writing-old.part", tmp_path / "writing-new.part"
    for path in (old, new):
        path.write_text("{")
    past = time.time() - 2 * ABANDONED_SECONDS
    os.utime(old, (past, past))
    run_blocks(lambda: 1, [()], folder=tmp_path, keys=[{}])
    assert not old.exists()
    assert new.exists()


def test_digest_sees_values_types_and_shapes():
    a = np.arange(6.0)
    b = np.arange(6.0)
    assert digest(a) == digest(b)
    others = [a.astype(np.float32), a.reshape(2, 3), a + 1, a[::2]]
    assert len({digest(array) for array in [a, *others]}) == 5
    assert digest(a[::2]) == digest(a[::2].copy())
