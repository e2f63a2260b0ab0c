"""Settings and fixtures shared by the whole suite."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Set before anything imports matplotlib, so that no test needs a display.
os.environ["MPLBACKEND"] = "Agg"

# A busy two-core machine says nothing about the code, so there is no deadline; in
# continuous integration the same change always meets the same examples.
_common = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("local", **_common)
settings.register_profile("ci", derandomize=True, **_common)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(scope="session")
def data_home() -> Path:
    """Folder of the real data sets, which only some machines have."""
    folder = os.environ.get("SKCALFAIR_DATA")
    if not folder:
        pytest.skip("SKCALFAIR_DATA is not set: no local copy of the real data")
    if not Path(folder).is_dir():
        pytest.skip(f"SKCALFAIR_DATA is {folder}, which is no folder")
    return Path(folder)
