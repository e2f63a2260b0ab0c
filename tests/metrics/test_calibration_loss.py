"""Calibration loss against its formulas, written out with loops, and by simulation."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from skcalfair._log_odds import sigmoid
from skcalfair.exceptions import SmallSampleWarning
from skcalfair.metrics import (
    calibration_decomposition,
    calibration_loss,
    calibration_slope_intercept,
)
from skcalfair.metrics._calibration_loss import calibration_loss_kernel
from skcalfair.metrics._evaluate import sorted_scores

SKLEARN = {"log_loss": log_loss, "brier": brier_score_loss}
MODES = ["held_out", "cross_fit", "in_sample", "corrected"]

both_scores = pytest.mark.parametrize("score", ["log_loss", "brier"])


# -- the formulas --------------------------------------------------------------------


def logit(p):
    return np.log(p) - np.log1p(-p)


def platt(p, y, w):
    """Slope and intercept by plain Newton steps to rounding."""
    x = np.stack([logit(p), np.ones(len(p))], axis=1)
    theta = np.zeros(2)
    for _ in range(50):
        q = sigmoid(x @ theta)
        step = np.linalg.solve(x.T * (w * q * (1 - q)) @ x, x.T @ (w * (y - q)))
        theta = theta + step
    assert np.abs(step).max() < 1e-9
    return theta


def moments(p, y, w):
    """Features, q, H and C at the maximum-likelihood fit."""
    x = np.stack([logit(p), np.ones(len(p))], axis=1)
    q = sigmoid(x @ platt(p, y, w))
    v = q * (1 - q)
    h, c = np.zeros((2, 2)), np.zeros((2, 2))
    for xi, vi, wi in zip(x, v, w / w.sum(), strict=True):
        h += wi * vi * np.outer(xi, xi)
        c += 2 * wi * vi**2 * np.outer(xi, xi)
    return x, q, h, c


def optimism_of_rows(p, y, w, score):
    """Independent rows, frequency weights: tr(H^-1 J) / 2n or tr(H^-1 C) / 2n."""
    x, q, h, c = moments(p, y, w)
    n = w.sum()
    j = sum(
        wi * (yi - qi) ** 2 * np.outer(xi, xi)
        for xi, yi, qi, wi in zip(x, y, q, w, strict=True)
    )
    other = j / n if score == "log_loss" else c
    return np.trace(np.linalg.inv(h) @ other) / (2 * n)


def optimism_of_clusters(p, y, w, clusters, score, *, leverage=True):
    """Mancl and DeRouen's form, cluster by cluster."""
    x, q, h, c = moments(p, y, w)
    n, inverse = w.sum(), np.linalg.inv(h)
    j, m = np.zeros((2, 2)), np.zeros((2, 2))
    for name in np.unique(clusters):
        h_c, s, g = np.zeros((2, 2)), np.zeros(2), np.zeros(2)
        for i in np.flatnonzero(clusters == name):
            v = q[i] * (1 - q[i])
            h_c += w[i] * v * np.outer(x[i], x[i]) / n
            s += w[i] * (y[i] - q[i]) * x[i]
            g += w[i] * v * (y[i] - q[i]) * x[i]
        if leverage:
            s = np.linalg.inv(np.eye(2) - h_c @ inverse) @ s
        j += np.outer(s, s) / n
        m += 2 * np.outer(s, g) / n
    if score == "log_loss":
        return np.trace(inverse @ j) / (2 * n)
    return (np.trace(inverse @ m) - np.trace(c @ inverse @ j @ inverse) / 2) / n


def loss_on_new_rows(p, y, w, clusters, score):
    """tr(H^-1 J) / 2n, for the Brier score tr(C H^-1 J H^-1) / 2n."""
    x, q, h, c = moments(p, y, w)
    n, inverse = w.sum(), np.linalg.inv(h)
    if clusters is None:
        j = (x.T * (w * (q - y) ** 2)) @ x / n
    else:
        j = np.zeros((2, 2))
        for name in np.unique(clusters):
            i = clusters == name
            h_c = (x[i].T * (w * q * (1 - q))[i]) @ x[i] / n
            s = x[i].T @ (w * (y - q))[i]
            s = np.linalg.inv(np.eye(2) - h_c @ inverse) @ s
            j += np.outer(s, s) / n
    loss = inverse @ j if score == "log_loss" else c @ inverse @ j @ inverse
    return np.trace(loss) / (2 * n)


def gain(p, y, w, score):
    """PSR(p) - PSR(q) by scikit-learn's scores, q the fit to the rows themselves."""
    slope, intercept = platt(p, y, w)
    q = sigmoid(slope * logit(p) + intercept)
    psr = SKLEARN[score]
    return psr(y, p, sample_weight=w) - psr(y, q, sample_weight=w)


# -- samples -------------------------------------------------------------------------


def make_sample(seed=0, n=80, slope=0.6):
    """Overlapping classes, ties, integer weights, clusters of 1 to 6 rows."""
    rng = np.random.default_rng(seed)
    p = np.clip(np.round(sigmoid(rng.normal(0, 1.5, n)), 2), 0.01, 0.99)
    y = (rng.random(n) < sigmoid(slope * logit(p))).astype(int)
    return y, p, rng.integers(1, 4, n), rng.integers(0, n // 3, n)


seeds = pytest.mark.parametrize("seed", range(5))


# -- own fit -------------------------------------------------------------------------


@seeds
@both_scores
def test_in_sample_is_the_difference_after_refitting(score, seed):
    y, p, w, _ = make_sample(seed)
    x = logit(p)[:, np.newaxis]
    refit = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000)
    q = refit.fit(x, y, sample_weight=w).predict_proba(x)[:, 1]
    psr = SKLEARN[score]
    expected = psr(y, p, sample_weight=w) - psr(y, q, sample_weight=w)
    parts = calibration_decomposition(
        y, p, score=score, recalibrate="in_sample", sample_weight=w
    )
    assert_allclose(parts.calibration, expected, rtol=0, atol=1e-9)
    assert_allclose(parts.discrimination, psr(y, q, sample_weight=w), atol=1e-9)
    assert_allclose(parts.total, psr(y, p, sample_weight=w), rtol=1e-12)
    assert_allclose(parts.slope, refit.coef_[0, 0], atol=1e-6)
    assert_allclose(parts.intercept, refit.intercept_[0], atol=1e-6)
    assert parts.optimism == 0


@seeds
@both_scores
@pytest.mark.parametrize("weighted", [False, True])
def test_correction_for_independent_rows(score, seed, weighted):
    y, p, w, _ = make_sample(seed)
    w = w if weighted else np.ones(len(y))
    parts = calibration_decomposition(
        y, p, score=score, sample_weight=w if weighted else None
    )
    expected = optimism_of_rows(p, y, w, score)
    assert_allclose(parts.optimism, expected, rtol=1e-10)
    assert_allclose(parts.calibration, gain(p, y, w, score) - expected, rtol=1e-9)
    assert parts.recalibrate == "corrected"


@seeds
@both_scores
@pytest.mark.parametrize("weights", [None, "frequency", "probability"])
def test_correction_for_clusters(score, seed, weights):
    y, p, w, clusters = make_sample(seed)
    w = {None: np.ones(len(y)), "frequency": w, "probability": w / 7}[weights]
    given = {"sample_weight": w, "weights": weights} if weights else {}
    parts = calibration_decomposition(y, p, score=score, clusters=clusters, **given)
    expected = optimism_of_clusters(p, y, w, clusters, score)
    assert_allclose(parts.optimism, expected, rtol=1e-10)
    assert_allclose(parts.calibration, gain(p, y, w, score) - expected, rtol=1e-9)


@seeds
@both_scores
def test_correction_for_probability_weights(score, seed):
    y, p, w, _ = make_sample(seed)
    w = w / 7
    parts = calibration_decomposition(
        y, p, score=score, sample_weight=w, weights="probability"
    )
    if score == "log_loss":  # J = sum w^2 (q - y)^2 x x' / W^2, tr(H^-1 J) / 2
        x, q, h, _ = moments(p, y, w)
        j = (x.T * (w * (q - y)) ** 2) @ x / w.sum() ** 2
        assert_allclose(parts.optimism, np.trace(np.linalg.inv(h) @ j) / 2, rtol=1e-10)
    # Each row is a cluster of its own; no leverage is taken out.
    rows = np.arange(len(y))
    expected = optimism_of_clusters(p, y, w, rows, score, leverage=False)
    assert_allclose(parts.optimism, expected, rtol=1e-10)
    assert_allclose(parts.calibration, gain(p, y, w, score) - expected, rtol=1e-9)


@both_scores
def test_corrections_agree_where_rows_are_clusters(score):
    """Single-row clusters differ from independent rows by their leverage only."""
    y, p, _, _ = make_sample(3, 2000)
    alone = calibration_decomposition(y, p, score=score)
    clustered = calibration_decomposition(y, p, score=score, clusters=np.arange(2000))
    assert_allclose(clustered.optimism, alone.optimism, rtol=0.15)
    assert clustered.optimism != alone.optimism


# -- a map from elsewhere ------------------------------------------------------------


@seeds
@both_scores
def test_held_out_applies_the_map_of_the_validation_set(score, seed):
    y, p, w, _ = make_sample(seed)
    y_val, p_val, w_val, _ = make_sample(seed + 100, 60)
    slope, intercept = platt(p_val, y_val, w_val)
    q = sigmoid(slope * logit(p) + intercept)
    psr = SKLEARN[score]
    parts = calibration_decomposition(
        y,
        p,
        score=score,
        y_val=y_val,
        p_val=p_val,
        sample_weight_val=w_val,
        sample_weight=w,
    )
    assert parts.recalibrate == "held_out"  # the default where a validation set is
    assert_allclose(parts.discrimination, psr(y, q, sample_weight=w), rtol=1e-10)
    assert_allclose([parts.slope, parts.intercept], [slope, intercept], rtol=1e-9)
    expected = psr(y, p, sample_weight=w) - psr(y, q, sample_weight=w)
    assert_allclose(parts.calibration, expected, rtol=1e-8)


ROWS = st.tuples(
    st.sampled_from([0.0, 0.1, 0.3, 0.6, 1.0]), st.integers(0, 1), st.integers(0, 3)
)


@settings(max_examples=30)
@given(rows=st.lists(ROWS, min_size=1, max_size=15), data=st.data())
def test_held_out_obeys_the_laws(rows, data):
    """Weights are repetition and order is nothing, in both samples."""
    overlap = [(0.3, 1, 1), (0.6, 0, 1), (0.3, 0, 1), (0.6, 1, 2)]
    p, y, w = map(np.array, zip(*rows, *overlap, strict=True))
    order = np.array(data.draw(st.permutations(range(len(y)))))
    rows = np.repeat(order, w[order])
    weighted = calibration_loss(
        y,
        p,
        sample_weight=w,
        y_val=1 - y,
        p_val=p,
        sample_weight_val=w,
    )
    repeated = calibration_loss(y[rows], p[rows], y_val=(1 - y)[rows], p_val=p[rows])
    assert_allclose(repeated, weighted, rtol=1e-12, atol=1e-12)


def test_held_out_takes_text_labels_and_two_columns():
    y, p, _, _ = make_sample(1)
    y_val, p_val, _, _ = make_sample(2)
    names = np.array(["healthy", "ill"])
    expected = calibration_loss(y, p, y_val=y_val, p_val=p_val)
    both, both_val = (np.stack([1 - a, a], axis=1) for a in (p, p_val))
    value = calibration_loss(names[y], both, y_val=names[y_val], p_val=both_val)
    assert_allclose(value, expected, rtol=1e-12)
    value = calibration_loss(
        names[y], p, y_val=names[y_val], p_val=p_val, pos_label="ill"
    )
    assert_allclose(value, expected, rtol=1e-12)


def test_held_out_can_be_negative_for_a_group_under_a_common_map():
    """The common map of two opposite groups harms the one it does not fit."""
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1.5, 2000)
    small = np.arange(2000) < 200
    truth = np.where(small, x, 0.4 * x)  # the small group is calibrated
    y, p = (rng.random(2000) < sigmoid(truth)).astype(int), sigmoid(x)
    common = calibration_loss(y[small], p[small], y_val=y, p_val=p)
    assert common < -0.01 < calibration_loss(y[small], p[small])


@both_scores
def test_held_out_of_one_class(score):
    """Only the validation set must hold both classes."""
    y_val, p_val, _, _ = make_sample(1)
    value = calibration_loss([1, 1], [0.2, 0.9], score=score, y_val=y_val, p_val=p_val)
    assert np.isfinite(value)
    with pytest.raises(ValueError, match="y_val holds one class only"):
        calibration_loss(y_val, p_val, score=score, y_val=[1, 1], p_val=[0.2, 0.9])


def test_held_out_by_a_separable_validation_set_warns():
    y, p, _, _ = make_sample(1)
    with pytest.warns(ConvergenceWarning, match="separable"):
        value = calibration_loss(y, p, y_val=[0, 0, 1, 1], p_val=[0.1, 0.2, 0.8, 0.9])
    assert np.isfinite(value)


@seeds
@both_scores
@pytest.mark.parametrize("clustered", [False, True])
def test_cross_fit_with_the_same_folds(score, clustered, seed):
    y, p, w, clusters = make_sample(seed, 120)
    n_folds = 4
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    options = {"shuffle": True, "random_state": int(rng.integers(2**31))}
    if clustered:
        codes, _ = pd.factorize(clusters)
        folds = StratifiedGroupKFold(n_folds, **options).split(p, y, codes)
    else:
        folds = StratifiedKFold(n_folds, **options).split(p, y)
    q = np.full(len(y), np.nan)
    for train, test in folds:
        assert not clustered or not set(clusters[train]) & set(clusters[test])
        slope, intercept = platt(p[train], y[train], w[train])
        q[test] = sigmoid(slope * logit(p[test]) + intercept)
    # What the maps pay for having seen (K - 1) / K of the rows is added back.
    excess = loss_on_new_rows(p, y, w, clusters if clustered else None, score)
    excess *= n_folds / (n_folds - 1)
    psr = SKLEARN[score]
    expected = psr(y, p, sample_weight=w) - psr(y, q, sample_weight=w) + excess
    parts = calibration_decomposition(
        y,
        p,
        score=score,
        recalibrate="cross_fit",
        n_folds=n_folds,
        clusters=clusters if clustered else None,
        sample_weight=w,
        random_state=seed,
    )
    assert_allclose(parts.calibration, expected, rtol=1e-9)
    assert_allclose(parts.optimism, -excess, rtol=1e-10)


def test_cross_fit_is_reproducible():
    y, p, _, _ = make_sample(4)
    given = {"recalibrate": "cross_fit"}
    first, second = (calibration_loss(y, p, random_state=1, **given) for _ in range(2))
    assert first == second
    assert first != calibration_loss(y, p, random_state=2, **given)
    rng = np.random.default_rng(0)
    assert np.isfinite(calibration_loss(y, p, random_state=rng, **given))


# -- the result ----------------------------------------------------------------------


@both_scores
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("clustered", [False, True])
def test_the_parts_add_up_exactly(score, mode, clustered):
    for seed in range(4):
        y, p, w, clusters = make_sample(seed)
        given = {"score": score, "recalibrate": mode, "sample_weight": w}
        if mode == "held_out":
            given |= {"y_val": y, "p_val": p}
        if mode == "cross_fit":
            given |= {"random_state": 0}
        if clustered:
            given |= {"clusters": clusters}
        parts = calibration_decomposition(y, p, **given)
        assert parts.total == parts.calibration + parts.discrimination
        assert parts.calibration == calibration_loss(y, p, **given)
        assert_allclose(parts.total, SKLEARN[score](y, p, sample_weight=w), rtol=1e-12)
        assert (parts.score, parts.recalibrate, parts.reason) == (score, mode, None)


def test_the_result_is_frozen():
    parts = calibration_decomposition(*make_sample()[:2])
    with pytest.raises(AttributeError, match="cannot assign"):
        parts.total = 0.0


@both_scores
@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("mode", ["corrected", "in_sample", "held_out"])
def test_confidence_of_the_most_probable_class(score, n_classes, mode):
    rng = np.random.default_rng(n_classes)
    proba = rng.dirichlet(np.ones(n_classes), 400)
    y = np.array([rng.choice(n_classes, p=row) for row in proba])
    top, correct = proba.max(axis=1), (proba.argmax(axis=1) == y).astype(int)
    given = {"score": score, "recalibrate": mode}
    halves = slice(200), slice(200, None)
    here, there = halves
    by_class, by_top = {}, {}
    if mode == "held_out":
        by_class = {"y_val": y[there], "p_val": proba[there]}
        by_top = {"y_val": correct[there], "p_val": top[there]}
    value = calibration_loss(
        y[here], proba[here], kind="confidence", **given, **by_class
    )
    expected = calibration_loss(correct[here], top[here], **given, **by_top)
    assert_allclose(value, expected, rtol=1e-10)


@pytest.mark.parametrize("eps", [1e-3, 0.05])
@both_scores
def test_probabilities_are_clipped_before_and_after(score, eps):
    """p and q share one clip, [eps, 1 - eps], where a logarithm is taken of them."""
    y, p, w, _ = make_sample(8)
    p = np.where(np.arange(len(p)) % 10 == 0, (p > 0.5).astype(float), p)
    clipped = np.clip(p, eps, 1 - eps)
    slope, intercept = platt(clipped, y, w)
    q = sigmoid(slope * logit(clipped) + intercept)
    psr = SKLEARN[score]
    if score == "log_loss":
        p, q = clipped, np.clip(q, eps, 1 - eps)
    expected = psr(y, p, sample_weight=w) - psr(y, q, sample_weight=w)
    value = calibration_loss(
        y, p, score=score, recalibrate="in_sample", eps=eps, sample_weight=w
    )
    assert_allclose(value, expected, rtol=1e-9)


# -- what cannot be estimated ----------------------------------------------------------

NOTHING = {
    "one class": ([1] * 40, np.linspace(0.1, 0.9, 40), "only one class"),
    "separable": ([0] * 20 + [1] * 20, np.linspace(0.1, 0.9, 40), "separable"),
    "constant": ([0, 1] * 20, np.full(40, 0.3), "constant"),
}


@both_scores
@pytest.mark.parametrize("case", NOTHING)
@pytest.mark.parametrize("mode", ["corrected", "in_sample", "cross_fit"])
def test_not_estimable_says_why(score, case, mode):
    y, p, reason = NOTHING[case]
    given = {"score": score, "recalibrate": mode}
    parts = calibration_decomposition(y, p, **given)
    assert reason in parts.reason
    assert_allclose(parts.total, SKLEARN[score](y, p, labels=[0, 1]))
    assert np.isnan([parts.calibration, parts.discrimination, parts.optimism]).all()
    with pytest.warns(UndefinedMetricWarning, match=f"not estimable: .*{reason}"):
        value = calibration_loss(y, p, **given)
    assert np.isnan(value)


@both_scores
def test_one_cluster_is_not_enough_for_the_correction(score):
    y, p, _, _ = make_sample()
    clusters = np.zeros(len(y))
    parts = calibration_decomposition(y, p, score=score, clusters=clusters)
    assert parts.reason == "fewer than two clusters"
    given = {"score": score, "recalibrate": "in_sample"}
    value = calibration_loss(y, p, clusters=clusters, **given)
    assert_allclose(value, calibration_loss(y, p, **given), rtol=1e-12)


@both_scores
@pytest.mark.parametrize("mode", ["corrected", "cross_fit"])
def test_a_cluster_without_which_nothing_is_left(score, mode):
    """All rows outside one cluster have one score, up to what its leverage resolves."""
    y, p, _, _ = make_sample()
    y[:20], p[:20] = np.tile([0, 1, 1, 0], 5), 0.4 + 1e-9 * (np.arange(20) % 2)
    clusters = np.where(np.arange(len(y)) < 20, np.arange(len(y)) // 4 + 1, 0)
    parts = calibration_decomposition(
        y,
        p,
        score=score,
        recalibrate=mode,
        n_folds=2,
        clusters=clusters,
        random_state=0,
    )
    assert "without one of the clusters" in parts.reason
    assert np.isnan(parts.calibration)


@pytest.mark.parametrize("metric", [calibration_loss, calibration_slope_intercept])
def test_almost_separable_data_that_do_not_converge_say_so(metric):
    p = np.r_[np.linspace(0.1, 0.49, 50), 0.5, 0.5 + 1e-12, np.linspace(0.51, 0.9, 50)]
    y = np.repeat([0, 1, 0, 1], [50, 1, 1, 50])
    with pytest.warns(ConvergenceWarning, match="did not converge: .*almost separable"):
        metric(y, p)


def test_cross_fit_needs_rows_of_each_class_in_each_fold():
    y, p, _, _ = make_sample()
    y = np.where(np.arange(len(y)) < 3, 1, 0)
    p[:3], p[3:5] = [0.2, 0.5, 0.8], [0.9, 0.1]
    given = {"recalibrate": "cross_fit", "random_state": 0}
    with pytest.warns(SmallSampleWarning):
        parts = calibration_decomposition(y, p, **given)
    assert parts.reason == "a class has fewer rows than the 5 folds"


def test_cross_fit_with_a_separable_training_fold():
    y = np.repeat([0, 1], 12)
    p = np.r_[np.linspace(0.1, 0.4, 12), np.linspace(0.5, 0.9, 12)]
    p[11], p[12] = p[12], p[11]  # one inversion: gone when a fold takes it out
    parts = calibration_decomposition(y, p, recalibrate="cross_fit", random_state=0)
    assert parts.reason == "a training fold is separable"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n_positive", [9, 10])
def test_few_rows_of_a_class_warn_where_the_correction_is_used(mode, n_positive):
    rng = np.random.default_rng(0)
    y = (np.arange(60) < n_positive).astype(int)
    p = rng.random(60)
    given = {"recalibrate": mode}
    if mode == "held_out":
        given |= {"y_val": y, "p_val": p}
    if mode == "cross_fit":
        given |= {"random_state": 0}
    expected = mode in ("corrected", "cross_fit") and n_positive < 10
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        calibration_loss(y, p, **given)
    assert [w.category for w in caught] == [SmallSampleWarning] * expected
    if expected:
        assert "the rarer class has 9 rows" in str(caught[0].message)


def test_frequency_weights_count_as_rows_for_the_warning():
    y, p = np.tile([0, 1], 8), np.tile([0.3, 0.4, 0.6, 0.5], 4)
    calibration_loss(y, p, sample_weight=np.full(16, 2))  # 16 rows a class: silent
    with pytest.warns(SmallSampleWarning, match="has 8 rows"):
        calibration_loss(y, p, sample_weight=np.full(16, 2), weights="probability")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"recalibrate": "held_out"}, "'held_out' needs y_val and p_val"),
        ({"y_val": [0, 1]}, "y_val and p_val must be given together"),
        ({"p_val": [0.2, 0.3]}, "y_val and p_val must be given together"),
        (
            {"recalibrate": "corrected", "y_val": [0, 1], "p_val": [0.2, 0.3]},
            "recalibrate='corrected' does not use y_val and p_val",
        ),
        ({"y_val": [0, 1, 2], "p_val": [0.2, 0.3, 0.4]}, "y_val must hold two classes"),
        (
            {"y_val": [0, 1], "p_val": [0.2, 1.4]},
            r"p_val must lie in \[0, 1\]; got 1.4",
        ),
        ({"y_val": [0, 1], "p_val": [0.2]}, "y_val has 2 rows, p_val has 1 rows"),
    ],
)
def test_bad_combinations_are_refused(given, message):
    y, p, _, _ = make_sample()
    with pytest.raises(ValueError, match=message):
        calibration_loss(y, p, **given)


@pytest.mark.parametrize("mode", MODES)
def test_fractional_weights_are_refused_only_where_their_meaning_matters(mode):
    y, p, w, _ = make_sample()
    given = {"recalibrate": mode, "sample_weight": w / 2}
    if mode in ("corrected", "cross_fit"):
        with pytest.raises(ValueError, match="weights='probability'"):
            calibration_loss(y, p, **given)
    elif mode == "in_sample":
        value = calibration_loss(y, p, **given)
        given["sample_weight"] = w
        assert_allclose(value, calibration_loss(y, p, **given), rtol=1e-10)
    else:
        assert np.isfinite(calibration_loss(y, p, y_val=y, p_val=p, **given))


# -- slope and intercepts ------------------------------------------------------------


@seeds
@pytest.mark.parametrize("weighted", [False, True])
def test_slope_and_intercept_of_a_logistic_regression(seed, weighted):
    y, p, w, _ = make_sample(seed)
    w = w / 3 if weighted else None
    x = logit(p)[:, np.newaxis]
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000)
    model.fit(x, y, sample_weight=w)
    result = calibration_slope_intercept(y, p, sample_weight=w)
    assert_allclose(result.slope, model.coef_[0, 0], atol=1e-6)
    assert_allclose(result.intercept, model.intercept_[0], atol=1e-6)


@seeds
def test_intercept_at_unit_slope_is_a_fit_with_an_offset(seed):
    """Likelihood of a logistic regression with offset: its gradient vanishes."""
    y, p, w, _ = make_sample(seed)
    shift = calibration_slope_intercept(y, p, sample_weight=w).intercept_at_unit_slope
    q = sigmoid(logit(p) + shift)
    assert abs(w @ (q - y)) < 1e-10 * w.sum()
    losses = [
        log_loss(y, sigmoid(logit(p) + s), sample_weight=w)
        for s in (shift - 0.01, shift, shift + 0.01)
    ]
    assert losses[1] == min(losses)


def test_known_distortions_are_recovered():
    rng = np.random.default_rng(5)
    x = rng.normal(0, 1.5, 200_000)
    y = rng.random(len(x)) < sigmoid(0.7 * x + 0.3)
    result = calibration_slope_intercept(y, sigmoid(x))
    assert_allclose([result.slope, result.intercept], [0.7, 0.3], atol=0.03)
    y = rng.random(len(x)) < sigmoid(x - 1)
    result = calibration_slope_intercept(y, sigmoid(x))
    assert_allclose(
        [result.slope, result.intercept, result.intercept_at_unit_slope],
        [1, -1, -1],
        atol=0.03,
    )


# -- expectations --------------------------------------------------------------------


def simulate(n, n_replicates, slope, seed):
    """In-sample and corrected losses of samples with log-odds N(0, 1.5^2)."""
    rng = np.random.default_rng(seed)
    values = []
    for _ in range(n_replicates):
        x = rng.normal(0, 1.5, n)
        scores = sorted_scores(rng.random(n) < sigmoid(slope * x), sigmoid(x))
        values.append(
            [
                calibration_loss_kernel(scores, score, corrected=corrected)[0]
                for score in ("log_loss", "brier")
                for corrected in (False, True)
            ]
        )
    values = np.array(values)
    return values, values.mean(axis=0), values.std(axis=0) / np.sqrt(n_replicates)


@pytest.fixture(scope="module")
def limits():
    """Loss of the best Platt map at log-odds slope 0.6, by its definition."""
    x = np.random.default_rng(0).normal(0, 1.5, 400_000)
    p, q = sigmoid(x), sigmoid(0.6 * x)
    kl = q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p))
    return {"log_loss": kl.mean(), "brier": ((p - q) ** 2).mean()}


@pytest.mark.parametrize(
    ("n", "n_replicates", "in_sample", "corrected"),
    [
        (100, 900, 0.0339, 0.0239),
        (300, 500, 0.0283, 0.0250),
        (1000, 250, 0.0254, 0.0244),
    ],
)
def test_the_correction_removes_what_depends_on_size(
    limits, n, n_replicates, in_sample, corrected
):
    values, mean, error = simulate(n, n_replicates, 0.6, seed=n)
    # The published means have standard errors up to .0013.
    assert abs(mean[0] - in_sample) < 3 * np.hypot(error[0], 0.0013)
    assert abs(mean[1] - corrected) < 3 * np.hypot(error[1], 0.0013)
    # What is subtracted scatters far less, so its figure is met closely.
    subtracted = values[:, 0] - values[:, 1]
    assert_allclose(subtracted.mean(), in_sample - corrected, atol=0.0002)
    assert abs(mean[1] - limits["log_loss"]) < 4 * error[1]
    assert abs(mean[3] - limits["brier"]) < 4 * error[3]
    assert mean[2] > mean[3]


def test_corrected_losses_of_calibrated_scores_are_zero():
    _, mean, error = simulate(100, 1000, 1.0, seed=1)
    assert mean[0] > 0.008  # in-sample, cross-entropy
    assert (np.abs(mean[[1, 3]]) < 3 * error[[1, 3]]).all()


def test_clusters_correct_for_rows_that_repeat_each_other():
    """Every row thrice: as optimistic as a third of the rows, which clusters see."""
    rng = np.random.default_rng(2)
    clusters = np.repeat(np.arange(100), 3)
    values = []
    for _ in range(144):
        x = rng.normal(0, 1.5, 100)
        y = rng.random(100) < sigmoid(x)
        y, p = y[clusters], sigmoid(x)[clusters]
        values.append(
            [
                calibration_loss(y, p, score=score, clusters=c)
                for score in ("log_loss", "brier")
                for c in (clusters, None)
            ]
        )
    mean, error = np.mean(values, axis=0), np.std(values, axis=0) / 12
    assert (np.abs(mean[[0, 2]]) < 3 * error[[0, 2]]).all()
    assert (mean[[1, 3]] > 6 * error[[1, 3]]).all()


def test_probability_weights_correct_for_their_spread():
    rng = np.random.default_rng(3)
    values = []
    for _ in range(225):
        x, w = rng.normal(0, 1.5, 150), rng.exponential(size=150)
        y = rng.random(150) < sigmoid(x)
        given = {"sample_weight": w, "weights": "probability"}
        values.append(
            [
                calibration_loss(y, sigmoid(x), score="log_loss", **given),
                calibration_loss(y, sigmoid(x), score="brier", **given),
                calibration_loss(y, sigmoid(x), recalibrate="in_sample", **given),
            ]
        )
    mean, error = np.mean(values, axis=0), np.std(values, axis=0) / 15
    assert (np.abs(mean[:2]) < 3 * error[:2]).all()
    assert mean[2] > 10 * error[2]
