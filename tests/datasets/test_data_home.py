from pathlib import Path

import pytest

from skcalfair.datasets import get_data_home


def test_argument_then_environment_then_home(monkeypatch, tmp_path):
    monkeypatch.delenv("SKCALFAIR_DATA", raising=False)
    assert get_data_home() == Path.home() / "skcalfair_data"
    monkeypatch.setenv("SKCALFAIR_DATA", "")
    assert get_data_home() == Path.home() / "skcalfair_data"
    monkeypatch.setenv("SKCALFAIR_DATA", str(tmp_path / "variable"))
    assert get_data_home() == tmp_path / "variable"
    assert get_data_home(tmp_path / "argument") == tmp_path / "argument"
    assert get_data_home("~/somewhere") == Path.home() / "somewhere"


def test_nothing_is_created(tmp_path):
    assert not get_data_home(tmp_path / "absent").exists()


def test_type_is_checked():
    with pytest.raises(ValueError, match="data_home"):
        get_data_home(3)
