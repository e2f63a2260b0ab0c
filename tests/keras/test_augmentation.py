"""Augmentation and the order of batches."""

import numpy as np
import pytest
from scipy.ndimage import affine_transform

from skcalfair.keras._augmentation import Augmentation, warp
from skcalfair.keras._backend import import_keras
from skcalfair.keras._batches import Part, Reader, Schedule, make_dataset
from skcalfair.keras._images import as_images

# What scipy calls them.
MODES = {
    "reflect": "reflect",
    "nearest": "nearest",
    "wrap": "grid-wrap",
    "constant": "grid-constant",
}


def warped(images, matrices, fill_mode):
    ops = import_keras().ops
    images = ops.convert_to_tensor(images.astype(np.float32))
    return ops.convert_to_numpy(warp(images, matrices, fill_mode))


@pytest.mark.every_backend
@pytest.mark.parametrize("fill_mode", MODES)
@pytest.mark.parametrize("size", [(32, 32), (33, 40)])
def test_warping_agrees_with_scipy(fill_mode, size):
    rng = np.random.default_rng(0)
    images = rng.uniform(0, 255, size=(3, *size, 3))
    matrices = Augmentation(True, 0.4, 0.6, fill_mode).draw(3, rng)
    found = warped(images, matrices, fill_mode)
    centre = (np.array(size) - 1) / 2
    for image, matrix, new in zip(images, matrices, found, strict=True):
        offset = centre - matrix @ centre
        for c in range(3):
            expected = affine_transform(
                image[..., c], matrix, offset, order=1, mode=MODES[fill_mode]
            )
            np.testing.assert_allclose(new[..., c], expected, atol=0.01)


def test_a_flip_is_exact():
    images = np.random.default_rng(0).uniform(0, 255, size=(20, 32, 32, 3))
    matrices = Augmentation(True, 0.0, 0.0, "reflect").draw(
        20, np.random.default_rng(1)
    )
    found = warped(images, matrices, "reflect")
    flipped = matrices[:, 1, 1] < 0
    assert 0 < flipped.sum() < 20
    expected = np.where(
        flipped[:, np.newaxis, np.newaxis, np.newaxis], images[:, :, ::-1], images
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_draws_are_within_their_bounds():
    rng = np.random.default_rng(0)
    matrices = Augmentation(False, 0.05, 0.1, "reflect").draw(2000, rng)
    scale = np.sqrt(np.linalg.det(matrices))
    angle = np.arctan2(matrices[:, 0, 1], matrices[:, 0, 0]) / (2 * np.pi)
    for values, centre, bound in ((scale, 1.0, 0.1), (angle, 0.0, 0.05)):
        assert np.abs(values - centre).max() <= bound + 1e-6
        assert np.abs(values - centre).max() > 0.98 * bound
        assert values.mean() == pytest.approx(centre, abs=0.05 * bound * 2)
    none = Augmentation(False, 0.0, 0.0, "reflect")
    assert none.is_none
    np.testing.assert_allclose(none.draw(2, rng), np.tile(np.eye(2), (2, 1, 1)))


def test_an_epoch_is_the_same_wherever_training_began():
    def schedule(epochs, seed=0):
        made = Schedule(
            50, 16, Augmentation(True, 0.1, 0.1, "wrap"), np.random.SeedSequence(seed)
        )
        for epoch in epochs:
            made.begin(epoch)
        return made

    one, other = schedule([0, 1, 2]), schedule([2])
    np.testing.assert_array_equal(one.order, other.order)
    np.testing.assert_array_equal(one.matrices, other.matrices)
    assert sorted(one.order.tolist()) == list(range(50))
    for different in (schedule([1]), schedule([2], seed=1)):
        assert (different.order != one.order).any()
        assert (different.matrices != one.matrices).any()


def test_batches_hold_every_row_once():
    images = np.arange(10, dtype=np.uint8)[:, None, None, None] * np.ones(
        (1, 32, 32, 3), dtype=np.uint8
    )
    rows = np.array([9, 1, 2, 3, 4, 5, 7])
    part = Part(as_images(images), rows, 10 * rows, rows / 2)
    augmentation = Augmentation(True, 0.1, 0.1, "wrap")
    for seed in (None, np.random.SeedSequence(0)):
        schedule = Schedule(7, 3, augmentation, seed)
        reader = Reader(part.images, (32, 32))
        batches = make_dataset(part, reader, schedule)
        assert len(batches) == 3
        for epoch in (0, 1):
            schedule.begin(epoch)
            found = [batches[i] for i in range(3)]
            pixels = np.concatenate([x[0][:, 0, 0, 0] for x, _, _ in found])
            order = rows if seed is None else rows[schedule.order]
            np.testing.assert_array_equal(pixels, order)
            targets = np.concatenate([y for _, y, _ in found])
            np.testing.assert_array_equal(targets, 10 * order)
            weights = np.concatenate([w for _, _, w in found])
            np.testing.assert_array_equal(weights, order / 2)
            assert [len(y) for _, y, _ in found] == [3, 3, 1]
        matrices = np.concatenate([x[1] for x, _, _ in found])
        is_identity = (matrices == np.eye(2)).all()
        assert is_identity == (seed is None)
        reader.close()


@pytest.mark.every_backend
def test_training_sees_other_images_in_every_epoch_and_validation_does_not(
    narrow, lesions
):
    options = {"learning_rate": 1e-30, "max_epochs": 3, "hidden_units": (4,)}

    class Opinion(import_keras().callbacks.Callback):
        def on_train_begin(self, logs=None):
            network = self.model.layers[-1]
            layer = network.get_layer("logits")
            layer.kernel.assign(np.full((4, 1), 3.0))

    model = narrow(**options, callbacks=[Opinion()])
    model.fit(lesions.images, lesions.target)
    assert len(set(model.history_["loss"])) == 3
    assert len(set(model.history_["val_loss"])) == 1
