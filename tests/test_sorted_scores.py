"""SortedScores: the sort, the sums over rows and bins, and what is kept."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skcalfair import _sorted_scores
from skcalfair._sorted_scores import SortedScores
from skcalfair._validation import ScoredRows

PROBABILITIES = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, 0.5, 5e-324, np.nextafter(1, 0)]), st.floats(0, 1)
)
ROWS = st.lists(st.tuples(PROBABILITIES, st.integers(0, 1)), min_size=1, max_size=30)


def make_rows(n=23, *, weighted=False, clustered=False, n_scores=9, seed=0):
    rng = np.random.default_rng(seed)
    return ScoredRows(
        y=(rng.random(n) < 0.4).astype(np.uint8),
        p=rng.integers(0, n_scores, n) / (n_scores - 1),
        sample_weight=rng.exponential(size=n) if weighted else None,
        clusters=rng.integers(0, 5, n) if clustered else None,
    )


# -- sorting ---------------------------------------------------------------------------


@settings(max_examples=150)
@given(rows=ROWS)
def test_rows_are_sorted_as_pairs(rows):
    """The sort by packed bits gives the pairs that a sort by index gives."""
    p, y = (np.array(column) for column in zip(*rows, strict=True))
    packed = SortedScores.from_rows(ScoredRows(y.astype(np.uint8), p))
    assert_array_equal(packed.p, np.sort(p)[::-1])
    assert_array_equal(sorted(zip(packed.p, packed.y, strict=True)), sorted(rows))
    assert not np.signbit(packed.p).any()
    indexed = SortedScores.from_rows(ScoredRows(y.astype(np.uint8), p), keep_order=True)
    assert_array_equal(indexed.p, packed.p)
    assert_array_equal(indexed.p, p[indexed.order])
    assert_array_equal(indexed.y, y[indexed.order])
    assert_array_equal(np.sort(indexed.order), np.arange(len(p)))


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("clustered", [True, False])
def test_everything_travels_with_its_row(weighted, clustered):
    rows = make_rows(weighted=weighted, clustered=clustered)
    scores = SortedScores.from_rows(rows, keep_order=True)
    assert_array_equal(scores.y, rows.y[scores.order])
    if weighted:
        assert_array_equal(scores.weights, [rows.sample_weight[scores.order]])
    else:
        assert scores.weights is None
    if clustered:
        assert_array_equal(scores.clusters, rows.clusters[scores.order])
    assert (len(scores), scores.n_replicates) == (len(rows), 1)


def test_input_is_left_alone():
    rows = make_rows()
    p, y = rows.p.copy(), rows.y.copy()
    SortedScores.from_rows(rows)
    assert_array_equal(rows.p, p)
    assert_array_equal(rows.y, y)


def test_take_keeps_rows_aligned():
    scores = SortedScores.from_rows(make_rows(weighted=True, clustered=True))
    positions = np.array([1, 4, 7])
    some = scores.take(positions)
    for name in ("p", "y", "order", "clusters"):
        assert_array_equal(getattr(some, name), getattr(scores, name)[positions])
    assert_array_equal(some.weights, scores.weights[:, positions])
    plain = SortedScores.from_rows(make_rows()).take(positions)
    assert plain.order is plain.weights is plain.clusters is None


# -- sums ------------------------------------------------------------------------------


@pytest.fixture(params=["none", "uint8", "float"])
def scores(request):
    scores = SortedScores.from_rows(make_rows(), keep_order=True)
    rng = np.random.default_rng(1)
    weights = {
        "none": None,
        "uint8": rng.integers(0, 3, (4, 23)).astype(np.uint8),
        "float": rng.exponential(size=(4, 23)),
    }[request.param]
    return scores.reweighted(weights)


def dense(scores):
    """Weights as a float array, whatever they are."""
    if scores.weights is None:
        return np.ones((1, len(scores)))
    return scores.weights.astype(float)


@pytest.mark.parametrize("row_block", [2**13, 3])
@pytest.mark.parametrize("squared", [True, False])
def test_segment_sums_with_empty_segments(scores, row_block, squared, monkeypatch):
    monkeypatch.setattr(_sorted_scores, "ROW_BLOCK", row_block)
    starts = np.array([0, 0, 4, 11, 11, 23])
    columns = [scores.p, scores.y]
    w = dense(scores) ** (2 if squared else 1)
    sums = scores.segment_sums(starts, columns, squared_weights=squared)
    assert sums.shape == (len(w), 6, 2)
    for s, (start, stop) in enumerate(zip(starts, [*starts[1:], 23], strict=True)):
        for j, column in enumerate(columns):
            expected = w[:, start:stop] @ column[start:stop]
            assert_allclose(sums[:, s, j], expected, rtol=1e-12)


def test_totals_and_means(scores):
    w = dense(scores)
    assert_allclose(scores.total, w.sum(axis=1), rtol=1e-14)
    assert_allclose(scores.positive_total, w @ scores.y, rtol=1e-14)
    assert_allclose(scores.mean(scores.p), w @ scores.p / w.sum(axis=1), rtol=1e-14)
    assert scores.total.dtype == np.float64


def test_counts_do_not_wrap():
    scores = SortedScores.from_rows(make_rows())
    heavy = scores.reweighted(np.full((2, 23), 255, dtype=np.uint8))
    assert_array_equal(heavy.total, [255 * 23] * 2)
    assert_array_equal(heavy.equal_mass_starts(5), [scores.equal_mass_starts(5)[0]] * 2)


@pytest.mark.parametrize("chunk", [2**17, 50])
def test_equal_mass_sums(scores, chunk, monkeypatch):
    monkeypatch.setattr(_sorted_scores, "CHUNK", chunk)
    w = dense(scores)
    starts = scores.equal_mass_starts(4)
    sums = scores.equal_mass_sums(4, scores.residual)
    for r, first in enumerate(starts):
        stops = np.append(first[1:], len(scores))
        expected = [
            w[r, a:b] @ scores.residual[a:b] for a, b in zip(first, stops, strict=True)
        ]
        assert_allclose(sums[r], expected, rtol=1e-12, atol=1e-14)
        # tied scores are never split
        inner = first[(first > 0) & (first < len(scores))]
        assert (scores.p[inner] < scores.p[inner - 1]).all()


@pytest.mark.parametrize("n_scores", [4, 10**9])
@pytest.mark.parametrize("chunk", [2**17, 50])
def test_staircases_count_what_a_threshold_calls(n_scores, chunk, monkeypatch):
    monkeypatch.setattr(_sorted_scores, "CHUNK", chunk)
    scores = SortedScores.from_rows(make_rows(n_scores=n_scores))
    weights = np.random.default_rng(2).integers(0, 4, (5, 23)).astype(np.uint8)
    scores = scores.reweighted(weights)
    thresholds = np.unique(scores.p[scores.y == 1])[::-1]
    visited = 0
    for rows, steps, tp, called, fp_before in scores.staircases():
        visited += len(tp)
        for j, threshold in enumerate(thresholds):
            at, above = scores.p >= threshold, scores.p > threshold
            w, y = weights[rows].astype(int), scores.y == 1
            assert_array_equal(tp[:, j], w[:, at & y].sum(axis=1))
            assert_array_equal(called[:, j], w[:, at].sum(axis=1))
            gained = w[:, at & ~above & y].sum(axis=1)
            assert_array_equal(steps[:, j], gained)
            false = w[:, above & ~y].sum(axis=1)
            # without ties nothing negative shares a positive's score
            assert_array_equal(fp_before[:, j], false)
    assert visited == 5


# -- ties ------------------------------------------------------------------------------


def test_ties():
    p = np.array([0.9, 0.5, 0.5, 0.5, 0.2, 0.2])
    scores = SortedScores(p, np.zeros(6, np.uint8))
    assert_array_equal(scores.tie_starts, [0, 1, 4])
    assert_array_equal(scores.tie_ends, [0, 3, 5])
    distinct = SortedScores(np.array([0.9, 0.5, 0.2]), np.zeros(3, np.uint8))
    assert distinct.tie_starts is distinct.tie_ends is None
    one = SortedScores(np.array([0.9]), np.zeros(1, np.uint8))
    assert one.tie_starts is None


# -- what is kept ----------------------------------------------------------------------


def test_facts_of_rows_are_shared_and_facts_of_weights_are_not():
    scores = SortedScores.from_rows(make_rows())
    other = scores.reweighted(np.full((1, 23), 2.0))
    assert other.residual is scores.residual
    assert other.log_odds() is scores.log_odds()
    assert scores.log_odds(1e-3) is not scores.log_odds()
    assert_array_equal(other.total, 2 * scores.total)
    for n_bins in (3, 4):
        doubled = zip(
            other.uniform_sums(n_bins), scores.uniform_sums(n_bins), strict=True
        )
        for of_other, of_scores in doubled:
            assert of_scores.shape == (1, n_bins)
            assert_array_equal(of_other, 2 * of_scores)
    assert scores.uniform_sums(3)[0] is scores.uniform_sums(3)[0]


@pytest.mark.parametrize("n_bins", [1, 5])
def test_uniform_sums(scores, n_bins):
    w, r = dense(scores), scores.y - scores.p
    edges = np.linspace(0, 1, n_bins + 1)
    bins = np.searchsorted(edges[1:-1], scores.p)
    mass, residual = scores.uniform_sums(n_bins)
    squares = scores.uniform_squares(n_bins)
    for b in range(n_bins):
        inside = (bins == n_bins - 1 - b).astype(float)  # the highest bin first
        assert_allclose(mass[:, b], w @ inside, rtol=1e-12)
        assert_allclose(residual[:, b], w @ (inside * r), rtol=1e-12, atol=1e-14)
        assert_allclose(squares[:, b], w @ (inside * r * r), rtol=1e-12)


def test_the_meaning_of_weights_is_inherited_unless_said():
    scores = SortedScores.from_rows(make_rows(), frequency=False)
    assert not scores.reweighted(None).frequency
    assert scores.reweighted(None, frequency=True).frequency


def test_platt_of_constant_scores_is_undetermined():
    scores = SortedScores(np.full(4, 0.3), np.array([0, 1, 0, 1], np.uint8))
    fit = scores.platt()
    assert np.isnan([fit.slope, fit.intercept]).all()
    assert not fit.converged.any()


def test_platt_of_replicates_far_from_the_whole_sample():
    """Scores of 0 and 1 pull the common fit away from where most replicates go."""
    p = np.r_[1.0, 0.0, np.linspace(0.1, 0.9, 28)]
    y = np.r_[1, 0, np.linspace(0.1, 0.9, 28) > 0.45].astype(np.uint8)
    y[[12, 13, 18]] = 1 - y[[12, 13, 18]]
    scores = SortedScores.from_rows(ScoredRows(y, p), keep_order=True)
    weights = np.random.default_rng(0).poisson(1, (200, 30)).astype(np.uint8)
    fit = scores.reweighted(weights).platt()
    exists = np.isfinite(fit.slope)
    assert exists.sum() > 100
    assert fit.converged[exists].all()
    for r in np.flatnonzero(exists):
        alone = scores.reweighted(weights[r : r + 1]).platt()
        assert_allclose(fit.slope[r], alone.slope[0], rtol=1e-9)
        assert_allclose(fit.intercept[r], alone.intercept[0], rtol=1e-9, atol=1e-9)
