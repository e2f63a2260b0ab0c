"""Imports go downward only, and importing the package is cheap."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# A module imports only from lines above its own. The package itself comes first: it
# imports nothing of its own, so anything may read `skcalfair.__version__`.
ORDER = [
    "skcalfair",
    "exceptions",
    "_optional",
    "_atomic",
    "_files",
    "_text",
    "_random",
    "_validation",
    "_log_odds",
    "_binning",
    "_sorted_scores",
    "model_selection",
    "resampling",
    "calibration",
    "metrics",
    "displays",
    "report",
    "dominance",
    "audit",
    "datasets",
    "keras",
    "experiments",
    "cli",
    "__main__",
]
HEAVY = ["dask", "distributed", "jax", "keras", "matplotlib", "tensorflow", "torch"]


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in (ROOT / "skcalfair").rglob("*.py")}


def line_of(module: str) -> str:
    """Name of the line in ORDER that a dotted module name belongs to."""
    _, _, below = module.partition(".")
    return below.split(".")[0] or "skcalfair"


def known_module(name: str, modules: dict[str, Path]) -> str:
    """Longest part of a dotted name that is a module: the rest is an attribute."""
    while name not in modules:
        name = name.rpartition(".")[0]
    return name


def own_imports(module: str, source: str, modules: dict[str, Path]) -> Iterator[str]:
    """Modules of the package that a module imports, wherever it does so."""
    is_package = modules[module].name == "__init__.py"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = module.split(".")
            base = base[: len(base) + is_package - node.level] if node.level else []
            prefix = ".".join([*base, *filter(None, [node.module])])
            names = [f"{prefix}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "skcalfair":
                yield known_module(name, modules)


def imports_of(module: str) -> set[str]:
    source = MODULES[module].read_text(encoding="utf-8")
    return set(own_imports(module, source, MODULES))


def test_the_reader_of_imports_sees_every_form():
    modules = {
        "skcalfair": Path("skcalfair/__init__.py"),
        "skcalfair.audit": Path("skcalfair/audit/__init__.py"),
        "skcalfair.audit._frame": Path("skcalfair/audit/_frame.py"),
        "skcalfair.cli": Path("skcalfair/cli.py"),
        "skcalfair.metrics": Path("skcalfair/metrics/__init__.py"),
    }
    forms = {
        "import skcalfair.cli": "skcalfair.cli",
        "def f():\n    from .. import metrics": "skcalfair.metrics",
        "from ..metrics import brier_loss": "skcalfair.metrics",
        "from skcalfair import __version__": "skcalfair",
        "from . import _frame": "skcalfair.audit._frame",
        "from ._frame import Frame": "skcalfair.audit._frame",
    }
    for module in ("skcalfair.audit", "skcalfair.audit._frame"):
        for source, expected in forms.items():
            assert set(own_imports(module, source, modules)) == {expected}


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_only_from_lines_above(module):
    line = line_of(module)
    assert line in ORDER, f"{line} has no place in the order of imports"
    above = ORDER[: ORDER.index(line)]
    not_above = {
        name
        for name in imports_of(module)
        if line_of(name) != line and line_of(name) not in above
    }
    assert not not_above, f"{module} imports {sorted(not_above)}, not above {line}"


def test_package_itself_imports_nothing_of_its_own():
    assert imports_of("skcalfair") == set()


def test_no_module_imports_itself_through_others():
    graph = {module: imports_of(module) for module in MODULES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")


# Runs in a fresh interpreter; prints which heavy libraries anything asked for, there
# or not, and every path opened for writing or made.
WATCHED_IMPORT = """
import json, os, sys

asked_for, written = set(), []

class Watch:
    def find_spec(self, name, path=None, target=None):
        asked_for.add(name.partition(".")[0])

def audit(event, args):
    if event == "open" and isinstance(args[2], int):
        if args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            written.append(str(args[0]))
    elif event in ("os.mkdir", "os.rename", "os.link", "os.symlink"):
        written.append(str(args[0]))

sys.meta_path.insert(0, Watch())
sys.addaudithook(audit)
exec(sys.argv[1])
print(json.dumps([sorted(asked_for), written]))
"""


def watch(statements: str) -> tuple[set[str], list[str]]:
    """Libraries that statements import and paths that they write, run by themselves."""
    result = subprocess.run(
        [sys.executable, "-B", "-c", WATCHED_IMPORT, statements],
        capture_output=True,
        check=True,
        cwd=ROOT,
        text=True,
    )
    asked_for, written = json.loads(result.stdout.splitlines()[-1])
    return set(asked_for), written


def test_the_watch_notices():
    asked_for, written = watch(
        "import csv\ntry: import skcalfair_no_such_module\nexcept ImportError: pass\n"
        "open(os.devnull, 'w').close()"
    )
    assert {"csv", "skcalfair_no_such_module"} <= asked_for
    assert written == [os.devnull]


def test_import_loads_nothing_heavy_and_writes_nothing():
    asked_for, written = watch("import skcalfair")
    assert not asked_for & {*HEAVY, "numpy", "pandas", "sklearn", "scipy"}
    assert written == []


def test_importing_everything_loads_nothing_heavy_and_writes_nothing():
    asked_for, written = watch(
        "import skcalfair, skcalfair.cli\n"
        "for name in skcalfair.__all__: getattr(skcalfair, name)"
    )
    assert not asked_for & set(HEAVY)
    assert written == []
