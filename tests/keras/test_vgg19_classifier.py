"""VGG19Classifier: training, prediction, and what becomes of its parameters."""

import copy
import inspect
import pickle
import random
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.utils import compute_class_weight

from skcalfair._log_odds import sigmoid
from skcalfair.datasets import make_skin_lesions
from skcalfair.keras import VGG19Classifier
from skcalfair.keras._backend import import_keras

SIGNATURE = {
    "weights": "imagenet",
    "input_size": (224, 224),
    "normalization": "dataset",
    "pooling": "avg",
    "hidden_units": (),
    "dropout": 0.0,
    "trainable_from": None,
    "horizontal_flip": True,
    "rotation": 0.05,
    "zoom": 0.1,
    "fill_mode": "reflect",
    "learning_rate": 5e-4,
    "clipnorm": None,
    "batch_size": 32,
    "max_epochs": 100,
    "early_stopping": True,
    "validation_fraction": 0.1,
    "n_iter_no_change": 20,
    "class_weight": "balanced",
    "dtype_policy": None,
    "callbacks": None,
    "checkpoint_dir": None,
    "on_bad_image": "raise",
    "random_state": None,
    "verbose": 0,
}
UNCHANGED = {"horizontal_flip": False, "rotation": 0.0, "zoom": 0.0}


def test_defaults_are_those_of_the_study():
    parameters = inspect.signature(VGG19Classifier).parameters
    assert {name: p.default for name, p in parameters.items()} == SIGNATURE
    assert {p.kind for p in parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}
    assert list(inspect.signature(VGG19Classifier.fit).parameters) == [
        "self",
        "X",
        "y",
        "sample_weight",
        "groups",
        "X_val",
        "y_val",
        "sample_weight_val",
    ]
    assert is_classifier(VGG19Classifier())


# -- the whole network ----------------------------------------------------------------


def test_a_step_of_the_whole_network_at_full_size():
    lesions = make_skin_lesions(2, size=224, random_state=0)
    model = VGG19Classifier(
        weights=None, max_epochs=1, early_stopping=False, batch_size=2, random_state=0
    ).fit(lesions.images, [0, 1])
    # The weights of 16 convolutions and of an output for 512 features.
    assert model.model_.count_params() == 20_024_384 + 513
    assert model.model_.input_shape == (None, 224, 224, 3)
    # The cross-entropy of a coin: nothing is known before the first step.
    assert model.history_["loss"] == pytest.approx([np.log(2)], abs=1e-6)
    assert np.ptp(model.decision_function(lesions.images)) > 0
    assert len(pickle.dumps(model)) < 4 * 20_024_897 + 100_000
    kept = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        kept.decision_function(lesions.images), model.decision_function(lesions.images)
    )


# -- learning -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_random_weights_learn(narrow, monkeypatch, seed):
    monkeypatch.setattr(VGG19Classifier, "_filters", (16, 32, 64, 128, 128))
    lesions = make_skin_lesions(160, size=32, random_state=seed)
    train, test = slice(0, 96), slice(96, None)
    model = narrow(max_epochs=12, random_state=seed).fit(
        lesions.images[train], lesions.target[train]
    )
    scores = model.decision_function(lesions.images[test])
    assert roc_auc_score(lesions.target[test], scores) > 0.8
    assert model.weights_source_ == "random"
    assert model.history_["learning_rate"][:6] == pytest.approx(
        5e-4 * np.array([0.2, 0.4, 0.6, 0.8, 1.0, 1.0])
    )


# -- what a fit leaves ----------------------------------------------------------------


@pytest.fixture
def fitted(narrow, lesions):
    return narrow(max_epochs=3).fit(lesions.images, lesions.target)


@pytest.mark.every_backend
def test_attributes(fitted, lesions):
    assert fitted.classes_.tolist() == [0, 1]
    assert list(fitted.history_) == ["loss", "val_loss", "learning_rate"]
    assert {len(values) for values in fitted.history_.values()} == {3}
    assert all(type(v) is float for v in fitted.history_["loss"])
    assert fitted.n_iter_ == 3
    assert fitted.best_iter_ == 1 + np.argmin(fitted.history_["val_loss"])
    assert fitted.backend_ == import_keras().backend.backend()
    assert isinstance(fitted.model_, import_keras().Model)
    training = np.delete(np.arange(48), fitted.validation_indices_)
    pixels = lesions.images[training].astype(np.float64)
    np.testing.assert_allclose(fitted.mean_, pixels.mean(axis=(0, 1, 2)))
    np.testing.assert_allclose(fitted.std_, pixels.std(axis=(0, 1, 2)))
    balanced = compute_class_weight(
        "balanced", classes=np.array([0, 1]), y=lesions.target[training]
    )
    assert list(fitted.class_weight_.values()) == pytest.approx(balanced)


@pytest.mark.every_backend
def test_predictions_agree_with_each_other(fitted, lesions):
    scores = fitted.decision_function(lesions.images)
    p = fitted.predict_proba(lesions.images)
    assert scores.shape == (48,)
    assert scores.dtype == p.dtype == np.float64
    np.testing.assert_array_equal(p[:, 1], sigmoid(scores))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    expected = fitted.classes_[(scores > 0).astype(int)]
    np.testing.assert_array_equal(fitted.predict(lesions.images), expected)
    # Nothing is drawn in prediction, and the rest of a batch does not matter.
    np.testing.assert_array_equal(fitted.decision_function(lesions.images), scores)
    np.testing.assert_allclose(
        fitted.decision_function(lesions.images[7:10]), scores[7:10], atol=1e-5
    )


def test_the_network_takes_pixels(fitted, lesions):
    pixels = lesions.images.astype(np.float32)
    np.testing.assert_allclose(
        fitted.model_.predict(pixels, verbose=0)[:, 0],
        fitted.decision_function(lesions.images),
        atol=1e-6,
    )


@pytest.mark.parametrize("normalization", ["imagenet", None])
def test_other_normalizations(narrow, lesions, normalization):
    model = narrow(normalization=normalization).fit(lesions.images, lesions.target)
    keras = import_keras()
    x = lesions.images[:4].astype(np.float32)
    expected = x
    if normalization == "imagenet":
        expected = keras.applications.vgg19.preprocess_input(x.copy())
    first = model.model_.get_layer("block1_conv1")
    part = keras.Model(model.model_.input, first.output)
    np.testing.assert_allclose(
        part.predict(x, verbose=0),
        keras.ops.convert_to_numpy(first(expected)),
        rtol=1e-4,
        atol=1e-3,
    )
    np.testing.assert_array_equal(model.std_, 1.0)


@pytest.mark.every_backend
def test_several_classes(narrow, lesions):
    y = np.array(["benign", "keratosis", "melanoma"])[np.arange(48) % 3]
    model = narrow(pooling="flatten", hidden_units=(6,), dropout=0.2).fit(
        lesions.images, y
    )
    scores = model.decision_function(lesions.images)
    p = model.predict_proba(lesions.images)
    assert scores.shape == p.shape == (48, 3)
    exponentials = np.exp(scores)
    np.testing.assert_allclose(p, exponentials / exponentials.sum(1, keepdims=True))
    np.testing.assert_array_equal(
        model.predict(lesions.images), model.classes_[scores.argmax(axis=1)]
    )
    assert sorted(model.class_weight_) == model.classes_.tolist()
    held_out = y[model.validation_indices_]
    assert sorted(set(held_out.tolist())) == model.classes_.tolist()
    expected = log_loss(held_out, p[model.validation_indices_])
    assert model.history_["val_loss"] == pytest.approx([expected], rel=1e-5)


@pytest.mark.parametrize("pooling", ["avg", "max", "flatten"])
def test_head(narrow, lesions, pooling):
    model = narrow(
        pooling=pooling, hidden_units=[8, 4], dropout=0.5, input_size=(64, 32)
    ).fit(lesions.images, lesions.target)
    names = [layer.name for layer in model.model_.layers]
    assert names[-6:] == [
        "pool",
        "hidden1",
        "dropout1",
        "hidden2",
        "dropout2",
        "logits",
    ]
    n_pooled = 2 * 16 if pooling == "flatten" else 16
    assert model.model_.get_layer("hidden1").kernel.shape == (n_pooled, 8)
    scores = model.decision_function(lesions.images)
    np.testing.assert_array_equal(model.decision_function(lesions.images), scores)


# -- files and arrays -----------------------------------------------------------------


def test_files_train_like_arrays(narrow, lesion_files):
    paths, images, y = lesion_files
    options = {"max_epochs": 2, "batch_size": 8}
    expected = narrow(**options).fit(images, y).decision_function(images)
    for X in (paths, pd.Series(paths), pd.DataFrame({"path": paths})):
        model = narrow(**options).fit(X, y)
        np.testing.assert_array_equal(model.decision_function(X), expected)
    np.testing.assert_array_equal(model.decision_function(images), expected)


def test_bad_files_raise_or_are_left_out(narrow, lesion_files, tmp_path):
    paths, _, y = lesion_files
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no image")
    missing = str(tmp_path / "missing.png")
    X = np.array([str(broken), *paths[:20], missing], dtype=object)
    y = np.array([1, *y[:20], 0])
    with pytest.raises(ValueError, match=r"broken\.png"):
        narrow().fit(X, y)
    with pytest.warns(UserWarning, match=r"2 of 22 images are left out.*broken.png"):
        model = narrow(on_bad_image="skip").fit(X, y)
    assert len(model.validation_indices_)
    assert not set(model.validation_indices_.tolist()) & {0, 21}
    good = narrow().fit(X[1:21], y[1:21])
    np.testing.assert_array_equal(
        good.validation_indices_ + 1, model.validation_indices_
    )
    np.testing.assert_array_equal(
        model.decision_function(X[1:21]), good.decision_function(X[1:21])
    )
    with pytest.raises(ValueError, match=r"missing\.png"):
        model.predict(X[20:])
    with pytest.raises(ValueError, match=r"no image can be used.*missing.png"):
        narrow(on_bad_image="skip").fit([missing, missing], [0, 1])


# -- loss and weights -----------------------------------------------------------------


@pytest.mark.parametrize(
    "class_weight", [None, "balanced", {0: 1.0, 1: 5.0}, {0: 0.0, 1: 1.0}]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_is_the_weighted_cross_entropy(
    narrow, lesions, class_weight, weighted
):
    keras = import_keras()

    class Record(keras.callbacks.Callback):
        """Gives the network an opinion, which training at this rate leaves."""

        def on_train_begin(self, logs=None):
            kernel = np.linspace(-3, 3, 16)[:, np.newaxis]
            self.model.get_layer("logits").kernel.assign(kernel)

    rng = np.random.default_rng(0)
    n = 32
    X, y = lesions.images[:n], lesions.target[:n]
    X_val, y_val = lesions.images[n:], lesions.target[n:]
    weights = {}
    if weighted:
        weights = {
            "sample_weight": rng.uniform(0.1, 3, n),
            "sample_weight_val": rng.uniform(0.1, 3, 48 - n),
        }
    model = narrow(
        class_weight=class_weight,
        learning_rate=1e-30,
        callbacks=[Record()],
        **UNCHANGED,
    ).fit(X, y, X_val=X_val, y_val=y_val, **weights)
    w = np.ones(n) if not weighted else weights["sample_weight"]
    w_val = np.ones(48 - n) if not weighted else weights["sample_weight_val"]
    by_class = np.ones(2)
    if class_weight == "balanced":
        by_class = w.sum() / (2 * np.bincount(y, weights=w))
    elif class_weight is not None:
        by_class = np.array([class_weight[0], class_weight[1]])
    assert model.class_weight_ == pytest.approx(dict(enumerate(by_class)))
    for name, pixels, outcome, share in (
        ("loss", X, y, w * by_class[y]),
        ("val_loss", X_val, y_val, w_val * by_class[y_val]),
    ):
        p = sigmoid(model.decision_function(pixels))
        each = -np.log(np.where(outcome == 1, p, 1 - p))
        expected = (share * each).sum() / share.sum()
        assert abs(expected - np.log(2)) > 1e-3
        assert model.history_[name] == pytest.approx([expected], rel=1e-4)


def test_rows_of_weight_zero_are_not_there(narrow, lesions):
    X = lesions.images.astype(np.float32)
    weights = np.ones(48)
    weights[[3, 40]] = 0.0
    X[3] = np.nan
    weighted = narrow().fit(X, lesions.target, sample_weight=weights)
    kept = np.flatnonzero(weights)
    without = narrow().fit(X[kept], lesions.target[kept])
    np.testing.assert_array_equal(
        weighted.decision_function(X[kept]), without.decision_function(X[kept])
    )
    np.testing.assert_array_equal(
        weighted.validation_indices_, kept[without.validation_indices_]
    )


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({0: 1.0}, r"must name every class.*expected \[0, 1\], got \[0\]"),
        ({0: 1.0, 1: 1.0, 2: 1.0}, r"got \[0, 1, 2\]"),
        ({0: 1.0, 1: -1.0}, "finite numbers of at least 0"),
        ({0: 0.0, 1: 0.0}, "not all zero"),
    ],
)
def test_class_weights_are_checked(narrow, lesions, class_weight, message):
    with pytest.raises(ValueError, match=message):
        narrow(class_weight=class_weight).fit(lesions.images, lesions.target)


# -- validation and early stopping ----------------------------------------------------


def test_validation_is_stratified_and_keeps_groups_whole(narrow, lesions):
    y = (np.arange(48) < 12).astype(int)
    held_out = narrow(validation_fraction=0.25).fit(lesions.images, y)
    rows = held_out.validation_indices_
    assert np.bincount(y[rows]).tolist() == [9, 3]
    assert (np.diff(rows) > 0).all()
    patients = np.array([f"patient {i // 3}" for i in range(48)])
    model = narrow(validation_fraction=0.25).fit(lesions.images, y, groups=patients)
    rows = model.validation_indices_
    rest = np.delete(np.arange(48), rows)
    assert not set(patients[rows]) & set(patients[rest])
    assert set(y[rows]) == set(y[rest]) == {0, 1}
    assert 6 <= len(rows) <= 18


def test_validation_needs_every_class_on_both_sides(narrow, lesions):
    y = np.zeros(48, dtype=int)
    y[5] = 1
    with pytest.raises(ValueError, match="class 1 has only one row"):
        narrow().fit(lesions.images, y)
    assert narrow(early_stopping=False).fit(lesions.images, y).n_iter_ == 1
    patients = np.arange(48) // 2
    y[4] = 1
    with pytest.raises(ValueError, match="class 1 occurs in one of groups only"):
        narrow().fit(lesions.images, y, groups=patients)


def test_validation_rows_of_the_caller(narrow, lesions):
    X, y = lesions.images[:32], lesions.target[:32]
    X_val, y_val = lesions.images[32:], lesions.target[32:]
    model = narrow(max_epochs=2).fit(X, y, X_val=X_val, y_val=y_val)
    assert model.validation_indices_.tolist() == []
    np.testing.assert_allclose(model.mean_, X.mean(axis=(0, 1, 2)))
    with pytest.raises(ValueError, match="requires y_val to be passed"):
        narrow().fit(X, y, X_val=X_val)
    with pytest.raises(ValueError, match="need X_val"):
        narrow().fit(X, y, y_val=y_val)
    with pytest.raises(ValueError, match="y_val must hold every class of y"):
        narrow().fit(X, y, X_val=X_val, y_val=np.zeros(16, dtype=int))


def test_early_stopping_restores_the_best_weights(narrow, lesions):
    # Random labels and a high rate: validation soon gets worse.
    y = np.random.default_rng(0).integers(0, 2, 48)
    options = {"max_epochs": 30, "n_iter_no_change": 3, "learning_rate": 0.01}
    model = narrow(**options, clipnorm=0.1, validation_fraction=0.3).fit(
        lesions.images, y
    )
    losses = model.history_["val_loss"]
    assert model.n_iter_ == len(losses) == model.best_iter_ + 3 < 30
    assert np.argmin(losses) == model.best_iter_ - 1
    rows = model.validation_indices_
    weights = np.array([model.class_weight_[label] for label in y[rows]])
    p = model.predict_proba(lesions.images[rows])
    assert log_loss(y[rows], p, sample_weight=weights) == pytest.approx(
        losses[model.best_iter_ - 1], rel=1e-5
    )


def test_without_early_stopping_the_last_weights_are_kept(narrow, lesions):
    model = narrow(early_stopping=False, max_epochs=2)
    model.fit(lesions.images, lesions.target)
    assert model.n_iter_ == model.best_iter_ == 2
    assert "val_loss" not in model.history_
    assert model.validation_indices_.tolist() == []


def test_divergence_is_an_error(narrow, lesions):
    X = lesions.images * np.float32(1e36)
    with pytest.raises(FloatingPointError, match=r"loss is .*after epoch 1.*clipnorm"):
        narrow(normalization=None).fit(X, lesions.target)


# -- random numbers -------------------------------------------------------------------


def test_random_state(narrow, lesions):
    def fit(random_state):
        options = {"hidden_units": (8,), "dropout": 0.5}
        model = narrow(**options, random_state=random_state)
        return model.fit(lesions.images, lesions.target)

    one = fit(0)
    same = clone(one).fit(lesions.images, lesions.target)
    assert same.history_ == one.history_
    np.testing.assert_array_equal(
        same.predict_proba(lesions.images), one.predict_proba(lesions.images)
    )
    for make in (np.random.default_rng, np.random.RandomState):
        assert fit(make(3)).history_ == fit(make(3)).history_ != one.history_
    assert fit(None).history_ != one.history_


@pytest.mark.every_backend
def test_global_state_is_left_alone(narrow, lesions):
    keras = import_keras()
    torch = sys.modules.get("torch")

    def state():
        found = [random.getstate(), np.random.get_state()[1].tolist()]  # noqa: NPY002
        found += [keras.config.dtype_policy().name, keras.config.floatx()]
        found += [] if torch is None else [torch.get_rng_state().tolist()]
        return found

    before = state()
    model = narrow(dtype_policy="mixed_bfloat16", dropout=0.5)
    model.fit(lesions.images, lesions.target).predict(lesions.images)
    pickle.loads(pickle.dumps(model))
    assert state() == before


# -- the network's types --------------------------------------------------------------


@pytest.mark.every_backend
def test_mixed_precision_keeps_the_output_in_full(narrow, lesions):
    model = narrow(dtype_policy="mixed_bfloat16").fit(lesions.images, lesions.target)
    layers = {layer.name: layer for layer in model.model_.layers}
    assert layers["block3_conv1"].compute_dtype == "bfloat16"
    assert layers["block3_conv1"].kernel.dtype == "float32"
    assert layers["logits"].compute_dtype == "float32"
    assert layers["normalization"].compute_dtype == "float32"
    kept = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        kept.decision_function(lesions.images), model.decision_function(lesions.images)
    )


def test_part_of_the_network_can_be_frozen(narrow, lesions):
    for trainable_from, n_changed in (("block5_conv1", 4), ("head", 0)):
        start, end = (
            narrow(trainable_from=trainable_from, max_epochs=epochs, learning_rate=rate)
            .fit(lesions.images, lesions.target)
            .model_
            for epochs, rate in ((1, 1e-30), (3, 1e-2))
        )
        changed = [
            old.name
            for old, new in zip(start.layers, end.layers, strict=True)
            if "conv" in old.name
            and not np.array_equal(old.get_weights()[0], new.get_weights()[0])
        ]
        assert len(changed) == n_changed
        assert all(name.startswith("block5") for name in changed)
        assert np.any(end.get_layer("logits").get_weights()[0])


# -- copies ---------------------------------------------------------------------------


@pytest.mark.every_backend
def test_copies_predict_alike(fitted, lesions):
    expected = fitted.decision_function(lesions.images)
    for made in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        np.testing.assert_array_equal(made.decision_function(lesions.images), expected)
        assert made.history_ == fitted.history_
        again = pickle.loads(pickle.dumps(made))
        np.testing.assert_array_equal(again.decision_function(lesions.images), expected)
    assert not hasattr(clone(fitted), "model_")


# -- callbacks and progress -----------------------------------------------------------


def test_callbacks_are_used_but_not_kept(narrow, lesions):
    keras = import_keras()

    class Stop(keras.callbacks.Callback):
        def __init__(self):
            super().__init__()
            self.epochs = []

        def on_epoch_end(self, epoch, logs=None):
            self.epochs.append((epoch, sorted(logs)))
            self.model.stop_training = epoch == 1

    stop = Stop()
    model = narrow(callbacks=[stop], max_epochs=5).fit(lesions.images, lesions.target)
    assert model.n_iter_ == 2
    assert stop.epochs == [(0, ["loss", "val_loss"]), (1, ["loss", "val_loss"])]
    with pytest.raises((AttributeError, TypeError)):
        _ = stop.model.layers
    assert pickle.loads(pickle.dumps(model.set_params(callbacks=None))).n_iter_ == 2


def test_progress_bar(narrow, lesions, capsys):
    narrow(max_epochs=2).fit(lesions.images, lesions.target)
    assert capsys.readouterr() == ("", "")
    narrow(max_epochs=2, verbose=1).fit(lesions.images, lesions.target)
    out, err = capsys.readouterr()
    assert out == ""
    assert "2/2" in err
    assert "loss=" in err
    assert "val_loss=" in err


# -- parameters -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input_size": (16, 32)}, "both at least 32; got \\(16, 32\\)"),
        ({"input_size": (32,)}, "must be \\(height, width\\)"),
        ({"input_size": 32}, "The 'input_size' parameter"),
        ({"hidden_units": (0,)}, "hidden_units must hold whole numbers"),
        ({"trainable_from": "block9"}, "The 'trainable_from' parameter"),
        ({"pooling": "sum"}, "The 'pooling' parameter"),
        ({"validation_fraction": 1.0}, "The 'validation_fraction' parameter"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_parameters_are_checked(narrow, lesions, options, message):
    with pytest.raises(ValueError, match=message):
        narrow(**options).fit(lesions.images, lesions.target)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed"),
        (np.zeros(48), "only one class: 0"),
        (np.zeros(47), "equal lengths; X has 48 rows, y has 47 rows"),
        (np.linspace(0, 1, 48), "continuous"),
    ],
)
def test_labels_are_checked(narrow, lesions, y, message):
    with pytest.raises(ValueError, match=message):
        narrow().fit(lesions.images, y)
