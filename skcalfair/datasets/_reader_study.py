"""A simulated reader study: people and models on the same cases, truth known."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from sklearn.utils import Bunch
from sklearn.utils._param_validation import Interval, validate_params

from .._log_odds import log_odds, sigmoid
from .._random import RANDOM_STATE_CONSTRAINT, RandomStateLike, child_seeds

Floats = NDArray[np.float64]

# (sensitivity, specificity): some cautious, some not, of unequal skill.
READERS = {
    "reader_1": (0.90, 0.70),
    "reader_2": (0.85, 0.80),
    "reader_3": (0.78, 0.88),
    "reader_4": (0.70, 0.92),
    "reader_5": (0.75, 0.75),
}
MODELS = {"model_1": 2.0}


@validate_params(
    {
        "n_cases": [Interval(Integral, 2, None, closed="left")],
        "readers": [Mapping, None],
        "models": [Mapping, None],
        "prevalence": [Interval(Real, 0, 1, closed="neither")],
        "case_correlation": [Interval(Real, 0, 1, closed="both")],
        "missing_reads": [Interval(Real, 0, 1, closed="left"), Mapping],
        "random_state": RANDOM_STATE_CONSTRAINT,
    },
    prefer_skip_nested_validation=True,
)
def make_reader_study(
    n_cases: int = 500,
    *,
    readers: Mapping[str, tuple[float, float]] | None = None,
    models: Mapping[str, float] | None = None,
    prevalence: float = 0.4,
    case_correlation: float = 0.4,
    missing_reads: float | Mapping[str, float] = 0.0,
    random_state: RandomStateLike = None,
) -> Bunch:
    r"""Simulate readers and models on the same cases, with known operating points.

    Each reader sees a noisy sign of the disease and calls a case positive above an own
    threshold. Models give calibrated scores. A case that misleads one of them tends to
    mislead the others, as in real studies.

    Parameters
    ----------
    n_cases : int, default=500
        Number of cases, at least 2.
    readers : dict of str to (float, float), default=None
        True sensitivity and specificity of each reader, both in (0, 1) and together at
        least 1. By default five readers of unequal skill and caution.
    models : dict of str to float, default=None
        Separability of each model's scores, above 0: the distance of the class means
        in standard deviations. The area under its true ROC curve is
        :math:`\Phi(\text{separability} / \sqrt 2)`. By default ``{"model_1": 2.0}``.
    prevalence : float, default=0.4
        Proportion of positive cases, in (0, 1): exact up to rounding to whole cases,
        and at least one case of each class.
    case_correlation : float, default=0.4
        Correlation, in [0, 1], between readers and models of what they see in cases of
        one class: how much the difficulty of a case is shared.
    missing_reads : float or dict of str to float, default=0.0
        Proportion of cases that a reader has not read, in [0, 1), drawn at random: one
        for all readers, or by name (others read everything).
    random_state : int, Generator, RandomState instance or None, default=None
        Pass an int for the same study in every call. What a reader or model sees does
        not depend on those named after it.

    Returns
    -------
    sklearn.utils.Bunch
        The study, and the truth it was drawn from:

        data : DataFrame of shape (n_cases, n_models + n_readers)
            A column of scores in [0, 1] for each model, then a column of calls (1
            positive, 0 negative) for each reader: integers, or floats with NaN where
            reads are missing.
        target : Series of shape (n_cases,)
            Truth of each case, 0 or 1.
        models, readers : list of str
            Names of the columns of `data`.
        truth : DataFrame of shape (n_models + n_readers, 6)
            By column (index): its ``kind`` ("model" or "reader"), ``separability``,
            ``threshold`` on the scale where negative cases are standard normal,
            ``sensitivity`` and ``specificity`` (all three NaN for models), and
            ``roc_auc``.
        difficulty : Series of shape (n_cases,)
            What all see alike in a case beyond its class: high values look positive.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or a name is used twice.

    See Also
    --------
    fetch_ecg_readers : A published reader study.

    Notes
    -----
    In a case of class t in {0, 1}, reader or model j sees

    .. math:: x_j = d_j t + \sqrt\rho\,u + \sqrt{1 - \rho}\,e_j

    with difficulty u and noise e standard normal and :math:`\rho` the case correlation
    (the equal-variance binormal model). A reader calls it positive above the threshold
    :math:`c_j`, so that the specificity is :math:`\Phi(c_j)` and the sensitivity
    :math:`\Phi(d_j - c_j)`. A model's score is the posterior probability
    :math:`\sigma(\log(\pi / (1 - \pi)) + d_j x_j - d_j^2 / 2)`; its true ROC curve is
    :math:`\Phi(d_j + \Phi^{-1}(\text{false positive rate}))`.

    Examples
    --------
    >>> from skcalfair.datasets import make_reader_study
    >>> study = make_reader_study(
    ...     200, readers={"A": (0.9, 0.7), "B": (0.7, 0.95)}, random_state=0
    ... )
    >>> list(study.data.columns)
    ['model_1', 'A', 'B']
    >>> study.truth.loc["A", ["sensitivity", "specificity"]].tolist()
    [0.9, 0.7]
    """
    truth = _truth(READERS if readers is None else readers, models)
    names = list(truth.index)
    n_positive = min(max(round(prevalence * n_cases), 1), n_cases - 1)
    case_seed, *seeds = child_seeds(random_state, len(names) + 1)
    rng = np.random.default_rng(case_seed)
    target = rng.permutation(np.arange(n_cases) < n_positive).astype(np.int64)
    difficulty = rng.standard_normal(n_cases)
    absent = _missing(missing_reads, truth.index[truth["kind"] == "reader"])
    share = np.sqrt(case_correlation), np.sqrt(1.0 - case_correlation)
    prior = float(log_odds(n_positive / n_cases))
    columns: dict[str, Any] = {}
    for row, seed in zip(truth.itertuples(), seeds, strict=True):
        own = np.random.default_rng(seed)
        d = row.separability
        seen = (
            d * target + share[0] * difficulty + share[1] * own.standard_normal(n_cases)
        )
        if row.kind == "model":
            columns[row.Index] = sigmoid(prior + d * seen - d**2 / 2)
        else:
            calls = (seen > row.threshold).astype(np.int64)
            columns[row.Index] = _leave_out(calls, absent[row.Index], own)
    is_model = truth["kind"] == "model"
    return Bunch(
        data=pd.DataFrame(columns),
        target=pd.Series(target, name="target"),
        models=list(truth.index[is_model]),
        readers=list(truth.index[~is_model]),
        truth=truth,
        difficulty=pd.Series(difficulty, name="difficulty"),
    )


def _truth(
    readers: Mapping[str, tuple[float, float]], models: Mapping[str, float] | None
) -> pd.DataFrame:
    """Parameters of the binormal model by column of the data, models first."""
    records = []
    for name, separability in (MODELS if models is None else models).items():
        if not (isinstance(separability, Real) and 0 < separability < np.inf):
            raise ValueError(
                "models must give a finite separability above 0; got "
                f"{separability!r} for {name!r}"
            )
        records.append((name, "model", float(separability), *[np.nan] * 3))
    for name, point in readers.items():
        sensitivity, specificity = _check_point(name, point)
        threshold = float(ndtri(specificity))
        separability = threshold + float(ndtri(sensitivity))
        records.append(
            (name, "reader", separability, threshold, sensitivity, specificity)
        )
    names = [record[0] for record in records]
    if not names:
        raise ValueError("readers and models are both empty: nobody reads the cases")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"{twice[0]!r} names both a reader and a model")
    columns = ["kind", "separability", "threshold", "sensitivity", "specificity"]
    truth = pd.DataFrame(
        [record[1:] for record in records], index=names, columns=columns
    )
    truth["roc_auc"] = ndtr(truth["separability"] / np.sqrt(2))
    return truth


def _check_point(name: str, point: Any) -> tuple[float, float]:
    """Sensitivity and specificity no worse than chance."""
    expected = "two numbers in (0, 1), sensitivity and specificity, that add up to 1 "
    try:
        sensitivity, specificity = (float(value) for value in point)
    except (TypeError, ValueError):
        sensitivity = specificity = np.nan
    if not (
        0 < sensitivity < 1 and 0 < specificity < 1 and sensitivity + specificity >= 1
    ):
        raise ValueError(
            f"readers must give {expected}or more; got {point!r} for {name!r}"
        )
    return sensitivity, specificity


def _missing(
    missing_reads: float | Mapping[str, float], readers: pd.Index
) -> dict[str, float]:
    """Proportion of missing reads by reader."""
    if not isinstance(missing_reads, Mapping):
        return dict.fromkeys(readers, float(missing_reads))
    unknown = [name for name in missing_reads if name not in readers]
    if unknown:
        raise ValueError(
            f"missing_reads names {unknown[0]!r}, who is none of the readers "
            f"{list(readers)}"
        )
    for name, share in missing_reads.items():
        if not (isinstance(share, Real) and 0 <= share < 1):
            raise ValueError(
                f"missing_reads must lie in [0, 1); got {share!r} for {name!r}"
            )
    return {name: float(missing_reads.get(name, 0.0)) for name in readers}


def _leave_out(
    calls: NDArray[np.int64], share: float, rng: np.random.Generator
) -> NDArray:
    """Calls with a share of them NaN, if any."""
    if share == 0:
        return calls
    return np.where(rng.random(len(calls)) < share, np.nan, calls)
