"""Flips, rotations and zooms of training images, in one interpolation.

They are drawn by numpy, so that they are the same on every backend, and applied to a
whole batch at once where the network is; Keras' own layers do that image by image on
torch.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._backend import import_keras

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Augmentation:
    """How images may be changed: `rotation` in turns, `zoom` as a share."""

    horizontal_flip: bool
    rotation: float
    zoom: float
    fill_mode: str

    @property
    def is_none(self) -> bool:
        """Whether images stay as they are."""
        return not (self.horizontal_flip or self.rotation or self.zoom)

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Matrices of shape (n, 2, 2) from places in the new image to the old one."""
        flip = rng.integers(0, 2, size=n) if self.horizontal_flip else np.zeros(n)
        angle = 2.0 * np.pi * self.rotation * rng.uniform(-1.0, 1.0, size=n)
        scale = 1.0 + self.zoom * rng.uniform(-1.0, 1.0, size=n)
        cos, sin = scale * np.cos(angle), scale * np.sin(angle)
        sign = 1.0 - 2.0 * flip
        rows = [[cos, sin * sign], [-sin, cos * sign]]
        return np.moveaxis(np.array(rows, dtype=np.float32), -1, 0)


def warp(images: Any, matrices: Any, fill_mode: str) -> Any:
    """Images (n, h, w, c) seen through matrices (n, 2, 2) around the centre."""
    ops = import_keras().ops
    height, width, channels = images.shape[1:]
    dtype = images.dtype
    matrices = ops.cast(matrices, dtype)
    down, right = np.meshgrid(
        np.arange(height) - (height - 1) / 2,
        np.arange(width) - (width - 1) / 2,
        indexing="ij",
    )
    grid = ops.convert_to_tensor(np.stack([down.ravel(), right.ravel()]), dtype=dtype)
    places = ops.matmul(matrices, grid)
    y = places[:, 0] + (height - 1) / 2
    x = places[:, 1] + (width - 1) / 2
    n = ops.shape(images)[0]
    first = ops.expand_dims(ops.arange(n, dtype="int32") * (height * width), 1)
    flat = ops.reshape(images, (-1, channels))
    total = 0.0
    for row, row_share in _neighbours(y, height, fill_mode):
        for column, column_share in _neighbours(x, width, fill_mode):
            pixels = ops.take(flat, first + row * width + column, axis=0)
            total = total + ops.expand_dims(row_share * column_share, -1) * pixels
    return ops.reshape(total, (-1, height, width, channels))


def _neighbours(place: Any, size: int, fill_mode: str) -> list[tuple[Any, Any]]:
    """Positions of the two pixels around each place, and their shares."""
    ops = import_keras().ops
    if fill_mode == "reflect":  # d c b a | a b c d | d c b a
        place = ops.mod(place + 0.5, 2 * size)
        place = ops.minimum(place, 2 * size - place) - 0.5
    if fill_mode in ("reflect", "nearest"):
        place = ops.clip(place, 0, size - 1)
    low = ops.floor(place)
    above = place - low
    found = []
    for position, share in ((low, 1.0 - above), (low + 1, above)):
        if fill_mode == "wrap":
            position = ops.mod(position, size)
        elif fill_mode == "constant":
            is_there = (position >= 0) & (position < size)
            share = share * ops.cast(is_there, place.dtype)
        position = ops.cast(ops.clip(position, 0, size - 1), "int32")
        found.append((position, share))
    return found


def with_augmentation(model: Any, fill_mode: str) -> Any:
    """Model for training that warps images first; shares the layers of `model`."""
    keras = import_keras()
    dtype = model.inputs[0].dtype

    layer: Any = keras.layers.Layer

    class Warp(layer):
        def call(self, images: Any, matrices: Any, training: bool = False) -> Any:
            return warp(images, matrices, fill_mode) if training else images

        def compute_output_shape(self, image_shape: Any, *_: Any) -> Any:
            return image_shape

    images = keras.Input(model.input_shape[1:], dtype=dtype, name="training_image")
    matrices = keras.Input((2, 2), dtype="float32", name="matrix")
    warped = Warp(dtype=dtype, name="warp")(images, matrices)
    return keras.Model([images, matrices], model(warped), name="training")
