"""Permutations are uniform within strata, and their p value is valid."""

from collections import Counter
from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import chisquare, ks_1samp, permutation_test

from skcalfair.resampling import permutation_p_value, permute_within_strata


def p_value(draws, expected):
    """Chi-square test that the expected rows are drawn equally often."""
    found = Counter(map(tuple, draws.tolist()))
    assert set(found) <= expected
    return chisquare([found[row] for row in expected]).pvalue


def test_every_permutation_is_equally_likely():
    draws = permute_within_strata([0, 1, 2, 3], None, 12_000, random_state=0)
    assert p_value(draws, set(permutations(range(4)))) > 1e-3


def test_repeated_labels():
    draws = permute_within_strata([0, 1, 1, 0, 2], None, 12_000, random_state=0)
    assert p_value(draws, set(permutations([0, 1, 1, 0, 2]))) > 1e-3


def test_strata_are_permuted_independently():
    values = [0, 1, 2, 3, 4, 5, 6, 7]
    strata = ["a", "b", "a", "c", "b", "c", "c", "d"]
    expected = {
        (a[0], b[0], a[1], c[0], b[1], c[1], c[2], 7)
        for a, b, c in product(
            permutations([0, 2]), permutations([1, 4]), permutations([3, 5, 6])
        )
    }
    draws = permute_within_strata(values, strata, 12_000, random_state=0)
    assert p_value(draws, expected) > 1e-3


def test_clusters_move_as_a_whole():
    values = [0, 0, 1, 2, 2, 5, 6]
    clusters = ["p", "p", "q", "r", "r", "s", "t"]
    strata = [0, 0, 0, 0, 0, 1, 1]
    expected = {
        (a, a, b, c, c, *rest)
        for (a, b, c), rest in product(permutations([0, 1, 2]), permutations([5, 6]))
    }
    draws = permute_within_strata(
        values, strata, 6_000, clusters=clusters, random_state=0
    )
    assert p_value(draws, expected) > 1e-3


@given(
    data=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1),
    seed=st.integers(0, 99),
)
def test_every_stratum_keeps_its_labels(data, seed):
    values, strata = np.array(data).T
    for row in permute_within_strata(values, strata, 3, random_state=seed):
        for s in set(strata.tolist()):
            assert sorted(row[strata == s]) == sorted(values[strata == s])


@pytest.mark.parametrize(
    "values",
    [
        np.array([0, 1, 1], dtype=np.int8),
        np.array(["a", "b", "b"]),
        np.array([True, False, True]),
        np.array([None, "b", 3], dtype=object),
    ],
)
def test_type_of_values_is_kept(values):
    draws = permute_within_strata(values, None, 5, random_state=0)
    assert draws.dtype == values.dtype
    assert draws.shape == (5, 3)
    assert all(Counter(row) == Counter(values) for row in draws.tolist())
    series = permute_within_strata(pd.Series(values), None, 5, random_state=0)
    np.testing.assert_array_equal(series, draws)


@pytest.mark.parametrize("make", [int, np.random.default_rng, np.random.RandomState])
def test_reproducible_by_any_seed(make):
    def draw(seed):
        return permute_within_strata(
            np.arange(30), np.arange(30) % 2, 3, random_state=make(seed)
        )

    np.testing.assert_array_equal(draw(3), draw(3))
    assert (draw(3) != draw(4)).any()


@pytest.mark.parametrize(
    ("values", "strata", "clusters", "message"),
    [
        ([0, 1], [0, 0, 0], None, "values has 2 rows, strata has 3 rows"),
        ([0, 1], ["a", None], None, "1 missing"),
        ([0, 1], None, [1], "clusters must have one value per row"),
        ([0, 1, 1], None, [1, 1, 2], r"one group of values.*row 0.*\(row 1\).*share"),
        ([0, 0, 1], [1, 2, 2], [1, 1, 2], "one stratum"),
        ([], None, None, "values is empty"),
    ],
)
def test_bad_input(values, strata, clusters, message):
    with pytest.raises(ValueError, match=message):
        permute_within_strata(values, strata, 2, clusters=clusters)


def test_no_permutations():
    with pytest.raises(ValueError, match="n_permutations must be at least 1; got 0"):
        permute_within_strata([0, 1], None, 0)


# -- p value --------------------------------------------------------------------------


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_p_value_agrees_with_scipy(alternative):
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.5, size=12), rng.normal(size=15)
    result = permutation_test(
        (x, y),
        lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis),
        n_resamples=499,
        vectorized=True,
        alternative=alternative,
        random_state=0,
    )
    found = permutation_p_value(
        result.statistic, result.null_distribution, alternative=alternative
    )
    assert found == pytest.approx(result.pvalue, rel=1e-12)


def test_p_value_by_hand():
    permuted = [3.0, 1.0, 2.0, -1.0]
    assert permutation_p_value(2.0, permuted, alternative="greater") == 3 / 5
    assert permutation_p_value(2.0, permuted, alternative="less") == 4 / 5
    assert permutation_p_value(2.0, permuted) == 1.0
    assert permutation_p_value(9.0, permuted) == 2 / 5


def test_p_value_of_many_statistics():
    rng = np.random.default_rng(1)
    observed, permuted = rng.normal(size=(2, 3)), rng.normal(size=(50, 2, 3))
    found = permutation_p_value(observed, permuted)
    assert found.shape == (2, 3)
    assert found[1, 2] == permutation_p_value(observed[1, 2], permuted[:, 1, 2])


def test_rounding_makes_no_difference():
    observed = 0.1 + 0.2
    assert permutation_p_value(observed, [0.3] * 9, alternative="greater") == 1.0
    # A difference of about 0 is compared on the scale of the others.
    assert permutation_p_value(1e-17, [0.0, 1.0], alternative="greater") == 1.0


def test_undefined_statistics():
    permuted = [np.nan, 0.0, np.inf, -np.inf]
    assert permutation_p_value(1.0, permuted, alternative="greater") == 3 / 5
    assert permutation_p_value(1.0, permuted, alternative="less") == 4 / 5
    assert np.isnan(permutation_p_value(np.nan, [0.0, 1.0]))
    assert permutation_p_value(np.inf, permuted, alternative="greater") == 3 / 5


@given(
    arrays(float, 20, elements=st.integers(-5, 5)),
    st.integers(-6, 6),
    st.sampled_from(["two-sided", "greater", "less"]),
)
def test_p_value_is_never_zero_nor_above_one(permuted, observed, alternative):
    p = permutation_p_value(float(observed), permuted, alternative=alternative)
    assert 1 / 21 <= p <= 1
    other = {"greater": "less", "less": "greater"}.get(alternative, alternative)
    assert p == permutation_p_value(-float(observed), -permuted, alternative=other)


def test_p_value_is_uniform_without_an_effect():
    rng = np.random.default_rng(0)
    groups, strata = np.arange(40) % 2, np.arange(40) // 10
    found = []
    for _ in range(300):
        score = rng.normal(size=40) + strata
        permuted = permute_within_strata(groups, strata, 99, random_state=rng)
        weights = np.where(np.vstack([groups, permuted]) == 1, 1.0, -1.0)
        gaps = weights @ score
        found.append(permutation_p_value(gaps[0], gaps[1:], alternative="greater"))
    assert ks_1samp(np.array(found) - rng.uniform(0, 0.01, 300), lambda x: x).pvalue > (
        1e-3
    )


@pytest.mark.parametrize(
    ("observed", "permuted", "options", "message"),
    [
        (1.0, [1.0], {"alternative": "larger"}, "alternative must be one of"),
        (1.0, [[1.0]], {}, r"got \(1, 1\) for \(\)"),
        ([1.0, 2.0], [1.0, 2.0], {}, r"got \(2,\) for \(2,\)"),
        (1.0, [], {}, r"got \(0,\) for \(\)"),
        (1.0, 2.0, {}, "permuted must have shape"),
        ("a", [1.0], {}, "observed must be numeric"),
    ],
)
def test_bad_statistics(observed, permuted, options, message):
    with pytest.raises(ValueError, match=message):
        permutation_p_value(observed, permuted, **options)
