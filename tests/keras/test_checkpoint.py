"""Interrupted fits go on after their last epoch."""

import numpy as np
import pytest
from sklearn.base import clone

from skcalfair.keras import _checkpoint
from skcalfair.keras._backend import import_keras
from skcalfair.keras._checkpoint import Checkpoint, Digest, Progress


@pytest.fixture
def interrupt():
    """Callback that ends a fit by an error at an epoch, counted from 0."""

    class Interrupt(import_keras().callbacks.Callback):
        def __init__(self, epoch):
            super().__init__()
            self.epoch = epoch

        def on_epoch_begin(self, epoch, logs=None):
            if epoch == self.epoch:
                raise KeyboardInterrupt

    return Interrupt


OPTIONS = {
    "max_epochs": 4,
    "learning_rate": 5e-3,
    "hidden_units": (8,),
    "dropout": 0.3,
    "validation_fraction": 0.3,
}


@pytest.mark.parametrize(
    "random_state", [pytest.param(0, marks=pytest.mark.every_backend), None]
)
def test_a_resumed_fit_has_the_same_result(
    narrow, lesions, tmp_path, interrupt, random_state
):
    X, y = lesions.images, lesions.target
    model = narrow(**OPTIONS, checkpoint_dir=tmp_path, random_state=random_state)
    for epoch in (2, 3):
        with pytest.raises(KeyboardInterrupt):
            clone(model).set_params(callbacks=[interrupt(epoch)]).fit(X, y)
        (folder,) = tmp_path.iterdir()
        progress, _, best = Checkpoint(folder).load()
        assert progress.epochs == epoch
        assert best is not None
    assert not list(folder.glob("*.part"))
    resumed = clone(model).fit(X, y)
    assert list(tmp_path.iterdir()) == []
    if random_state is None:
        # The seed of the fit that was interrupted.
        seed = progress.entropy
        rng = np.random.SeedSequence(seed)
        assert resumed.history_["loss"][:3] == progress.history["loss"]
        assert len(rng.entropy) == len(seed)
        return
    whole = narrow(**OPTIONS).fit(X, y)
    for name, values in whole.history_.items():
        assert resumed.history_[name] == pytest.approx(values, rel=1e-6)
    assert resumed.best_iter_ == whole.best_iter_
    np.testing.assert_array_equal(
        resumed.validation_indices_, whole.validation_indices_
    )
    np.testing.assert_allclose(
        resumed.decision_function(X), whole.decision_function(X), atol=1e-6
    )


def test_other_data_or_parameters_have_another_folder(
    narrow, lesions, tmp_path, interrupt
):
    X, y = lesions.images, lesions.target
    base = narrow(checkpoint_dir=tmp_path, max_epochs=2, callbacks=[interrupt(1)])
    other_pixel = X.copy()
    other_pixel[0, 0, 0, 0] += 1
    fits = [
        (base, (X, y), {}),
        (base, (X[:40], y[:40]), {}),
        (base, (other_pixel, y), {}),
        (base, (X, 1 - y), {}),
        (base, (X, y), {"sample_weight": np.linspace(1, 2, 48)}),
        (base, (X, y), {"groups": np.arange(48) // 2}),
        (base, (X, y), {"X_val": X[:8], "y_val": y[:8]}),
        (clone(base).set_params(rotation=0.06), (X, y), {}),
        (clone(base).set_params(random_state=1), (X, y), {}),
    ]
    for model, data, options in fits:
        with pytest.raises(KeyboardInterrupt):
            model.fit(*data, **options)
    assert len(list(tmp_path.iterdir())) == len(fits)
    # The same pixels in another container go on with the same fit.
    with pytest.raises(KeyboardInterrupt):
        base.fit(X.astype(float), y.tolist())
    assert len(list(tmp_path.iterdir())) == len(fits)


def test_a_fit_that_had_stopped_is_only_finished(
    narrow, lesions, tmp_path, monkeypatch
):
    X, y = lesions.images, lesions.target
    model = narrow(max_epochs=2, checkpoint_dir=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "delete", lambda self: None)
        expected = clone(model).fit(X, y)
    resumed = model.fit(X, y)
    assert resumed.history_ == expected.history_
    np.testing.assert_array_equal(
        resumed.decision_function(X), expected.decision_function(X)
    )


def test_writing_is_all_or_nothing(tmp_path, monkeypatch):
    checkpoint = Checkpoint(tmp_path / "fit")
    weights = [np.arange(3.0), np.ones((2, 2), dtype=np.float32)]
    first = Progress([1, 2], [3], {"loss": [0.5]}, best_epoch=1)
    checkpoint.save(first, weights, weights[:1])

    def fail(file, **arrays):
        file.write(b"half of a file")
        raise OSError("disk full")

    second = Progress([1, 2], [3], {"loss": [0.5, 0.4]}, best_epoch=2)
    with monkeypatch.context() as patch:
        patch.setattr(_checkpoint.np, "savez", fail)
        with pytest.raises(OSError, match="disk full"):
            checkpoint.save(second, weights, weights[:1])
    progress, current, best = checkpoint.load()
    assert progress == first
    for found, expected in zip([*current, *best], [*weights, weights[0]], strict=True):
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
    checkpoint.save(second, weights, weights)
    assert checkpoint.load()[0] == second
    assert sorted(path.name for path in checkpoint.folder.iterdir()) == [
        "best-00002.npz",
        "state.npz",
    ]
    checkpoint.delete()
    assert checkpoint.load() is None


def test_a_damaged_checkpoint_is_named(tmp_path):
    (tmp_path / "state.npz").write_bytes(b"no archive")
    with pytest.raises(ValueError, match=r"cannot be read.*delete that folder"):
        Checkpoint(tmp_path).load()


def test_digest_tells_values_apart():
    def of(*values):
        digest = Digest()
        digest.add(*values)
        return digest.hex()

    different = [
        of(1),
        of("1"),
        of(1, 2),
        of(12),
        of(np.array([1, 2])),
        of(np.array([1.0, 2.0])),
        of(np.array([[1, 2]])),
        of(np.array(["a", "bc"], dtype=object)),
        of(np.array(["ab", "c"], dtype=object)),
        of(b"1"),
        of(None),
    ]
    assert len(set(different)) == len(different)
    assert of(np.arange(4)[::2]) == of(np.array([0, 2]))
