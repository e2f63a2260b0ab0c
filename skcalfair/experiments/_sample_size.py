"""The study of sample sizes: which calibration metrics grow as the test set shrinks."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, validate_params

from .._random import RANDOM_STATE_CONSTRAINT, RandomStateLike, child_seeds
from .._sorted_scores import SortedScores
from .._validation import check_scored_rows
from ..audit._run_tests import _wilcoxon
from ..datasets import BetaDecalibrator
from ..metrics._registry import METRICS
from ._blocks import check_resumable, digest, run_blocks, seed_key
from ._nested_samples import (
    HELD_OUT,
    SAMPLE_METRICS,
    Scenario,
    Split,
    draw_parts,
    sample_values,
)

Floats = NDArray[np.float64]
Decalibration = tuple[float, float] | Callable[[Floats], ArrayLike] | Any

# Shape parameters of the Beta distribution function, from none to strong.
DECALIBRATIONS = {
    "calibrated": (1.0, 1.0),
    "moderate": (1.5, 1.5),
    "strong": (3.0, 3.0),
}
FRACTIONS = tuple(k / 10 for k in range(1, 11))
# The study's five, the size-robust squared error, and a plain proper score.
STUDY_METRICS = (
    "expected_calibration_error",
    "maximum_calibration_error",
    "adaptive_calibration_error",
    "squared_calibration_error",
    "brier_score_loss",
    "calibration_loss_log_loss",
    "calibration_loss_brier",
)
# Splits of one block, which is one file of results.
SPLITS_PER_BLOCK = 5
# Raised when results of an older version must not be taken for those of this one.
FORMAT = 1
CURVE_POINTS = 201
# A distortion may go back by so much, which is rounding.
ROUNDING = 1e-12
ONE_CLASS = "the validation rows hold one class only"
NOTE = "the splits share their rows, so that they are no independent pairs"


@dataclass(frozen=True)
class SampleSizeResult:
    """What a study of sample sizes found, as tidy tables.

    Attributes
    ----------
    frame : pandas.DataFrame
        One row per decalibration, split, fraction and metric: `decalibration`, `split`,
        `fraction` of the test rows, their number `n`, `metric`, `value`, and the
        `reason` where there is none.
    wilcoxon : pandas.DataFrame
        One row per decalibration and metric: the smallest `fraction` against the
        largest (`reference_fraction`), with the number of rows (`n`, `reference_n`) and
        the mean over the splits (`value`, `reference_value`) of both; the `method`, the
        `unit` that it pairs and their number `n_units`; the `statistic` and two-sided
        `p_value` of Wilcoxon's signed rank test; and whether the metric is
        `size_robust`. The `note` says what the p-value is not.
    curves : pandas.DataFrame
        What each decalibration does: `decalibration`, `probability` on a grid of
        [0, 1], and what it becomes (`decalibrated`).

    See Also
    --------
    sample_size_study : Makes it.
    skcalfair.displays.SampleSizeDisplay : Draws it.

    Examples
    --------
    >>> from skcalfair.datasets import make_calibrated_scores
    >>> from skcalfair.experiments import sample_size_study
    >>> frame = make_calibrated_scores(2000, random_state=0).frame
    >>> result = sample_size_study(
    ...     frame["outcome"], frame["score"], n_splits=10, random_state=0
    ... )
    >>> result.frame.shape
    (2100, 7)
    """

    frame: pd.DataFrame
    wilcoxon: pd.DataFrame
    curves: pd.DataFrame


@validate_params(
    {
        "y_true": ["array-like"],
        "y_prob": ["array-like"],
        "decalibrations": [Mapping, None],
        "metrics": ["array-like", None],
        "fractions": ["array-like", None],
        "n_splits": [Interval(Integral, 1, None, closed="left")],
        "test_size": [Interval(Real, 0, 1, closed="neither")],
        "validation_size": [Interval(Real, 0, 1, closed="neither")],
        "n_bins": [Interval(Integral, 1, None, closed="left")],
        "pos_label": [Real, str, "boolean", None],
        "results_folder": [str, os.PathLike, None],
        "n_jobs": [Integral, None],
        "random_state": RANDOM_STATE_CONSTRAINT,
        "progress": ["boolean", None],
    },
    prefer_skip_nested_validation=False,  # decalibrations have parameters as well
)
def sample_size_study(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    decalibrations: Mapping[str, Decalibration] | None = None,
    metrics: Sequence[str] | None = None,
    fractions: Sequence[float] | None = None,
    n_splits: int = 100,
    test_size: float = 0.2,
    validation_size: float = 0.2,
    n_bins: int = 15,
    pos_label: Any = None,
    results_folder: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    random_state: RandomStateLike = None,
    progress: bool | None = None,
) -> SampleSizeResult:
    """Measure calibration on smaller and smaller parts of the test rows.

    The synthetic study of [1]_, on any scores. These are decalibrated to several
    degrees; the rows are split at random many times; in each split Platt scaling is
    fitted to the validation rows, and the metrics are evaluated on nested samples of
    the test rows. With perfectly calibrated scores
    (`skcalfair.datasets.make_calibrated_scores`) all growth is the metrics' own.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels of two classes.
    y_prob : array-like of shape (n_samples,) or (n_samples, 2)
        Probabilities of the positive class in [0, 1], or `predict_proba` output.
    decalibrations : dict of str to decalibration, default=None
        Name of each way to spoil the scores: two shape parameters of
        `skcalfair.datasets.BetaDecalibrator`, a transformer of a column of
        probabilities, or a function of an array of them. It must not change the order
        of the scores. By default (1, 1), which changes nothing, (1.5, 1.5) and (3, 3):
        "calibrated", "moderate" and "strong".
    metrics : sequence of str, default=None
        Names of calibration errors (expected, maximum, adaptive and squared), proper
        scores (log loss, Brier score) and the calibration losses of these by the Platt
        map of the validation rows; as in `skcalfair.metrics.metric_table`. By default
        all but the log loss.
    fractions : sequence of float, default=None
        Increasing parts of the test rows, in (0, 1]. By default 0.1, 0.2, ..., 1.
    n_splits : int, default=100
        Random splits.
    test_size : float, default=0.2
        Proportion of the rows that is tested.
    validation_size : float, default=0.2
        Proportion that Platt scaling is fitted to. The rest, which a classifier would
        be trained on, is left alone.
    n_bins : int, default=15
        Bins of the calibration errors.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; needed for text labels.
    results_folder : str or path-like, default=None
        Where finished blocks of splits are kept, so that a study that was stopped goes
        on where it was. Blocks of other data or parameters may lie beside them.
    n_jobs : int, default=None
        Blocks at the same time; the result does not depend on it.
    random_state : int, Generator, RandomState instance or None, default=None
        Determines the splits. With a `results_folder` it must not be None.
    progress : bool, default=None
        Whether to show a progress bar; by default only in a terminal.

    Returns
    -------
    SampleSizeResult
        Tidy tables: every value, and the comparison of the smallest fraction with the
        largest.

    Raises
    ------
    ValueError
        For input that does not fit; the message names the argument.

    See Also
    --------
    subgroup_study : The study of groups on real data.
    skcalfair.displays.SampleSizeDisplay : Metric against fraction, by decalibration.

    Notes
    -----
    The samples of a split contain each other, and each is a simple random sample of the
    test rows. All decalibrations use the same splits.

    Values are those of the public functions of `skcalfair.metrics`, with
    ``recalibrate="held_out"`` for the calibration losses. They are computed much faster
    than by calling those: an increasing distortion keeps the order of the rows, so that
    all rows are sorted once, and what a sample adds to the one it contains is added to
    its sums.

    The p-values are those of the published study. The splits share rows, so that they
    describe the study and say nothing about other data.

    References
    ----------
    .. [1] Ricci Lara, M. A., Mosquera, C., Ferrante, E. and Echeveste, R. (2023).
       "Towards unraveling calibration biases in medical image analysis".
       arXiv:2305.05101.

    Examples
    --------
    The expected calibration error (ECE) of perfectly calibrated scores triples when a
    tenth of the test rows is left, and the squared error does not move:

    >>> from skcalfair.datasets import make_calibrated_scores
    >>> from skcalfair.experiments import sample_size_study
    >>> frame = make_calibrated_scores(20_000, random_state=0).frame
    >>> result = sample_size_study(
    ...     frame["outcome"],
    ...     frame["score"],
    ...     metrics=["expected_calibration_error", "squared_calibration_error"],
    ...     n_splits=20,
    ...     random_state=0,
    ... )
    >>> columns = ["decalibration", "metric", "value", "reference_value"]
    >>> result.wilcoxon.loc[:1, columns].round(3)
      decalibration                      metric  value  reference_value
    0    calibrated  expected_calibration_error  0.052            0.016
    1    calibrated   squared_calibration_error  0.000            0.000
    """
    check_resumable(results_folder, random_state)
    plan = _plan(metrics, fractions, n_bins)
    rows = check_scored_rows(y_true, y_prob, pos_label=pos_label)
    scores = SortedScores.from_rows(rows)
    plan["n_validation"], plan["sizes"] = _sizes(
        len(scores), test_size, validation_size, plan["fractions"]
    )
    chosen = DECALIBRATIONS if decalibrations is None else decalibrations
    if not chosen:
        raise ValueError("decalibrations must name at least one; got none")
    scenarios = [
        Scenario(str(name), _decalibrated(how, scores.p, name), scores.y)
        for name, how in chosen.items()
    ]
    for scenario in scenarios:
        scenario.prepare(plan["metrics"])
    seeds = child_seeds(random_state, n_splits)
    blocks = [
        seeds[start : start + SPLITS_PER_BLOCK]
        for start in range(0, n_splits, SPLITS_PER_BLOCK)
    ]
    found = run_blocks(
        _block_of_splits,
        [(scenarios, block, plan) for block in blocks],
        folder=results_folder,
        keys=[] if results_folder is None else _keys(scenarios, blocks, plan),
        n_jobs=n_jobs,
        progress=progress,
        what="blocks of splits",
    )
    values = np.concatenate([np.array(block, dtype=np.float64) for block in found])
    names = [scenario.name for scenario in scenarios]
    return SampleSizeResult(
        frame=_frame(values, names, plan),
        wilcoxon=_wilcoxon_table(values, names, plan),
        curves=_curves(chosen),
    )


# -- parameters -----------------------------------------------------------------------


def _plan(
    metrics: Sequence[str] | None, fractions: Sequence[float] | None, n_bins: int
) -> dict[str, Any]:
    chosen = list(STUDY_METRICS if metrics is None else metrics)
    unknown = [name for name in chosen if name not in SAMPLE_METRICS]
    if unknown or not chosen:
        raise ValueError(
            f"metrics must be names among {list(SAMPLE_METRICS)}; got "
            f"{unknown[0] if unknown else 'none'!r}"
        )
    parts = check_fractions(FRACTIONS if fractions is None else fractions)
    return {"metrics": chosen, "fractions": parts, "n_bins": int(n_bins)}


def check_fractions(fractions: Sequence[float]) -> list[float]:
    """Increasing parts of a whole."""
    parts = np.asarray(fractions, dtype=np.float64)
    if (
        parts.ndim != 1
        or not 1 <= len(parts) <= 250
        or not (parts[0] > 0 and parts[-1] <= 1 and (np.diff(parts) > 0).all())
    ):
        raise ValueError(
            "fractions must be 1 to 250 increasing numbers in (0, 1]; got "
            f"{parts.tolist()}"
        )
    return parts.tolist()


def _sizes(
    n: int, test_size: float, validation_size: float, fractions: Sequence[float]
) -> tuple[int, list[int]]:
    """Validation rows, and test rows of each fraction."""
    n_test, n_validation = round(test_size * n), round(validation_size * n)
    if n_validation < 1 or n_validation + n_test > n:
        raise ValueError(
            f"test_size={test_size!r} and validation_size={validation_size!r} of {n:,} "
            f"rows are {n_test:,} and {n_validation:,}: each must be at least one row, "
            "and both together not more than there are"
        )
    sizes = [round(fraction * n_test) for fraction in fractions]
    if sizes[0] < 1:
        raise ValueError(
            f"the smallest of fractions, {fractions[0]:g} of {n_test:,} test rows, is "
            "no row"
        )
    return n_validation, sizes


def _decalibrated(how: Decalibration, p: Floats, name: Any) -> Floats:
    """Distorted probabilities, which must keep the (descending) order of p."""
    q = np.asarray(_apply(how, p), dtype=np.float64)
    if q.shape != p.shape or not ((q >= 0) & (q <= 1)).all():
        raise ValueError(
            f"decalibrations[{name!r}] must turn {len(p):,} probabilities into as many "
            "in [0, 1]; it does not"
        )
    if np.diff(q).max(initial=0.0) > ROUNDING:
        raise ValueError(
            f"decalibrations[{name!r}] must not change the order of the scores; it "
            "gives a lower probability for a higher score"
        )
    return np.minimum.accumulate(q)


def _apply(how: Decalibration, p: Floats) -> ArrayLike:
    if isinstance(how, (tuple, list)):
        how = BetaDecalibrator(*how, input="probability")
    if hasattr(how, "fit_transform"):
        return np.asarray(clone(how).fit_transform(p[:, np.newaxis]))[:, 0]
    if callable(how):
        return how(p.copy())
    raise ValueError(
        "decalibrations must be pairs (alpha, beta), transformers or functions; got "
        f"{how!r}"
    )


# -- blocks ---------------------------------------------------------------------------


def _block_of_splits(
    scenarios: list[Scenario],
    seeds: list[np.random.SeedSequence],
    plan: dict[str, Any],
) -> list:
    """Values by split, scenario, fraction and metric, as nested lists."""
    n, sizes = len(scenarios[0].p), plan["sizes"]
    out = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        parts = draw_parts(n, plan["n_validation"], sizes, rng)
        split = Split(parts, len(sizes))
        out.append(
            [
                sample_values(scenario, split, plan["metrics"], plan["n_bins"]).tolist()
                for scenario in scenarios
            ]
        )
    return out


def _keys(
    scenarios: list[Scenario],
    blocks: list[list[np.random.SeedSequence]],
    plan: dict[str, Any],
) -> list[dict[str, Any]]:
    common = {
        "study": "sample_size",
        "format": FORMAT,
        "data": digest(scenarios[0].y, *(scenario.p for scenario in scenarios)),
        "plan": plan,
    }
    return [common | {"seeds": [seed_key(seed) for seed in block]} for block in blocks]


# -- tables ---------------------------------------------------------------------------


def _frame(values: Floats, names: list[str], plan: dict[str, Any]) -> pd.DataFrame:
    """One row a value; `values` are by split, scenario, fraction and metric."""
    n_splits = len(values)
    fractions, sizes, metrics = plan["fractions"], plan["sizes"], plan["metrics"]
    index = pd.MultiIndex.from_product(
        [names, range(n_splits), fractions, metrics],
        names=["decalibration", "split", "fraction", "metric"],
    )
    frame = index.to_frame(index=False)
    size = np.repeat(np.tile(sizes, len(names) * n_splits), len(metrics))
    frame.insert(3, "n", size)
    frame["value"] = np.swapaxes(values, 0, 1).ravel()
    missing = frame["value"].isna() & frame["metric"].isin(HELD_OUT)
    reasons = [ONE_CLASS if lost else None for lost in missing]
    frame["reason"] = pd.Series(reasons, dtype=object)
    return frame


def _wilcoxon_table(
    values: Floats, names: list[str], plan: dict[str, Any]
) -> pd.DataFrame:
    """Smallest against largest fraction, by scenario and metric."""
    fractions, sizes = plan["fractions"], plan["sizes"]
    records = []
    for s, name in enumerate(names):
        for m, metric in enumerate(plan["metrics"]):
            small, large = values[:, s, 0, m], values[:, s, -1, m]
            known = np.isfinite(small) & np.isfinite(large)
            gaps = (small - large)[known]
            outcome = _wilcoxon(gaps, np.empty(0, dtype=np.intp))
            records.append(
                {
                    "decalibration": name,
                    "metric": metric,
                    "fraction": fractions[0],
                    "reference_fraction": fractions[-1],
                    "n": sizes[0],
                    "reference_n": sizes[-1],
                    "value": small[known].mean() if known.any() else np.nan,
                    "reference_value": large[known].mean() if known.any() else np.nan,
                    "method": outcome.method,
                    "unit": "split",
                    "n_units": int(known.sum()),
                    "statistic": outcome.statistic,
                    "p_value": outcome.p_value,
                    "size_robust": METRICS[metric].size_robust,
                    "note": NOTE,
                }
            )
    return pd.DataFrame(records)


def _curves(decalibrations: Mapping[str, Decalibration]) -> pd.DataFrame:
    grid = np.linspace(0.0, 1.0, CURVE_POINTS)
    parts = [
        pd.DataFrame(
            {
                "decalibration": str(name),
                "probability": grid,
                "decalibrated": np.asarray(_apply(how, grid), dtype=np.float64),
            }
        )
        for name, how in decalibrations.items()
    ]
    return pd.concat(parts, ignore_index=True)
