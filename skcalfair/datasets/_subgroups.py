"""Simulated scores by group whose true posterior probabilities are known."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.utils import Bunch
from sklearn.utils._param_validation import Interval, validate_params

from .._log_odds import log_odds, sigmoid
from .._random import (
    RANDOM_STATE_CONSTRAINT,
    RandomStateLike,
    child_seeds,
)

# The calibration-bias study: 1,494 images with a known skin tone, about 20:1.
STUDY_GROUP_SIZES = {"light": 1423, "dark": 71}
STUDY_PREVALENCE = 0.47

ByGroup = float | Mapping[Any, float]


@validate_params(
    {
        "group_sizes": [Mapping, None],
        "prevalence": [Real, Mapping],
        "separability": [Real, Mapping],
        "score_shift": [Real, Mapping],
        "slope": [Real, Mapping],
        "intercept": [Real, Mapping],
        "rows_per_patient": [Interval(Integral, 1, None, closed="left"), tuple],
        "patient_correlation": [Interval(Real, 0, 1, closed="both")],
        "shuffle": ["boolean"],
        "random_state": RANDOM_STATE_CONSTRAINT,
    },
    prefer_skip_nested_validation=True,
)
def make_subgroup_scores(
    group_sizes: Mapping[Any, int] | None = None,
    *,
    prevalence: ByGroup = STUDY_PREVALENCE,
    separability: ByGroup = 2.0,
    score_shift: ByGroup = 0.0,
    slope: ByGroup = 1.0,
    intercept: ByGroup = 0.0,
    rows_per_patient: int | tuple[int, int] = 1,
    patient_correlation: float = 0.5,
    shuffle: bool = True,
    random_state: RandomStateLike = None,
) -> Bunch:
    r"""Simulate scores of groups with known sizes and known calibration.

    Every row comes with its true probability. By default, the scores are that
    probability, so that all groups are perfectly calibrated whatever their sizes: each
    difference in calibration that a metric shows is then the metric's own.

    `prevalence`, `separability`, `score_shift`, `slope` and `intercept` take one number
    for all groups or a dict with one number for each.

    Parameters
    ----------
    group_sizes : dict of label to int, default=None
        Number of rows of each group, exactly, at least 1. None is the shape of the
        calibration-bias study [1]_, ``{"light": 1423, "dark": 71}``.
    prevalence : float or dict, default=0.47
        Expected proportion of positive outcomes where `score_shift` is 0, in (0, 1).
    separability : float or dict, default=2.0
        Distance of the two classes' means of the log-odds in units of their standard
        deviation, at least 0. Without a shift, the area under the ROC curve is
        :math:`\Phi(\text{separability} / \sqrt 2)`: 0.92 at 2, 0.5 at 0.
    score_shift : float or dict, default=0.0
        Shift of the true log-odds, and so of the scores. The group stays as well
        calibrated as it was; its prevalence moves with its scores.
    slope, intercept : float or dict, default=1.0 and 0.0
        Calibration of the scores: the true log-odds are
        ``intercept + slope * log_odds(score)``. A slope below 1 makes over-confident
        scores, above 1 under-confident ones; it must be positive. A positive intercept
        makes scores that are too low.
    rows_per_patient : int or tuple of (int, int), default=1
        Rows of each patient, or the smallest and the largest number, drawn uniformly.
        The last patient of a group has what is left. No patient is in two groups.
    patient_correlation : float, default=0.5
        Correlation in [0, 1] of the rows of a patient: of the normal variables from
        which classes, log-odds and outcomes are drawn. No effect on single rows.
    shuffle : bool, default=True
        Shuffle the rows. Otherwise they come by group and patient, in the order of
        `group_sizes`.
    random_state : int, Generator, RandomState instance or None, default=None
        Pass an int for the same data in every call. A group's rows do not depend on the
        sizes of the other groups, except for the order of shuffled rows and the patient
        numbers.

    Returns
    -------
    sklearn.utils.Bunch
        The rows, and the truth they were drawn from:

        frame : DataFrame of shape (n_samples, 5)
            Columns ``outcome`` (0 or 1), ``score`` (in [0, 1]), ``group`` (label),
            ``patient`` (int, from 0) and ``posterior``, the true probability of a
            positive outcome given the score and the group.
        parameters : DataFrame of shape (n_groups, 6)
            The truth by group (index): ``n_samples``, ``prevalence``,
            ``separability``, ``score_shift``, ``slope`` and ``intercept``.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or a dict does not name exactly the groups.

    See Also
    --------
    make_skin_tone_cohort : The data set of ``skcalfair audit --demo``.

    Notes
    -----
    With :math:`\pi` the prevalence and :math:`\delta` the separability, a row of class
    :math:`c = \pm 1`, which is :math:`+1` with probability :math:`\pi`, has the
    log-odds

    .. math::

        \ell = \log\frac{\pi}{1 - \pi} + \frac{c \delta^2}{2} + \delta z
        + \text{score\_shift},
        \qquad z \sim N(0, 1).

    The log-likelihood ratio of two normal distributions of equal variance
    :math:`\delta^2`, at a distance :math:`\delta^2`, is the variable itself, so that
    without a shift :math:`\ell` is the exact log-odds of the class. The outcome is
    drawn with probability :math:`\sigma(\ell)`, and the score is
    :math:`\sigma((\ell - \text{intercept}) / \text{slope})`.

    The rows of a patient share a part of :math:`z`, and of the normal variables that
    are compared with a threshold to draw class and outcome (a Gaussian copula). Each
    row by itself keeps the distribution above, so a patient's rows leave the
    calibration as it is and only lower the effective number of rows.

    References
    ----------
    .. [1] Ricci Lara, M. A., Mosquera, C., Ferrante, E. and Echeveste, R. (2023).
       "Towards unraveling calibration biases in medical image analysis".
       arXiv:2305.05101.

    Examples
    --------
    >>> from skcalfair.datasets import make_subgroup_scores
    >>> data = make_subgroup_scores(
    ...     {"A": 900, "B": 100}, slope={"A": 1.0, "B": 0.5}, random_state=0
    ... )
    >>> data.frame["group"].value_counts().to_dict()
    {'A': 900, 'B': 100}
    >>> data.parameters["slope"].to_dict()
    {'A': 1.0, 'B': 0.5}
    """
    sizes = _check_group_sizes(group_sizes)
    lengths = _check_rows_per_patient(rows_per_patient)
    parameters = pd.DataFrame(
        {
            "n_samples": list(sizes.values()),
            "prevalence": _by_group(
                prevalence, "prevalence", sizes, low=0.0, high=1.0, closed=False
            ),
            "separability": _by_group(separability, "separability", sizes, low=0.0),
            "score_shift": _by_group(score_shift, "score_shift", sizes),
            "slope": _by_group(slope, "slope", sizes, low=0.0, closed=False),
            "intercept": _by_group(intercept, "intercept", sizes),
        },
        index=pd.Index(list(sizes), name="group", tupleize_cols=False),
    )
    *group_seeds, order_seed = child_seeds(random_state, len(sizes) + 1)
    frames = []
    n_patients = 0
    for truth, seed in zip(parameters.itertuples(), group_seeds, strict=True):
        rows = _draw_group(
            truth, lengths, patient_correlation, np.random.default_rng(seed)
        )
        rows["patient"] += n_patients
        n_patients = rows["patient"].iloc[-1] + 1
        frames.append(rows)
    frame = pd.concat(frames, ignore_index=True)
    if shuffle:
        order = np.random.default_rng(order_seed).permutation(len(frame))
        frame = frame.iloc[order].reset_index(drop=True)
    return Bunch(frame=frame, parameters=parameters)


@validate_params(
    {"random_state": RANDOM_STATE_CONSTRAINT}, prefer_skip_nested_validation=True
)
def make_skin_tone_cohort(random_state: RandomStateLike = 0) -> pd.DataFrame:
    """Simulate a skin-lesion cohort whose two groups are equally calibrated.

    This is the data set of ``skcalfair audit --demo``. It is simulated: no image, no
    patient and no trained model stands behind it. Only its shape is that of the
    calibration-bias study [1]_: 1,494 rows, twenty times more of light than of dark
    skin, 47 % malignant. The score is the true probability of malignancy in both
    groups, so each is perfectly calibrated by construction, and whatever difference in
    calibration error shows between them is due to the size of the smaller group.

    Parameters
    ----------
    random_state : int, Generator, RandomState instance or None, default=0
        Determines the random numbers; None makes another cohort in every call.

    Returns
    -------
    DataFrame of shape (1494, 4)
        Columns ``malignant`` (0 or 1), ``score`` (probability of malignancy, in
        [0, 1]), ``skin_tone`` (``"light"``, 1,423 rows, or ``"dark"``, 71 rows) and
        ``patient`` (int; one or two rows each).

    See Also
    --------
    make_subgroup_scores : The generator behind it, with all its parameters.

    References
    ----------
    .. [1] Ricci Lara, M. A., Mosquera, C., Ferrante, E. and Echeveste, R. (2023).
       "Towards unraveling calibration biases in medical image analysis".
       arXiv:2305.05101.

    Examples
    --------
    >>> from skcalfair.datasets import make_skin_tone_cohort
    >>> cohort = make_skin_tone_cohort()
    >>> cohort["skin_tone"].value_counts().to_dict()
    {'light': 1423, 'dark': 71}
    """
    frame = make_subgroup_scores(rows_per_patient=(1, 2), random_state=random_state)[
        "frame"
    ].rename(columns={"outcome": "malignant", "group": "skin_tone"})
    return frame[["malignant", "score", "skin_tone", "patient"]]


def _draw_group(
    truth: Any,
    rows_per_patient: tuple[int, int],
    correlation: float,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Draw the rows of one group, its patients numbered from 0."""
    n = truth.n_samples
    patient = _draw_patients(n, rows_per_patient, rng)
    in_positive_class = ndtr(_correlated(patient, correlation, rng)) < truth.prevalence
    distance = truth.separability
    true_log_odds = (
        log_odds(truth.prevalence)
        + truth.score_shift
        + np.where(in_positive_class, 0.5, -0.5) * distance**2
        + distance * _correlated(patient, correlation, rng)
    )
    posterior = sigmoid(true_log_odds)
    outcome = ndtr(_correlated(patient, correlation, rng)) < posterior
    return pd.DataFrame(
        {
            "outcome": outcome.astype(np.int64),
            "score": sigmoid((true_log_odds - truth.intercept) / truth.slope),
            "group": [truth.Index] * n,
            "patient": patient,
            "posterior": posterior,
        }
    )


def _draw_patients(
    n: int, rows_per_patient: tuple[int, int], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Patient of each of n rows: 0, 0, 1, 1, 1, 2, ..."""
    low, high = rows_per_patient
    lengths = rng.integers(low, high, size=-(-n // low), endpoint=True)
    return np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)[:n]


def _correlated(
    patient: NDArray[np.int64], correlation: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Standard normal values with this correlation within a patient."""
    shared = rng.standard_normal(patient[-1] + 1)[patient]
    own = rng.standard_normal(len(patient))
    return np.sqrt(correlation) * shared + np.sqrt(1.0 - correlation) * own


def _check_group_sizes(group_sizes: Mapping[Any, int] | None) -> dict[Any, int]:
    """Rows by label; each at least 1."""
    sizes = dict(STUDY_GROUP_SIZES if group_sizes is None else group_sizes)
    if not sizes:
        raise ValueError("group_sizes must name at least one group; got {}")
    for label, size in sizes.items():
        # A missing value is not equal to itself.
        if label is None or label != label:
            raise ValueError(f"a label of group_sizes is missing; got {label!r}")
        if not isinstance(size, Integral) or isinstance(size, bool) or size < 1:
            raise ValueError(
                "group_sizes must hold whole numbers of rows, at least 1; "
                f"got {size!r} for group {label!r}"
            )
    return sizes


def _check_rows_per_patient(rows: int | tuple[int, int]) -> tuple[int, int]:
    """Smallest and largest number of rows."""
    if not isinstance(rows, tuple):
        return int(rows), int(rows)
    if (
        len(rows) != 2
        or not all(isinstance(number, Integral) for number in rows)
        or not 1 <= rows[0] <= rows[1]
    ):
        raise ValueError(
            "rows_per_patient must be a whole number or a pair (smallest, largest) "
            f"with 1 <= smallest <= largest; got {rows!r}"
        )
    return int(rows[0]), int(rows[1])


def _by_group(
    value: ByGroup,
    name: str,
    groups: Mapping[Any, int],
    *,
    low: float = -np.inf,
    high: float = np.inf,
    closed: bool = True,
) -> list[float]:
    """One finite number for each group, in [low, high) or (low, high)."""
    if not isinstance(value, Mapping):
        value = dict.fromkeys(groups, value)
    if set(value) != set(groups):
        raise ValueError(
            f"{name} must be one number or name each group once: expected "
            f"{list(groups)}, got {list(value)}"
        )
    for label, number in value.items():
        if not (
            isinstance(number, Real)
            and np.isfinite(number)
            and (low <= number if closed else low < number)
            and number < high
        ):
            bounds = f"{'[' if closed else '('}{low:g}, {high:g})"
            raise ValueError(
                f"{name} must be a finite number in {bounds}; got {number!r} for "
                f"group {label!r}"
            )
    return [float(value[label]) for label in groups]
