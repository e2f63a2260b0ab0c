"""The three common comparisons of a model with readers, offered for criticism.

Each gives its own verdict, and beside it what the dominance table says of the same
cases.
"""

from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import roc_curve
from sklearn.utils._param_validation import Interval, validate_params

from ._cases import Cases
from ._comparison_input import check_comparison
from ._comparison_results import (
    MatchedComparison,
    MeanReaderComparison,
    ReaderHullComparison,
)
from ._curves import TIE, area, height, hull_curve, model_curve
from ._paired import paired_difference_interval
from ._pooled import PooledHull
from ._table import table_frame

Floats = NDArray[np.float64]

_ENDS = ("low", "high")

_CONSTRAINTS: dict[str, Any] = {
    "y_true": ["array-like"],
    "y_score": ["array-like"],
    "reader_calls": ["array-like"],
    "pos_label": [Real, str, "boolean", None],
    "sample_weight": ["array-like", None],
}


@validate_params(_CONSTRAINTS, prefer_skip_nested_validation=True)
def compare_mean_reader(
    y_true: ArrayLike,
    y_score: ArrayLike,
    reader_calls: ArrayLike,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> MeanReaderComparison:
    """Compare a model's ROC curve with the mean of the readers' points.

    Not recommended: it puts readers at a disadvantage. It is here so that the claim can
    be set beside the dominance table.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The truth: two classes.
    y_score : array-like of shape (n_samples,)
        Scores of the model; higher means more likely positive. In the tables it has
        the name of a Series, or else is called "model".
    reader_calls : DataFrame or array-like of shape (n_samples, n_readers)
        Calls of the readers: 0 and 1 or the labels of `y_true`; NaN where not read.
        Ratings have to be turned into calls first.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; by default 1. Needed where the labels are text, or
        numbers other than {0, 1} and {-1, 1}.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights. By default every case weighs one.

    Returns
    -------
    MeanReaderComparison
        The mean reader, the model's curve there, and the dominance table.

    Raises
    ------
    ValueError
        If `y_true` does not hold two classes, or they are text and `pos_label` is not
        stated; if a score is missing or infinite, a reader's column holds more than two
        values, a reader read no positive or no negative case, or is called like the
        model.

    See Also
    --------
    DominanceTable : Compares points with points.

    Notes
    -----
    What it gets wrong [1]_: a mean of points lies inside of their convex hull, and a
    curve is compared with a mean of points. ROC curves bend outwards, so of readers who
    each lie on a curve, one careful and one bold, the mean lies under it. Readers can
    even be better than the model at each of their points, and their mean under its
    curve: the comparison always errs in favour of the model, and the more so, the more
    the readers' ways of weighing errors differ. Nobody decides as the mean reader does.

    The dominance table of the model and the readers comes with the result. The curve is
    the drawn one, straight between thresholds.

    References
    ----------
    .. [1] The study of human and machine performance that proposed dominance tables;
       see the user guide.

    Examples
    --------
    A careful and a bold reader, both better than the model at their specificity:

    >>> import numpy as np
    >>> from skcalfair.dominance import compare_mean_reader
    >>> truth = np.repeat([0, 1], 10)
    >>> score = np.r_[[8, 6, 6, 6, 6, 6, 6, 6, 6, 0], [9, 9, 9, 9, 9, 7, 7, 7, 7, 1]]
    >>> careful = np.r_[np.zeros(10), np.ones(6), np.zeros(4)]
    >>> bold = np.r_[np.ones(8), np.zeros(2), np.ones(10)]
    >>> calls = np.column_stack([careful, bold])
    >>> result = compare_mean_reader(truth, score, calls)
    >>> result.readers[["sensitivity", "model_sensitivity"]]
       sensitivity  model_sensitivity
    0          0.6                0.5
    1          1.0                0.9
    >>> result.mean_sensitivity, result.model_sensitivity
    (0.8, 0.9)
    >>> result.is_under_curve, result.readers_best
    (True, ('reader1', 'reader0'))
    """
    cases = check_comparison(y_true, y_score, reader_calls, pos_label, sample_weight)
    readers, curve = _readers(cases), model_curve(cases)
    readers["model_sensitivity"] = height(curve, 1.0 - readers["specificity"])
    above = readers["sensitivity"] > readers["model_sensitivity"] + TIE
    readers["is_above_curve"] = above
    sensitivity = float(readers["sensitivity"].mean())
    specificity = float(readers["specificity"].mean())
    model = float(height(curve, 1.0 - specificity))
    return MeanReaderComparison(
        mean_sensitivity=sensitivity,
        mean_specificity=specificity,
        model_sensitivity=model,
        is_under_curve=sensitivity < model - TIE,
        readers=readers,
        table=_dominance(cases),
        model=cases.model_names[0],
    )


@validate_params(_CONSTRAINTS, prefer_skip_nested_validation=True)
def reader_hull_auc(
    y_true: ArrayLike,
    y_score: ArrayLike,
    reader_calls: ArrayLike,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> ReaderHullComparison:
    """Compare areas: under the hull of the readers' points, and of a model.

    Not recommended: the area of the readers comes out too small. It is here so that the
    claim can be set beside the dominance table.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The truth: two classes.
    y_score : array-like of shape (n_samples,)
        Scores of the model; higher means more likely positive. In the tables it has
        the name of a Series, or else is called "model".
    reader_calls : DataFrame or array-like of shape (n_samples, n_readers)
        Calls of the readers: 0 and 1 or the labels of `y_true`; NaN where not read.
        Ratings have to be turned into calls first.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; by default 1. Needed where the labels are text, or
        numbers other than {0, 1} and {-1, 1}.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights. By default every case weighs one.

    Returns
    -------
    ReaderHullComparison
        The areas, in all and within the readers' range, and the dominance table.

    Raises
    ------
    ValueError
        As `compare_mean_reader`.

    See Also
    --------
    DominanceTable : Compares points with points.

    Notes
    -----
    What it gets wrong [1]_: readers decide where they find it useful, and only there.
    Outside of that range the hull is a straight line to the corner, the least that
    anybody could do, while the model's curve is known everywhere. So the readers' area
    is too small, the more so the closer together they are, and a model can have the
    greater area without being better anywhere that readers decide. Compare the areas
    within the range. Then again a hull picks the best of many points that chance has
    moved, so that many readers on few cases have too large an area there, and so has
    the model's hull.

    References
    ----------
    .. [1] The study of human and machine performance that proposed dominance tables;
       see the user guide.

    Examples
    --------
    A reader better than the model at the same specificity, with a smaller area:

    >>> import numpy as np
    >>> from skcalfair.dominance import reader_hull_auc
    >>> truth = np.repeat([0, 1], 10)
    >>> score = np.r_[[8, 6, 6, 4, 4, 2, 2, 2, 2, 2], [9, 9, 9, 9, 9, 7, 7, 5, 5, 3]]
    >>> reader = np.r_[1, np.zeros(9), np.ones(8), 0, 0]
    >>> result = reader_hull_auc(truth, score, reader.reshape(-1, 1))
    >>> round(result.reader_auc, 2), round(result.model_auc, 2)
    (0.85, 0.87)
    >>> result.readers_best
    ('reader0',)
    """
    cases = check_comparison(y_true, y_score, reader_calls, pos_label, sample_weight)
    readers = _readers(cases)
    points = cases.operating_points()
    curve = model_curve(cases)
    hull, model_hull = hull_curve(points, "reader"), hull_curve(points, "model")
    fpr = points.fpr[points.kind == "reader"]
    low, high = float(fpr.min()), float(fpr.max())
    whole, inside = area(hull, 0.0, 1.0), area(hull, low, high)
    return ReaderHullComparison(
        reader_auc=whole,
        model_auc=area(curve, 0.0, 1.0),
        model_hull_auc=area(model_hull, 0.0, 1.0),
        fpr_low=low,
        fpr_high=high,
        reader_area_inside=inside,
        model_area_inside=area(curve, low, high),
        model_hull_area_inside=area(model_hull, low, high),
        share_outside=1.0 - inside / whole,
        readers=readers,
        table=_dominance(cases),
        model=cases.model_names[0],
    )


@validate_params(
    _CONSTRAINTS
    | {
        "sensitivity": [Interval(Real, 0, 1, closed="both"), None],
        "specificity": [Interval(Real, 0, 1, closed="both"), None],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
    },
    prefer_skip_nested_validation=True,
)
def matched_operating_point(
    y_true: ArrayLike,
    y_score: ArrayLike,
    reader_calls: ArrayLike,
    *,
    sensitivity: float | None = None,
    specificity: float | None = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> MatchedComparison:
    """Compare a model at a stated sensitivity or specificity with each reader.

    Of the three common comparisons the most useful, since it compares points with
    points; but only one or two of them, which somebody chose.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The truth: two classes.
    y_score : array-like of shape (n_samples,)
        Scores of the model; higher means more likely positive. In the tables it has
        the name of a Series, or else is called "model".
    reader_calls : DataFrame or array-like of shape (n_samples, n_readers)
        Calls of the readers: 0 and 1 or the labels of `y_true`; NaN where not read.
        Ratings have to be turned into calls first.
    sensitivity : float, default=None
        Least sensitivity of the model, in [0, 1]; of the thresholds that reach it, the
        one with the highest specificity is taken.
    specificity : float, default=None
        Least specificity of the model, likewise. By default (neither stated) the
        specificity of each reader.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; by default 1. Needed where the labels are text, or
        numbers other than {0, 1} and {-1, 1}.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights. By default every case weighs one. With weights there are
        no intervals.
    confidence_level : float, default=0.95
        Level of the intervals, in (0, 1).

    Returns
    -------
    MatchedComparison
        Both differences for each reader, and the dominance table.

    Raises
    ------
    ValueError
        As `compare_mean_reader`, and if both rates are stated.

    See Also
    --------
    DominanceTable : Compares points with points, at all gradients.

    Notes
    -----
    What it gets wrong [1]_: somebody chooses the point, and the answer depends on it.
    Where the model is held at 90 % specificity and a reader works at 80 %, one is
    better in one rate and one in the other, and nothing follows ("trade-off"): which
    of them matters depends on prevalence and costs, which the comparison leaves out.
    Held at the reader's own specificity the model can win, and at another threshold of
    the same model or for the costs at hand lose, or the other way round.

    Model and reader are compared on the cases that this reader read, on which the
    threshold is chosen too. The intervals are those of a difference of paired
    proportions [2]_; they take the threshold as given and the cases as independent,
    and are too short for that. Where both include 0, the reading is "chance": no
    difference is shown, and the intervals say how large a one the data allow.

    References
    ----------
    .. [1] The study of human and machine performance that proposed dominance tables;
       see the user guide.
    .. [2] R. G. Newcombe, "Improved confidence intervals for the difference between
       binomial proportions based on paired data", Statistics in Medicine 17, 1998,
       method 10.

    Examples
    --------
    At 90 % specificity nothing can be said of a reader who works at 70 %:

    >>> import numpy as np
    >>> from skcalfair.dominance import matched_operating_point
    >>> truth = np.repeat([0, 1], 10)
    >>> score = np.r_[[1, 1, 1, 1, 1, 1, 2, 2, 4, 4], [2, 3, 3, 3, 3, 3, 5, 5, 5, 5]]
    >>> reader = np.r_[np.zeros(7), 1, 1, 1, 0, np.ones(9)].reshape(-1, 1)
    >>> result = matched_operating_point(truth, score, reader, specificity=0.9)
    >>> result.readers[["model_sensitivity", "sensitivity", "reading"]]
       model_sensitivity  sensitivity    reading
    0                0.4          0.9  trade-off
    >>> result = matched_operating_point(truth, score, reader)
    >>> result.readers["reading"].tolist()
    ['chance']
    >>> result.readers[["sensitivity_low", "sensitivity_high"]].round(2)
       sensitivity_low  sensitivity_high
    0            -0.28              0.28
    """
    if sensitivity is not None and specificity is not None:
        raise ValueError(
            "state a sensitivity or a specificity, not both; got sensitivity="
            f"{sensitivity} and specificity={specificity}"
        )
    cases = check_comparison(y_true, y_score, reader_calls, pos_label, sample_weight)
    rows = [
        _matched(cases, reader, sensitivity, specificity, confidence_level)
        for reader in _readers(cases).itertuples()
    ]
    return MatchedComparison(
        matched="specificity" if sensitivity is None else "sensitivity",
        target=specificity if sensitivity is None else sensitivity,
        readers=pd.DataFrame(rows),
        table=_dominance(cases),
        model=cases.model_names[0],
    )


# -- cases -----------------------------------------------------------------------------


def _readers(cases: Cases) -> pd.DataFrame:
    """Number of cases read and rates of each reader."""
    points = cases.operating_points().to_frame()
    own = points.loc[points["kind"] == "reader", ["sensitivity", "specificity"]]
    read = cases.pairing[["reader", "n_read"]]
    return pd.concat([read, own.reset_index(drop=True)], axis=1)


def _dominance(cases: Cases) -> pd.DataFrame:
    return table_frame(PooledHull(cases.operating_points()), "expected_cost", [])


# -- matched points --------------------------------------------------------------------


def _matched(
    cases: Cases,
    reader: Any,
    sensitivity: float | None,
    specificity: float | None,
    level: float,
) -> dict[str, Any]:
    """Model against one reader, on the cases that the reader read."""
    calls = cases.calls[cases.reader_names.index(reader.reader)]
    read = ~np.isnan(calls)
    weights = None if cases.weights is None else cases.weights[read]
    truth, scores, calls = cases.is_positive[read], cases.scores[0][read], calls[read]
    if specificity is None and sensitivity is None:
        specificity = reader.specificity
    threshold = _threshold(truth, scores, weights, sensitivity, specificity)
    called = scores >= threshold
    row: dict[str, Any] = {
        "reader": reader.reader,
        "n_read": reader.n_read,
        "threshold": threshold,
    }
    for rate, rows, right in (
        ("sensitivity", truth, 1.0),
        ("specificity", ~truth, 0.0),
    ):
        model, own = (called == right)[rows], (calls == right)[rows]
        w = None if weights is None else weights[rows]
        row[f"model_{rate}"] = float(np.average(model, weights=w))
        row[rate] = getattr(reader, rate)
        row[f"{rate}_difference"] = row[f"model_{rate}"] - row[rate]
        interval = (np.nan, np.nan)
        if w is None:
            interval = paired_difference_interval(model, own, level)
        row[f"{rate}_low"], row[f"{rate}_high"] = interval
    return row | {"reading": _reading(row)}


def _threshold(
    truth: NDArray[np.bool_],
    scores: Floats,
    weights: Any,
    sensitivity: float | None,
    specificity: float | None,
) -> float:
    """Best threshold that keeps a rate; infinite where nobody may be called."""
    fpr, tpr, thresholds = roc_curve(
        truth, scores, sample_weight=weights, drop_intermediate=False
    )
    # Both rates rise along the curve.
    if sensitivity is None:
        assert specificity is not None
        within = np.flatnonzero(1.0 - fpr >= specificity - TIE)
        best = tpr[within] >= tpr[within[-1]]
        return float(thresholds[within[np.argmax(best)]])
    within = np.flatnonzero(tpr >= sensitivity - TIE)
    best = fpr[within] <= fpr[within[0]]
    return float(thresholds[within[best][-1]])


def _reading(row: dict[str, Any]) -> str:
    """Which of the two is better in one rate and not worse in the other."""
    rates = ("sensitivity", "specificity")
    gaps = np.array([row[f"{rate}_difference"] for rate in rates])
    gaps[np.abs(gaps) <= TIE] = 0.0
    if not gaps.any():
        return "equal"
    low, high = (np.array([row[f"{rate}_{end}"] for rate in rates]) for end in _ENDS)
    if np.isnan(low).any():
        return "untested"
    if ((low <= 0) & (high >= 0)).all():
        return "chance"
    if (gaps >= 0).all():
        return "model"
    return "reader" if (gaps <= 0).all() else "trade-off"
