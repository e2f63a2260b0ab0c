"""Batches of images in an order that depends on the seed and the epoch alone."""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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

    def __init__(
        self, images: Images, size: Size, batch_size: int, seed: Seed | None = None
    ) -> None:
        self.images = images
        self.size = size
        self.batch_size = batch_size
        self.seed = seed
        self._ahead: tuple[bytes, Future] | None = None
        self._thread = ThreadPoolExecutor(1)

    def order(self, n: int, epoch: int) -> Rows:
        """Positions of n rows in an epoch: shuffled if there is a seed."""
        if self.seed is None:
            return np.arange(n)
        return np.random.default_rng(epoch_seed(self.seed, epoch)).permutation(n)

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


def epoch_seed(seed: Seed, epoch: int) -> Seed:
    """Seed of one epoch, so that an epoch is the same wherever training began."""
    return Seed(seed.entropy, spawn_key=(*seed.spawn_key, epoch))


def make_dataset(part: Part, reader: Reader) -> Any:
    """Wrap a part as a Keras dataset; set its `epoch` when an epoch begins."""

    class Batches(import_keras().utils.PyDataset):  # type: ignore[misc]
        # One worker: with more, Keras reads ahead into epochs not begun yet.
        def __init__(self) -> None:
            super().__init__(workers=1, use_multiprocessing=False)
            self.epoch = 0

        def __len__(self) -> int:
            return -(-len(part) // reader.batch_size)

        def _positions(self, i: int) -> Rows:
            order = reader.order(len(part), self.epoch)
            return order[i * reader.batch_size : (i + 1) * reader.batch_size]

        def __getitem__(self, i: int) -> tuple[Pixels, NDArray, NDArray]:
            now, then = self._positions(i), self._positions(i + 1)
            pixels = reader.read(part.rows[now], part.rows[then])
            return pixels, part.target[now], part.weight[now]

    return Batches()


def logits(model: Any, images: Images, size: Size, batch_size: int) -> NDArray:
    """Output of the network for all images, in their order."""
    reader = Reader(images, size, batch_size)
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
