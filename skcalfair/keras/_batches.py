"""Batches of images in an order that depends on the seed and the epoch alone."""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._augmentation import Augmentation
from ._backend import import_keras
from ._images import Images, Pixels, Rows, Size, read_rows

Seed = np.random.SeedSequence


@dataclass(frozen=True)
class Part:
    """Rows of the images that a model trains on or is validated with."""

    images: Images
    rows: Rows
    target: NDArray
    weight: NDArray

    def __len__(self) -> int:
        return len(self.rows)


class Reader:
    """Reads batches, each while the model works on the one before."""

    def __init__(self, images: Images, size: Size) -> None:
        self.images = images
        self.size = size
        self._ahead: tuple[bytes, Future] | None = None
        self._thread = ThreadPoolExecutor(1)

    def read(self, rows: Rows, then: Rows) -> Pixels:
        """Pixels of some rows; begins to read those that come next."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] == rows.tobytes():
            pixels: Pixels = ahead[1].result()
        else:
            pixels = read_rows(self.images, rows, self.size)
        if len(then):
            job = self._thread.submit(read_rows, self.images, then, self.size)
            self._ahead = (then.tobytes(), job)
        return pixels

    def close(self) -> None:
        """Stop reading ahead."""
        self._thread.shutdown(cancel_futures=True)


@dataclass
class Schedule:
    """Order and augmentation of a part: of training rows if there is a seed.

    They depend on the seed and the number of the epoch alone, so that an epoch is the
    same wherever training began, and on every backend.
    """

    n: int
    batch_size: int
    augmentation: Augmentation
    seed: Seed | None = None

    def __post_init__(self) -> None:
        self.begin(0)

    def begin(self, epoch: int) -> None:
        """Set order and augmentation of an epoch."""
        self.order = np.arange(self.n)
        self.matrices = np.tile(np.eye(2, dtype=np.float32), (self.n, 1, 1))
        if self.seed is not None:
            rng = np.random.default_rng(epoch_seed(self.seed, epoch))
            self.order = rng.permutation(self.n)
            self.matrices = self.augmentation.draw(self.n, rng)

    def batch(self, i: int) -> slice:
        """Places of a batch in the order; empty after the last one."""
        return slice(i * self.batch_size, (i + 1) * self.batch_size)


def epoch_seed(seed: Seed, epoch: int) -> Seed:
    """Seed of one epoch."""
    return Seed(seed.entropy, spawn_key=(*seed.spawn_key, epoch))


def make_dataset(part: Part, reader: Reader, schedule: Schedule) -> Any:
    """Wrap a part as a Keras dataset."""

    base: Any = import_keras().utils.PyDataset

    class Batches(base):
        # One worker: with more, Keras reads ahead into epochs that have not begun.
        def __init__(self) -> None:
            super().__init__(workers=1, use_multiprocessing=False)

        def __len__(self) -> int:
            return -(-len(part) // schedule.batch_size)

        def __getitem__(self, i: int) -> tuple[Any, NDArray, NDArray]:
            batch = schedule.batch(i)
            now, then = schedule.order[batch], schedule.order[schedule.batch(i + 1)]
            pixels = reader.read(part.rows[now], part.rows[then])
            x: Any = pixels
            if not schedule.augmentation.is_none:
                x = (pixels, schedule.matrices[batch])
            return x, part.target[now], part.weight[now]

    return Batches()


def logits(model: Any, images: Images, size: Size, batch_size: int) -> NDArray:
    """Output of the network for all images, in their order."""
    reader = Reader(images, size)
    every = np.arange(len(images))
    starts = range(0, len(every), batch_size)
    try:
        outputs = [
            model.predict_on_batch(
                reader.read(
                    every[start : start + batch_size],
                    every[start + batch_size : start + 2 * batch_size],
                )
            )
            for start in starts
        ]
    finally:
        reader.close()
    return np.concatenate(outputs).astype(np.float64)
