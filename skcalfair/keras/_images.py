"""Images of a classifier's X: an array of pixels, or files read when needed."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from os import PathLike, cpu_count, fspath
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._optional import import_optional

Size = tuple[int, int]
Pixels = NDArray[np.float32]
Rows = NDArray[np.intp]

# Decoding releases the interpreter's lock; more threads than this hardly help a disk.
READERS = min(8, cpu_count() or 1)
# Images read at a time where all of them are passed over.
CHUNK = 64


class BadImageError(ValueError):
    """An image that cannot be used; the message names its file or row."""


class Images(Protocol):
    """Rows of images that can be read at a size."""

    def __len__(self) -> int: ...

    def read_one(self, row: int, size: Size) -> Pixels:
        """Pixels in [0, 255] of one image, of shape (height, width, 3)."""
        ...


@dataclass(frozen=True)
class ArrayImages:
    """Images in an array of shape (n, height, width, 3), left where it is."""

    pixels: NDArray

    def __len__(self) -> int:
        return len(self.pixels)

    def read_one(self, row: int, size: Size) -> Pixels:
        """Pixels of one image."""
        image = np.asarray(self.pixels[row])
        if image.dtype.kind == "f" and not np.isfinite(image).all():
            raise BadImageError(
                f"X contains NaN or infinity in the image at row {row}; "
                "pixels must be finite"
            )
        return _resize(image, size)


@dataclass(frozen=True)
class FileImages:
    """Images in files."""

    paths: list[str]

    def __len__(self) -> int:
        return len(self.paths)

    def read_one(self, row: int, size: Size) -> Pixels:
        """Pixels of one image."""
        return _resize(_read_file(self.paths[row]), size)


def as_images(X: Any, name: str = "X") -> Images:
    """Images of an array of pixels, or of paths in an array, list, Series or frame."""
    if hasattr(X, "to_numpy"):  # pandas and polars
        X = X.to_numpy()
    if not isinstance(X, np.ndarray):
        X = np.asarray(X)
    if X.dtype.kind in "OUST" and X.ndim in (1, 2):
        return FileImages(_paths(X, name))
    if X.ndim != 4 or X.shape[3] != 3:
        raise ValueError(
            f"{name} must be an array of shape (n_samples, height, width, 3), or hold "
            f"one image path per row; got an array of shape {X.shape} and dtype "
            f"{X.dtype}"
        )
    if not len(X):
        raise ValueError(f"{name} is empty: at least one image is needed")
    if 0 in X.shape:
        raise ValueError(f"{name} holds images of no size: its shape is {X.shape}")
    if X.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold numeric pixels; got dtype {X.dtype}")
    return ArrayImages(X)


def _paths(X: NDArray, name: str) -> list[str]:
    """Paths as text."""
    if X.ndim == 2:
        if X.shape[1] != 1:
            raise ValueError(
                f"{name} must have one column of image paths; got {X.shape[1]} columns"
            )
        X = X[:, 0]
    if not len(X):
        raise ValueError(f"{name} is empty: at least one image is needed")
    for row, path in enumerate(X):
        if not isinstance(path, (str, PathLike)):
            raise ValueError(
                f"{name} must hold image paths (str or path-like); got {path!r} at "
                f"row {row}"
            )
    return [str(fspath(path)) for path in X]


def _read_file(path: str) -> NDArray[np.uint8]:
    """Pixels of an RGB file."""
    image_module = import_optional("PIL.Image", extra="keras")
    try:
        with image_module.open(path) as image:
            if image.mode != "RGB":
                raise BadImageError(
                    f"image file {path!r} must be RGB; its mode is {image.mode!r} "
                    "(L is grayscale, RGBA has transparency): convert it first"
                )
            pixels = np.asarray(image)
    except BadImageError:
        raise
    except FileNotFoundError as error:
        raise BadImageError(f"image file {path!r} does not exist") from error
    # Pillow's decoders raise nearly anything on a damaged file.
    except Exception as error:
        raise BadImageError(f"image file {path!r} cannot be read: {error}") from error
    if 0 in pixels.shape:
        raise BadImageError(f"image file {path!r} has no pixels: {pixels.shape}")
    return pixels


def _resize(image: NDArray, size: Size) -> Pixels:
    """Pixels at (height, width), by Pillow's bilinear filter, which does not alias."""
    if image.shape[:2] == size:
        return image.astype(np.float32)
    image_module = import_optional("PIL.Image", extra="keras")
    width_height, bilinear = size[::-1], image_module.Resampling.BILINEAR
    if image.dtype != np.uint8:
        with np.errstate(invalid="ignore"):
            whole = image.astype(np.uint8)
        if not np.array_equal(whole, image):
            channels = [
                image_module.fromarray(np.ascontiguousarray(channel, dtype=np.float32))
                for channel in np.moveaxis(image, -1, 0)
            ]
            resized = [channel.resize(width_height, bilinear) for channel in channels]
            return np.stack([np.asarray(channel) for channel in resized], axis=-1)
        image = whole  # as read from a file, so that both give the same numbers
    resized = image_module.fromarray(np.ascontiguousarray(image)).resize(
        width_height, bilinear
    )
    return np.asarray(resized).astype(np.float32)


def read_rows(images: Images, rows: Rows, size: Size) -> Pixels:
    """Pixels of some images, of shape (n, height, width, 3)."""
    if isinstance(images, ArrayImages) or len(rows) < 2:
        found: Iterable[Pixels] = (images.read_one(row, size) for row in rows)
        return np.stack(list(found))
    with ThreadPoolExecutor(READERS) as readers:
        return np.stack(list(readers.map(lambda row: images.read_one(row, size), rows)))


@dataclass
class Inspection:
    """What one pass over all images found; float64, a row an image.

    `digests` tell images apart by their pixels, whatever they were read from.
    """

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    digests: list[bytes]
    bad: list[int] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def without_bad(self) -> "Inspection":
        """Return what was found of the good ones."""
        good = np.delete(np.arange(len(self.digests)), self.bad)
        digests = [self.digests[row] for row in good]
        return Inspection(self.mean[good], self.variance[good], digests)


def inspect_images(
    images: Images, size: Size, *, skip_bad: bool, digest: Any = None
) -> Inspection:
    """Read every image once: refuse or list the bad ones, and measure the others."""
    n = len(images)
    found = Inspection(np.zeros((n, 3)), np.zeros((n, 3)), [b""] * n)

    def inspect(row: int) -> str | None:
        try:
            pixels = images.read_one(row, size)
        except BadImageError as error:
            if not skip_bad:
                raise
            return str(error)
        flat = pixels.reshape(-1, 3).astype(np.float64)
        found.mean[row] = flat.mean(axis=0)
        found.variance[row] = flat.var(axis=0)
        if digest is not None:
            found.digests[row] = digest(pixels)
        return None

    with ThreadPoolExecutor(READERS) as readers:
        for start in range(0, n, CHUNK):
            rows = range(start, min(start + CHUNK, n))
            for row, complaint in zip(rows, readers.map(inspect, rows), strict=True):
                if complaint is not None:
                    found.bad.append(row)
                    found.complaints.append(complaint)
    return found


def channel_statistics(
    inspection: Inspection, rows: Rows, weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weighted mean and standard deviation of each channel over some images."""
    share = weights / weights.sum()
    means = inspection.mean[rows]
    mean = share @ means
    variance = share @ (inspection.variance[rows] + (means - mean) ** 2)
    std = np.sqrt(variance)
    # A constant channel says nothing, and must not be divided by zero.
    return mean, np.where(std > 1e-6 * np.maximum(1.0, np.abs(mean)), std, 1.0)
