"""Keras is imported when it is needed, on a backend that is there."""

import importlib
import json
import os
import pickle
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from skcalfair.keras import _backend
from skcalfair.keras._backend import import_keras

ROOT = Path(__file__).parents[2]
BACKENDS = ("torch", "tensorflow", "jax")


def run(code, home, **environment):
    """Output of a statement in a fresh interpreter without any choice of a backend."""
    variables = {k: v for k, v in os.environ.items() if k != "KERAS_BACKEND"}
    variables |= {"KERAS_HOME": str(home), "PYTHONPATH": str(ROOT), **environment}
    result = subprocess.run(
        [sys.executable, "-c", code],
        env=variables,
        capture_output=True,
        text=True,
        check=True,
        cwd=home,
    )
    return result.stdout.splitlines()


CODE = """
import os, sys
import skcalfair.keras
from skcalfair.keras._backend import import_keras
assert "keras" not in sys.modules
print(import_keras().backend.backend())
print(os.environ.get("KERAS_BACKEND"))
"""


@pytest.mark.every_backend
def test_an_installed_backend_is_found(tmp_path):
    """Also when Keras' own settings, written by the first import, name another."""
    installed = [name for name in BACKENDS if find_spec(name)]
    expected = "tensorflow" if "tensorflow" in installed else installed[0]
    assert run(CODE, tmp_path) == [expected, "None"]
    settings = json.loads((tmp_path / "keras.json").read_text())
    assert settings["backend"] == "tensorflow"
    chosen = installed[-1]
    assert run(CODE, tmp_path, KERAS_BACKEND=chosen) == [chosen, chosen]


@pytest.fixture
def nothing_imported(monkeypatch, tmp_path):
    """As if Keras were not imported yet and only some libraries were installed."""
    monkeypatch.delitem(sys.modules, "keras", raising=False)
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    imported = []

    def pretend(*installed):
        def import_module(name, extra):
            if name.partition(".")[0] not in installed:
                raise ImportError(f'pip install "skcalfair[{extra}]"')
            imported.append((name, os.environ.get("KERAS_BACKEND")))

        monkeypatch.setattr(_backend, "_installed", lambda name: name in installed)
        monkeypatch.setattr(_backend, "import_optional", import_module)
        return imported

    return pretend


@pytest.mark.parametrize(
    ("installed", "configured", "expected"),
    [
        (("torch",), None, "torch"),
        (("torch",), "tensorflow", "torch"),
        (("jax",), None, "jax"),
        (("torch", "jax"), None, "torch"),
        (("torch", "jax"), "jax", "jax"),
        (("torch", "tensorflow"), None, "tensorflow"),
        (("torch", "tensorflow"), "torch", "torch"),
    ],
)
def test_choice_of_a_backend(
    nothing_imported, tmp_path, installed, configured, expected
):
    imported = nothing_imported("keras", *installed)
    if configured is not None:
        (tmp_path / "keras.json").write_text(json.dumps({"backend": configured}))
    import_keras()
    assert imported == [("keras", expected)]
    assert "KERAS_BACKEND" not in os.environ


def test_an_explicit_choice_is_respected(nothing_imported, monkeypatch):
    imported = nothing_imported("keras", "torch", "jax")
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    import_keras()
    assert imported == [("keras", "jax")]
    assert os.environ["KERAS_BACKEND"] == "jax"


@pytest.mark.parametrize(
    ("installed", "chosen", "extra"),
    [
        ((), None, r"skcalfair\[keras\]"),
        (("torch",), None, r"skcalfair\[keras\]"),
        (("keras",), None, r"none is installed.*skcalfair\[keras-jax\]"),
        (("keras", "torch"), "jax", r"skcalfair\[keras-jax\]"),
        (("keras", "torch"), "tensorflow", r"skcalfair\[keras-tensorflow\]"),
    ],
)
def test_the_missing_extra_is_named(
    nothing_imported, monkeypatch, installed, chosen, extra
):
    nothing_imported(*installed)
    if chosen:
        monkeypatch.setenv("KERAS_BACKEND", chosen)
    with pytest.raises(ImportError, match=extra):
        import_keras()


def test_the_home_of_keras_is_that_of_keras(monkeypatch):
    monkeypatch.delenv("KERAS_HOME", raising=False)
    import_keras()  # on its own, Keras might want a backend that is not there
    config = importlib.import_module("keras.src.backend.config")
    if "KERAS_HOME" not in os.environ:
        assert _backend.keras_home() == Path(config.keras_home())


# -- between processes and backends ---------------------------------------------------

LOAD = """
import pickle, sys
import numpy as np
model = pickle.load(open("model.pickle", "rb"))
X = np.load("X.npy")
np.save("scores.npy", model.decision_function(X))
print(model.model_.__class__.__module__ and __import__("keras").backend.backend())
"""


@pytest.mark.every_backend
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_model_loads_on_every_backend(narrow, lesions, tmp_path, backend):
    if find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    if backend == import_keras().backend.backend():
        pytest.skip("is the backend of this process")
    model = narrow(max_epochs=2, dropout=0.2).fit(lesions.images, lesions.target)
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(model))
    np.save(tmp_path / "X.npy", lesions.images)
    assert run(LOAD, tmp_path, KERAS_BACKEND=backend) == [backend]
    np.testing.assert_allclose(
        np.load(tmp_path / "scores.npy"),
        model.decision_function(lesions.images),
        atol=1e-5,
    )


FITS = """
import gc, resource, sys
import numpy as np
from skcalfair.datasets import make_skin_lesions
from skcalfair.keras import VGG19Classifier

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20

# Half of the filters: 5 million weights of 20 MB.
VGG19Classifier._filters = (32, 64, 128, 256, 256)
lesions = make_skin_lesions(16, size=32, random_state=0)
for _ in range(5):
    model = VGG19Classifier(
        weights=None, input_size=(32, 32), max_epochs=1, batch_size=8, random_state=0
    ).fit(lesions.images, lesions.target)
    model.predict(lesions.images)
    print(resident())
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_memory_does_not_grow_with_fits(tmp_path):
    backend = import_keras().backend.backend()
    if backend != "torch":
        pytest.skip(f"memory is known to grow on tensorflow; this is {backend}")
    # Freed memory goes back at once, so that what is counted is what is held.
    malloc = {"MALLOC_ARENA_MAX": "1", "MALLOC_TRIM_THRESHOLD_": "1048576"}
    lines = run(FITS, tmp_path, KERAS_BACKEND="torch", **malloc)
    used = [float(line) for line in lines]
    # A network that stayed would take 20 MB for its weights, and 60 MB with Adam's.
    assert used[-1] - used[1] < 20
