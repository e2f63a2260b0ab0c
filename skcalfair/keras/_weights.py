"""Weights of the convolutions: ImageNet's, from a file, or drawn."""

import re
from collections.abc import Iterator
from hashlib import md5
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._optional import import_optional
from ._backend import import_keras, keras_home
from ._network import convolution_names, draw_weights

# As published with Keras: URL, name and MD5 sum of the convolutions' weights.
IMAGENET_URL = (
    "https://storage.googleapis.com/tensorflow/keras-applications/vgg19/"
    "vgg19_weights_tf_dim_ordering_tf_kernels_notop.h5"
)
IMAGENET_FILE = IMAGENET_URL.rpartition("/")[2]
IMAGENET_MD5 = "253f8cb515780f3b799900260a226db6"

Pair = tuple[NDArray, NDArray]


def set_initial_weights(
    model: Any, weights: str | PathLike[str] | None, rng: np.random.Generator
) -> str:
    """Set all weights before training; say where those of the convolutions are from.

    The last layer starts at zero: every probability is then the same, and no large
    error of a random layer reaches the convolutions in the first steps.
    """
    hidden = [layer.name for layer in model.layers if layer.name.startswith("hidden")]
    names = convolution_names()
    if weights is None:
        draw_weights(model, names + hidden, rng)
        return "random"
    draw_weights(model, hidden, rng)
    path = imagenet_path() if weights == "imagenet" else Path(fspath(weights))
    for name, pair in zip(names, read_convolutions(path), strict=True):
        layer = model.get_layer(name)
        shapes = [tuple(variable.shape) for variable in (layer.kernel, layer.bias)]
        found = [values.shape for values in pair]
        if shapes != found:
            raise ValueError(
                f"weights file {str(path)!r} does not fit VGG-19: {name} needs arrays "
                f"of shapes {shapes}, the file has {found}"
            )
        for variable, values in zip((layer.kernel, layer.bias), pair, strict=True):
            variable.assign(values)
    return "imagenet" if weights == "imagenet" else str(path)


def imagenet_path() -> Path:
    """File of the ImageNet weights, downloaded if it is not there yet."""
    path = keras_home() / "models" / IMAGENET_FILE
    if path.exists():
        # Checked here: Keras would delete a file of another content.
        if file_md5(path) != IMAGENET_MD5:
            raise ValueError(
                f"{str(path)!r} is not the published file of ImageNet weights (MD5 "
                f"{IMAGENET_MD5}). Move it away to download it again, or pass its "
                "path as weights= to use it as it is"
            )
        return path
    try:
        found = import_keras().utils.get_file(
            IMAGENET_FILE, IMAGENET_URL, cache_subdir="models", file_hash=IMAGENET_MD5
        )
    except Exception as error:  # whatever the network raises
        raise OSError(
            f"the ImageNet weights could not be downloaded ({error}). Download "
            f"{IMAGENET_URL} on another machine and put the file at {str(path)!r}, or "
            "pass its path as weights=. weights=None starts from random weights"
        ) from error
    return Path(found)


def file_md5(path: Path) -> str:
    """MD5 sum of a file."""
    total = md5(usedforsecurity=False)
    with open(path, "rb") as file:
        while block := file.read(2**20):
            total.update(block)
    return total.hexdigest()


def read_convolutions(path: Path) -> list[Pair]:
    """Kernel and bias of the 16 convolutions in an .h5 or .weights.h5 file."""
    if not path.is_file():
        raise FileNotFoundError(f"weights file {str(path)!r} does not exist")
    if path.suffix not in (".h5", ".hdf5"):
        raise ValueError(
            "weights must be 'imagenet', None or the path of an .h5 or .weights.h5 "
            f"file; got {str(path)!r}"
        )
    h5py = import_optional("h5py", extra="keras")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise ValueError(f"{str(path)!r} is no HDF5 file: {error}") from error
    with file:
        groups = dict(_arrays_by_layer(h5py, file))
    named = {name: pair for name, pair in groups.items() if name in convolution_names()}
    if len(named) == len(convolution_names()):
        return [named[name] for name in convolution_names()]
    # Keras 3 numbers the layers of a file by class: conv2d, conv2d_1, ...
    numbered = {
        int(match[1] or 0): pair
        for name, pair in groups.items()
        if (match := re.fullmatch(r"conv2d(?:_(\d+))?", name))
    }
    if len(numbered) == len(convolution_names()):
        return [numbered[i] for i in sorted(numbered)]
    raise ValueError(
        f"weights file {str(path)!r} does not hold the {len(convolution_names())} "
        f"convolutions of VGG-19; it has {len(named) or len(numbered)} of them"
    )


def _arrays_by_layer(h5py: Any, file: Any) -> Iterator[tuple[str, Pair]]:
    """Name of each layer of two arrays, the kernel (4-D) and the bias (1-D)."""
    found: dict[str, list[NDArray]] = {}

    def visit(name: str, node: Any) -> None:
        if not isinstance(node, h5py.Dataset) or name.startswith("optimizer"):
            return
        parts = [part for part in name.split("/")[:-1] if part != "vars"]
        if parts and node.ndim in (1, 4):
            found.setdefault(parts[-1], []).append(np.asarray(node))

    file.visititems(visit)
    for name, arrays in found.items():
        by_rank = {array.ndim: array for array in arrays}
        if len(arrays) == 2 and set(by_rank) == {1, 4}:
            yield name, (by_rank[4], by_rank[1])
