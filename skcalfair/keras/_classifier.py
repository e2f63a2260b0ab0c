"""VGG19Classifier: the image classifier of the calibration-bias study."""

from collections.abc import Sequence
from numbers import Integral, Real
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._log_odds import sigmoid
from .._random import RANDOM_STATE_CONSTRAINT, RandomStateLike, seed_sequence
from ._augmentation import Augmentation
from ._backend import import_keras, unchanged_random_state, values_of
from ._batches import logits
from ._checkpoint import Checkpoint, Digest, Progress
from ._images import Rows, as_images, channel_statistics
from ._network import (
    BLOCKS,
    IMAGENET_MEAN,
    SMALLEST_SIZE,
    Head,
    Scaling,
    build_network,
    convolution_names,
    freeze,
)
from ._sample import Floats, Reading, Sample
from ._split import validation_rows
from ._training import WARM_UP_CLIPNORM, WARM_UP_EPOCHS, Data, Recipe, train
from ._weights import file_md5, set_initial_weights

# Parameters that do not change what a fit arrives at.
WITHOUT_EFFECT = {"callbacks", "checkpoint_dir", "random_state", "verbose"}


class VGG19Classifier(ClassifierMixin, BaseEstimator):
    """Classify images with VGG-19, trained by the recipe of the calibration-bias study.

    Parameters
    ----------
    weights : "imagenet", path or None, default="imagenet"
        Weights that the convolutions start from: those of ImageNet, which are
        downloaded once; those of an ``.h5`` or ``.weights.h5`` file; or random ones.
    input_size : tuple of (int, int), default=(224, 224)
        Height and width to which images are resized, each at least 32.
    normalization : {"dataset", "imagenet"} or None, default="dataset"
        "dataset" subtracts the mean of each channel and divides by its standard
        deviation, both from the training part; "imagenet" is what the ImageNet weights
        were trained with (the order of the channels reversed, the mean of ImageNet
        subtracted, nothing divided) and expects pixels in [0, 255]; None takes the
        pixels as they are.
    pooling : {"avg", "max", "flatten"}, default="avg"
        What becomes of the feature maps after the last convolution.
    hidden_units : tuple of int, default=()
        Widths of hidden layers between pooling and output.
    dropout : float, default=0.0
        Rate of dropout in [0, 1) after each hidden layer, or before the output where
        there is none.
    trainable_from : str or None, default=None
        Name of the first convolution that is trained, such as "block5_conv1"; "head"
        trains only what follows the convolutions. By default everything is trained.
    horizontal_flip : bool, default=True
        Flip training images at random.
    rotation : float, default=0.05
        Largest rotation of training images, as a fraction of a full turn, in [0, 1].
    zoom : float, default=0.1
        Largest zoom in or out of training images, as a fraction in [0, 1).
    fill_mode : {"reflect", "nearest", "constant", "wrap"}, default="reflect"
        What rotation and zoom put beyond the edge.
    learning_rate : float, default=5e-4
        Learning rate of Adam.
    clipnorm : float, default=None
        Largest norm of each gradient. By default none is clipped, except with random
        weights; see Notes.
    batch_size : int, default=32
        Images of a training step, and of a step of prediction.
    max_epochs : int, default=100
        Largest number of epochs.
    early_stopping : bool, default=True
        Stop when the validation loss has not improved for `n_iter_no_change` epochs,
        and restore the weights of its lowest value.
    validation_fraction : float, default=0.1
        Share of the rows held out for early stopping, in (0, 1). Not used with
        ``early_stopping=False`` or when `fit` is given `X_val`.
    n_iter_no_change : int, default=20
        Epochs without improvement after which training stops.
    class_weight : "balanced", dict or None, default="balanced"
        Weight of each class in the loss; a dict must name every class. "balanced" is
        inversely proportional to the class frequencies of the training part.
    dtype_policy : str or keras.DTypePolicy, default=None
        For example "mixed_float16"; by default the policy Keras is set to. The output
        is never of half precision.
    callbacks : list of keras.callbacks.Callback, default=None
        Further callbacks. Copies are used, so that a fit does not change them.
    checkpoint_dir : str or path-like, default=None
        Folder for checkpoints. A fit that was interrupted goes on after its last epoch
        when it is repeated with the same parameters and data.
    on_bad_image : {"raise", "skip"}, default="raise"
        What `fit` does with an image that cannot be used: raise an error that names
        it, or leave the row out with a warning. Prediction always raises.
    random_state : int, Generator, RandomState or None, default=None
        Seed of validation part, initial weights, order, augmentation and dropout.
    verbose : int or bool, default=0
        1 shows a progress bar over epochs.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    model_ : keras.Model
        The network from pixels in [0, 255] to logits, normalisation included.
    history_ : dict of str to list of float
        Loss, validation loss and learning rate of each epoch: "loss", "val_loss" (if
        there is a validation part) and "learning_rate".
    n_iter_ : int
        Number of epochs trained.
    best_iter_ : int
        Epoch, counted from 1, whose weights the model has.
    mean_, std_ : ndarray of shape (3,)
        What is subtracted from red, green and blue, and what they are divided by.
    validation_indices_ : ndarray of int
        Rows of `X` held out for validation, ascending; empty if there are none.
    class_weight_ : dict
        Weight of each class.
    weights_source_ : str
        Where the convolutions started from: "imagenet", a path, or "random".
    backend_ : str
        Keras backend of the fit.

    See Also
    --------
    skcalfair.audit.SubgroupAuditor : Train, calibrate and audit a classifier by group.
    skcalfair.datasets.make_skin_lesions : Generated images to try it on.

    Notes
    -----
    `X` holds pixels in [0, 255], or paths of RGB files, which are read when they are
    needed: only a batch is in memory. Files and arrays of the same pixels give the same
    numbers.

    The loss is the weighted mean of the cross-entropy of each row (binary, or over the
    softmax of several classes) ::

        loss = sum(w * cross_entropy) / sum(w)

    with w the sample weight times the class weight, in training and in validation.
    Weights also count in `mean_` and `std_`, and rows of weight zero are not there.

    With random weights, kernels are drawn by He's rule, the learning rate rises to its
    value over the first five epochs, and the norm of each gradient is clipped to 1
    unless `clipnorm` says otherwise. Otherwise many seeds end in a constant output.

    The global random states of Python, numpy and torch and the policy of Keras are the
    same after a fit as before it. The state of further callbacks is not part of a
    checkpoint. On TensorFlow, the memory of a process grows with every network that is
    trained in it; torch and JAX stay flat.

    References
    ----------
    .. [1] Ricci Lara, M. A., Mosquera, C., Ferrante, E. and Echeveste, R. (2023).
       "Towards unraveling calibration biases in medical image analysis".
       arXiv:2305.05101.
    .. [2] Simonyan, K. and Zisserman, A. (2015). "Very deep convolutional networks for
       large-scale image recognition". ICLR 2015.
    .. [3] He, K., Zhang, X., Ren, S. and Sun, J. (2015). "Delving deep into
       rectifiers". ICCV 2015.

    Examples
    --------
    >>> from skcalfair.datasets import make_skin_lesions
    >>> from skcalfair.keras import VGG19Classifier
    >>> lesions = make_skin_lesions(16, size=32, random_state=0)
    >>> model = VGG19Classifier(
    ...     weights=None, input_size=(32, 32), max_epochs=1, random_state=0
    ... ).fit(lesions.images, lesions.target)
    >>> model.predict_proba(lesions.images).shape
    (16, 2)
    """

    _parameter_constraints: dict = {
        "weights": [str, PathLike, None],
        "input_size": [tuple, list],
        "normalization": [StrOptions({"dataset", "imagenet"}), None],
        "pooling": [StrOptions({"avg", "max", "flatten"})],
        "hidden_units": [tuple, list],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "trainable_from": [StrOptions({"head", *convolution_names()}), None],
        "horizontal_flip": ["boolean"],
        "rotation": [Interval(Real, 0, 1, closed="both")],
        "zoom": [Interval(Real, 0, 1, closed="left")],
        "fill_mode": [StrOptions({"reflect", "nearest", "constant", "wrap"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "clipnorm": [Interval(Real, 0, None, closed="neither"), None],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "dtype_policy": [str, HasMethods("get_config"), None],
        "callbacks": [list, tuple, None],
        "checkpoint_dir": [str, PathLike, None],
        "on_bad_image": [StrOptions({"raise", "skip"})],
        "random_state": RANDOM_STATE_CONSTRAINT,
        "verbose": ["verbose"],
    }

    # Filters of the five blocks: those of VGG-19.
    _filters = tuple(width for width, _ in BLOCKS)

    def __init__(
        self,
        *,
        weights: str | PathLike[str] | None = "imagenet",
        input_size: tuple[int, int] = (224, 224),
        normalization: str | None = "dataset",
        pooling: str = "avg",
        hidden_units: Sequence[int] = (),
        dropout: float = 0.0,
        trainable_from: str | None = None,
        horizontal_flip: bool = True,
        rotation: float = 0.05,
        zoom: float = 0.1,
        fill_mode: str = "reflect",
        learning_rate: float = 5e-4,
        clipnorm: float | None = None,
        batch_size: int = 32,
        max_epochs: int = 100,
        early_stopping: bool = True,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 20,
        class_weight: str | dict[Any, float] | None = "balanced",
        dtype_policy: Any = None,
        callbacks: Sequence[Any] | None = None,
        checkpoint_dir: str | PathLike[str] | None = None,
        on_bad_image: str = "raise",
        random_state: RandomStateLike = None,
        verbose: int = 0,
    ) -> None:
        self.weights = weights
        self.input_size = input_size
        self.normalization = normalization
        self.pooling = pooling
        self.hidden_units = hidden_units
        self.dropout = dropout
        self.trainable_from = trainable_from
        self.horizontal_flip = horizontal_flip
        self.rotation = rotation
        self.zoom = zoom
        self.fill_mode = fill_mode
        self.learning_rate = learning_rate
        self.clipnorm = clipnorm
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.dtype_policy = dtype_policy
        self.callbacks = callbacks
        self.checkpoint_dir = checkpoint_dir
        self.on_bad_image = on_bad_image
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: ArrayLike | None = None,
    ) -> Self:
        """Train the network.

        Parameters
        ----------
        X : array-like of shape (n_samples, height, width, 3) or (n_samples,)
            Pixels in [0, 255], or the path of an RGB image file for each row (an array,
            a list, a Series or a frame of one column).
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights. By default every row weighs one.
        groups : array-like of shape (n_samples,), default=None
            Patient of each row, for example: held out for validation as a whole.
        X_val : array-like, default=None
            Images to validate with, as `X`. By default, a part of `X` is held out.
        y_val : array-like, default=None
            Their labels.
        sample_weight_val : array-like, default=None
            Their weights.

        Returns
        -------
        VGG19Classifier
            The fitted classifier itself.

        Raises
        ------
        ValueError
            For input that does not fit, an image that cannot be used, or a part
            without every class.
        ImportError
            If Keras or a backend is missing.
        OSError
            If the weights file is missing or cannot be downloaded.
        FloatingPointError
            If training diverges.

        Warns
        -----
        UserWarning
            If rows are left out because of their images.
        """
        size = self._check_parameters()
        if X_val is None and not (y_val is None and sample_weight_val is None):
            raise ValueError("y_val and sample_weight_val need X_val")
        reading = Reading(
            type(self).__name__,
            size,
            skip_bad=self.on_bad_image == "skip",
            digests=self.checkpoint_dir is not None,
        )
        sample = reading.sample(X, y, sample_weight, groups)
        self.classes_ = sample.classes
        held_out_sample = (
            None
            if X_val is None
            else reading.sample(
                X_val,
                y_val,
                sample_weight_val,
                suffix="_val",
                classes=self.classes_,
            )
        )
        checkpoint, progress = self._checkpoint(sample, held_out_sample)
        seed = np.random.SeedSequence(
            progress.entropy, spawn_key=tuple(progress.spawn_key)
        )
        seeds = seed.spawn(4)
        rows, held_out = self._divide(sample, held_out_sample, seeds[0])
        with unchanged_random_state():
            self._fit_network(
                sample, rows, held_out, size, seeds[1:], progress, checkpoint
            )
        self.history_ = progress.history
        self.n_iter_ = progress.epochs
        self.best_iter_ = progress.best_epoch or self.n_iter_
        self.validation_indices_ = (
            sample.positions[held_out[1]]
            if held_out is not None and held_out[0] is sample
            else np.empty(0, dtype=np.intp)
        )
        if checkpoint is not None:
            checkpoint.delete()
        return self

    def decision_function(self, X: Any) -> Floats:
        """Logits.

        Parameters
        ----------
        X : array-like of shape (n_samples, height, width, 3) or (n_samples,)
            Images, as in `fit`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes, the log-odds of ``classes_[1]``; with more, the logit of
            each class.

        Raises
        ------
        ValueError
            If an image cannot be used.
        """
        check_is_fitted(self)
        size = self._check_parameters()
        images = as_images(X)
        with unchanged_random_state():
            values = logits(self.model_, images, size, self.batch_size)
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict_proba(self, X: Any) -> Floats:
        """Estimate the probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, height, width, 3) or (n_samples,)
            Images, as in `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities that sum to one, in the order of `classes_`.
        """
        values = self.decision_function(X)
        if values.ndim == 2:
            return np.asarray(softmax(values, axis=1))
        return np.stack([sigmoid(-values), sigmoid(values)], axis=1)

    def predict(self, X: Any) -> NDArray:
        """Most probable class.

        Parameters
        ----------
        X : array-like of shape (n_samples, height, width, 3) or (n_samples,)
            Images, as in `fit`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels.
        """
        values = self.decision_function(X)
        codes = values.argmax(axis=1) if values.ndim == 2 else (values > 0).astype(int)
        labels: NDArray = self.classes_[codes]
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "model_" in state:
            model = state["model_"]
            config = import_keras().saving.serialize_keras_object(model)
            config.pop("compile_config", None)
            state["model_"] = (config, values_of(model.weights))
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if "model_" in state:
            config, weights = state["model_"]
            with unchanged_random_state():
                model = import_keras().saving.deserialize_keras_object(config)
            model.set_weights(weights)
            state["model_"] = model
        super().__setstate__(state)

    def _check_parameters(self) -> tuple[int, int]:
        """Refuse sizes that do not fit; height and width."""
        size = tuple(self.input_size)
        if len(size) != 2 or not all(
            isinstance(side, Integral) and side >= SMALLEST_SIZE for side in size
        ):
            raise ValueError(
                f"input_size must be (height, width), both at least {SMALLEST_SIZE}; "
                f"got {self.input_size!r}"
            )
        if not all(isinstance(n, Integral) and n >= 1 for n in self.hidden_units):
            raise ValueError(
                "hidden_units must hold whole numbers of at least 1; "
                f"got {self.hidden_units!r}"
            )
        return int(size[0]), int(size[1])

    def _checkpoint(
        self, sample: Sample, validation: Sample | None
    ) -> tuple[Checkpoint | None, Progress]:
        """Folder of this fit, and how far it got before."""
        seed = seed_sequence(self.random_state)
        entropy = seed.entropy
        new = Progress(
            [entropy] if isinstance(entropy, int) else list(entropy),  # type: ignore[arg-type]
            list(seed.spawn_key),
        )
        if self.checkpoint_dir is None:
            return None, new
        key = self._key(sample, validation, new)
        checkpoint = Checkpoint(Path(fspath(self.checkpoint_dir)) / key)
        found = checkpoint.load()
        return checkpoint, new if found is None else found[0]

    def _key(self, sample: Sample, validation: Sample | None, new: Progress) -> str:
        """Hash of all that a fit depends on."""
        keras = import_keras()
        digest = Digest()
        digest.add(type(self).__qualname__, keras.__version__, keras.backend.backend())
        for name, value in sorted(self.get_params(deep=False).items()):
            if name not in WITHOUT_EFFECT:
                digest.add(name, getattr(value, "name", value))
        if self.weights not in (None, "imagenet"):
            path = Path(fspath(self.weights))
            digest.add(file_md5(path) if path.is_file() else None)
        # Without a seed, the one of the interrupted fit is taken up.
        if self.random_state is not None:
            digest.add(new.entropy, new.spawn_key)
        for part in (sample, validation):
            if part is not None:
                digest.add(*part.inspection.digests)
                digest.add(self.classes_, part.codes, part.weights, part.groups)
        return digest.hex()

    def _divide(
        self, sample: Sample, given: Sample | None, seed: np.random.SeedSequence
    ) -> tuple[Rows, tuple[Sample, Rows] | None]:
        """Training rows, and what to validate with."""
        every = np.arange(len(sample.codes))
        if given is not None:
            return every, (given, np.arange(len(given.codes)))
        if not self.early_stopping:
            return every, None
        held_out = validation_rows(
            sample.codes,
            sample.groups,
            self.validation_fraction,
            self.classes_.tolist(),
            seed,
        )
        return np.setdiff1d(every, held_out), (sample, held_out)

    def _fit_network(
        self,
        sample: Sample,
        rows: Rows,
        held_out: tuple[Sample, Rows] | None,
        size: tuple[int, int],
        seeds: Sequence[np.random.SeedSequence],
        progress: Progress,
        checkpoint: Checkpoint | None,
    ) -> None:
        """Build the network and train it; sets the attributes that this decides."""
        keras = import_keras()
        policy = keras.dtype_policies.get(
            keras.config.dtype_policy()
            if self.dtype_policy is None
            else self.dtype_policy
        )
        binary = len(self.classes_) == 2
        scaling = self._scaling(sample, rows)
        by_class = sample.class_weights(rows, self.class_weight)
        self.class_weight_ = dict(
            zip(self.classes_.tolist(), by_class.tolist(), strict=True)
        )
        head = Head(
            1 if binary else len(self.classes_),
            self.pooling,
            tuple(self.hidden_units),
            self.dropout,
        )
        weight_seed, *training_seeds = seeds
        model = build_network(size, self._filters, scaling, head, 0, policy)
        self.weights_source_ = set_initial_weights(
            model, self.weights, np.random.default_rng(weight_seed)
        )
        freeze(model, self.trainable_from)
        wide = str(model.inputs[0].dtype)
        data = Data(
            sample.part(rows, by_class, wide),
            held_out and held_out[0].part(held_out[1], by_class, wide),
            binary,
        )
        seeds_of_training = (training_seeds[0], training_seeds[1])
        train(
            model,
            data,
            self._recipe(size),
            policy,
            seeds_of_training,
            progress,
            checkpoint,
        )
        self.model_ = model
        self.backend_ = keras.backend.backend()

    def _recipe(self, size: tuple[int, int]) -> Recipe:
        random = self.weights is None
        return Recipe(
            input_size=size,
            augmentation=Augmentation(
                self.horizontal_flip, self.rotation, self.zoom, self.fill_mode
            ),
            learning_rate=self.learning_rate,
            clipnorm=WARM_UP_CLIPNORM
            if random and self.clipnorm is None
            else self.clipnorm,
            warm_up=WARM_UP_EPOCHS if random else 0,
            batch_size=self.batch_size,
            max_epochs=self.max_epochs,
            patience=self.n_iter_no_change if self.early_stopping else None,
            callbacks=self.callbacks or (),
            verbose=bool(self.verbose),
        )

    def _scaling(self, sample: Sample, rows: Rows) -> Scaling:
        """Set `mean_` and `std_`."""
        self.mean_, self.std_ = np.zeros(3), np.ones(3)
        if self.normalization == "dataset":
            self.mean_, self.std_ = channel_statistics(
                sample.inspection, rows, sample.weights[rows]
            )
        elif self.normalization == "imagenet":
            self.mean_ = np.array(IMAGENET_MEAN)
        return Scaling(
            tuple(self.mean_.tolist()),
            tuple(self.std_.tolist()),
            reverse=self.normalization == "imagenet",
        )
