"""Draws of replicate weights are exact."""

from itertools import combinations
from math import comb, factorial

import numpy as np
import pytest
from scipy.stats import chisquare, poisson

from skcalfair.resampling import (
    _draws,
    bootstrap_counts,
    subsample_clusters,
    subsample_counts,
)


def compositions(n, parts):
    """All ways to write n as an ordered sum of `parts` counts."""
    if parts == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in compositions(n - first, parts - 1):
            yield (first, *rest)


def p_value(draws, expected):
    """Chi-square test of the drawn rows against exact probabilities by row."""
    found = dict.fromkeys(expected, 0)
    for row in draws.tolist():
        found[tuple(row)] += 1
    observed = np.array(list(found.values()))
    shares = np.array(list(expected.values()))
    return chisquare(observed, shares * len(draws)).pvalue


# -- bootstrap ----------------------------------------------------------------------


@pytest.mark.parametrize("flat", [True, False])
def test_bootstrap_is_multinomial(monkeypatch, flat):
    if not flat:
        # With four rows the Poisson counts have mean 1 - 1 / 2.
        monkeypatch.setattr(_draws, "FLAT_ROWS", 0)
        monkeypatch.setattr(_draws, "MARGIN", 1.0)
    expected = {
        c: factorial(4) / np.prod([factorial(k) for k in c]) / 4**4
        for c in compositions(4, 4)
    }
    draws = bootstrap_counts(4, 20_000, random_state=0)
    assert p_value(draws, expected) > 1e-3


@pytest.mark.parametrize("n", [1, 75, 19_999, 20_000, 50_001])
def test_bootstrap_totals(n):
    counts = bootstrap_counts(n, 3, random_state=0)
    assert counts.dtype == np.uint8
    assert counts.shape == (3, n)
    np.testing.assert_array_equal(counts.sum(axis=1, dtype=np.int64), n)


def test_large_bootstrap_has_the_moments_of_counts():
    counts = bootstrap_counts(60_000, 20, random_state=1).astype(float)
    assert counts.var() == pytest.approx(1 - 1 / 60_000, rel=0.01)
    shares = np.bincount(counts.astype(int).ravel(), minlength=8)[:5] / counts.size
    np.testing.assert_allclose(shares, poisson.pmf(range(5), 1), atol=0.002)


def test_poisson_table_decides_cells_that_straddle_two_counts():
    class ExtremeBits:
        """Generator whose draws all fall into the cell of P(X = 0)."""

        def integers(self, high, size, dtype):
            cell = int(np.exp(-0.5) * _draws.CELLS)
            return np.full(size * 4, cell, np.uint16).view(np.uint64)

        def random(self, size):
            return np.linspace(0, 1, size, endpoint=False)

    table = _draws._PoissonTable(0.5)
    drawn = table.draw(1000, ExtremeBits())
    boundary = np.exp(-0.5) * _draws.CELLS % 1
    assert set(drawn.tolist()) == {0, 1}
    assert (drawn == 0).mean() == pytest.approx(boundary, abs=2e-3)


def test_counts_beyond_255_are_refused():
    with pytest.raises(OverflowError, match="255"):
        _draws._as_uint8(np.array([1, 256]))


# -- subsamples -----------------------------------------------------------------------


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize(("n", "size"), [(6, 2), (6, 3), (5, 4), (7, 1)])
def test_every_subset_is_equally_likely(monkeypatch, keyed, n, size):
    if not keyed:
        monkeypatch.setattr(_draws, "KEYED_ROWS", 0)
        monkeypatch.setattr(_draws, "MARGIN", 0.5)
    expected = {}
    for kept in combinations(range(n), size):
        row = np.zeros(n, dtype=int)
        row[list(kept)] = 1
        expected[tuple(row.tolist())] = 1 / comb(n, size)
    draws = subsample_counts(n, size, 8_000, random_state=0)
    assert p_value(draws, expected) > 1e-3


@pytest.mark.parametrize("size", [1, 30, 2_999, 3_000, 5_999, 6_000])
def test_subsample_sizes(size):
    counts = subsample_counts(6_000, size, 3, random_state=0)
    np.testing.assert_array_equal(counts.sum(axis=1, dtype=np.int64), size)
    assert set(np.unique(counts).tolist()) <= {0, 1}


def test_large_subsamples_keep_each_row_equally_often():
    counts = subsample_counts(5_000, 1_500, 400, random_state=0)
    shares = counts.mean(axis=0)
    assert shares.std() == pytest.approx(np.sqrt(0.3 * 0.7 / 400), rel=0.05)


@pytest.mark.parametrize("size", [0, 7, -1])
def test_impossible_size(size):
    with pytest.raises(ValueError, match="size must lie between 1 and n=6"):
        subsample_counts(6, size, 1)


# -- clusters -------------------------------------------------------------------------


def test_clusters_are_kept_whole_and_fit():
    clusters = np.repeat(np.arange(30), np.arange(30) % 4 + 1)
    np.random.default_rng(0).shuffle(clusters)
    counts = subsample_clusters(clusters, 20, 200, random_state=0)
    for row in counts:
        kept = set(clusters[row == 1])
        assert not kept & set(clusters[row == 0])
        assert 16 < row.sum() <= 20
    appearances = np.array([counts[:, clusters == c][:, 0].mean() for c in range(30)])
    assert appearances.min() > 0.1


def test_one_large_cluster_is_taken_all_the_same():
    counts = subsample_clusters(np.array([0, 0, 0]), 2, 1, random_state=0)
    np.testing.assert_array_equal(counts, [[1, 1, 1]])


def test_codes_without_rows_take_no_place():
    """The first cluster is taken in any case, so it must be one that has rows."""
    counts = subsample_clusters(np.array([3, 3, 7, 7]), 1, 200, random_state=0)
    assert set(map(tuple, counts.tolist())) == {(1, 1, 0, 0), (0, 0, 1, 1)}


def test_single_rows_as_clusters_are_a_plain_subsample():
    expected = {
        tuple(np.isin(range(4), kept).astype(int).tolist()): 1 / 6
        for kept in combinations(range(4), 2)
    }
    draws = subsample_clusters(np.arange(4), 2, 3_000, random_state=0)
    assert p_value(draws, expected) > 1e-3


# -- all ------------------------------------------------------------------------------

DRAWS = {
    "bootstrap": lambda seed: bootstrap_counts(50, 4, random_state=seed),
    "subsample": lambda seed: subsample_counts(50, 9, 4, random_state=seed),
    "clusters": lambda seed: subsample_clusters(
        np.arange(50) // 3, 20, 4, random_state=seed
    ),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize(
    "make",
    [int, np.random.default_rng, np.random.RandomState],
    ids=lambda m: m.__name__,
)
def test_reproducible_by_any_seed(draw, make):
    np.testing.assert_array_equal(draw(make(3)), draw(make(3)))
    assert (draw(make(3)) != draw(make(4))).any()


def test_a_generator_moves_on():
    rng = np.random.default_rng(0)
    assert (DRAWS["bootstrap"](rng) != DRAWS["bootstrap"](rng)).any()


@pytest.mark.parametrize("bad", [0, -3])
def test_sizes_below_one_are_refused(bad):
    with pytest.raises(ValueError, match="n must be at least 1"):
        bootstrap_counts(bad, 1)
    with pytest.raises(ValueError, match="n_replicates must be at least 1"):
        bootstrap_counts(5, bad)
    with pytest.raises(ValueError, match="size must be at least 1"):
        subsample_clusters(np.arange(3), bad, 1)
