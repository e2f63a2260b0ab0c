"""Import of Keras with a backend that is installed, and state left as it was."""

import json
import os
import random
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._optional import import_optional

# Keras' name of each backend, and the extra that brings it; the default comes first.
EXTRAS = {"torch": "keras", "tensorflow": "keras-tensorflow", "jax": "keras-jax"}


def import_keras() -> Any:
    """Import Keras, on the backend that was chosen or else one that is installed."""
    if "keras" in sys.modules:
        return sys.modules["keras"]
    if not _installed("keras"):
        return import_optional("keras", extra="keras")
    chosen = os.environ.get("KERAS_BACKEND")
    backend = chosen or _first_installed()
    if backend in EXTRAS and not _installed(backend):
        import_optional(backend, extra=EXTRAS[backend])
    # Keras reads the variable when it is imported, and never again.
    os.environ["KERAS_BACKEND"] = backend
    try:
        return import_optional("keras", extra=EXTRAS.get(backend, "keras"))
    finally:
        if chosen is None:
            del os.environ["KERAS_BACKEND"]
        else:
            os.environ["KERAS_BACKEND"] = chosen


def _first_installed() -> str:
    """Backend that Keras itself would take, if it is there, or one that is."""
    for backend in (_configured(), *EXTRAS):
        # Keras writes "tensorflow" into its file whether or not it is installed.
        if backend in EXTRAS and _installed(backend):
            return backend
    options = ", ".join(f"{name}: skcalfair[{extra}]" for name, extra in EXTRAS.items())
    raise ImportError(
        "Keras needs a backend, but none is installed. Install one with "
        f'pip install "skcalfair[keras]" (by backend: {options})'
    )


def _installed(name: str) -> bool:
    """Whether a library can be found, without importing it."""
    return name in sys.modules or find_spec(name) is not None


def keras_home() -> Path:
    """Folder of Keras' settings and of the weights that it downloads."""
    home = os.environ.get("KERAS_HOME")
    if home:
        return Path(home).expanduser()
    user = Path.home()
    return (user if os.access(user, os.W_OK) else Path("/tmp")) / ".keras"


def _configured() -> str:
    """Backend named by Keras' settings; TensorFlow if they name none."""
    try:
        settings = json.loads((keras_home() / "keras.json").read_text("utf-8"))
        return str(settings["backend"])
    except (OSError, ValueError, KeyError, TypeError):
        return "tensorflow"


@contextmanager
def unchanged_random_state() -> Iterator[None]:
    """Leave the global random states of Python, numpy and torch as they were."""
    python = random.getstate()
    legacy = np.random.get_state()  # noqa: NPY002 - the one that others may use
    torch = sys.modules.get("torch")
    torch_state = None if torch is None else torch.get_rng_state()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002
        if torch is not None:
            torch.set_rng_state(torch_state)


def values_of(variables: Iterable[Any]) -> list[NDArray]:
    """Values of variables; copies."""
    ops = import_keras().ops
    return [np.array(ops.convert_to_numpy(variable.value)) for variable in variables]
