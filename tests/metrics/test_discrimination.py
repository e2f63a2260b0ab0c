"""Discrimination against scikit-learn and against areas taken point by point."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    brier_score_loss,
    log_loss,
    roc_auc_score,
)

import skcalfair.metrics as metrics
from skcalfair.metrics import (
    balanced_accuracy_at_threshold,
    normalized_average_precision,
    precision_recall_gain_auc_score,
)
from skcalfair.metrics._discrimination import average_precision_kernel, roc_auc_kernel
from skcalfair.metrics._evaluate import sorted_scores

CLOSE = {"rtol": 1e-12, "atol": 1e-12}

ROWS = st.tuples(
    st.one_of(st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0]), st.floats(0, 1)),
    st.integers(0, 1),
    st.integers(0, 3),
)


@st.composite
def samples(draw):
    """Scores with ties and both classes; integer weights, zeros among them."""
    rows = draw(st.lists(ROWS, max_size=20))
    ends = [(draw(st.sampled_from([0.2, 0.5])), y, 1) for y in (0, 1)]
    p, y, w = zip(*draw(st.permutations(rows + ends)), strict=True)
    return np.array(y), np.array(p), np.array(w)


def make_sample(seed, n=80, n_scores=30):
    rng = np.random.default_rng(seed)
    p = rng.integers(0, n_scores + 1, n) / n_scores
    y = (rng.random(n) < 0.2 + 0.5 * p).astype(int)
    return y, p, rng.exponential(size=n)


# -- agreement with scikit-learn -----------------------------------------------------


@settings(max_examples=80)
@given(sample=samples(), weighted=st.booleans())
def test_ranks_agree_with_scikit_learn(sample, weighted):
    y, p, w = sample
    w = w if weighted else None
    scores = sorted_scores(y, p, sample_weight=w)
    auc, ap = roc_auc_kernel(scores)[0], average_precision_kernel(scores)[0]
    assert_allclose(auc, roc_auc_score(y, p, sample_weight=w), **CLOSE)
    assert_allclose(ap, average_precision_score(y, p, sample_weight=w), **CLOSE)
    prevalence = np.average(y, weights=w)
    value = normalized_average_precision(y, p, sample_weight=w)
    assert_allclose(value, (ap - prevalence) / (1 - prevalence), **CLOSE)


@settings(max_examples=60)
@given(
    sample=samples(),
    threshold=st.one_of(st.sampled_from([0.0, 0.2, 0.5, 1.0]), st.floats(-0.5, 1.5)),
)
def test_balanced_accuracy_agrees_with_scikit_learn(sample, threshold):
    y, p, w = sample
    called = (p >= threshold).astype(int)
    assert_allclose(
        balanced_accuracy_at_threshold(y, p, threshold=threshold, sample_weight=w),
        balanced_accuracy_score(y, called, sample_weight=w),
        **CLOSE,
    )


@settings(max_examples=60)
@given(sample=samples())
def test_proper_scores_agree_with_scikit_learn(sample):
    y, p, w = sample
    assert_allclose(
        metrics.brier_score_loss(y, p, sample_weight=w),
        brier_score_loss(y, p, sample_weight=w),
        **CLOSE,
    )
    eps = np.finfo(np.float64).eps  # scikit-learn's clip
    assert_allclose(
        metrics.log_loss(y, p, sample_weight=w, eps=eps),
        log_loss(y, p, sample_weight=w),
        rtol=1e-10,
    )


@pytest.mark.parametrize("seed", range(5))
def test_fractional_weights_agree_with_scikit_learn(seed):
    y, p, w = make_sample(seed, 500)
    scores = sorted_scores(y, p, sample_weight=w)
    assert_allclose(roc_auc_kernel(scores)[0], roc_auc_score(y, p, sample_weight=w))
    assert_allclose(
        average_precision_kernel(scores)[0],
        average_precision_score(y, p, sample_weight=w),
    )
    assert_allclose(
        balanced_accuracy_at_threshold(y, p, sample_weight=w),
        balanced_accuracy_score(y, p >= 0.5, sample_weight=w),
    )
    for name, reference in (
        ("brier_score_loss", brier_score_loss),
        ("log_loss", log_loss),
    ):
        inner = np.clip(p, 1e-9, 1 - 1e-9)
        value = getattr(metrics, name)(y, inner, sample_weight=w)
        assert_allclose(value, reference(y, inner, sample_weight=w), rtol=1e-11)


@pytest.mark.parametrize("eps", [1e-12, 1e-3, 0.2])
def test_log_loss_clips_both_ends(eps):
    y, p = np.array([0, 1, 0, 1, 1]), np.array([0.0, 1.0, 1.0, 0.0, 0.4])
    clipped = np.clip(p, eps, 1 - eps)
    value = metrics.log_loss(y, p, eps=eps)
    assert_allclose(value, log_loss(y, clipped), rtol=1e-4 if eps < 1e-9 else 1e-12)


# -- normalised average precision ----------------------------------------------------


def test_normalised_average_precision_has_fixed_ends():
    y = np.array([0, 0, 1, 1, 1])
    assert normalized_average_precision(y, y.astype(float)) == 1
    assert_allclose(normalized_average_precision(y, np.full(5, 0.3)), 0, atol=1e-15)
    assert normalized_average_precision(y, [0.9, 0.8, 0.3, 0.2, 0.1]) < 0


def test_normalised_average_precision_depends_on_prevalence():
    """The published .71, .54 and .30: normal scores 1.5 standard deviations apart."""
    x = np.linspace(-6, 9, 30_001)
    p, y = (x - x.min()) / (x.max() - x.min()), np.repeat([1, 0], len(x))
    for prevalence, published in ((0.5, 0.71), (0.2, 0.54), (0.05, 0.30)):
        w = np.r_[prevalence * norm.pdf(x, 1.5), (1 - prevalence) * norm.pdf(x)]
        value = normalized_average_precision(y, np.r_[p, p], sample_weight=w)
        assert_allclose(value, published, atol=0.01)


# -- precision-recall-gain -----------------------------------------------------------


def gain_points(y, p, w):
    """Operating points as exact counts (TP, FP), the highest threshold first."""
    w = [Fraction(float(x)) for x in w]
    points = [(Fraction(0), Fraction(0))]
    for threshold in np.unique(p)[::-1]:
        called = np.flatnonzero(p >= threshold)
        tp = sum((w[i] for i in called if y[i] == 1), Fraction(0))
        fp = sum((w[i] for i in called if y[i] == 0), Fraction(0))
        points.append((tp, fp))
    return points


def gain_area(y, p, w):
    """Area of Flach and Kull: trapezia between points of recall gain 0 to 1.

    Precision gain is 1 - pi / (1 - pi) FP / TP, recall gain 1 - pi / (1 - pi) FN / TP;
    the point where the curve crosses recall gain 0 is found on the line between two
    operating points in count space.
    """
    points = gain_points(y, p, w)
    positive, negative = points[-1]
    odds, least = positive / negative, positive**2 / (positive + negative)
    kept = []
    for (tp0, fp0), (tp1, fp1) in pairwise(points):
        if tp0 < least <= tp1:
            share = (least - tp0) / (tp1 - tp0)
            kept.append((least, fp0 + share * (fp1 - fp0)))
        if tp1 >= least:
            kept.append((tp1, fp1))
    curve = [(1 - odds * (positive - tp) / tp, 1 - odds * fp / tp) for tp, fp in kept]
    return float(
        sum((x1 - x0) * (y0 + y1) / 2 for (x0, y0), (x1, y1) in pairwise(curve))
    )


@settings(max_examples=80)
@given(sample=samples(), weighted=st.booleans())
def test_gain_area_by_exact_counts(sample, weighted):
    y, p, w = sample
    w = w if weighted else np.ones(len(y))
    value = precision_recall_gain_auc_score(y, p, sample_weight=w)
    assert_allclose(value, gain_area(y, p, w), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("seed", range(3))
def test_gain_area_by_interpolation_in_count_space(seed):
    """Mixing two operating points is linear in counts: many mixtures, no trapezia."""
    y, p, w = make_sample(seed)
    counts = np.array(gain_points(y, p, w), dtype=float)
    share = np.linspace(0, 1, 5001)[:, np.newaxis]
    mixed = [a + share * (b - a) for a, b in pairwise(counts)]
    tp, fp = np.concatenate(mixed)[1:].T
    positive, negative = counts[-1]
    odds = positive / negative
    recall_gain = 1 - odds * (positive - tp) / tp
    precision_gain = 1 - odds * fp / tp
    inside = recall_gain >= 0
    area = np.sum(precision_gain[inside][1:] * np.diff(recall_gain[inside]))
    value = precision_recall_gain_auc_score(y, p, sample_weight=w)
    assert_allclose(value, area, atol=1e-3)


def test_gain_area_check_values():
    y = np.array([0, 1, 1, 0])
    assert precision_recall_gain_auc_score(y, [0.1, 0.9, 0.8, 0.4]) == 1
    assert_allclose(precision_recall_gain_auc_score(y, np.full(4, 0.5)), 0, atol=1e-15)
    # (TP, FP) = (1, 0), (1, 1), (2, 1), (2, 2), prevalence 1/2: recall gain 0 is
    # TP = 1, where precision gain falls from 1 to 0, and it ends at 1/2 for TP = 2.
    value = precision_recall_gain_auc_score(y, [0.6, 0.9, 0.4, 0.1])
    assert_allclose(value, 0.25, **CLOSE)


def test_gain_area_is_another_quantity_than_normalised_average_precision():
    y, p, _ = make_sample(0)
    difference = precision_recall_gain_auc_score(y, p) - normalized_average_precision(
        y, p
    )
    assert abs(difference) > 0.01


# -- one class and decisions ---------------------------------------------------------


@pytest.mark.parametrize(
    "metric",
    [
        normalized_average_precision,
        precision_recall_gain_auc_score,
        balanced_accuracy_at_threshold,
    ],
)
@pytest.mark.parametrize(
    ("y", "w", "reason"),
    [
        ([0, 0, 0], None, "no positive rows"),
        ([1, 1, 1], None, "no negative rows"),
        ([0, 1, 0], [1, 0, 2], "no positive rows"),
        ([0, 1, 1], [0, 1, 2], "no negative rows"),
    ],
)
def test_one_class_says_which(metric, y, w, reason):
    name = metric.__name__
    with pytest.warns(
        UndefinedMetricWarning, match=f"{name} is not .*{reason}"
    ) as caught:
        value = metric(y, [0.2, 0.4, 0.9], sample_weight=w)
    assert np.isnan(value)
    assert caught[0].filename == __file__  # the warning points at the caller


def test_the_threshold_itself_is_positive():
    y, p = [0, 1], [0.3, 0.5]
    assert balanced_accuracy_at_threshold(y, p) == 1
    assert balanced_accuracy_at_threshold(y, p, threshold=np.nextafter(0.5, 1)) == 0.5
    assert balanced_accuracy_at_threshold(y, p, threshold=0.3) == 0.5
    assert balanced_accuracy_at_threshold(y, p, threshold=-1) == 0.5
