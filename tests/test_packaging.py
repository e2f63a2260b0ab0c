"""What pyproject.toml and setup.cfg promise."""

import configparser
import re
import tomllib
from importlib import metadata, resources
from pathlib import Path

import pytest

import skcalfair

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PYPROJECT["project"]["optional-dependencies"]


def requirements(extra):
    """Distributions that an extra asks for, other extras of this package resolved."""
    names = set()
    for requirement in EXTRAS[extra]:
        name, _, others = re.match(r"([\w-]+)(\[(.*)\])?", requirement).groups()
        if name == "skcalfair":
            names |= set().union(*map(requirements, others.split(",")))
        else:
            names.add(name)
    return names


def test_version_is_the_same_everywhere():
    assert skcalfair.__version__ == PYPROJECT["project"]["version"]
    assert skcalfair.__version__ == metadata.version("skcalfair")


def test_types_ship():
    assert resources.files("skcalfair").joinpath("py.typed").is_file()
    shipped = PYPROJECT["tool"]["setuptools"]["package-data"]["skcalfair"]
    assert "py.typed" in shipped


def test_command_exists():
    (entry_point,) = metadata.entry_points(group="console_scripts", name="skcalfair")
    assert callable(entry_point.load())


@pytest.mark.parametrize(
    ("extra", "library"),
    [
        ("all", "torch"),
        ("distributed", "dask"),
        ("doc", "sphinx"),
        ("keras", "torch"),
        ("keras-jax", "jax"),
        ("keras-tensorflow", "tensorflow"),
        ("parquet", "pyarrow"),
        ("plot", "matplotlib"),
        ("polars", "polars"),
        ("report", "jinja2"),
        ("test", "pytest"),
    ],
)
def test_extra_brings_its_library(extra, library):
    assert library in requirements(extra)


def test_tests_need_no_deep_learning_library():
    heavy = {"jax", "keras", "netcal", "tensorflow", "torch"}
    assert not heavy & requirements("test")


def test_every_backend_of_keras_has_an_extra():
    for extra, backend in (
        ("keras", "torch"),
        ("keras-tensorflow", "tensorflow"),
        ("keras-jax", "jax"),
    ):
        assert requirements(extra) == {"keras", "pillow", backend}
    assert requirements("keras") <= requirements("doc")


def test_each_tool_is_configured_in_one_file():
    setup_cfg = configparser.ConfigParser()
    setup_cfg.read(ROOT / "setup.cfg", encoding="utf-8")
    in_setup_cfg = {
        re.split(r"[:-]", section.removeprefix("tool:"))[0]
        for section in setup_cfg.sections()
    }
    assert in_setup_cfg == {"pytest", "coverage", "mypy"}
    assert not in_setup_cfg & set(PYPROJECT["tool"])
    own_files = ["pytest.ini", ".coveragerc", "mypy.ini", "ruff.toml", "tox.ini"]
    assert [name for name in own_files if (ROOT / name).exists()] == []
