"""Calibration errors against their definitions, written out over bins and pairs."""

from fractions import Fraction
from itertools import accumulate, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.calibration import calibration_curve
from sklearn.exceptions import UndefinedMetricWarning

from skcalfair._log_odds import sigmoid
from skcalfair.metrics import (
    adaptive_calibration_error,
    brier_score_loss,
    expected_calibration_error,
    kernel_calibration_error,
    log_loss,
    maximum_calibration_error,
    squared_calibration_error,
)
from skcalfair.metrics._calibration_error import SMALL_CLUSTER, laplacian_pair_sums

CLOSE = {"rtol": 1e-12, "atol": 1e-13}


# -- definitions ---------------------------------------------------------------------


def uniform_bins(p, n_bins):
    """Bin of each score: (lo, hi], 0 in the first; the edges are linspace's."""
    edges = np.linspace(0, 1, n_bins + 1)
    bins = np.array([np.flatnonzero(value <= edges[1:])[0] for value in p])
    assert ((bins == 0) | (p > edges[bins])).all()
    return bins


def equal_mass_bins(p, w, n_bins):
    """Bins that end where the weighted ECDF first reaches k / n_bins, exactly."""
    values, inverse = np.unique(p, return_inverse=True)
    of_values = [
        sum(map(Fraction, w[inverse == i].tolist())) for i in range(len(values))
    ]
    mass = list(accumulate(of_values))
    reached = [[m * n_bins >= k * mass[-1] for m in mass] for k in range(1, n_bins + 1)]
    ends = sorted({row.index(True) for row in reached})
    return np.searchsorted(ends, inverse)


def gaps(y, p, w, bins):
    """Mass share and observed minus predicted of each bin that holds weight."""
    shares, differences = [], []
    for b in np.unique(bins):
        mass = w[bins == b].sum()
        if mass > 0:
            shares.append(mass / w.sum())
            differences.append(np.average((y - p)[bins == b], weights=w[bins == b]))
    return np.array(shares), np.array(differences)


def ece(y, p, w, bins):
    shares, differences = gaps(y, p, w, bins)
    return (shares * np.abs(differences)).sum()


def ece_l2(y, p, w, bins):
    shares, differences = gaps(y, p, w, bins)
    return np.sqrt((shares * differences**2).sum())


def mce(y, p, w, bins):
    return np.abs(gaps(y, p, w, bins)[1]).max()


def pair_weights(w, clusters):
    """Weight of each ordered pair; a row never pairs with its own cluster."""
    other = clusters[:, np.newaxis] != clusters[np.newaxis]
    return np.where(other, np.outer(w, w), 0.0)


def repeat_rows(y, p, w, clusters):
    """Frequency weights are rows; without clusters each is one of its own."""
    rows = np.repeat(np.arange(len(y)), w)
    clusters = np.arange(len(rows)) if clusters is None else clusters[rows]
    return y[rows], p[rows], np.ones(len(rows)), clusters


def ce2(y, p, w, clusters, n_bins):
    bins, total = uniform_bins(p, n_bins), 0.0
    for b in np.unique(bins):
        here = bins == b
        pairs, r = pair_weights(w[here], clusters[here]), (y - p)[here]
        if pairs.sum() > 0:
            total += w[here].sum() / w.sum() * (r @ pairs @ r) / pairs.sum()
    return total


def skce(y, p, w, clusters, bandwidth):
    pairs, r = pair_weights(w, clusters), y - p
    kernel = np.exp(-np.abs(p[:, np.newaxis] - p) / bandwidth)
    return (r @ (pairs * kernel) @ r) / pairs.sum()


# -- samples -------------------------------------------------------------------------


def make_sample(seed, n=None, decimals=2):
    """Scores with ties, both ends and exact bin edges; outcomes, integer weights."""
    rng = np.random.default_rng(seed)
    n = n or int(rng.integers(1, 120))
    p = np.round(rng.random(n), decimals)
    edge = rng.random(n) < 0.2
    p[edge] = rng.choice(np.linspace(0, 1, int(rng.integers(2, 21))), edge.sum())
    y = (rng.random(n) < p).astype(int)
    return y, p, rng.integers(0, 4, n) + (np.arange(n) == 0)


AWKWARD = [0.0, 1.0, 0.5, 0.1, 0.2, 0.3, 1 / 3, 2 / 3, np.nextafter(0.2, 0), 1e-300]
ROWS = st.tuples(
    st.one_of(st.sampled_from(AWKWARD), st.floats(0, 1)),
    st.integers(0, 1),
    st.integers(0, 3),
    st.integers(0, 4),
)


@st.composite
def samples(draw):
    """Outcomes, scores, integer weights (one at least positive) and clusters."""
    p, y, w, c = map(
        np.array, zip(*draw(st.lists(ROWS, min_size=1, max_size=20)), strict=True)
    )
    return y, p, w + (np.arange(len(w)) == 0), c


# -- binned errors -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "p", "expected"),
    [
        ([1, 0], [0.95, 1.0], 0.475),  # no extra bin for p = 1
        ([1, 1], [0.0, 0.95], 0.525),  # no dropped p = 0
        ([0, 1], [0.1, 0.2], 0.45),  # an edge belongs to the bin below
        ([0, 1], [0.1, np.nextafter(0.1, 1)], 0.5),
        ([1], [1.0], 0.0),
        ([0], [-0.0], 0.0),
    ],
)
def test_ece_check_values(y, p, expected):
    value = expected_calibration_error(y, p, n_bins=10)
    assert_allclose(value, expected, **CLOSE)


def test_the_edges_are_those_of_linspace():
    """linspace(0, 1, 11)[3] is one bit above 3 / 10, and ends the third bin."""
    edge = np.linspace(0, 1, 11)[3]
    assert edge > 3 / 10
    # Residuals cancel in one bin; in two they would not.
    value = expected_calibration_error([1, 0], [edge, 0.25], n_bins=10)
    assert_allclose(value, abs(1 - edge - 0.25) / 2, **CLOSE)


@pytest.mark.parametrize("seed", range(200))
def test_ece_agrees_with_scikit_learns_calibration_curve(seed):
    y, p, _ = make_sample(seed)
    n_bins = 1 + seed % 23
    observed, predicted = calibration_curve(y, p, n_bins=n_bins)
    rule = np.searchsorted(np.linspace(0, 1, n_bins + 1)[1:-1], p)
    counts = np.unique(rule, return_counts=True)[1]
    assert len(counts) == len(observed)
    difference = np.abs(observed - predicted)
    assert_allclose(
        expected_calibration_error(y, p, n_bins=n_bins),
        counts @ difference / len(y),
        **CLOSE,
    )
    assert_allclose(
        maximum_calibration_error(y, p, n_bins=n_bins), difference.max(), **CLOSE
    )


@settings(max_examples=60)
@given(sample=samples(), n_bins=st.integers(1, 12))
def test_uniform_bins_by_definition(sample, n_bins):
    y, p, w, _ = sample
    bins = uniform_bins(p, n_bins)
    given = {"n_bins": n_bins, "sample_weight": w}
    value = expected_calibration_error(y, p, **given)
    assert_allclose(value, ece(y, p, w, bins), **CLOSE)
    value = expected_calibration_error(y, p, norm="l2", **given)
    assert_allclose(value, ece_l2(y, p, w, bins), **CLOSE)
    value = maximum_calibration_error(y, p, **given)
    assert_allclose(value, mce(y, p, w, bins), **CLOSE)


@settings(max_examples=60)
@given(sample=samples(), n_bins=st.integers(1, 12))
def test_equal_mass_bins_by_definition(sample, n_bins):
    y, p, w, _ = sample
    bins = equal_mass_bins(p, w, n_bins)
    given = {"n_bins": n_bins, "sample_weight": w}
    for value in (
        adaptive_calibration_error(y, p, **given),
        expected_calibration_error(y, p, strategy="quantile", **given),
    ):
        assert_allclose(value, ece(y, p, w, bins), **CLOSE)
    value = adaptive_calibration_error(y, p, norm="l2", **given)
    assert_allclose(value, ece_l2(y, p, w, bins), **CLOSE)
    value = maximum_calibration_error(y, p, strategy="quantile", **given)
    assert_allclose(value, mce(y, p, w, bins), **CLOSE)


@pytest.mark.parametrize("fractional", [False, True])
@pytest.mark.parametrize("n", [40, 3000])
def test_equal_mass_bins_of_larger_samples(n, fractional):
    y, p, w = make_sample(n, n, decimals=3)
    if fractional:
        w = w / 7
    value = adaptive_calibration_error(y, p, sample_weight=w)
    bins = equal_mass_bins(p, w, 15)
    assert len(np.unique(bins)) > 10
    assert_allclose(value, ece(y, p, w, bins), **CLOSE)


def test_equal_mass_bins_never_split_ties():
    y = np.array([0, 1, 1, 0, 1, 0])
    p = np.array([0.2, 0.5, 0.5, 0.5, 0.5, 0.9])
    # Halves by count would cut through the four scores of 0.5.
    assert_allclose(
        adaptive_calibration_error(y, p, n_bins=2),
        (abs(3 - p[:5].sum()) + abs(0 - 0.9)) / 6,
        **CLOSE,
    )
    assert_allclose(
        adaptive_calibration_error(np.array([0, 1]), np.full(2, 0.4)), 0.1, **CLOSE
    )


def test_one_bin_is_calibration_in_the_large():
    y, p, w = make_sample(3, 50)
    bias = abs(np.average(y - p, weights=w))
    for metric in (
        expected_calibration_error,
        maximum_calibration_error,
        adaptive_calibration_error,
    ):
        assert_allclose(metric(y, p, n_bins=1, sample_weight=w), bias, **CLOSE)


def test_norms_and_maximum_are_ordered():
    y, p, w = make_sample(5, 80)
    l1, l2 = (
        expected_calibration_error(y, p, norm=norm, sample_weight=w)
        for norm in ("l1", "l2")
    )
    assert 0 < l1 < l2 < maximum_calibration_error(y, p, sample_weight=w) <= 1


# -- top-label errors ----------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("text", [False, True])
def test_confidence_of_the_most_probable_class(n_classes, text):
    rng = np.random.default_rng(n_classes)
    proba = rng.dirichlet(np.ones(n_classes), 90)
    codes = np.array([rng.choice(n_classes, p=row) for row in proba])
    names = np.array(["delta", "alpha", "charlie", "bravo"][:n_classes])
    columns = np.argsort(names) if text else np.arange(n_classes)
    y = names[columns][codes] if text else codes  # columns are in sorted order
    w = rng.integers(1, 4, 90)
    top = proba.max(axis=1)
    correct = (proba.argmax(axis=1) == codes).astype(int)
    given = {"kind": "confidence", "sample_weight": w}
    bins = uniform_bins(top, 15)
    for metric, expected in {
        expected_calibration_error: ece(correct, top, w, bins),
        maximum_calibration_error: mce(correct, top, w, bins),
        adaptive_calibration_error: ece(correct, top, w, equal_mass_bins(top, w, 15)),
        brier_score_loss: np.average((correct - top) ** 2, weights=w),
        log_loss: np.average(-np.log(np.where(correct == 1, top, 1 - top)), weights=w),
    }.items():
        assert_allclose(metric(y, proba, **given), expected, **CLOSE)


def test_confidence_of_one_column_is_that_of_two():
    y, p, w = make_sample(11, 70)
    given = {"kind": "confidence", "sample_weight": w}
    both = expected_calibration_error(y, np.stack([1 - p, p], axis=1), **given)
    assert_allclose(expected_calibration_error(y, p, **given), both, **CLOSE)
    top, correct = np.maximum(p, 1 - p), (p >= 0.5) == y
    expected = ece(correct, top, w, uniform_bins(top, 15))
    assert_allclose(both, expected, **CLOSE)


@pytest.mark.parametrize("as_frame", [False, True])
def test_columns_of_classes_that_do_not_occur(as_frame):
    proba = np.array([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.6, 0.3, 0.1]])
    with pytest.raises(ValueError, match="3 columns but y_true holds 2 labels"):
        expected_calibration_error(["a", "b", "a"], proba, kind="confidence")
    labels = ["a", "b", "c"]
    value = expected_calibration_error(
        ["a", "b", "a"], proba, kind="confidence", labels=labels
    )
    # bins of .5, .6 and .7 are different ones, and all are right
    assert_allclose(value, (0.5 + 0.4 + 0.3) / 3, **CLOSE)


# -- squared errors ------------------------------------------------------------------


@settings(max_examples=80)
@given(sample=samples(), n_bins=st.integers(1, 6), by_cluster=st.booleans())
def test_ce2_is_the_mean_over_pairs(sample, n_bins, by_cluster):
    y, p, w, c = sample
    clusters = c if by_cluster else None
    given = {"n_bins": n_bins, "sample_weight": w, "clusters": clusters}
    expected = ce2(*repeat_rows(y, p, w, clusters), n_bins)
    assert_allclose(squared_calibration_error(y, p, **given), expected, **CLOSE)
    kept = w > 0
    own = np.arange(len(y)) if clusters is None else c
    expected = ce2(y[kept], p[kept], w[kept] / 3, own[kept], n_bins)
    value = squared_calibration_error(
        y, p, **{**given, "sample_weight": w / 3}, weights="probability"
    )
    assert_allclose(value, expected, **CLOSE)


@settings(max_examples=80)
@given(
    sample=samples(),
    bandwidth=st.sampled_from([1e-4, 1e-3, 0.1, 1.0, 1e4]),
    by_cluster=st.booleans(),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_skce_is_the_mean_over_pairs(sample, bandwidth, by_cluster):
    y, p, w, c = sample
    clusters = c if by_cluster else None
    given = {"bandwidth": bandwidth, "clusters": clusters}

    def expected(y, p, w, clusters):
        one = len(np.unique(clusters)) < 2
        return np.nan if one else skce(y, p, w, clusters, bandwidth)

    value = kernel_calibration_error(y, p, sample_weight=w, **given)
    assert_allclose(value, expected(*repeat_rows(y, p, w, clusters)), **CLOSE)
    kept, own = w > 0, np.arange(len(y)) if clusters is None else c
    value = kernel_calibration_error(
        y, p, sample_weight=w / 3, weights="probability", **given
    )
    rows = y[kept], p[kept], w[kept] / 3, own[kept]
    assert_allclose(value, expected(*rows), **CLOSE)


@pytest.mark.parametrize("bandwidth", [1e-4, 0.003, 0.1, 1e6])
@pytest.mark.parametrize("mean_cluster", [None, 2, 40, 150])
def test_skce_of_larger_samples(bandwidth, mean_cluster):
    """Clusters above and below the size at which the sum changes its method."""
    y, p, w = make_sample(1, 300, decimals=4)
    w = w + 1.0
    clusters, given = np.arange(300), {}
    if mean_cluster:
        clusters = np.random.default_rng(2).integers(0, 300 // mean_cluster, 300)
        given = {"clusters": clusters}
        largest = np.bincount(clusters).max()
        assert (largest > SMALL_CLUSTER) == (mean_cluster > SMALL_CLUSTER)
    value = kernel_calibration_error(
        y, p, sample_weight=w / 5, weights="probability", bandwidth=bandwidth, **given
    )
    assert_allclose(value, skce(y, p, w, clusters, bandwidth), rtol=1e-10, atol=1e-14)


def test_pair_sums_of_several_rows_of_values():
    p = np.sort(np.random.default_rng(3).random(50))[::-1]
    values = np.random.default_rng(4).normal(size=(3, 50))
    kernel = np.triu(np.exp(-np.abs(p[:, np.newaxis] - p) / 0.01), k=1)
    expected = np.einsum("ri,ij,rj->r", values, kernel, values)
    assert_allclose(laplacian_pair_sums(p, values, 0.01), expected, **CLOSE)


def test_ce2_of_a_wide_kernel_is_that_of_one_bin():
    y, p, w = make_sample(6, 60)
    one_bin = squared_calibration_error(y, p, n_bins=1, sample_weight=w)
    wide = kernel_calibration_error(y, p, bandwidth=1e12, sample_weight=w)
    assert_allclose(wide, one_bin, rtol=1e-9)


def test_squared_errors_are_not_floored():
    y, p = np.array([0, 1]), np.array([0.5, 0.5])
    assert_allclose(squared_calibration_error(y, p), -0.25, **CLOSE)
    assert_allclose(kernel_calibration_error(y, p), -0.25, **CLOSE)


def test_bins_of_one_row_contribute_nothing():
    y, p = np.array([1, 0, 1]), np.array([0.1, 0.5, 0.95])
    assert squared_calibration_error(y, p, n_bins=10) == 0.0
    # ... but their mass counts in the denominator.
    value = squared_calibration_error([1, 1, 0, 1], [0.05, 0.05, 0.5, 0.95], n_bins=10)
    assert_allclose(value, 0.5 * 0.95**2, **CLOSE)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"sample_weight": [1, 0, 0]}, "fewer than two rows"),
        ({"clusters": [5, 5, 5]}, "fewer than two clusters"),
        (
            {"clusters": [5, 5, 6], "sample_weight": [1, 2, 0]},
            "fewer than two clusters",
        ),
        (
            {"sample_weight": [0.5, 0, 0], "weights": "probability"},
            "fewer than two rows",
        ),
    ],
)
def test_skce_without_pairs_says_why(given, reason):
    with pytest.warns(UndefinedMetricWarning, match=f"not estimable: {reason}"):
        value = kernel_calibration_error([1, 0, 1], [0.2, 0.3, 0.4], **given)
    assert np.isnan(value)


@pytest.mark.parametrize("bandwidth", [0, -1.0, np.inf, np.nan])
def test_bandwidth_must_be_positive(bandwidth):
    with pytest.raises(ValueError, match="bandwidth must be a positive number"):
        kernel_calibration_error([1, 0], [0.2, 0.3], bandwidth=bandwidth)


# -- expectations --------------------------------------------------------------------


def test_expectation_of_ce2_is_exact():
    """E = sum_b pi_b (1 - (1 - pi_b)^(n - 1)) mu_b^2, by enumerating all samples."""
    scores, shares = np.array([0.1, 0.5, 0.9]), np.array([0.5, 0.3, 0.2])
    truth = np.array([0.3, 0.4, 0.95])
    atoms = [
        (p, y, share * (q if y else 1 - q))
        for p, share, q in zip(scores, shares, truth, strict=True)
        for y in (0, 1)
    ]
    for n in (2, 3, 4):
        mean = 0.0
        for rows in product(atoms, repeat=n):
            p, y, probability = map(np.array, zip(*rows, strict=True))
            value = squared_calibration_error(y, p, n_bins=3)
            mean += probability.prod() * value
        filled = 1 - (1 - shares) ** (n - 1)
        assert_allclose(mean, (shares * filled * (truth - scores) ** 2).sum(), **CLOSE)


def simulate(metric, n, n_replicates, *, slope, seed):
    """Mean and standard error over samples with log-odds N(0, 1.5^2)."""
    rng = np.random.default_rng(seed)
    values = []
    for _ in range(n_replicates):
        x = rng.normal(0, 1.5, n)
        y = rng.random(n) < sigmoid(slope * x)
        values.append(metric(y, sigmoid(x)))
    return np.mean(values), np.std(values) / np.sqrt(n_replicates)


# Published figures and the half unit of their last digit; the rest of the tolerance
# is the error of the published simulation, taken to be as large as that of this one.
@pytest.mark.parametrize(
    ("n", "n_replicates", "published"),
    [(100, 1200, 0.122), (300, 600, 0.071), (1000, 250, 0.038), (5000, 60, 0.017)],
)
def test_ece_of_calibrated_scores_is_sample_size(n, n_replicates, published):
    mean, error = simulate(expected_calibration_error, n, n_replicates, slope=1, seed=n)
    assert abs(mean - published) < 0.0005 + 4 * np.sqrt(2) * error


@pytest.mark.parametrize(("n", "n_replicates"), [(100, 1200), (300, 600), (1000, 250)])
@pytest.mark.parametrize(
    "metric", [squared_calibration_error, kernel_calibration_error]
)
def test_squared_errors_of_calibrated_scores_are_zero(metric, n, n_replicates):
    mean, error = simulate(metric, n, n_replicates, slope=1, seed=n)
    assert abs(mean) < 4 * error
    assert error < 0.0006


@pytest.mark.parametrize(("n", "n_replicates"), [(100, 2000), (300, 1000), (1000, 500)])
def test_ce2_of_miscalibrated_scores_does_not_depend_on_size(n, n_replicates):
    mean, error = simulate(
        squared_calibration_error, n, n_replicates, slope=0.6, seed=n
    )
    assert abs(mean - 0.0065) < 0.00005 + 4 * np.sqrt(2) * error
    assert error < 0.0004


def test_clusters_remove_the_bias_of_correlated_rows():
    """30 patients of 10 rows; half of them answer by one common uniform number."""
    rng = np.random.default_rng(10)
    clusters = np.repeat(np.arange(30), 10)
    plain, clustered = [], []
    for _ in range(400):
        p = sigmoid(rng.normal(0, 1.5, 30)[clusters] + rng.normal(0, 0.5, 300))
        common = (rng.random(30) < 0.5)[clusters]
        u = np.where(common, rng.random(30)[clusters], rng.random(300))
        plain.append(squared_calibration_error(u < p, p))
        clustered.append(squared_calibration_error(u < p, p, clusters=clusters))
    error = np.std(clustered) / np.sqrt(len(clustered))
    assert abs(np.mean(clustered)) < 4 * error
    assert np.mean(plain) > 0.002
    assert np.mean(plain) > 8 * np.std(plain) / np.sqrt(len(plain))
