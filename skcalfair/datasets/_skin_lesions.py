"""Generated images of skin lesions with known labels, skin tones and patients."""

from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch
from sklearn.utils._param_validation import Interval, validate_params

from .._log_odds import log_odds, sigmoid
from .._random import RANDOM_STATE_CONSTRAINT, RandomStateLike, child_seeds
from ._subgroups import _check_rows_per_patient, _draw_patients

Floats = NDArray[np.float64]

# Red, green and blue of the darkest and of the lightest skin.
DARKEST, LIGHTEST = (70.0, 45.0, 32.0), (242.0, 212.0, 192.0)
# Share of the skin's colour that a lesion keeps, and the blue-grey of its patches.
PIGMENT, PATCHES = (0.62, 0.48, 0.42), (38.0, 36.0, 46.0)
# Waves around the border, per turn, and images drawn at a time.
WAVES, CHUNK = (2, 3, 5, 7), 64
# Plane waves of the patches: how many, their range in waves per image, and the
# standard deviation of their sum.
PLANE_WAVES, PER_IMAGE, SPREAD = 16, (3.0, 7.0), 0.7
NOISE = 4.0


@validate_params(
    {
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "size": [Interval(Integral, 8, None, closed="left")],
        "prevalence": [Interval(Real, 0, 1, closed="neither")],
        "dark_share": [Interval(Real, 0, 1, closed="both")],
        "separability": [Interval(Real, 0, None, closed="left")],
        "rows_per_patient": [Interval(Integral, 1, None, closed="left"), tuple],
        "random_state": RANDOM_STATE_CONSTRAINT,
    },
    prefer_skip_nested_validation=True,
)
def make_skin_lesions(
    n_samples: int = 200,
    *,
    size: int = 64,
    prevalence: float = 0.5,
    dark_share: float = 0.3,
    separability: float = 3.0,
    rows_per_patient: int | tuple[int, int] = (1, 2),
    random_state: RandomStateLike = None,
) -> Bunch:
    r"""Generate images of lesions on skin from dark to light.

    Each image is a pigmented spot. How irregular its border is and how much of it is
    blue-grey depend on the label, and on nothing else; tone, place and size do not. The
    images are for trying and testing image classifiers: no real lesion looks like
    them.

    Parameters
    ----------
    n_samples : int, default=200
        Number of images.
    size : int, default=64
        Height and width in pixels, at least 8.
    prevalence : float, default=0.5
        Expected proportion of malignant lesions, in (0, 1).
    dark_share : float, default=0.3
        Expected proportion of patients with dark skin, in [0, 1].
    separability : float, default=3.0
        Distance of the two classes' means, in standard deviations, of border and of
        colour, at least 0. The best possible area under the ROC curve is
        :math:`\Phi(\text{separability})`.
    rows_per_patient : int or tuple of (int, int), default=(1, 2)
        Images of each patient, or the smallest and the largest number, drawn
        uniformly.
    random_state : int, Generator, RandomState or None, default=None
        Pass an int for the same images in every call.

    Returns
    -------
    sklearn.utils.Bunch
        Rows in random order of the label:

        images : ndarray of shape (n_samples, size, size, 3), dtype=uint8
            Red, green and blue.
        target : ndarray of shape (n_samples,)
            1 for malignant, 0 for benign.
        skin_tone : ndarray of shape (n_samples,)
            ``"light"`` or ``"dark"``.
        patient : ndarray of shape (n_samples,)
            Patient (int, from 0); one skin tone each.
        posterior : ndarray of shape (n_samples,)
            True probability of malignancy given border and colour.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    See Also
    --------
    make_subgroup_scores : Scores by group, without images.
    skcalfair.keras.VGG19Classifier : A classifier for such images.

    Notes
    -----
    With :math:`\pi` the prevalence and :math:`\delta` the separability, the log-odds of
    malignancy given the irregularity of the border :math:`b` and the share of
    blue-grey :math:`c` (both normal, with means :math:`\pm\delta/2`) are

    .. math::

        \log\frac{\pi}{1 - \pi} + \delta (b + c).

    Examples
    --------
    >>> from skcalfair.datasets import make_skin_lesions
    >>> lesions = make_skin_lesions(100, size=32, random_state=0)
    >>> lesions.images.shape
    (100, 32, 32, 3)
    >>> sorted(set(lesions.skin_tone.tolist()))
    ['dark', 'light']
    """
    lengths = _check_rows_per_patient(rows_per_patient)
    rows_seed, *image_seeds = child_seeds(random_state, 1 + -(-n_samples // CHUNK))
    rng = np.random.default_rng(rows_seed)
    patient = _draw_patients(n_samples, lengths, rng)
    is_dark = (rng.random(patient[-1] + 1) < dark_share)[patient]
    # Position between the darkest and the lightest skin, the same for a patient.
    tone = np.where(is_dark, 0.0, 0.6) + 0.4 * rng.random(patient[-1] + 1)[patient]
    target = (rng.random(n_samples) < prevalence).astype(np.int64)
    means = (target - 0.5)[:, np.newaxis] * separability
    features = means + rng.standard_normal((n_samples, 2))
    images = np.empty((n_samples, size, size, 3), dtype=np.uint8)
    for number, seed in enumerate(image_seeds):
        part = slice(number * CHUNK, (number + 1) * CHUNK)
        images[part] = _draw(
            tone[part], features[part], size, np.random.default_rng(seed)
        )
    return Bunch(
        images=images,
        target=target,
        skin_tone=np.where(is_dark, "dark", "light"),
        patient=patient,
        posterior=sigmoid(log_odds(prevalence) + separability * features.sum(axis=1)),
    )


def _draw(
    tone: Floats, features: Floats, size: int, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Draw lesions of some tones, with irregularity and colour as `features` say."""
    n = len(tone)
    irregular, blue_grey = sigmoid(features).T
    skin = np.array(DARKEST) + tone[:, np.newaxis] * np.subtract(LIGHTEST, DARKEST)
    centre = rng.uniform(-0.06, 0.06, size=(n, 2))
    grid = (np.arange(size) + 0.5) / size - 0.5
    down = (grid[:, np.newaxis] - centre[:, 0, np.newaxis, np.newaxis]) + 0 * grid
    right = (grid - centre[:, 1, np.newaxis, np.newaxis]) + 0 * grid[:, np.newaxis]
    distance, angle = np.hypot(down, right), np.arctan2(down, right)
    radius = rng.uniform(0.22, 0.3, size=n)
    radius = _by_image(radius) * (1 + _by_image(0.28 * irregular) * _waves(angle, rng))
    inside = sigmoid((radius - distance) * 40.0)
    # Patches are where a smooth random field is high.
    field = _random_field(down, right, rng)
    patches = inside * sigmoid(6.0 * (field + 4.0 * _by_image(blue_grey) - 3.0))
    image = _mix(skin[:, np.newaxis, np.newaxis], skin * PIGMENT, inside)
    image = _mix(image, np.broadcast_to(PATCHES, skin.shape), 0.9 * patches)
    image += NOISE * rng.standard_normal(image.shape)
    return np.rint(image).clip(0, 255).astype(np.uint8)


def _by_image(values: Floats) -> Floats:
    """Shape (n,) to (n, 1, 1)."""
    return values[:, np.newaxis, np.newaxis]


def _mix(below: Floats, above: Floats, share: Floats) -> Floats:
    """Lay a colour over images; `share` of it covers what is below."""
    colour = np.asarray(above)[:, np.newaxis, np.newaxis]
    return below + share[..., np.newaxis] * (colour - below)


def _waves(angle: Floats, rng: np.random.Generator) -> Floats:
    """Sum of waves of random phase and height, of about unit height."""
    total = np.zeros_like(angle)
    for wave in WAVES:
        height = rng.uniform(0.4, 1.0, size=len(angle))
        phase = rng.uniform(0.0, 2.0 * np.pi, size=len(angle))
        total += _by_image(height) * np.sin(wave * angle + _by_image(phase))
    return total / np.sqrt(len(WAVES))


def _random_field(down: Floats, right: Floats, rng: np.random.Generator) -> Floats:
    """Sum of plane waves of random directions: spots without any orientation."""
    total = np.zeros_like(down)
    for _ in range(PLANE_WAVES):
        direction, phase = rng.uniform(0.0, 2.0 * np.pi, size=(2, len(down)))
        frequency = 2.0 * np.pi * rng.uniform(*PER_IMAGE, size=len(down))
        along = _by_image(frequency * np.sin(direction)) * down
        along += _by_image(frequency * np.cos(direction)) * right
        total += np.sin(along + _by_image(phase))
    return SPREAD * total / np.sqrt(PLANE_WAVES / 2)
