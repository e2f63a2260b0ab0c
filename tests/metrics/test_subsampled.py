"""Small subsamples are exact draws, and kernels see the same rows as by weights."""

from functools import partial
from itertools import combinations

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose
from scipy.stats import chisquare

from skcalfair._sorted_scores import SortedScores
from skcalfair._validation import ScoredRows
from skcalfair.metrics import _subsampled
from skcalfair.metrics._calibration_loss import held_out_loss_kernel
from skcalfair.metrics._gathered import can_gather
from skcalfair.metrics._registry import METRICS
from skcalfair.metrics._subsampled import (
    draw_rows,
    subsample_values,
    union_of_subsamples,
)

KERNELS = {name: metric.kernel for name, metric in METRICS.items()}
KERNELS["held_out"] = partial(
    held_out_loss_kernel, score="log_loss", slope=0.8, intercept=0.1
)


def scores(n, seed=0, decimals=3, **columns):
    rng = np.random.default_rng(seed)
    p = np.round(rng.beta(2, 2, n), decimals)
    y = (rng.random(n) < p).astype(np.uint8)
    return SortedScores.from_rows(ScoredRows(y, p, **columns), keep_order=True)


def test_every_subset_is_equally_likely():
    rng = np.random.default_rng(0)
    subsets = list(combinations(range(6), 3))
    seen = dict.fromkeys(subsets, 0)
    for _ in range(250):
        rows, weights = union_of_subsamples(6, draw_rows(6, 3, 16, rng))
        assert weights.any(axis=0).all()
        for held in weights:
            seen[tuple(rows[held > 0].tolist())] += 1
    assert sum(seen.values()) == 4000
    assert chisquare(list(seen.values())).pvalue > 1e-3


@pytest.mark.parametrize("size", [1, 50, 99, 100])
def test_subsamples_have_their_size(size):
    drawn = draw_rows(100, size, 16, np.random.default_rng(1))
    rows, weights = union_of_subsamples(100, drawn)
    assert (weights.sum(axis=1) == size).all()
    assert (np.diff(rows) > 0).all()


@pytest.mark.parametrize("size", [1, 7, 60])
@pytest.mark.parametrize("kind", ["ties", "weights", "all scores differ"])
def test_values_are_those_of_the_rows_drawn(kind, size, monkeypatch):
    """Each replicate against the kernels on its own rows alone."""
    n, weighted = 5_000, kind == "weights"
    w = np.random.default_rng(3).integers(1, 4, n) * 1.0 if weighted else None
    rows = scores(n, sample_weight=w, decimals=12 if kind.startswith("all") else 3)
    assert can_gather(rows) == kind.startswith("all")
    found = []

    def watched(*args):
        found.append(draw_rows(*args))
        return found[-1]

    monkeypatch.setattr(_subsampled, "draw_rows", watched)
    values = subsample_values(rows, KERNELS, size, 20, random_state=0)
    held = np.concatenate(found)
    assert len(held) == 20
    for name, kernel in KERNELS.items():
        expected = [kernel(rows.take(positions))[0] for positions in held]
        assert_allclose(values[name], expected, rtol=1e-9, atol=1e-12, err_msg=name)


def test_large_subsamples_and_clusters_go_by_weights():
    values = subsample_values(scores(5_000), KERNELS, 4_000, 3, random_state=0)
    assert all(len(v) == 3 and np.isfinite(v).all() for v in values.values())
    clusters = np.arange(5_000) // 5
    kept = subsample_values(
        scores(5_000, clusters=clusters),
        {"n": lambda s: s.total},
        52,
        10,
        random_state=0,
    )
    assert (kept["n"] == 50).all()


@pytest.mark.parametrize("size", [60, 3_000])
def test_workers_change_nothing(size):
    rows = scores(5_000)
    with parallel_config(backend="threading"):
        one, two = (
            subsample_values(rows, KERNELS, size, 40, random_state=1, n_jobs=n_jobs)
            for n_jobs in (1, 2)
        )
    for name in KERNELS:
        # BLAS may round otherwise in another process.
        assert_allclose(one[name], two[name], rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("size", [20, 400, 2_000])
def test_a_metric_does_not_depend_on_the_others(size):
    rows = scores(5_000, decimals=12)
    together = subsample_values(rows, KERNELS, size, 30, random_state=2)
    for name, kernel in KERNELS.items():
        alone = subsample_values(rows, {name: kernel}, size, 30, random_state=2)
        assert_allclose(alone[name], together[name], atol=1e-12, err_msg=name)
