"""Bootstrap samples of clusters and strata, and jackknife samples, are exact."""

from itertools import product
from math import factorial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from skcalfair.resampling import (
    bootstrap_clusters,
    bootstrap_counts,
    jackknife_counts,
    stratified_bootstrap,
)


def compositions(n, parts):
    """All ways to write n as an ordered sum of `parts` counts."""
    if parts == 1:
        return [(n,)]
    return [
        (first, *rest)
        for first in range(n + 1)
        for rest in compositions(n - first, parts - 1)
    ]


def multinomial(parts):
    """Probability of each bootstrap sample of `parts` units."""
    return {
        c: factorial(parts) / np.prod([factorial(k) for k in c]) / parts**parts
        for c in compositions(parts, parts)
    }


def p_value(draws, expected):
    """Chi-square test of the drawn rows against exact probabilities by row."""
    found = dict.fromkeys(expected, 0)
    for row in draws.tolist():
        found[tuple(row)] += 1
    shares = np.array(list(expected.values()))
    return chisquare(list(found.values()), shares * len(draws)).pvalue


# -- clusters -------------------------------------------------------------------------


def test_cluster_counts_are_multinomial():
    clusters = ["q", "p", "q", "r", "q"]
    draws = bootstrap_clusters(clusters, 20_000, random_state=0)
    expected = {(q, p, q, r, q): v for (q, p, r), v in multinomial(3).items()}
    assert p_value(draws, expected) > 1e-3


def test_clusters_of_one_row_are_a_plain_bootstrap():
    np.testing.assert_array_equal(
        bootstrap_clusters(np.arange(50), 4, random_state=1),
        bootstrap_counts(50, 4, random_state=1),
    )


@given(
    clusters=st.lists(st.integers(-3, 9), min_size=1, max_size=60),
    seed=st.integers(0, 99),
)
def test_rows_of_a_cluster_share_its_count(clusters, seed):
    draws = bootstrap_clusters(clusters, 3, random_state=seed)
    assert draws.shape == (3, len(clusters))
    assert draws.dtype == np.uint8
    frame = pd.DataFrame(draws.T).groupby(np.array(clusters))
    assert (frame.nunique() == 1).all(axis=None)
    assert (frame.first().sum() == len(set(clusters))).all()


def test_many_clusters():
    clusters = np.arange(90_000) // 3
    draws = bootstrap_clusters(clusters, 5, random_state=0)
    np.testing.assert_array_equal(draws[:, ::3], draws[:, 2::3])
    np.testing.assert_array_equal(draws[:, ::3].sum(axis=1, dtype=int), 30_000)


@pytest.mark.parametrize(
    "kind", [list, np.array, pd.Series, pd.Categorical, lambda v: pl.Series("c", v)]
)
def test_kinds_of_clusters(kind):
    values = ["p", "p", "q", "r"]
    np.testing.assert_array_equal(
        bootstrap_clusters(kind(values), 5, random_state=0),
        bootstrap_clusters(np.array([0, 0, 1, 2]), 5, random_state=0),
    )


# -- strata ---------------------------------------------------------------------------


def test_strata_are_independent_and_multinomial():
    strata = ["b", "a", "b", "a", "a"]
    draws = stratified_bootstrap(strata, 30_000, random_state=0)
    expected = {
        (b[0], a[0], b[1], a[1], a[2]): pa * pb
        for (a, pa), (b, pb) in product(multinomial(3).items(), multinomial(2).items())
    }
    assert p_value(draws, expected) > 1e-3


def test_equally_large_strata_are_independent():
    """They are drawn together."""
    strata = [0, 1, 0, 1, 2, 2]
    draws = stratified_bootstrap(strata, 20_000, random_state=0)
    expected = {
        (a[0], b[0], a[1], b[1], c[0], c[1]): pa * pb * pc
        for (a, pa), (b, pb), (c, pc) in product(multinomial(2).items(), repeat=3)
    }
    assert p_value(draws, expected) > 1e-3


@given(
    strata=st.lists(st.integers(0, 6), min_size=1, max_size=60),
    seed=st.integers(0, 99),
)
def test_every_stratum_keeps_its_rows(strata, seed):
    draws = stratified_bootstrap(strata, 4, random_state=seed)
    strata = np.array(strata)
    for s in set(strata.tolist()):
        inside = strata == s
        assert (draws[:, inside].sum(axis=1) == inside.sum()).all()


def test_large_strata_keep_their_rows():
    strata = np.random.default_rng(0).choice(3, p=[0.9, 0.09, 0.01], size=80_000)
    draws = stratified_bootstrap(strata, 3, random_state=0)
    for s in range(3):
        inside = strata == s
        assert (draws[:, inside].sum(axis=1, dtype=int) == inside.sum()).all()


def test_one_stratum_is_a_plain_bootstrap():
    np.testing.assert_array_equal(
        stratified_bootstrap(["a"] * 40, 3, random_state=2),
        bootstrap_counts(40, 3, random_state=2),
    )


def test_group_and_class_intersect():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"group": rng.choice(["a", "b"], 60), "y": rng.integers(2, 60)}
    )
    draws = stratified_bootstrap(frame, 50, random_state=0)
    for _, part in frame.reset_index(drop=True).groupby(["group", "y"]):
        assert (draws[:, part.index].sum(axis=1) == len(part)).all()
    for same in (
        frame.to_dict("list"),
        pl.DataFrame(frame.to_dict("list")),
        frame.to_numpy(dtype=object),
        (frame["group"] + frame["y"].astype(str)).tolist(),
    ):
        np.testing.assert_array_equal(
            stratified_bootstrap(same, 50, random_state=0), draws
        )


# -- strata and clusters --------------------------------------------------------------


def test_clusters_within_strata_are_multinomial():
    strata = ["b", "a", "b", "a", "a", "b"]
    clusters = [1, 2, 3, 4, 4, 1]
    draws = stratified_bootstrap(strata, 20_000, clusters=clusters, random_state=0)
    expected = {
        (b[0], a[0], b[1], a[1], a[1], b[0]): pa * pb
        for (a, pa), (b, pb) in product(multinomial(2).items(), repeat=2)
    }
    assert p_value(draws, expected) > 1e-3


@given(
    stratum_of=st.lists(st.integers(0, 3), min_size=1, max_size=15),
    seed=st.integers(0, 99),
)
def test_every_stratum_keeps_its_clusters(stratum_of, seed):
    rng = np.random.default_rng(seed)
    k = len(stratum_of)
    clusters = rng.permutation(np.r_[np.arange(k), rng.integers(k, size=9)])
    strata = np.array(stratum_of)[clusters]
    draws = stratified_bootstrap(strata, 3, clusters=clusters, random_state=seed)
    counts = pd.DataFrame(draws.T).groupby(clusters)
    assert (counts.nunique() == 1).all(axis=None)
    by_stratum = counts.first().groupby(np.array(stratum_of)).sum()
    sizes = np.bincount(stratum_of)
    assert (by_stratum.to_numpy() == sizes[sizes > 0][:, np.newaxis]).all()


def test_a_cluster_in_several_strata_is_refused():
    with pytest.raises(
        ValueError, match=r"one stratum.*cluster of row 1.*\(row 3\).*leave out"
    ):
        stratified_bootstrap([0, 0, 1, 1], 2, clusters=["p", "q", "r", "q"])


# -- jackknife ------------------------------------------------------------------------


def test_jackknife_leaves_out_each_cluster_once():
    clusters = np.array(["q", "p", "q", "r"])
    counts = jackknife_counts(clusters)
    assert counts.dtype == np.uint8
    np.testing.assert_array_equal(
        counts, [clusters != name for name in ("q", "p", "r")]
    )
    np.testing.assert_array_equal(jackknife_counts(range(4)), 1 - np.eye(4))


# -- all ------------------------------------------------------------------------------

DRAWS = {
    "clusters": lambda n, seed: bootstrap_clusters(
        np.arange(40) // 3, n, random_state=seed
    ),
    "strata": lambda n, seed: stratified_bootstrap(
        np.arange(40) % 3, n, random_state=seed
    ),
    "both": lambda n, seed: stratified_bootstrap(
        np.arange(40) // 20, n, clusters=np.arange(40) // 2, random_state=seed
    ),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize("make", [int, np.random.default_rng, np.random.RandomState])
def test_reproducible_by_any_seed(draw, make):
    np.testing.assert_array_equal(draw(4, make(3)), draw(4, make(3)))
    assert (draw(4, make(3)) != draw(4, make(4))).any()


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_no_replicates(draw):
    with pytest.raises(ValueError, match="n_replicates must be at least 1; got 0"):
        draw(0, 0)


def test_missing_and_short_input():
    with pytest.raises(ValueError, match="clusters contains a missing value at row 1"):
        bootstrap_clusters(["a", None], 1)
    with pytest.raises(ValueError, match="clusters contains a missing value at row 1"):
        jackknife_counts(["a", None])
    with pytest.raises(ValueError, match="strata 'strata' has 1 missing"):
        stratified_bootstrap(["a", None], 1)
    with pytest.raises(ValueError, match="got 3 for 2 rows"):
        stratified_bootstrap([0, 1], 1, clusters=[1, 2, 3])
    with pytest.raises(ValueError, match="clusters is empty"):
        bootstrap_clusters([], 1)
