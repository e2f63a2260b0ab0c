"""Training of VGG19Classifier against the bare Keras fit of the same model.

Prints images per second of both, in the same run and after a warm-up, the overhead,
and the peak of memory. On a GPU, the defaults are those of the study; ``--quick`` is a
small run on a CPU that only shows that the script works.
"""

import resource
import sys
import time
from typing import Any

import click
import numpy as np

from skcalfair.datasets import make_skin_lesions
from skcalfair.keras import VGG19Classifier
from skcalfair.keras._augmentation import with_augmentation
from skcalfair.keras._backend import import_keras


@click.command()
@click.option("--images", default=1024, help="Number of training images.")
@click.option("--size", default=224, help="Height and width in pixels.")
@click.option("--batch-size", default=32)
@click.option("--epochs", default=4, help="Epochs timed, after one that is not.")
@click.option("--policy", default=None, help="For example mixed_float16.")
@click.option("--quick", is_flag=True, help="Small, to show that the script works.")
def main(
    images: int, size: int, batch_size: int, epochs: int, policy: str, quick: bool
) -> None:
    """Compare VGG19Classifier with the bare Keras fit of the same model."""
    if quick:
        images, size, batch_size, epochs = 16, 32, 8, 2
    keras = import_keras()
    print(f"keras {keras.__version__} on {keras.backend.backend()}, {device()}")
    print(f"{images} images of {size} pixels, batches of {batch_size}, {policy}")
    lesions = make_skin_lesions(images, size=size, random_state=0)
    X = lesions.images.astype(np.float32)
    clock = EpochClock.make()
    model = VGG19Classifier(
        weights=None,
        input_size=(size, size),
        batch_size=batch_size,
        max_epochs=epochs + 1,
        early_stopping=False,
        dtype_policy=policy,
        callbacks=[clock],
        random_state=0,
    ).fit(X, lesions.target)
    ours = clock.seconds[1:]
    bare = bare_fit(model, X, lesions.target, batch_size, epochs)
    for name, seconds in (("VGG19Classifier", ours), ("bare Keras fit", bare)):
        print(f"{name:16} {images / np.median(seconds):8.1f} images/s")
    # The fastest epochs: others are slowed by whatever else the machine does.
    print(f"overhead         {100 * (min(ours) / min(bare) - 1):8.1f} %")
    print(f"peak memory      {peak_megabytes():8.0f} MB")


class EpochClock:
    """Seconds of each epoch, as a callback."""

    @staticmethod
    def make() -> Any:
        class Clock(import_keras().callbacks.Callback):
            # Shared with the copy that a fit makes.
            seconds: list[float] = []

            def on_epoch_begin(self, epoch, logs=None):
                self.start = now()

            def on_epoch_end(self, epoch, logs=None):
                self.seconds.append(now() - self.start)

        return Clock()


def bare_fit(
    model: VGG19Classifier, X: np.ndarray, y: np.ndarray, batch_size: int, epochs: int
) -> list[float]:
    """Seconds of each epoch of `keras.Model.fit` on arrays, after the first."""
    keras = import_keras()
    whole = with_augmentation(model.model_, "reflect")
    whole.compile(
        optimizer=keras.optimizers.Adam(5e-4, clipnorm=1.0),
        loss=keras.losses.BinaryCrossentropy(from_logits=True),
    )
    matrices = np.tile(np.eye(2, dtype=np.float32), (len(X), 1, 1))
    clock = EpochClock.make()
    whole.fit(
        (X, matrices),
        y[:, np.newaxis].astype(np.float32),
        sample_weight=np.ones(len(X), dtype=np.float32),
        batch_size=batch_size,
        epochs=epochs + 1,
        callbacks=[clock],
        verbose=0,
    )
    return clock.seconds[1:]


def device() -> str:
    """Name of what computes."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return "another device" if torch is None else "CPU"


def now() -> float:
    """Seconds on the clock once the GPU is done; of this process's work on a CPU."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.synchronize()
        return time.perf_counter()
    # What else a CPU has to do must not count.
    return time.process_time()


def peak_megabytes() -> float:
    """Peak memory of the GPU, or of the process on a CPU."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
