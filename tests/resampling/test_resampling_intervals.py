"""Percentile and BCa intervals agree with scipy and with closed forms."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from skcalfair.resampling import (
    bca_interval,
    bootstrap_clusters,
    bootstrap_counts,
    jackknife_counts,
    percentile_interval,
    stratified_bootstrap,
)


def scipy_interval(data, statistic, method, level, **options):
    """Interval of scipy, and the replicates it comes from."""
    result = stats.bootstrap(
        data,
        statistic,
        n_resamples=999,
        confidence_level=level,
        method=method,
        random_state=0,
        **options,
    )
    return result.confidence_interval, result.bootstrap_distribution


SAMPLE = np.random.default_rng(0).lognormal(size=35)
LEVELS = [0.5, 0.9, 0.95, 0.99]


# -- against scipy --------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
def test_percentile_agrees_with_scipy(level):
    theirs, replicates = scipy_interval((SAMPLE,), np.mean, "percentile", level)
    ours = percentile_interval(replicates, level)
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs), rel=1e-12)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("statistic", [np.mean, np.var, np.median, stats.skew])
def test_bca_agrees_with_scipy(statistic, level):
    theirs, replicates = scipy_interval((SAMPLE,), statistic, "BCa", level)
    left_out = [statistic(np.delete(SAMPLE, i)) for i in range(len(SAMPLE))]
    ours = bca_interval(replicates, statistic(SAMPLE), left_out, level)
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs), rel=1e-10)


def test_stratified_bca_agrees_with_scipy():
    """scipy draws its samples independently, as strata are."""
    a, b = SAMPLE[:12], SAMPLE[12:]

    def gap(x, y, axis=-1):
        return x.mean(axis=axis) - y.mean(axis=axis)

    theirs, replicates = scipy_interval((a, b), gap, "BCa", 0.95)
    left_out = [gap(np.delete(a, i), b) for i in range(len(a))]
    left_out += [gap(a, np.delete(b, i)) for i in range(len(b))]
    strata = ["a"] * len(a) + ["b"] * len(b)
    ours = bca_interval(replicates, gap(a, b), left_out, strata=strata)
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs), rel=1e-10)
    plain = bca_interval(replicates, gap(a, b), left_out)
    assert plain.low != ours.low


def test_own_draws_give_the_interval_of_scipy_but_for_chance():
    n, B = len(SAMPLE), 20_000
    estimates = bootstrap_counts(n, B, random_state=1) @ SAMPLE / n
    counts = jackknife_counts(range(n))
    ours = bca_interval(estimates, SAMPLE.mean(), counts @ SAMPLE / (n - 1))
    result = stats.bootstrap(
        (SAMPLE,), np.mean, n_resamples=B, random_state=0, vectorized=True
    )
    assert (ours.low, ours.high) == pytest.approx(
        tuple(result.confidence_interval), rel=0.02
    )


# -- closed forms ---------------------------------------------------------------------


def test_percentiles_of_equally_spaced_replicates():
    interval = percentile_interval(np.random.default_rng(0).permutation(1001), 0.9)
    assert (interval.low, interval.high) == pytest.approx((50, 950))
    assert interval.n_replicates == 1001
    assert interval.level == 0.9
    assert interval.n_undefined == 0
    assert interval.reason is None


def test_bca_without_bias_and_skewness_is_the_percentile_interval():
    replicates = np.arange(-500, 501) / 100
    bca = bca_interval(replicates, 0.0, [-1.0, 0.0, 1.0])
    plain = percentile_interval(replicates)
    assert (bca.low, bca.high) == pytest.approx((plain.low, plain.high), rel=1e-12)


def test_acceleration_of_a_mean_is_its_skewness():
    """a = skewness / (6 sqrt(n)) for the mean: Efron 1987, section 4."""
    n = len(SAMPLE)
    a = stats.skew(SAMPLE) / 6 / np.sqrt(n)
    left_out = (SAMPLE.sum() - SAMPLE) / (n - 1)
    replicates = np.arange(100_001) / 100_000  # quantiles are their levels
    interval = bca_interval(replicates, 0.4, left_out)
    z0 = stats.norm.ppf(0.4)
    for limit, z in ((interval.low, -1.959964), (interval.high, 1.959964)):
        level = stats.norm.cdf(z0 + (z0 + z) / (1 - a * (z0 + z)))
        assert limit == pytest.approx(level, abs=3e-5)


def test_coverage_for_a_mean():
    """Nominal 90 % for 60 normal rows; the bootstrap falls a little short."""
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(400):
        x = rng.normal(size=60)
        replicates = bootstrap_counts(60, 400, random_state=rng) @ x / 60
        left_out = (x.sum() - x) / 59
        for interval in (
            percentile_interval(replicates, 0.9),
            bca_interval(replicates, x.mean(), left_out, 0.9),
        ):
            covered.append(interval.low <= 0 <= interval.high)
    shares = np.reshape(covered, (-1, 2)).mean(axis=0)
    assert ((shares > 0.84) & (shares < 0.94)).all()


def test_clusters_widen_the_interval():
    """Rows of a cluster are copies, so only clusters count."""
    x = np.random.default_rng(0).normal(size=40)
    rows, clusters = np.repeat(x, 5), np.repeat(np.arange(40), 5)
    draws = bootstrap_clusters(clusters, 4_000, random_state=0)
    left_out = jackknife_counts(clusters)
    by_cluster = bca_interval(
        draws @ rows / draws.sum(axis=1),
        x.mean(),
        left_out @ rows / left_out.sum(axis=1),
    )
    once = bootstrap_counts(40, 4_000, random_state=0) @ x / 40
    plain = bca_interval(once, x.mean(), (x.sum() - x) / 39)
    assert (by_cluster.low, by_cluster.high) == pytest.approx(
        (plain.low, plain.high), rel=1e-9
    )


def test_strata_narrow_the_interval():
    groups = np.repeat([0, 1], 50)
    x = groups * 10 + np.random.default_rng(0).normal(size=100)
    stratified = stratified_bootstrap(groups, 2_000, random_state=0) @ x / 100
    plain = bootstrap_counts(100, 2_000, random_state=0) @ x / 100
    narrow, wide = percentile_interval(stratified), percentile_interval(plain)
    assert narrow.high - narrow.low < 0.3 * (wide.high - wide.low)


# -- arrays ---------------------------------------------------------------------------


def test_many_quantities_at_once():
    rng = np.random.default_rng(0)
    replicates = rng.gamma(2.0, size=(200, 2, 3))
    estimate, left_out = np.full((2, 3), 2.0), rng.gamma(2.0, size=(9, 2, 3))
    together = bca_interval(replicates, estimate, left_out)
    plain = percentile_interval(replicates)
    for i, j in np.ndindex(2, 3):
        single = bca_interval(replicates[:, i, j], 2.0, left_out[:, i, j])
        assert (together.low[i, j], together.high[i, j]) == pytest.approx(
            (single.low, single.high), rel=1e-12
        )
        np.testing.assert_allclose(
            [plain.low[i, j], plain.high[i, j]],
            np.quantile(replicates[:, i, j], [0.025, 0.975]),
            rtol=1e-12,
        )
    assert together.n_undefined.shape == together.reason.shape == (2, 3)


def test_no_quantity_at_all():
    interval = percentile_interval(np.zeros((50, 0)))
    assert interval.low.shape == (0,)


@given(
    arrays(float, (60,), elements=st.floats(-1e6, 1e6)),
    st.sampled_from(LEVELS[:3]),
    st.floats(0.1, 10),
    st.floats(-100, 100),
)
def test_intervals_follow_scale_and_shift(replicates, level, scale, shift):
    left_out = np.array([1.0, 2.0, 4.0])
    for make in (
        lambda r, f: percentile_interval(r, level),
        lambda r, f: bca_interval(r, f(0.0), f(left_out), level),
    ):
        before = make(replicates, lambda v: v)
        after = make(replicates * scale + shift, lambda v: v * scale + shift)
        if before.reason or after.reason:  # ties at 0 may come and go by rounding
            continue
        assert before.low <= before.high
        if not np.isclose(replicates, 0.0, atol=1e-3).any():
            tolerance = 1e-6 * (1 + np.abs(replicates).max())
            assert after.low == pytest.approx(
                before.low * scale + shift, abs=tolerance * scale + 1e-6
            )


# -- undefined replicates and degenerate cases ----------------------------------------


def test_undefined_replicates_are_left_out_and_counted():
    replicates = np.random.default_rng(0).normal(size=100)
    holes = np.insert(replicates, [0, 50, 100], np.nan)
    with_holes, without = percentile_interval(holes), percentile_interval(replicates)
    assert (with_holes.low, with_holes.high) == (without.low, without.high)
    assert (with_holes.n_undefined, with_holes.n_replicates) == (3, 103)
    left_out = [1.0, 2.0, 4.0]
    assert bca_interval(holes, 0.1, left_out).low == (
        bca_interval(replicates, 0.1, left_out).low
    )


def test_too_few_defined_replicates():
    replicates = np.full((100, 3), 0.5)
    replicates[:61, 1] = np.nan
    replicates[:, 2] = np.nan
    interval = percentile_interval(replicates)
    np.testing.assert_array_equal(interval.low, [0.5, np.nan, np.nan])
    assert interval.n_undefined.tolist() == [0, 61, 100]
    assert interval.reason.tolist() == [
        None,
        "only 39 of 100 replicates defined",
        "only 0 of 100 replicates defined",
    ]
    bca = bca_interval(replicates, [0.5] * 3, np.ones((4, 3)))
    assert bca.reason.tolist() == interval.reason.tolist()


@pytest.mark.parametrize(
    ("replicates", "estimate", "jackknife", "reason"),
    [
        (np.arange(50.0), -1.0, [1.0, 2.0], "one side"),
        (np.arange(50.0), 99.0, [1.0, 2.0], "one side"),
        (np.arange(50.0), np.nan, [1.0, 2.0], "estimate is undefined"),
        (np.arange(50.0), 20.0, [1.0, np.nan], "jackknife value is undefined"),
        (np.arange(50.0), 20.0, [1.0, np.inf], "jackknife value is infinite"),
    ],
)
def test_no_bca_interval(replicates, estimate, jackknife, reason):
    interval = bca_interval(replicates, estimate, jackknife)
    assert np.isnan([interval.low, interval.high]).all()
    assert reason in interval.reason


def test_acceleration_that_crosses_the_limits():
    """A single outlier has a = 1/6, which z0 + z = 6 and above turns around."""
    jackknife = [1.0] * 5_000 + [-99.0]
    interval = bca_interval(np.arange(3_000.0), 2_998.7, jackknife, 0.999)
    assert interval.reason == "the acceleration is too large"
    assert np.isnan(interval.high)


def test_constant_statistic():
    bca = bca_interval(np.full(50, 0.3), 0.3, np.full(9, 0.3))
    assert (bca.low, bca.high, bca.reason) == (0.3, 0.3, None)


def test_jackknife_of_rounding_only_has_no_acceleration():
    replicates = np.arange(51.0)
    noise = 0.1 + np.array([0, 1, 0, 0, -1, 0, 0, 0, 3]) * 1e-17
    noise[3] = np.nextafter(noise[3], 1)
    bca = bca_interval(replicates, 25.0, noise)
    plain = percentile_interval(replicates)
    assert (bca.low, bca.high) == pytest.approx((plain.low, plain.high))


def test_infinite_replicates():
    """The log loss of a certain, wrong score is infinite."""
    replicates = np.r_[np.arange(90.0), [np.inf] * 10]
    interval = percentile_interval(replicates)
    assert interval.low == pytest.approx(2.475)
    assert interval.high == np.inf
    assert percentile_interval(np.full(50, -np.inf)).low == -np.inf


def test_the_result_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        percentile_interval(np.arange(50)).low = 0.0


# -- refusals -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replicates", "level", "message"),
    [
        (np.arange(39), 0.95, "needs at least 40 replicates"),
        (np.arange(19), 0.9, "needs at least 20 replicates"),
        (np.arange(199), 0.99, "needs at least 200 replicates"),
        (3.0, 0.95, r"array of shape \(\)"),
        (np.arange(50), 95, "level must lie between 0 and 1; got 95"),
        (np.arange(50), 1.0, "level must lie between 0 and 1"),
        (["a"] * 50, 0.95, "replicates must be numeric"),
    ],
)
def test_bad_replicates(replicates, level, message):
    with pytest.raises(ValueError, match=message):
        percentile_interval(replicates, level)


def test_as_few_replicates_as_allowed():
    for level, fewest in ((0.95, 40), (0.9, 20), (0.99, 200)):
        assert percentile_interval(np.arange(fewest), level).reason is None


@pytest.mark.parametrize(
    ("estimate", "jackknife", "options", "message"),
    [
        ([1.0], [1.0, 2.0], {}, r"estimate must have the shape \(\)"),
        (1.0, [[1.0], [2.0]], {}, r"jackknife must have the shape.*got \(1,\)"),
        (1.0, 2.0, {}, "jackknife must have the shape"),
        (1.0, [2.0], {}, "two units or more"),
        (1.0, [1.0, 2.0], {"strata": [0]}, "got 2 units and 1 strata"),
        (1.0, [1.0, 2.0, 3.0], {"strata": [0, 0, 1]}, "one has a single"),
    ],
)
def test_bad_bca_input(estimate, jackknife, options, message):
    with pytest.raises(ValueError, match=message):
        bca_interval(np.arange(50.0), estimate, jackknife, **options)
