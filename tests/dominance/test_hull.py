"""The hull, against a brute-force minimum of the expected cost."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skcalfair.dominance import OperatingPoints
from skcalfair.dominance._hull import (
    common_denominator,
    monotone_chain,
    roc_vertices,
    segment_hulls,
    upper_hull_positions,
)
from skcalfair.dominance._pooled import ALWAYS, NEVER, PooledHull
from skcalfair.dominance._roc import ModelScores

GRADIENTS = np.logspace(-4, 4, 200)


def points_of(rows, positives, negatives):
    n = len(rows)
    return OperatingPoints(
        name=np.array([name for name, _, _ in rows], dtype=object),
        kind=np.full(n, "reader", dtype=object),
        threshold=np.full(n, np.nan),
        tp=np.array([tp for _, tp, _ in rows], dtype=np.int64),
        positives=np.array(positives, dtype=np.int64),
        fp=np.array([fp for _, _, fp in rows], dtype=np.int64),
        negatives=np.array(negatives, dtype=np.int64),
    )


# Small totals make ties, duplicates, collinear runs and points on the axes common.
@st.composite
def point_sets(draw):
    same = draw(st.booleans())
    p0, n0 = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    rows, positives, negatives = [], [], []
    for _ in range(draw(st.integers(1, 14))):
        p = p0 if same else draw(st.integers(1, 12))
        n = n0 if same else draw(st.integers(1, 12))
        name = draw(st.sampled_from("ABCDE"))
        rows.append((name, draw(st.integers(0, p)), draw(st.integers(0, n))))
        positives.append(p)
        negatives.append(n)
    return points_of(rows, positives, negatives)


def exact_costs(points, gradient):
    """Cost of every point and of the trivial strategies, as fractions."""
    m = Fraction(gradient)
    rates = [
        (name, 1 - Fraction(int(tp), int(p)), Fraction(int(fp), int(n)))
        for name, tp, p, fp, n in zip(
            points.name,
            points.tp,
            points.positives,
            points.fp,
            points.negatives,
            strict=True,
        )
    ]
    rates += [(ALWAYS, Fraction(0), Fraction(1)), (NEVER, Fraction(1), Fraction(0))]
    return [(name, missed + m * alarms) for name, missed, alarms in rates]


@settings(max_examples=40, deadline=None)
@given(point_sets())
def test_owner_is_the_brute_force_minimum_at_every_gradient(points):
    hull = PooledHull(points)
    for m in GRADIENTS.tolist():
        costs = exact_costs(points, m)
        least = min(cost for _, cost in costs)
        expected = {name for name, cost in costs if cost == least}
        rows = [v for v in hull.vertices if v.cpg_from <= m <= v.cpg_to]
        # A slope as a float may touch a gradient that is off by its rounding.
        assert expected & set(rows[0].owners) or expected & set(rows[-1].owners)
        if all(v.cpg_from < m < v.cpg_to for v in rows):
            assert set(rows[0].owners) == expected
        assert {name for name, _ in hull.best(m)} == expected


@settings(max_examples=40, deadline=None)
@given(point_sets())
def test_ranges_cover_the_axis_once_and_slopes_rise(points):
    vertices = PooledHull(points).vertices
    edges = [v.cpg_from for v in vertices] + [vertices[-1].cpg_to]
    assert (edges[0], edges[-1]) == (0, np.inf)
    assert all(a < b for a, b in pairwise(edges))
    assert [v.cpg_to for v in vertices[:-1]] == edges[1:-1]


@settings(max_examples=40, deadline=None)
@given(point_sets())
def test_exactly_at_a_slope_all_points_of_the_edge_are_named(points):
    hull = PooledHull(points)
    for right, left in pairwise(hull.vertices):
        rise = Fraction(right.tpr - left.tpr).limit_denominator(144)
        run = Fraction(right.fpr - left.fpr).limit_denominator(144)
        slope = rise / run
        costs = exact_costs(points, slope)
        least = min(cost for _, cost in costs)
        expected = {name for name, cost in costs if cost == least}
        assert {name for name, _ in hull.best(float(slope))} == expected


@settings(max_examples=40, deadline=None)
@given(point_sets(), st.randoms(use_true_random=False))
def test_order_of_the_points_never_matters(points, random):
    order = list(range(len(points)))
    random.shuffle(order)
    shuffled = points_of(
        [(points.name[i], points.tp[i], points.fp[i]) for i in order],
        points.positives[order],
        points.negatives[order],
    )
    one, other = PooledHull(points).vertices, PooledHull(shuffled).vertices
    assert [(v.tpr, v.fpr, v.cpg_from, set(v.owners)) for v in one] == [
        (v.tpr, v.fpr, v.cpg_from, set(v.owners)) for v in other
    ]


@settings(max_examples=40, deadline=None)
@given(point_sets())
def test_regret_and_pareto_by_brute_force(points):
    hull = PooledHull(points)
    regret, cpg = hull.regret()
    grid = np.concatenate(([0.0], np.logspace(-5, 5, 2001)))
    tpr, fpr = points.sensitivity, points.fpr
    u = 1 / (1 + grid)
    cost = (1 - tpr[:, None]) * u + fpr[:, None] * (1 - u)
    everyone = np.vstack([cost, 1 - u, u])
    extra = (cost - everyone.min(axis=0)).min(axis=1)
    # At an infinite gradient only false positives cost.
    extra = np.minimum(extra, fpr - min(0.0, fpr.min()))
    assert (regret <= extra + 1e-12).all()
    assert (extra - regret < 0.005).all()
    assert (cpg >= 0).all()
    for i in range(len(points)):
        names = {
            points.name[j]
            for j in range(len(points))
            if fpr[j] <= fpr[i] + 1e-12
            and tpr[j] >= tpr[i] - 1e-12
            and (fpr[j] < fpr[i] - 1e-12 or tpr[j] > tpr[i] + 1e-12)
        }
        names |= {NEVER} if tpr[i] == 0 and fpr[i] > 0 else set()
        names |= {ALWAYS} if fpr[i] == 1 and tpr[i] < 1 else set()
        assert set(hull.dominating_names(i)) == names


def test_convexity_is_decided_by_counts_where_floats_cannot():
    # Four points on one line of slope 1/3, then one a single case above it.
    exact = [0, 10**15, 2 * 10**15, 3 * 10**15]
    line = [3 * value for value in exact]
    assert monotone_chain(line, exact) == [0, 3]
    exact[1] += 1
    assert monotone_chain(line, exact) == [0, 1, 3]


@pytest.mark.parametrize("scale", [1, 2**34])
def test_large_hull_equals_the_plain_loop(scale):
    rng = np.random.default_rng(0)
    labels = rng.random(20_000) < np.linspace(0.9, 0.05, 20_000)
    y = np.concatenate(([0], np.cumsum(labels))) * scale
    x = np.concatenate(([0], np.cumsum(~labels))) * scale
    expected = monotone_chain(x.tolist(), y.tolist())
    assert upper_hull_positions(x, y).tolist() == expected


@pytest.mark.parametrize(
    "labels",
    [[0, 1] * 300, [1, 0] * 300, [0] * 300 + [1] * 300, [1] * 300 + [0] * 300],
    ids=["zigzag below", "zigzag above", "worst", "best"],
)
def test_hull_of_degenerate_curves_equals_the_plain_loop(labels):
    labels = np.array(labels)
    y, x = np.append(0, labels.cumsum()), np.append(0, (1 - labels).cumsum())
    expected = monotone_chain(x.tolist(), y.tolist())
    assert upper_hull_positions(x, y).tolist() == expected


def test_repeated_points_do_not_hide_each_other():
    x, y = np.array([0, 0, 1, 1, 1, 3, 3]), np.array([0, 2, 3, 3, 3, 4, 4])
    assert upper_hull_positions(np.repeat(x, 20), np.repeat(y, 20)).tolist() == [
        0,
        20,
        40,
        100,
    ]
    kept = segment_hulls(np.tile(x / 3, 2), np.tile(y / 4, 2), np.repeat([0, 1], 7))
    assert kept.tolist() == [0, 1, 2, 5, 7, 8, 9, 12]


def test_trivial_strategies_without_a_gradient_have_no_vertex():
    # (FPR 0, TPR 1/2) beats never positive everywhere, (1/2, 1) beats always.
    assert roc_vertices([0, 0, 1, 2], [0, 1, 2, 2]) == [1, 2]


def test_common_denominator_is_exact():
    numbers, common = common_denominator(np.array([1, 2, 5]), np.array([2, 3, 7]))
    assert common == 42
    assert numbers == [21, 28, 30]


@pytest.mark.parametrize("decimals", [1, 3, 12])
@pytest.mark.parametrize(
    "shape", ["normal", "reversed", "worthless", "perfect", "wave"]
)
def test_hull_of_many_scores_equals_that_of_every_threshold(shape, decimals):
    rng = np.random.default_rng(0)
    y = rng.random(6000) < 0.4
    scores = {
        "normal": rng.normal(size=6000) + y,
        "reversed": rng.normal(size=6000) - y,
        "worthless": rng.normal(size=6000),
        "perfect": rng.random(6000) + 2 * y,
        "wave": rng.random(6000) + 0.3 * y * np.sin(rng.random(6000) * 20),
    }[shape].round(decimals)
    found = ModelScores(scores[y], scores[~y]).hull()
    order = np.argsort(-scores, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(scores[order])), 5999)
    tp = np.append(0, y[order].cumsum()[ends])
    fp = np.append(0, (~y[order]).cumsum()[ends])
    chain = monotone_chain(fp.tolist(), tp.tolist())
    inner = [i for i in chain if 0 < i < len(tp) - 1]
    assert found.tp.tolist() == tp[inner].tolist()
    assert found.fp.tolist() == fp[inner].tolist()
    assert (
        found.threshold.tolist()
        == scores[order][ends][np.array(inner, dtype=int) - 1].tolist()
    )
