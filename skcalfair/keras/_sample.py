"""Rows to learn from: images, labels and weights, checked and read once."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from .._validation import (
    check_same_length,
    check_sample_weight,
    encode_clusters,
    unique_labels,
)
from ._batches import Part
from ._checkpoint import pixel_digest
from ._images import Images, Inspection, Pixels, Rows, Size, as_images, inspect_images

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Sample:
    """Validated rows: class codes, weights, and positions in the caller's X."""

    images: Images
    inspection: Inspection
    classes: NDArray
    codes: Rows
    weights: Floats
    positions: Rows
    groups: Rows | None = None

    def class_weights(self, rows: Rows, given: str | dict[Any, float] | None) -> Floats:
        """Weight by class code; "balanced" counts some of the rows."""
        labels = self.classes.tolist()
        if isinstance(given, dict):
            return _checked_class_weights(given, labels)
        return np.asarray(
            compute_class_weight(
                given,
                classes=np.arange(len(labels)),
                y=self.codes[rows],
                sample_weight=self.weights[rows],
            )
        )

    def part(self, rows: Rows, by_class: Floats, wide: str) -> Part:
        """Some rows as the network takes them, of mean weight one."""
        codes = self.codes[rows]
        weights = self.weights[rows] * by_class[codes]
        if not weights.any():
            raise ValueError(
                "class_weight leaves no weight to the rows of a part: all of them "
                "are of classes that weigh 0"
            )
        weights = weights / weights.mean()
        binary = len(self.classes) == 2
        target = codes[:, np.newaxis].astype(wide) if binary else codes.astype(np.int32)
        return Part(self.images, self.positions[rows], target, weights.astype(wide))


@dataclass(frozen=True)
class Reading:
    """How a classifier reads its samples."""

    estimator: str
    size: Size
    skip_bad: bool
    digests: bool

    def sample(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        groups: Any = None,
        *,
        suffix: str = "",
        classes: NDArray | None = None,
    ) -> Sample:
        """Validate rows and read every image once.

        `suffix` tells the arguments in messages; `classes` are those of the training
        rows, where these are others.
        """
        if y is None:
            raise ValueError(
                f"{self.estimator} requires y{suffix} to be passed, but the "
                f"target y{suffix} is None"
            )
        images = as_images(X, f"X{suffix}")
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name=f"y{suffix}")
        check_same_length((f"X{suffix}", np.empty(len(images))), (f"y{suffix}", y))
        check_classification_targets(y)
        weights = check_sample_weight(sample_weight, len(y))
        weights = np.ones(len(y)) if weights is None else weights
        codes = None if groups is None else encode_clusters(groups, len(y), "groups")
        # A row of weight zero is not there: its image is not even read.
        positions = np.flatnonzero(weights)
        inspection, positions = self._inspect(images, positions)
        y = y[positions]
        labels = self._labels(unique_labels(y, f"y{suffix}"), suffix, classes)
        return Sample(
            images,
            inspection,
            labels,
            np.searchsorted(labels, y).astype(np.intp),
            weights[positions],
            positions,
            None if codes is None else codes[positions],
        )

    def _inspect(self, images: Images, positions: Rows) -> tuple[Inspection, Rows]:
        """Read the images at some positions once; leave bad ones out if asked."""
        digest: Callable | None = pixel_digest if self.digests else None
        found = inspect_images(
            _Subset(images, positions), self.size, skip_bad=self.skip_bad, digest=digest
        )
        if not found.bad:
            return found, positions
        if len(found.bad) == len(positions):
            raise ValueError(f"no image can be used; the first: {found.complaints[0]}")
        warnings.warn(
            f"{len(found.bad)} of {len(positions)} images are left out; the first: "
            f"{found.complaints[0]}",
            stacklevel=5,
        )
        return found.without_bad(), np.delete(positions, found.bad)

    def _labels(self, found: NDArray, suffix: str, classes: NDArray | None) -> NDArray:
        """Refuse a single class, and classes other than those of the training rows."""
        if classes is None and len(found) < 2:
            raise ValueError(
                f"{self.estimator} needs at least two classes in y; got only "
                f"one class: {found.tolist()[0]!r}"
            )
        if classes is not None and set(found.tolist()) != set(classes.tolist()):
            raise ValueError(
                f"y{suffix} must hold every class of y and no other; it has "
                f"{found.tolist()}, y has {classes.tolist()}"
            )
        return found if classes is None else classes


@dataclass(frozen=True)
class _Subset:
    """Images at some positions."""

    images: Images
    positions: Rows

    def __len__(self) -> int:
        return len(self.positions)

    def read_one(self, row: int, size: Size) -> Pixels:
        """Pixels of one image."""
        return self.images.read_one(int(self.positions[row]), size)


def _checked_class_weights(given: dict[Any, float], labels: list) -> Floats:
    if set(given) != set(labels):
        raise ValueError(
            f"class_weight must name every class of y and no other: expected "
            f"{labels}, got {list(given)}"
        )
    found = np.array([given[label] for label in labels], float)
    if not np.isfinite(found).all() or found.min() < 0 or not found.any():
        raise ValueError(
            "class_weight must hold finite numbers of at least 0, not all "
            f"zero; got {given}"
        )
    return found
