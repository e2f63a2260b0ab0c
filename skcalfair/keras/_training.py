"""Training with early stopping, checkpoints and a progress bar."""

import copy
import gc
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from ._augmentation import Augmentation, with_augmentation
from ._backend import import_keras, values_of
from ._batches import Part, Reader, Schedule, epoch_seed, make_dataset
from ._checkpoint import Checkpoint, Progress
from ._images import Size
from ._network import wide_dtype

Seed = np.random.SeedSequence

# Random convolutions are not trained at the full rate from the first step on: without
# this, and without a bound on the gradient, many seeds end in a constant output.
WARM_UP_EPOCHS = 5
WARM_UP_CLIPNORM = 1.0


@dataclass(frozen=True)
class Recipe:
    """How to train; `patience` is None where training goes on to the last epoch."""

    input_size: Size
    augmentation: Augmentation
    learning_rate: float
    clipnorm: float | None
    warm_up: int
    batch_size: int
    max_epochs: int
    patience: int | None
    callbacks: Sequence[Any]
    verbose: bool


@dataclass(frozen=True)
class Data:
    """Training and validation part; binary targets have two classes."""

    training: Part
    validation: Part | None
    binary: bool


def train(
    model: Any,
    data: Data,
    recipe: Recipe,
    policy: Any,
    seeds: tuple[Seed, Seed],
    progress: Progress,
    checkpoint: Checkpoint | None,
) -> Progress:
    """Train from the epoch after the last one of `progress`; set the best weights."""
    order_seed, draw_seed = seeds
    whole = _compiled(model, data.binary, recipe, policy)
    fit = _Fit(model, whole, data, recipe, draw_seed, progress, checkpoint)
    fit.restore()
    if not progress.stopped and progress.epochs < recipe.max_epochs:
        fit.run(order_seed)
    if fit.best is not None and recipe.patience is not None:
        model.set_weights(fit.best)
    # The optimizer holds twice the weights, in cycles that only a collection frees.
    del whole, fit
    gc.collect()
    return progress


def _compiled(model: Any, binary: bool, recipe: Recipe, policy: Any) -> Any:
    """Model for training around the network: augmentation, loss and optimizer."""
    keras = import_keras()
    if recipe.augmentation.is_none:
        whole = keras.Model(model.input, model.output, name="training")
    else:
        whole = with_augmentation(model, recipe.augmentation.fill_mode)
    optimizer = keras.optimizers.Adam(recipe.learning_rate, clipnorm=recipe.clipnorm)
    if policy.name == "mixed_float16":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    losses, wide = keras.losses, wide_dtype(policy)
    if binary:
        loss = losses.BinaryCrossentropy(from_logits=True, dtype=wide)
    else:
        loss = losses.SparseCategoricalCrossentropy(from_logits=True, dtype=wide)
    whole.compile(optimizer=optimizer, loss=loss)
    return whole


class _Fit:
    """State of one fit, and what happens at the ends of its epochs."""

    def __init__(
        self,
        model: Any,
        whole: Any,
        data: Data,
        recipe: Recipe,
        draw_seed: Seed,
        progress: Progress,
        checkpoint: Checkpoint | None,
    ) -> None:
        self.model = model
        self.whole = whole
        self.data = data
        self.recipe = recipe
        self.draw_seed = draw_seed
        self.progress = progress
        self.checkpoint = checkpoint
        self.best: list[NDArray] | None = None

    def restore(self) -> None:
        """Set the variables to those of the checkpoint, if there is one."""
        self.whole.optimizer.build(self.whole.trainable_variables)
        found = self.checkpoint.load() if self.checkpoint else None
        if found is None:
            return
        _, current, self.best = found
        for variable, value in zip(self._variables(), current, strict=True):
            variable.assign(value)

    def run(self, order_seed: Seed) -> None:
        """Train epoch by epoch until there is nothing left to do."""
        keras, recipe, progress = import_keras(), self.recipe, self.progress
        with ExitStack() as stack:
            training, schedule = self._dataset(self.data.training, order_seed, stack)
            validation = None
            if self.data.validation is not None:
                validation, _ = self._dataset(self.data.validation, None, stack)
            bar = stack.enter_context(_bar(recipe, progress))

            def begin(epoch: int, logs: Any = None) -> None:
                schedule.begin(epoch)
                self._begin(epoch)

            def end(epoch: int, logs: dict[str, float]) -> None:
                self._end(epoch, logs)
                bar.set_postfix(
                    {k: v[-1] for k, v in progress.history.items() if "loss" in k},
                    refresh=False,
                )
                bar.update()

            own = keras.callbacks.LambdaCallback(on_epoch_begin=begin, on_epoch_end=end)
            self.whole.fit(
                training,
                validation_data=validation,
                initial_epoch=progress.epochs,
                epochs=recipe.max_epochs,
                # Copies, so that those of the caller are not bound to this model.
                callbacks=[own, *(copy.copy(other) for other in recipe.callbacks)],
                shuffle=False,
                verbose=0,
            )

    def _dataset(self, part: Part, seed: Seed | None, stack: ExitStack) -> Any:
        """Batches of a part, and their schedule; seeded for training."""
        reader = Reader(part.images, self.recipe.input_size)
        stack.callback(reader.close)
        augmentation = self.recipe.augmentation
        schedule = Schedule(len(part), self.recipe.batch_size, augmentation, seed)
        return make_dataset(part, reader, schedule), schedule

    def _begin(self, epoch: int) -> None:
        """Set what an epoch depends on besides the weights."""
        dropouts = [x for x in self.model.layers if hasattr(x, "seed_generator")]
        seeds = epoch_seed(self.draw_seed, epoch).generate_state(len(dropouts))
        for layer, seed in zip(dropouts, seeds.tolist(), strict=True):
            layer.seed_generator.state.assign([seed % 2**31, 0])
        if epoch < self.recipe.warm_up:
            share = (epoch + 1) / self.recipe.warm_up
            self.whole.optimizer.learning_rate = self.recipe.learning_rate * share

    def _end(self, epoch: int, logs: dict[str, float]) -> None:
        """Record an epoch, decide whether to stop, and write the checkpoint."""
        (rate,) = values_of([self.whole.optimizer.learning_rate])
        values = {
            name: float(logs[name]) for name in ("loss", "val_loss") if name in logs
        }
        for name, value in (values | {"learning_rate": float(rate)}).items():
            if not np.isfinite(value):
                raise FloatingPointError(
                    f"training diverged: {name} is {value} after epoch {epoch + 1}. "
                    "Lower learning_rate, or set clipnorm"
                )
            self.progress.history.setdefault(name, []).append(value)
        improved = self._improved()
        if improved:
            self.progress.best_epoch = epoch + 1
            self.best = values_of(self.model.weights)
        patience = self.recipe.patience
        if patience is not None and self.best is not None:
            self.progress.stopped = epoch + 1 - self.progress.best_epoch >= patience
            if self.progress.stopped:
                self.whole.stop_training = True
        if self.checkpoint is not None:
            current = values_of(self._variables())
            self.checkpoint.save(self.progress, current, self.best)

    def _improved(self) -> bool:
        """Whether the last epoch has the lowest validation loss so far."""
        losses = self.progress.history.get("val_loss")
        if self.recipe.patience is None or not losses:
            return False
        best = self.progress.best_epoch
        return best == 0 or losses[-1] < losses[best - 1]

    def _variables(self) -> list[Any]:
        """What training changes: weights, and the optimizer's state."""
        return [*self.model.weights, *self.whole.optimizer.variables]


@contextmanager
def _bar(recipe: Recipe, progress: Progress) -> Iterator[Any]:
    """Bar over epochs."""
    with tqdm(
        desc="epochs",
        total=recipe.max_epochs,
        initial=progress.epochs,
        disable=not recipe.verbose,
    ) as bar:
        yield bar
