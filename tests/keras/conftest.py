"""Networks small enough for tests; everything here is skipped without Keras."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from skcalfair.datasets import make_skin_lesions
from skcalfair.keras import VGG19Classifier

FOLDER = Path(__file__).parent
BACKENDS = ("torch", "tensorflow", "jax")
# Filters of a network of the depth of VGG-19 that trains in a second.
NARROW = (4, 8, 8, 16, 16)


def why_not():
    """Reason why Keras cannot be used here, if there is one."""
    if find_spec("keras") is None:
        return "keras is not installed"
    if not any(find_spec(backend) for backend in BACKENDS):
        return "no backend of keras is installed"
    return None


def pytest_collection_modifyitems(items):
    reason = why_not()
    for item in items:
        if reason and FOLDER in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def narrow(monkeypatch):
    """VGG19Classifier with few filters, set to train for an epoch on tiny images."""
    monkeypatch.setattr(VGG19Classifier, "_filters", NARROW)

    def make(**options):
        defaults = {
            "weights": None,
            "input_size": (32, 32),
            "batch_size": 16,
            "max_epochs": 1,
            "random_state": 0,
        }
        return VGG19Classifier(**(defaults | options))

    return make


@pytest.fixture(scope="session")
def lesions():
    return make_skin_lesions(48, size=32, random_state=0)


@pytest.fixture(scope="session")
def lesion_files(tmp_path_factory):
    """The same 24 images of 40 pixels as files and as an array, with their labels."""
    image_module = pytest.importorskip("PIL.Image")
    lesions = make_skin_lesions(24, size=40, random_state=1)
    folder = tmp_path_factory.mktemp("lesions")
    paths = []
    for i, image in enumerate(lesions.images):
        path = folder / f"{i:02d}.png"
        image_module.fromarray(image).save(path)
        paths.append(str(path))
    return np.array(paths), lesions.images, lesions.target
