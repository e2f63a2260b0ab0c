"""Settings and fixtures shared by the whole suite."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Set before anything imports matplotlib, so that no test needs a display.
os.environ["MPLBACKEND"] = "Agg"

# Workers of pytest fill the cores already: with a thread a core in each of them, the
# threads wait for one another. Set before numpy and torch are imported.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A busy two-core machine says nothing about the code, so there is no deadline; in
# continuous integration the same change always meets the same examples.
_common = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("local", **_common)
settings.register_profile("ci", derandomize=True, max_examples=30, **_common)
settings.load_profile("ci" if os.environ.get("CI") else "local")


# Examples that train a network.
NEED_KERAS = ("skcalfair/keras/_classifier.py", "doc/user_guide/vgg19.rst")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip documented examples that need Keras where there is none."""
    if find_spec("keras") is None:
        for item in items:
            if item.path.as_posix().endswith(NEED_KERAS):
                item.add_marker(pytest.mark.skip(reason="keras is not installed"))


@pytest.fixture(scope="session")
def data_home() -> Path:
    """Folder of the real data sets, which only some machines have."""
    folder = os.environ.get("SKCALFAIR_DATA")
    if not folder:
        pytest.skip("SKCALFAIR_DATA is not set: no local copy of the real data")
    if not Path(folder).is_dir():
        pytest.skip(f"SKCALFAIR_DATA is {folder}, which is no folder")
    return Path(folder)
