"""One kernel serves one evaluation and many: replicates equal single evaluations."""

import warnings
from functools import partial

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal

from skcalfair import _log_odds, _sorted_scores
from skcalfair._sorted_scores import SortedScores
from skcalfair._validation import ScoredRows
from skcalfair.metrics import (
    _calibration_error,
    _recalibration,
    _resampled,
)
from skcalfair.metrics._calibration_loss import (
    calibration_loss_kernel,
    held_out_loss_kernel,
)
from skcalfair.metrics._registry import METRICS
from skcalfair.metrics._resampled import replicate_values
from skcalfair.resampling import bootstrap_counts, subsample_counts

# Built-in metrics at their defaults, and kernels with other parameters.
KERNELS = {name: metric.kernel for name, metric in METRICS.items()} | {
    "ece-l2": partial(METRICS["expected_calibration_error"].kernel, norm="l2"),
    "ece-quantile-l2": partial(
        METRICS["expected_calibration_error"].kernel, strategy="quantile", norm="l2"
    ),
    "mce-quantile": partial(
        METRICS["maximum_calibration_error"].kernel, strategy="quantile", n_bins=4
    ),
    "skce-narrow": partial(METRICS["kernel_calibration_error"].kernel, bandwidth=1e-3),
    "in-sample": partial(calibration_loss_kernel, score="brier", corrected=False),
    "held-out": partial(
        held_out_loss_kernel, score="log_loss", slope=0.8, intercept=0.1
    ),
}

every_kernel = pytest.mark.parametrize("name", KERNELS)


def make_rows(n, *, ties, seed=0):
    """Rows with 0/1 scores among them; with ties, on a grid."""
    rng = np.random.default_rng(seed)
    p = _log_odds.sigmoid(rng.normal(0, 1.5, n))
    if ties:
        p = np.round(p, 2)
        p[:2] = 0.0, 1.0
    y = (rng.random(n) < 0.3 + 0.4 * p).astype(np.uint8)
    return ScoredRows(y, p, None, np.arange(n) // 3)


def make_scores(rows):
    return SortedScores.from_rows(
        ScoredRows(rows.y, rows.p), keep_order=True, frequency=True
    )


def alone(kernel, scores, weights, frequency):
    """Value on the rows that weights leave, as a plain evaluation has it."""
    out = np.empty(len(weights))
    for r, w in enumerate(weights.astype(np.float64)):
        kept = w > 0
        clusters = None if scores.clusters is None else scores.clusters[kept]
        rows = ScoredRows(scores.y[kept], scores.p[kept], w[kept], clusters)
        out[r] = kernel(SortedScores.from_rows(rows, frequency=frequency))[0]
    return out


def assert_replicates_are_single_values(kernel, scores, weights, frequency):
    replicates = scores.reweighted(weights, frequency=frequency)
    values = kernel(replicates)
    assert values.shape == (len(weights),)
    expected = alone(kernel, scores, weights, frequency)
    assert_allclose(values, expected, rtol=1e-12, atol=1e-12)
    assert np.isfinite(values).any()


# -- many replicates of few rows, few of many ----------------------------------------

SIZES = {"small": (30, 60), "large": (20_000, 3)}


@pytest.fixture(scope="module", params=SIZES)
def size(request):
    return SIZES[request.param]


@pytest.fixture(scope="module", params=[True, False], ids=["ties", "distinct"])
def scores(request, size):
    return make_scores(make_rows(size[0], ties=request.param))


@pytest.fixture(scope="module")
def counts(size):
    return bootstrap_counts(*size, random_state=0)


@every_kernel
@pytest.mark.parametrize("frequency", [True, False])
def test_bootstrap_counts(name, frequency, scores, counts):
    assert (counts == 0).any()
    assert_replicates_are_single_values(KERNELS[name], scores, counts, frequency)


@every_kernel
def test_float_weights(name, scores, size):
    n, n_replicates = size
    weights = np.random.default_rng(1).exponential(size=(min(n_replicates, 40), n))
    weights[:, ::7] = 0.0
    assert_replicates_are_single_values(KERNELS[name], scores, weights, False)


@every_kernel
def test_subsamples_are_plain_evaluations(name):
    """Weights of 0 and 1 equal the rows taken, without any weights."""
    rows = make_rows(60, ties=True)
    scores = make_scores(rows)
    counts = subsample_counts(60, 40, 20, random_state=0)
    values = KERNELS[name](scores.reweighted(counts))
    for value, kept in zip(values, counts.astype(bool), strict=True):
        plain = SortedScores.from_rows(ScoredRows(scores.y[kept], scores.p[kept]))
        assert_allclose(KERNELS[name](plain)[0], value, rtol=1e-12, atol=1e-12)


@every_kernel
def test_frequency_counts_are_repeated_rows(name):
    scores = make_scores(make_rows(40, ties=True))
    counts = bootstrap_counts(40, 20, random_state=3)
    values = KERNELS[name](scores.reweighted(counts, frequency=True))
    for value, w in zip(values, counts, strict=True):
        rows = ScoredRows(np.repeat(scores.y, w), np.repeat(scores.p, w))
        plain = SortedScores.from_rows(rows)
        assert_allclose(KERNELS[name](plain)[0], value, rtol=1e-12, atol=1e-12)


CLUSTERED = [
    "squared_calibration_error",
    "kernel_calibration_error",
    "calibration_loss_log_loss",
    "calibration_loss_brier",
]


@pytest.mark.parametrize("name", CLUSTERED)
@pytest.mark.parametrize("kind", ["counts", "float"])
def test_clusters(name, kind):
    scores = SortedScores.from_rows(make_rows(90, ties=True))
    assert scores.clusters is not None
    weights = bootstrap_counts(90, 25, random_state=2)
    if kind == "float":
        weights = weights * np.random.default_rng(0).random((25, 90))
    assert_replicates_are_single_values(KERNELS[name], scores, weights, False)


def test_a_bootstrap_copy_never_pairs_with_itself():
    """Two copies of each of two rows: of six pairs only the four mixed ones count."""
    scores = make_scores(ScoredRows(np.array([1, 0], np.uint8), np.array([0.5, 0.5])))
    counts = np.array([[2, 2]], dtype=np.uint8)
    for name in ("squared_calibration_error", "kernel_calibration_error"):
        kernel = METRICS[name].kernel
        once = kernel(scores.reweighted(counts, frequency=False))
        assert_allclose(once, -0.25)
        copies = kernel(scores.reweighted(counts, frequency=True))
        assert_allclose(copies, (2 * 0.25 - 4 * 0.25) / 6)


# -- replicates that lack something --------------------------------------------------


@every_kernel
def test_replicates_of_one_class_are_nan_in_silence(name):
    """Three positives in 15 rows: bootstrap samples without any are common."""
    p = np.linspace(0.05, 0.95, 15)
    y = np.isin(np.arange(15), [3, 7, 11]).astype(np.uint8)
    scores = make_scores(ScoredRows(y, p))
    counts = bootstrap_counts(15, 300, random_state=0)
    counts[0] = scores.y * 5  # positives alone
    positives = (counts * scores.y).sum(axis=1)
    one_class = (positives == 0) | (positives == 15)
    assert 3 < one_class.sum() < 100
    values = KERNELS[name](scores.reweighted(counts, frequency=False))
    of_two_classes = {
        "roc_auc",
        "average_precision",
        "normalized_average_precision",
        "precision_recall_gain_auc",
        "balanced_accuracy_at_threshold",
        "calibration_loss_log_loss",
        "calibration_loss_brier",
        "in-sample",
    }
    if name in of_two_classes:
        assert np.isnan(values[one_class]).all()
    else:
        assert np.isfinite(values).all()
    if name in of_two_classes and "loss" not in name and name != "in-sample":
        assert np.isfinite(values[~one_class]).all()


@pytest.mark.parametrize(
    "name", ["calibration_loss_log_loss", "calibration_loss_brier"]
)
@pytest.mark.parametrize("frequency", [True, False])
def test_separable_replicates_are_nan(name, frequency):
    scores = make_scores(
        ScoredRows(np.array([0, 1, 0, 1], np.uint8), np.array([0.2, 0.3, 0.6, 0.7]))
    )
    rows = np.argsort(scores.order)  # sorted position of each row given
    weights = np.zeros((3, 4), dtype=np.uint8)
    weights[0, rows] = [2, 2, 2, 2]
    weights[1, rows] = [3, 3, 0, 2]  # separable without the third row
    weights[2, rows] = [0, 4, 4, 0]  # separable, downwards
    values = KERNELS[name](scores.reweighted(weights, frequency=frequency))
    assert np.isfinite(values[0])
    assert np.isnan(values[1:]).all()


@pytest.mark.parametrize(
    "name", ["calibration_loss_log_loss", "calibration_loss_brier"]
)
@pytest.mark.parametrize("value", [0.3, 0.0, 0.123456])
@pytest.mark.parametrize("frequency", [True, False])
@pytest.mark.parametrize("clustered", [True, False])
def test_constant_scores_are_nan(name, value, frequency, clustered):
    y = np.tile([0, 1], 20).astype(np.uint8)
    clusters = np.arange(40) // 2 if clustered else None
    rows = ScoredRows(y, np.full(40, value), None, clusters)
    scores = SortedScores.from_rows(rows)
    assert np.isnan(KERNELS[name](scores)).all()
    counts = bootstrap_counts(40, 5, random_state=0)
    values = KERNELS[name](scores.reweighted(counts, frequency=frequency))
    assert np.isnan(values).all()


@pytest.mark.parametrize(
    "name", ["calibration_loss_log_loss", "calibration_loss_brier"]
)
def test_replicates_of_one_cluster_are_nan(name):
    rows = make_rows(40, ties=True)
    clusters = (np.arange(40) % 2).astype(np.intp)
    scores = SortedScores.from_rows(ScoredRows(rows.y, rows.p, None, clusters))
    weights = np.ones((2, 40), dtype=np.uint8)
    weights[1, scores.clusters == 0] = 0
    values = KERNELS[name](scores.reweighted(weights, frequency=False))
    assert np.isfinite(values[0])
    assert np.isnan(values[1])


def test_replicates_of_a_separable_sample_are_nan():
    """No replicate has a fit; where the fits start must not need one."""
    y = np.repeat([0, 1], 10).astype(np.uint8)
    scores = make_scores(ScoredRows(y, np.linspace(0.1, 0.9, 20)))
    counts = bootstrap_counts(20, 10, random_state=0)
    kernel = METRICS["calibration_loss_log_loss"].kernel
    assert np.isnan(kernel(scores.reweighted(counts, frequency=False))).all()


@pytest.mark.parametrize("label", [0, 1])
def test_replicates_of_a_sample_of_one_class(label):
    y = np.full(20, label, dtype=np.uint8)
    scores = make_scores(ScoredRows(y, np.linspace(0.1, 0.9, 20)))
    counts = bootstrap_counts(20, 10, random_state=0)
    replicates = scores.reweighted(counts, frequency=False)
    for name, metric in METRICS.items():
        undefined = (
            metric.requirement is not None and name != "kernel_calibration_error"
        )
        assert np.isnan(metric.kernel(replicates)).all() == undefined, name


# -- blocks and workers --------------------------------------------------------------


@every_kernel
@pytest.mark.parametrize("weights", ["counts", "float"])
def test_block_sizes_do_not_matter(name, weights, monkeypatch):
    rows = make_rows(70, ties=True)
    w = bootstrap_counts(70, 9, random_state=1)
    if weights == "float":
        w = w * 0.37
    clustered = name in CLUSTERED

    def value():
        scores = SortedScores.from_rows(rows) if clustered else make_scores(rows)
        return KERNELS[name](scores.reweighted(w, frequency=False))

    expected = value()
    monkeypatch.setattr(_sorted_scores, "CHUNK", 130)
    monkeypatch.setattr(_sorted_scores, "ROW_BLOCK", 3)
    monkeypatch.setattr(_calibration_error, "CHUNK", 200)
    monkeypatch.setattr(_recalibration, "BLOCK", 40)
    monkeypatch.setattr(_log_odds, "BLOCK", 40)
    assert_allclose(value(), expected, rtol=1e-12, atol=1e-12)


CHEAP = {
    name: METRICS[name].kernel
    for name in ("roc_auc", "expected_calibration_error", "calibration_loss_brier")
}


def draw_bootstrap(n_replicates, rng):
    return bootstrap_counts(50, n_replicates, random_state=rng)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(_resampled, "REPLICATES", 4)
    monkeypatch.setattr(_resampled, "CHUNK", 1)


@pytest.mark.parametrize("backend", ["threading", "loky"])
@pytest.mark.usefixtures("small_blocks")
def test_workers_do_not_change_replicates(backend):
    scores = make_scores(make_rows(50, ties=True))
    given = {"n_replicates": 18, "frequency": False, "random_state": 0}
    one = replicate_values(scores, CHEAP, draw_bootstrap, **given)
    with parallel_config(backend=backend):
        two = replicate_values(scores, CHEAP, draw_bootstrap, n_jobs=2, **given)
    for name, values in one.items():
        assert values.shape == (18,)
        assert_array_equal(two[name], values)


@pytest.mark.usefixtures("small_blocks")
def test_seeds_of_replicates():
    scores = make_scores(make_rows(50, ties=True))

    def values(seed):
        found = replicate_values(
            scores, CHEAP, draw_bootstrap, 10, frequency=False, random_state=seed
        )
        return found["roc_auc"]

    assert_array_equal(values(1), values(1))
    assert (values(1) != values(2)).any()
    assert len(np.unique(values(1))) == 10  # blocks have seeds of their own
    rng, same = np.random.default_rng(5), np.random.default_rng(5)
    first = values(rng)
    assert_array_equal(values(same), first)
    assert (values(rng) != first).any()  # a generator moves on


@pytest.mark.usefixtures("small_blocks")
def test_blocks_change_results_only_through_their_seeds(monkeypatch):
    """With draws that ignore the seed, any blocking gives the same values."""
    scores = make_scores(make_rows(50, ties=True))
    table = bootstrap_counts(50, 12, random_state=0)

    def run():
        served = []

        def draw(n_replicates, rng):
            start = sum(served)
            served.append(n_replicates)
            return table[start : start + n_replicates]

        found = replicate_values(scores, CHEAP, draw, 12, frequency=False)
        return found, served

    expected, blocks = run()
    assert blocks == [4, 4, 4]
    for size, cut in ((5, [5, 5, 2]), (12, [12]), (1, [1] * 12)):
        monkeypatch.setattr(_resampled, "REPLICATES", size)
        found, blocks = run()
        assert blocks == cut
        for name, values in found.items():
            assert_allclose(values, expected[name], rtol=1e-12, atol=1e-12)


def test_weights_of_the_sample_multiply_those_drawn():
    rows = make_rows(50, ties=True)
    w = np.random.default_rng(0).integers(1, 4, 50).astype(float)
    weighted = SortedScores.from_rows(ScoredRows(rows.y, rows.p, w))

    def draw(n_replicates, rng):
        return np.ones((n_replicates, 50), dtype=np.uint8)

    found = replicate_values(weighted, KERNELS, draw, 2)
    for name, values in found.items():
        expected = KERNELS[name](weighted)[0]
        assert_allclose(values, expected, rtol=1e-12, atol=1e-12)


def test_probability_weights_stay_probability_weights():
    rows = make_rows(50, ties=True)
    w = np.random.default_rng(0).exponential(size=50)
    scores = SortedScores.from_rows(ScoredRows(rows.y, rows.p, w), frequency=False)

    def draw(n_replicates, rng):
        return np.ones((n_replicates, 50), dtype=np.uint8)

    kernels = {"ce2": METRICS["squared_calibration_error"].kernel}
    found = replicate_values(scores, kernels, draw, 1, frequency=True)
    assert_allclose(found["ce2"], kernels["ce2"](scores), rtol=1e-12)


def test_metrics_of_one_evaluation_share_their_sums(monkeypatch):
    """The Platt fit is computed once for all metrics that need it."""
    calls = []
    fit = _sorted_scores.fit_platt_replicates
    monkeypatch.setattr(
        _sorted_scores,
        "fit_platt_replicates",
        lambda *args, **kw: calls.append(1) or fit(*args, **kw),
    )
    scores = make_scores(make_rows(50, ties=True))
    for name in ("calibration_loss_log_loss", "calibration_loss_brier"):
        METRICS[name].kernel(scores)
    assert len(calls) == 1


def test_kernels_do_not_warn_about_zero_weights():
    """Infinite or undefined rows of weight zero are not there."""
    p = np.array([0.0, 1.0, 0.2, 0.4, 0.6, 0.3])
    y = np.array([1, 0, 0, 1, 0, 1], dtype=np.uint8)
    scores = make_scores(ScoredRows(y, p))
    weights = np.ones((1, 6))
    weights[0, np.argsort(scores.order)[:2]] = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, kernel in KERNELS.items():
            value = kernel(scores.reweighted(weights))
            expected = alone(kernel, scores, weights, True)
            assert_allclose(value, expected, rtol=1e-12, atol=1e-12, err_msg=name)
