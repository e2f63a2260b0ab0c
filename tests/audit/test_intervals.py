"""Intervals of metrics and gaps: against brute force, peers, and the truth."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import betaincinv, expit, logit

from skcalfair._sorted_scores import SortedScores
from skcalfair._validation import ScoredRows
from skcalfair.audit import _inversion, _path_statistics, _platt_path, audit_scores
from skcalfair.audit._influence import INFLUENCES, variance
from skcalfair.audit._intervals import (
    GroupRows,
    gap_interval,
    matched_gap_interval,
)
from skcalfair.audit._inversion import Gap, path_p_value
from skcalfair.audit._matched import matched_redraws
from skcalfair.audit._path_statistics import STATISTICS
from skcalfair.audit._platt_path import PlattPath, bin_codes
from skcalfair.datasets import make_subgroup_scores
from skcalfair.metrics._registry import METRICS

WILD = sorted(STATISTICS)
SMOOTH = sorted(INFLUENCES)


def make_rows(n=150, slope=0.6, rows_per_cluster=None, seed=0, first_cluster=0):
    rng = np.random.default_rng(seed)
    x = 1.5 * rng.standard_normal(n)
    y = (rng.random(n) < expit(slope * x)).astype(np.uint8)
    clusters = None
    if rows_per_cluster:
        clusters = first_cluster + np.arange(n) // rows_per_cluster
    return ScoredRows(y, expit(x), None, clusters)


def make_path(rows, n_draws=40):
    return PlattPath(SortedScores.from_rows(rows), n_draws, np.random.SeedSequence(1))


def all_signs(path):
    return np.concatenate([signs for _, signs in path.signs()])


# -- smooth metrics -------------------------------------------------------------------


@pytest.mark.parametrize("rows_per_cluster", [None, 3])
def test_auc_variance_is_that_of_delong(rows_per_cluster):
    rows = make_rows(rows_per_cluster=rows_per_cluster)
    scores = SortedScores.from_rows(rows)
    p, y = scores.p, scores.y == 1
    wins = (p[y][:, None] > p[~y]) + 0.5 * (p[y][:, None] == p[~y])
    v10, v01, auc = wins.mean(axis=1), wins.mean(axis=0), wins.mean()
    if rows_per_cluster is None:
        expected = v10.var(ddof=1) / y.sum() + v01.var(ddof=1) / (~y).sum()
    else:
        parts = np.empty(len(p))
        parts[y], parts[~y] = (v10 - auc) / y.sum(), (v01 - auc) / (~y).sum()
        sums = [parts[scores.clusters == c].sum() for c in np.unique(scores.clusters)]
        expected = np.sum(np.square(sums)) * len(sums) / (len(sums) - 1)
    found = variance(scores, INFLUENCES["roc_auc"](scores))
    assert found == pytest.approx(expected, rel=1e-12)


def test_auc_influence_counts_ties_half():
    rng = np.random.default_rng(3)
    rows = ScoredRows(
        rng.integers(0, 2, 60).astype(np.uint8), rng.integers(1, 6, 60) / 6.0
    )
    scores = SortedScores.from_rows(rows)
    p, y = scores.p, scores.y == 1
    wins = (p[y][:, None] > p[~y]) + 0.5 * (p[y][:, None] == p[~y])
    found = INFLUENCES["roc_auc"](scores)
    np.testing.assert_allclose(found[y], (wins.mean(axis=1) - wins.mean()) / y.sum())


@pytest.mark.parametrize("metric", SMOOTH)
def test_influence_is_the_derivative_along_one_row(metric):
    scores = SortedScores.from_rows(make_rows(60))
    found = INFLUENCES[metric](scores)
    assert found.sum() == pytest.approx(0.0, abs=1e-12)
    step = 1e-6
    for row in (0, 17, 40):
        weights = np.ones((1, 60))
        weights[0, row] += step
        moved = METRICS[metric].kernel(scores.reweighted(weights))[0]
        slope = (moved - METRICS[metric].kernel(scores)[0]) / step
        assert found[row] == pytest.approx(slope, abs=1e-5)


def test_brier_and_its_gap_are_scipys_t_and_welch():
    a, b = make_rows(80, seed=1), make_rows(200, seed=2)
    losses = [(r.p - r.y) ** 2 for r in (a, b)]
    one = GroupRows(a).interval("brier_score_loss")
    expected = stats.ttest_1samp(losses[0], 0.0).confidence_interval()
    np.testing.assert_allclose([one.low, one.high], expected, rtol=1e-10)
    gap = gap_interval(GroupRows(a), GroupRows(b), "brier_score_loss")
    test = stats.ttest_ind(*losses, equal_var=False)
    np.testing.assert_allclose(
        [gap.low, gap.high, gap.p_value], [*test.confidence_interval(), test.pvalue]
    )


def test_gap_of_auc_by_hand():
    a, b = (GroupRows(make_rows(n, seed=n)) for n in (90, 140))
    gap = gap_interval(a, b, "roc_auc")
    (l1, u1), (l2, u2) = (
        (i.low, i.high) for i in (a.interval("roc_auc"), b.interval("roc_auc"))
    )
    m1, m2 = a.value("roc_auc"), b.value("roc_auc")
    assert gap.low == pytest.approx(m1 - m2 - np.hypot(m1 - l1, u2 - m2))
    assert gap.high == pytest.approx(m1 - m2 + np.hypot(u1 - m1, m2 - l2))
    # At the level of the p-value one limit is 0.
    a.level = 1.0 - gap.p_value
    again = gap_interval(a, b, "roc_auc")
    assert min(abs(again.low), abs(again.high)) < 1e-9


def test_logit_interval_by_hand():
    group = GroupRows(make_rows(90))
    value, error = group.value("roc_auc"), group.standard_error("roc_auc")
    half = stats.t.ppf(0.975, 89) * error / (value * (1 - value))
    found = group.interval("roc_auc")
    expected = expit([logit(value) - half, logit(value) + half])
    np.testing.assert_allclose([found.low, found.high], expected)


# -- along the path -------------------------------------------------------------------


def redrawn_residuals(path, reach, linear):
    """Residuals of every redraw, (draws, rows)."""
    shift = (
        reach * path.shift
        if linear
        else expit(path.x + reach * path.step) - path.scores.p
    )
    return shift, shift + all_signs(path)[:, path.codes] * path.error


def u_statistic(values, groups, kernel):
    """Sum over pairs of different groups by their kernel."""
    pairs = kernel * (groups[:, None] != groups)
    return values @ pairs @ values / 2.0, pairs.sum() / 2.0


@pytest.mark.parametrize("rows_per_cluster", [None, 3])
@pytest.mark.parametrize("reach", [0.0, 0.7])
def test_ce2_and_skce_redraws_by_brute_force(rows_per_cluster, reach):
    path = make_path(make_rows(90, rows_per_cluster=rows_per_cluster), n_draws=12)
    p, n = path.scores.p, len(path)
    bins = bin_codes(path.scores)
    shift, redrawn = redrawn_residuals(path, reach, linear=True)
    skce = _path_statistics.KernelError(path)
    kernel = np.exp(-np.abs(p[:, None] - p) / 0.1)
    ones = np.ones((n, n))
    n_pairs = u_statistic(np.ones(n), path.codes, ones)[1]
    expected = [u_statistic(r, path.codes, kernel)[0] / n_pairs for r in redrawn]
    truth = u_statistic(shift, path.codes, kernel)[0] / n_pairs
    assert skce.truth(reach) == pytest.approx(truth, abs=1e-12)
    np.testing.assert_allclose(skce.deviates(reach), expected - truth, atol=1e-12)

    ce2 = _path_statistics.SquaredError(path)
    expected, truth = np.zeros(len(redrawn)), 0.0
    for b in np.unique(bins):
        rows = bins == b
        one = np.ones((rows.sum(), rows.sum()))
        own = path.codes[rows]
        pairs = u_statistic(shift[rows], own, one)[1]
        if pairs:
            share = rows.mean() / pairs
            truth += share * u_statistic(shift[rows], own, one)[0]
            expected += [share * u_statistic(r[rows], own, one)[0] for r in redrawn]
    assert ce2.truth(reach) == pytest.approx(truth, abs=1e-12)
    np.testing.assert_allclose(ce2.deviates(reach), expected - truth, atol=1e-12)


@pytest.mark.parametrize("rows_per_cluster", [None, 3])
def test_ece_redraws_by_brute_force(rows_per_cluster):
    path = make_path(make_rows(90, rows_per_cluster=rows_per_cluster), n_draws=12)
    shift, redrawn = redrawn_residuals(path, 0.7, linear=False)
    bins = bin_codes(path.scores)

    def ece(residuals):
        return sum(abs(residuals[bins == b].sum()) for b in np.unique(bins)) / 90

    found = _path_statistics.ExpectedError(path)
    assert found.truth(0.7) == pytest.approx(ece(shift))
    expected = [ece(r) - ece(shift) for r in redrawn]
    np.testing.assert_allclose(found.deviates(0.7), expected, atol=1e-12)


@pytest.mark.parametrize("score", ["log_loss", "brier"])
def test_calibration_loss_scatters_as_refitted_outcomes_do(score):
    n, reach = 400, 0.6
    path = make_path(make_rows(n), n_draws=20_000)
    found = _path_statistics.STATISTICS[f"calibration_loss_{score}"](path)
    q = expit(path.x + reach * path.step)
    p = path.scores.p
    if score == "brier":
        truth = np.mean((q - p) ** 2)
    else:
        truth = np.mean(q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p)))
    assert found.truth(reach) == pytest.approx(truth)
    rng = np.random.default_rng(5)
    metric = METRICS[f"calibration_loss_{score}"].kernel
    values = []
    for _ in range(600):
        y = (rng.random(n) < q).astype(np.uint8)
        values.append(metric(SortedScores(p, y))[0])
    deviates = found.deviates(reach)
    assert np.mean(values) - truth == pytest.approx(0.0, abs=0.1 * np.std(values))
    assert np.std(deviates) == pytest.approx(np.std(values), rel=0.1)
    assert stats.skew(deviates) == pytest.approx(stats.skew(values), abs=0.3)


@pytest.mark.parametrize("metric", WILD)
@pytest.mark.parametrize("rows_per_cluster", [None, 2])
def test_many_rows_take_short_cuts_to_the_same_interval(
    metric, rows_per_cluster, monkeypatch
):
    rows = make_rows(3000, rows_per_cluster=rows_per_cluster)
    exact = GroupRows(rows, random_state=0).interval(metric)
    monkeypatch.setattr(_platt_path, "DRAWN_CLUSTERS", 100)
    monkeypatch.setattr(_platt_path, "CELLS", 300)
    monkeypatch.setattr(_path_statistics, "KERNEL_WORK", 100)
    short = GroupRows(rows, random_state=0).interval(metric)
    width = exact.high - exact.low
    assert short.low == pytest.approx(exact.low, abs=0.06 * width)
    assert short.high == pytest.approx(exact.high, abs=0.06 * width)


# -- inversion ------------------------------------------------------------------------


@pytest.mark.parametrize("metric", WILD)
def test_interval_is_the_hull_of_what_is_not_rejected(metric):
    group = GroupRows(make_rows(300), random_state=2, n_draws=999)
    found = group.interval(metric)
    statistic = group.statistic(metric)
    reaches = np.linspace(0.0, 3.0, 400)
    kept = [r for r in reaches if path_p_value(statistic, r) > 0.05]
    spacing = np.diff([statistic.truth(r) for r in reaches]).max()
    assert found.low == pytest.approx(statistic.truth(kept[0]), abs=spacing)
    assert found.high == pytest.approx(statistic.truth(kept[-1]), abs=spacing)


@pytest.mark.parametrize("metric", WILD)
def test_gap_limits_are_the_edge_of_rejection(metric):
    groups = [
        GroupRows(make_rows(n, slope, seed=n), random_state=n, n_draws=999)
        for n, slope in ((150, 0.5), (600, 1.0))
    ]
    found = gap_interval(*groups, metric)
    gap = Gap(*(group.statistic(metric) for group in groups))
    width = found.high - found.low
    for limit, side in ((found.low, -1), (found.high, 1)):
        assert gap.p_at(limit - side * 0.02 * width) > 0.05
        assert gap.p_at(limit + side * 0.02 * width) <= 0.05
    assert (found.p_value <= 0.05) == (not found.low <= 0.0 <= found.high)


@pytest.mark.parametrize("metric", WILD + SMOOTH)
def test_gap_changes_sign_with_the_order_of_the_groups(metric):
    a = GroupRows(make_rows(150, seed=1), random_state=1, n_draws=499)
    b = GroupRows(make_rows(400, 1.0, seed=2), random_state=2, n_draws=499)
    one, other = gap_interval(a, b, metric), gap_interval(b, a, metric)
    width = one.high - one.low
    assert one.value == pytest.approx(-other.value)
    assert one.low == pytest.approx(-other.high, abs=0.03 * width)
    assert one.p_value == pytest.approx(other.p_value, abs=0.02)


@pytest.mark.parametrize("equal_tailed", [False, True])
def test_an_estimate_below_every_true_value_says_no_more_than_the_floor(equal_tailed):
    class Shifted(_path_statistics.PathStatistic):
        def __init__(self, observed):
            self.observed = observed
            self.equal_tailed = equal_tailed

        def truth(self, reach):
            return reach

        def deviates(self, reach):
            return np.linspace(-0.1, 0.1, 101)

    low, high = _inversion.path_limits(Shifted(-1.0), 0.05)
    assert low == 0.0
    assert high > 0.05
    assert high == _inversion.path_limits(Shifted(0.0), 0.05)[1]


def test_calibration_to_the_last_digit_is_no_obstacle():
    # The Platt fit is the identity: any direction serves.
    p = np.repeat([0.25, 0.75], 80)
    y = np.concatenate([np.arange(80) < 20, np.arange(80) < 60]).astype(np.uint8)
    group = GroupRows(ScoredRows(y, p), random_state=0)
    assert group.path.length < 1e-6
    for metric in WILD:
        found = group.interval(metric)
        assert found.low == 0.0 < found.high < 0.2
        assert found.p_value > 0.1


# -- laws -----------------------------------------------------------------------------


@pytest.mark.parametrize("metric", WILD + SMOOTH)
@pytest.mark.parametrize("rows_per_cluster", [None, 3])
def test_order_of_rows_never_matters(metric, rows_per_cluster):
    rows = make_rows(120, rows_per_cluster=rows_per_cluster)
    order = np.random.default_rng(0).permutation(120)
    shuffled = rows.take(order)
    if rows_per_cluster:
        names = np.random.default_rng(1).permutation(1000)
        shuffled = ScoredRows(
            shuffled.y, shuffled.p, None, names[shuffled.clusters].astype(np.intp)
        )
    a, b = (GroupRows(r, random_state=3, n_draws=199) for r in (rows, shuffled))
    one, other = a.interval(metric), b.interval(metric)
    np.testing.assert_allclose([one.low, one.high], [other.low, other.high], rtol=1e-9)


@pytest.mark.parametrize("metric", WILD + SMOOTH)
def test_whole_weights_are_repeated_rows(metric):
    rows = make_rows(90)
    counts = np.random.default_rng(0).integers(1, 4, 90)
    repeated = rows.take(np.repeat(np.arange(90), counts))
    weighted = ScoredRows(rows.y, rows.p, counts.astype(float))
    one, other = (
        GroupRows(r, random_state=3, n_draws=199).interval(metric)
        for r in (repeated, weighted)
    )
    assert one.value == pytest.approx(other.value)
    assert (one.low, one.high) == pytest.approx((other.low, other.high))


def test_same_seed_same_interval():
    found = [GroupRows(make_rows(), random_state=9).interval(WILD[0]) for _ in range(2)]
    assert found[0] == found[1]


# -- refusals -------------------------------------------------------------------------


def one_class():
    return ScoredRows(np.ones(60, dtype=np.uint8), np.linspace(0.1, 0.9, 60))


def separable():
    return ScoredRows((np.arange(60) > 29).astype(np.uint8), np.linspace(0.1, 0.9, 60))


def few_events():
    y = np.zeros(200, dtype=np.uint8)
    y[::14] = 1
    return ScoredRows(y, np.random.default_rng(0).random(200))


@pytest.mark.parametrize(
    ("metric", "make", "reason"),
    [
        ("roc_auc", one_class, "only one class"),
        ("roc_auc", separable, "standard error is 0"),
        ("squared_calibration_error", one_class, "fewer than 20 rows of one class"),
        ("calibration_loss_brier", separable, "separable"),
        ("expected_calibration_error", few_events, "fewer than 20 rows of one class"),
        ("maximum_calibration_error", make_rows, "no interval"),
        ("corp_miscalibration", make_rows, "no interval"),
        ("average_precision", make_rows, "no interval"),
        ("brier_score_loss", lambda: make_rows(40, 1.0, 5), "fewer than 10 clusters"),
        (
            "squared_calibration_error",
            lambda: make_rows(200, 1.0, 10),
            "fewer than 25 clusters",
        ),
    ],
)
def test_no_interval_comes_with_the_reason(metric, make, reason):
    group = GroupRows(make())
    found = group.interval(metric)
    assert np.isnan([found.low, found.high, found.p_value]).all()
    assert reason in found.reason
    gap = gap_interval(group, GroupRows(make_rows()), metric)
    assert np.isnan(gap.low)
    assert reason in gap.reason


def test_fractional_weights_give_values_without_intervals():
    rows = make_rows(80)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 80)
    group = GroupRows(ScoredRows(rows.y, rows.p, weights))
    found = group.interval("brier_score_loss")
    assert found.value == pytest.approx(
        np.average((rows.p - rows.y) ** 2, weights=weights)
    )
    assert "fractional weights" in found.reason


def test_clusters_in_both_groups_are_refused():
    a, b = (GroupRows(make_rows(90, rows_per_cluster=3, seed=s)) for s in (1, 2))
    assert "both groups" in gap_interval(a, b, "brier_score_loss").reason
    c = GroupRows(make_rows(90, rows_per_cluster=3, seed=2, first_cluster=1000))
    assert gap_interval(a, c, "brier_score_loss").reason is None


# -- at equal size --------------------------------------------------------------------


def test_matched_redraws_by_brute_force(monkeypatch):
    path = make_path(make_rows(60), n_draws=7)
    seed = np.random.SeedSequence(4)
    observed, redrawn = matched_redraws(path, 60, seed)
    assert observed == pytest.approx(
        METRICS["expected_calibration_error"].kernel(path.scores)[0]
    )
    bins = bin_codes(path.scores)
    shift = path.fitted - path.scores.p
    for found, signs in zip(redrawn, all_signs(path), strict=True):
        r = shift + signs * path.error
        expected = sum(abs(r[bins == b].sum()) for b in np.unique(bins)) / 60
        assert found == pytest.approx(expected)


def test_matched_gap_loses_the_bias_of_size():
    # Both calibrated: on all rows the smaller group looks worse.
    a = GroupRows(make_rows(100, 1.0, seed=3), random_state=0, n_draws=499)
    b = GroupRows(make_rows(4000, 1.0, seed=4), random_state=1, n_draws=499)
    found = matched_gap_interval(
        a, b, "expected_calibration_error", size=100, random_state=0
    )
    naive = gap_interval(a, b, "expected_calibration_error").value
    assert naive > 0.05
    assert abs(found.value) < naive / 2
    assert found.low < 0.0 < found.high
    assert (found.p_value > 0.05) == (found.low < 0.0 < found.high)
    given = matched_gap_interval(
        a, b, "expected_calibration_error", size=100, value=0.5, random_state=0
    )
    assert given.value == 0.5
    assert given.low > 0.3


def test_matched_gap_of_whole_clusters():
    a = GroupRows(make_rows(90, rows_per_cluster=3), n_draws=199)
    b = GroupRows(make_rows(600, rows_per_cluster=3, first_cluster=500), n_draws=199)
    found = matched_gap_interval(
        a, b, "expected_calibration_error", size=90, random_state=0
    )
    assert found.low < found.value < found.high


def test_only_ece_is_compared_at_equal_size():
    a, b = GroupRows(make_rows()), GroupRows(make_rows(seed=1))
    found = matched_gap_interval(a, b, "maximum_calibration_error", size=50)
    assert "no interval" in found.reason


# -- coverage, a small simulation ----------------------------------------------------


def test_intervals_cover_the_truth():
    # Over-confident by Beta(2, 2), which is not on the Platt path.
    n, audits = 200, 150
    x = 1.5 * stats.norm.ppf((np.arange(200_001) + 0.5) / 200_001)[::-1]
    p, q = expit(x), betaincinv(2.0, 2.0, expit(x))
    rows = SortedScores(p, np.zeros(len(p), dtype=np.uint8))
    starts = rows.uniform_starts(15)
    mass = np.diff(starts, append=len(p))
    sums = rows.segment_sums(starts, [q - p])[0, :, 0]
    truths = {
        "squared_calibration_error": np.sum(sums**2 / mass) / len(p),
        "expected_calibration_error": np.abs(sums).sum() / len(p),
    }
    hits = dict.fromkeys(truths, 0)
    for audit in range(audits):
        rng = np.random.default_rng([1, audit])
        x = 1.5 * rng.standard_normal(n)
        y = rng.random(n) < betaincinv(2.0, 2.0, expit(x))
        rows = ScoredRows(y.astype(np.uint8), expit(x))
        group = GroupRows(rows, random_state=rng, n_draws=299)
        for metric, truth in truths.items():
            found = group.interval(metric)
            hits[metric] += found.low <= truth <= found.high
    for metric, count in hits.items():
        # .001 tail of a binomial with the claimed coverage.
        assert count >= stats.binom.ppf(0.001, audits, 0.95), metric


@pytest.mark.parametrize("seed", range(12))
def test_limits_stay_within_what_a_metric_can_be(seed):
    # A rare outcome and well separated scores once gave limits of 1e15.
    frame = make_subgroup_scores(
        {"a": 294, "b": 2600},
        prevalence={"a": 0.075, "b": 0.03},
        separability=3.5,
        random_state=seed,
    ).frame
    metrics = [
        "calibration_loss_brier",
        "calibration_loss_log_loss",
        "squared_calibration_error",
        "kernel_calibration_error",
        "expected_calibration_error",
    ]
    result = audit_scores(
        frame["outcome"],
        frame["score"],
        sensitive_features=frame["group"],
        n_resamples=40,
        metrics=metrics,
        random_state=0,
    )
    for table in (result.gaps, result.values):
        known = table.dropna(subset=["low", "high"])
        assert (known[["low", "high"]].abs() <= 1.0).all(axis=None)
