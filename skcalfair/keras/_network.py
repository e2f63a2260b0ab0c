"""The network: VGG-19, and a head that gives logits."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ._backend import import_keras

# Filters and number of convolutions of the five blocks.
BLOCKS = ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4))
# The pretrained weights take blue, green, red in this order, with this mean.
IMAGENET_MEAN = (123.68, 116.779, 103.939)
# A network of five halvings has nothing left of a smaller image.
SMALLEST_SIZE = 32


def convolution_names() -> list[str]:
    """Names of the 16 convolutions, from the image on."""
    return [
        f"block{block}_conv{i}"
        for block, (_, n) in enumerate(BLOCKS, start=1)
        for i in range(1, n + 1)
    ]


@dataclass(frozen=True)
class Head:
    """What follows the convolutions."""

    n_outputs: int
    pooling: str
    hidden_units: tuple[int, ...]
    dropout: float


@dataclass(frozen=True)
class Scaling:
    """Channels are reversed if asked, then (x - mean) / std."""

    mean: tuple[float, ...]
    std: tuple[float, ...]
    reverse: bool = False


def build_network(
    input_size: tuple[int, int],
    filters: tuple[int, ...],
    scaling: Scaling,
    head: Head,
    dropout_seed: int,
    policy: Any,
) -> Any:
    """Network from pixels in [0, 255] to logits; its weights are not set yet."""
    keras = import_keras()
    layers = keras.layers
    wide = wide_dtype(policy)
    x = inputs = keras.Input((*input_size, 3), dtype=wide, name="image")
    x = layers.Normalization(
        axis=-1,
        mean=list(scaling.mean),
        variance=[s**2 for s in scaling.std],
        dtype=wide,
        name="normalization",
    )(x)
    if scaling.reverse:
        x = keras.ops.flip(x, axis=-1)
    for block, (width, (_, n)) in enumerate(zip(filters, BLOCKS, strict=True), start=1):
        for i in range(1, n + 1):
            x = layers.Conv2D(
                width,
                3,
                padding="same",
                activation="relu",
                kernel_initializer="zeros",
                dtype=policy,
                name=f"block{block}_conv{i}",
            )(x)
        x = layers.MaxPooling2D(2, dtype=policy, name=f"block{block}_pool")(x)
    x = _add_head(keras, x, head, dropout_seed, policy)
    return keras.Model(inputs, x, name="vgg19")


def _add_head(keras: Any, x: Any, head: Head, seed: int, policy: Any) -> Any:
    layers, wide = keras.layers, wide_dtype(policy)
    pools = {
        "avg": layers.GlobalAveragePooling2D,
        "max": layers.GlobalMaxPooling2D,
        "flatten": layers.Flatten,
    }
    x = pools[head.pooling](dtype=policy, name="pool")(x)
    for i, units in enumerate(head.hidden_units, start=1):
        x = layers.Dense(
            units,
            activation="relu",
            kernel_initializer="zeros",
            dtype=policy,
            name=f"hidden{i}",
        )(x)
        x = _add_dropout(layers, x, head.dropout, seed + i, policy, f"dropout{i}")
    if not head.hidden_units:
        x = _add_dropout(layers, x, head.dropout, seed, policy, "dropout")
    # Half precision would round the logits, and with them the calibration.
    return layers.Dense(
        head.n_outputs, kernel_initializer="zeros", dtype=wide, name="logits"
    )(x)


def _add_dropout(
    layers: Any, x: Any, rate: float, seed: int, policy: Any, name: str
) -> Any:
    if not rate:
        return x
    return layers.Dropout(rate, seed=seed, dtype=policy, name=name)(x)


def wide_dtype(policy: Any) -> str:
    """Type of pixels and logits: float64 if the weights have it, else float32."""
    return "float64" if policy.variable_dtype == "float64" else "float32"


def draw_weights(model: Any, names: list[str], rng: np.random.Generator) -> None:
    """Set kernels of the named layers by He's rule, drawn alike on every backend."""
    for name in names:
        kernel = model.get_layer(name).kernel
        shape = tuple(kernel.shape)
        fan_in = int(np.prod(shape[:-1]))
        values = rng.standard_normal(shape, dtype=np.float32)
        kernel.assign(values * np.float32(np.sqrt(2.0 / fan_in)))


def freeze(model: Any, trainable_from: str | None) -> None:
    """Train from the named convolution on, or the head alone."""
    if trainable_from is None:
        return
    names = convolution_names()
    first = len(names) if trainable_from == "head" else names.index(trainable_from)
    for name in names[:first]:
        model.get_layer(name).trainable = False
