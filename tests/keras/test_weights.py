"""Weights of the convolutions: ImageNet's, from files, or drawn."""

import numpy as np
import pytest

from skcalfair.keras import VGG19Classifier, _weights
from skcalfair.keras._backend import import_keras, keras_home
from skcalfair.keras._network import (
    BLOCKS,
    Head,
    Scaling,
    build_network,
    convolution_names,
    draw_weights,
)
from skcalfair.keras._weights import IMAGENET_FILE, read_convolutions

h5py = pytest.importorskip("h5py")


@pytest.fixture
def pairs(narrow):
    """Kernels and biases of the convolutions of a narrow network."""
    rng = np.random.default_rng(0)
    model = VGG19Classifier(weights=None)
    found, channels = [], 3
    for name in convolution_names():
        width = model._filters[int(name[5]) - 1]
        kernel = rng.normal(size=(3, 3, channels, width)).astype(np.float32)
        found.append((kernel, rng.normal(size=width).astype(np.float32)))
        channels = width
    return dict(zip(convolution_names(), found, strict=True))


def write_legacy(path, pairs, more=()):
    """Write a file as the published ones are: a group a layer, by name."""
    with h5py.File(path, "w") as file:
        for name, (kernel, bias) in [*pairs.items(), *more]:
            group = file.create_group(name)
            group[f"{name}_W_1:0"] = kernel
            group[f"{name}_b_1:0"] = bias
            group.attrs["weight_names"] = [f"{name}_W_1:0", f"{name}_b_1:0"]
        file.create_group("block1_pool")
    return path


def network(filters):
    scaling = Scaling((0.0,) * 3, (1.0,) * 3)
    policy = import_keras().DTypePolicy("float32")
    return build_network((32, 32), filters, scaling, Head(1, "avg", (), 0.0), 0, policy)


def assert_starts_from(model, pairs, lesions):
    """Whether a fit at a rate of nothing has the weights of a file."""
    model.set_params(learning_rate=1e-30).fit(lesions.images, lesions.target)
    for name, (kernel, bias) in pairs.items():
        layer = model.model_.get_layer(name)
        np.testing.assert_array_equal(layer.get_weights()[0], kernel)
        np.testing.assert_array_equal(layer.get_weights()[1], bias)


@pytest.mark.parametrize("kind", ["notop", "top", "keras 3", "whole classifier"])
def test_a_file_of_weights(narrow, lesions, tmp_path, pairs, kind):
    if kind in ("notop", "top"):
        top = [("fc1", (np.ones((4, 5)), np.ones(5)))] if kind == "top" else []
        path = write_legacy(tmp_path / "vgg19.h5", pairs, top)
    else:
        model = network(VGG19Classifier._filters)
        for name, pair in pairs.items():
            model.get_layer(name).set_weights(pair)
        if kind == "keras 3":
            keras = import_keras()
            model = keras.Model(model.input, model.get_layer("block5_pool").output)
        else:
            model.compile(optimizer="adam", loss="mse")
            model.train_on_batch(np.zeros((1, 32, 32, 3)), np.zeros((1, 1)))
            for name, pair in pairs.items():
                model.get_layer(name).set_weights(pair)
        path = tmp_path / "vgg19.weights.h5"
        model.save_weights(path)
    model = narrow(weights=path)
    assert_starts_from(model, pairs, lesions)
    assert model.weights_source_ == str(path)
    # Neither the warm-up nor the clipped gradients of random weights.
    assert model.history_["learning_rate"] == pytest.approx([1e-30])


def test_files_that_do_not_fit_are_refused(narrow, lesions, tmp_path, pairs):
    def fit(path):
        narrow(weights=path).fit(lesions.images, lesions.target)

    with pytest.raises(FileNotFoundError, match=r"missing\.h5' does not exist"):
        fit(tmp_path / "missing.h5")
    text = tmp_path / "text.h5"
    text.write_text("no weights")
    with pytest.raises(ValueError, match=r"text\.h5' is no HDF5 file"):
        fit(str(text))
    other = tmp_path / "weights.npz"
    other.write_text("")
    with pytest.raises(ValueError, match=r"\.h5 or \.weights\.h5 file; got"):
        fit(other)
    some = {name: pairs[name] for name in convolution_names()[:10]}
    path = write_legacy(tmp_path / "some.h5", some)
    with pytest.raises(ValueError, match=r"does not hold the 16 convolutions.*has 10"):
        fit(path)
    wide = dict(pairs) | {"block5_conv4": (np.ones((3, 3, 16, 512)), np.ones(512))}
    path = write_legacy(tmp_path / "wide.h5", wide)
    with pytest.raises(ValueError, match="block5_conv4 needs arrays of shapes"):
        fit(path)


# -- ImageNet -------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    (tmp_path / "keras" / "models").mkdir(parents=True)
    assert keras_home() == tmp_path / "keras"
    return tmp_path / "keras"


def test_without_a_network_the_error_says_where_to_put_the_file(
    narrow, lesions, home, monkeypatch
):
    def get_file(name, url, cache_subdir, file_hash):
        raise Exception(f"URL fetch failure on {url}: None -- no route to host")

    monkeypatch.setattr(import_keras().utils, "get_file", get_file)
    with pytest.raises(OSError, match="could not be downloaded") as error:
        narrow(weights="imagenet").fit(lesions.images, lesions.target)
    message = str(error.value)
    assert str(home / "models" / IMAGENET_FILE) in message
    assert "no route to host" in message
    assert "weights=" in message


def test_a_file_of_another_content_is_left_alone(narrow, lesions, home, pairs):
    path = write_legacy(home / "models" / IMAGENET_FILE, pairs)
    content = path.read_bytes()
    with pytest.raises(ValueError, match="is not the published file"):
        narrow(weights="imagenet").fit(lesions.images, lesions.target)
    assert path.read_bytes() == content


def test_a_downloaded_file_is_used(narrow, lesions, home, pairs, monkeypatch):
    path = write_legacy(home / "models" / IMAGENET_FILE, pairs)
    monkeypatch.setattr(_weights, "IMAGENET_MD5", _weights.file_md5(path))
    model = narrow(weights="imagenet")
    assert_starts_from(model, pairs, lesions)
    assert model.weights_source_ == "imagenet"


def test_names_are_those_that_keras_publishes():
    source = import_keras().applications.vgg19
    url = getattr(source, "WEIGHTS_PATH_NO_TOP", _weights.IMAGENET_URL)
    assert url == _weights.IMAGENET_URL


# -- the network ----------------------------------------------------------------------


@pytest.mark.every_backend
def test_the_network_is_that_of_keras(lesions):
    model = network(tuple(width for width, _ in BLOCKS))
    theirs = import_keras().applications.VGG19(
        weights=None, include_top=False, input_shape=(32, 32, 3), pooling="avg"
    )
    draw_weights(model, convolution_names(), np.random.default_rng(0))
    for name in convolution_names():
        theirs.get_layer(name).set_weights(model.get_layer(name).get_weights())
    x = lesions.images[:2].astype(np.float32)
    keras = import_keras()
    ours = keras.Model(model.input, model.get_layer("pool").output)
    np.testing.assert_allclose(
        ours.predict_on_batch(x), theirs.predict_on_batch(x), rtol=1e-4
    )


def test_drawn_weights_follow_hes_rule():
    model = network((8, 8, 16, 16, 16))
    draw_weights(model, convolution_names(), np.random.default_rng(0))
    kernel = model.get_layer("block4_conv2").get_weights()[0]
    assert kernel.std() == pytest.approx(np.sqrt(2 / (9 * 16)), rel=0.05)
    assert kernel.mean() == pytest.approx(0, abs=0.01)
    assert not model.get_layer("block4_conv2").get_weights()[1].any()


def test_convolutions_are_read_in_order(tmp_path, narrow, pairs):
    path = write_legacy(tmp_path / "vgg19.h5", pairs)
    for (kernel, bias), expected in zip(
        read_convolutions(path), pairs.values(), strict=True
    ):
        np.testing.assert_array_equal(kernel, expected[0])
        np.testing.assert_array_equal(bias, expected[1])
