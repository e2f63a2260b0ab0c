"""Bin edges, uniform and of equal mass, against their definitions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.calibration import calibration_curve

from skcalfair._binning import (
    check_n_bins,
    equal_mass_cuts,
    uniform_edges,
    uniform_starts,
)


def test_number_of_bins():
    assert check_n_bins(np.int64(3)) == 3
    assert isinstance(check_n_bins(np.int64(3)), int)
    for bad in (0, -2, 1.0, True, "3", None):
        with pytest.raises(ValueError, match="n_bins must be a positive integer; got"):
            check_n_bins(bad)


def test_edges_are_linspaces_to_the_last_bit():
    for n_bins in (1, 2, 10, 15, 49):
        assert_array_equal(uniform_edges(n_bins), np.linspace(0, 1, n_bins + 1))
    assert uniform_edges(10)[3] != 3 / 10


# -- uniform bins ----------------------------------------------------------------------


def bin_of_each(starts, n):
    """Number of the bin of each row, counted from the first start."""
    return np.repeat(np.arange(len(starts)), np.diff(np.append(starts, n)))


@st.composite
def scores_near_edges(draw):
    n_bins = draw(st.integers(1, 20))
    edges = np.linspace(0, 1, n_bins + 1)
    near = np.r_[edges, np.nextafter(edges, 0), np.nextafter(edges, 1)[:-1]]
    values = st.one_of(st.sampled_from(near.tolist()), st.floats(0, 1))
    p = draw(st.lists(values, min_size=1, max_size=30))
    return n_bins, np.sort(np.abs(p))[::-1]


@settings(max_examples=100)
@given(given_=scores_near_edges())
def test_a_bin_is_open_below_and_closed_above(given_):
    n_bins, p = given_
    starts = uniform_starts(p, n_bins)
    assert len(starts) == n_bins
    assert starts[0] == 0
    bins = n_bins - 1 - bin_of_each(starts, len(p))
    edges = np.linspace(0, 1, n_bins + 1)
    for value, b in zip(p, bins, strict=True):
        assert value <= edges[b + 1]
        assert value > edges[b] or (b == 0 and value == 0)
    # and scikit-learn finds as many bins filled
    curve = calibration_curve(np.zeros(len(p)), p, n_bins=n_bins, pos_label=1)
    assert len(curve[0]) == len(np.unique(bins))


# -- equal-mass bins -------------------------------------------------------------------


def group_bins(weights, n_bins):
    """Bin of each tied group, lowest score first, by the rule in exact arithmetic.

    Bin k ends at the first group where the weight down to it reaches k / n_bins.
    """
    weights = [Fraction(w) for w in weights]
    total = sum(weights)
    bins, reached = [], Fraction(0)
    for w in weights:
        # bins that ended before this group
        bins.append(sum(reached * n_bins >= k * total for k in range(1, n_bins)))
        reached += w
    return bins


MASSES = st.lists(st.integers(0, 5), min_size=1, max_size=15).filter(any)


@settings(max_examples=150)
@given(masses=MASSES, n_bins=st.integers(1, 8), scale=st.sampled_from([1, 0.1, 1 / 3]))
def test_equal_mass_cuts_by_the_rule(masses, n_bins, scale):
    """Integers are exact; fractions of them are cut alike in spite of rounding."""
    descending = np.array(masses)[::-1]
    expected = group_bins(masses, n_bins)[::-1]
    for weights in (descending, descending * scale):
        cumulative = np.cumsum(weights)[np.newaxis]
        cuts = equal_mass_cuts(cumulative, n_bins)
        assert cuts.shape == (1, n_bins)
        assert (np.diff(cuts[0]) >= 0).all()
        found = n_bins - 1 - bin_of_each(cuts[0], len(masses))
        filled = descending > 0
        # groups without weight may stand on either side of a cut
        assert_array_equal(
            partition(found[filled]), partition(np.array(expected)[filled])
        )


@pytest.mark.parametrize("mass", [0.1, 1 / 3, 1 / 7, 2.3e5])
@pytest.mark.parametrize("n_bins", [3, 10, 15])
def test_rounding_of_equal_fractions_moves_no_cut(mass, n_bins):
    """Sums of tenths miss the shares of their total by a bit, upwards or downwards."""
    for per_bin in (1, 2, 7):
        cumulative = np.cumsum(np.full(n_bins * per_bin, mass))[np.newaxis]
        expected = np.arange(n_bins) * per_bin
        assert_array_equal(equal_mass_cuts(cumulative, n_bins)[0], expected)


def partition(bins):
    """Number of the bin among those that hold something."""
    return np.unique(bins, return_inverse=True)[1]


@settings(max_examples=60)
@given(
    masses=st.lists(
        st.lists(st.integers(0, 4), min_size=6, max_size=6).filter(any),
        min_size=2,
        max_size=6,
    ),
    n_bins=st.integers(1, 7),
    dtype=st.sampled_from([np.int32, np.int64, np.float64]),
)
def test_replicates_are_cut_one_by_one(masses, n_bins, dtype):
    cumulative = np.cumsum(masses, axis=1).astype(dtype)
    together = equal_mass_cuts(cumulative, n_bins)
    alone = [equal_mass_cuts(row[np.newaxis], n_bins)[0] for row in cumulative]
    assert_array_equal(together, alone)


def test_a_replicate_without_weight_is_cut_somewhere():
    cumulative = np.array([[0, 0, 0], [1, 2, 3]])
    cuts = equal_mass_cuts(cumulative, 3)
    assert ((cuts >= 0) & (cuts < 3)).all()
    assert_array_equal(cuts[1], [0, 1, 2])
