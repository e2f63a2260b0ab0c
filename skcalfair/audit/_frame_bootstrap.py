"""Bootstrap replicates of a metric frame, and the ranges made of them."""

import numbers
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray

from .._random import RandomStateLike, child_seeds
from .._sorted_scores import CHUNK, SortedScores
from ..metrics._resampled import REPLICATES
from ..resampling import bootstrap_counts
from ._fairlearn import (
    CI_INVALID,
    COMPARE_METHODS,
    N_BOOT_INVALID,
    NEED_N_AND_CI,
    QUANTILE_ERROR,
)
from ._frame_features import Cells
from ._frame_metrics import FrameMetric
from ._frame_results import labelled, positions, strata, stratum_rows
from ._frame_sample import Rows, Sample

Floats = NDArray[np.float64]


def check_bootstrap(n_boot: Any, ci_quantiles: Any) -> list[float]:
    """Quantiles asked for, perhaps none; refuses what fairlearn refuses."""
    quantiles = ci_quantiles is not None and len(ci_quantiles) > 0
    if (n_boot is not None) != quantiles:
        raise ValueError(NEED_N_AND_CI)
    if not quantiles:
        return []
    if not isinstance(n_boot, numbers.Integral) or n_boot < 1:
        raise ValueError(N_BOOT_INVALID)
    if any(not isinstance(q, float) or q <= 0 or q >= 1 for q in ci_quantiles):
        raise ValueError(CI_INVALID)
    return list(ci_quantiles)


@dataclass(frozen=True)
class Replicates:
    """Values of every metric in bootstrap samples.

    `groups` has the shape (n_replicates, n_cells, n_metrics), `overall` the shape
    (n_replicates, n_strata, n_metrics).
    """

    groups: Floats
    overall: Floats


# -- drawing ------------------------------------------------------------------------


def bootstrap(
    sample: Sample, n_boot: Any, random_state: RandomStateLike, n_jobs: int | None
) -> Replicates:
    """Resample rows of the whole sample, or whole clusters, and evaluate every metric.

    With a callable among the metrics, rows are drawn one sample at a time as fairlearn
    draws them; kernels alone take counts, many samples at once.
    """
    parts = [sample.cells.rows(cell) for cell in range(len(sample.cells))]
    for stratum in strata(sample.cells):
        rows = stratum_rows(sample.cells, stratum)
        parts.append(np.arange(sample.n) if rows is None else rows)
    callables = [m for m in sample.metrics if m.built_in is None]
    size = max(REPLICATES, 2 * CHUNK // sample.n)
    sizes = [min(size, n_boot - i) for i in range(0, n_boot, size)]
    seeds: list[Any]
    if callables or not sample.metrics:
        draws = _fairlearn_seeds(n_boot, random_state)
        seeds = np.split(draws, np.cumsum(sizes)[:-1])
    else:
        seeds = child_seeds(random_state, len(sizes))
    prepared = _prepare(sample, parts)
    blocks = Parallel(n_jobs=n_jobs)(
        delayed(_block)(sample, parts, prepared, n, seed, callables)
        for n, seed in zip(sizes, seeds, strict=True)
    )
    values = np.concatenate(blocks)
    n_cells = len(sample.cells)
    return Replicates(values[:, :n_cells], values[:, n_cells:])


def _fairlearn_seeds(n_boot: int, random_state: Any) -> NDArray[np.uint32]:
    """A seed for each sample, as fairlearn draws them; a Generator works as well."""
    options: dict[str, Any] = {
        "low": 0,
        "high": np.iinfo(np.uint32).max,
        "size": n_boot,
        "dtype": np.uint32,
    }
    if isinstance(random_state, np.random.RandomState):
        return random_state.randint(**options)
    if isinstance(random_state, numbers.Integral):
        random_state = int(random_state)
    elif random_state is not None and not isinstance(random_state, np.random.Generator):
        raise ValueError(f"Unsupported random_state: {random_state}")
    return np.random.default_rng(random_state).integers(**options)


Prepared = dict[int, list[tuple[SortedScores, Rows] | None]]


def _prepare(sample: Sample, parts: list[Rows]) -> Prepared:
    """Sorted scores of each part by set of weights, and the row of each score."""
    out: Prepared = {}
    for key, weighting in sample.weightings.items():
        out[key] = []
        for rows in parts:
            w = weighting.rows.sample_weight
            kept = rows if w is None else rows[w[rows] > 0]
            if not len(kept):
                out[key].append(None)
                continue
            scores = weighting.scores(kept, keep_order=True)
            out[key].append((scores, kept[scores.order]))
    return out


def _block(
    sample: Sample,
    parts: list[Rows],
    prepared: Prepared,
    n_replicates: int,
    seed: Any,
    callables: list[FrameMetric],
) -> Floats:
    """Values of some replicates, (n_replicates, n_parts, n_metrics)."""
    out = np.full((n_replicates, len(parts), len(sample.metrics)), np.nan)
    column = {metric.name: j for j, metric in enumerate(sample.metrics)}
    if isinstance(seed, np.random.SeedSequence):
        counts = _draw_counts(sample, n_replicates, np.random.default_rng(seed))
    else:
        drawn = [_draw_rows(sample, int(word)) for word in seed]
        called = _call(sample, parts, drawn, callables)
        out[..., [column[m.name] for m in callables]] = called
        counts = np.stack([np.bincount(rows, minlength=sample.n) for rows in drawn])
    for key, scored in prepared.items():
        metrics = [
            m for m in sample.metrics if m.built_in is not None and m.weights == key
        ]
        for j, part in enumerate(scored):
            if part is None:
                continue
            values = _kernel_values(*part, counts, metrics)
            out[:, j, [column[m.name] for m in metrics]] = values
    return out


def _draw_counts(
    sample: Sample, n_replicates: int, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """How often each row occurs in each replicate; whole clusters where there are."""
    if sample.clusters is None:
        return bootstrap_counts(sample.n, n_replicates, random_state=rng)
    _, codes = np.unique(sample.clusters, return_inverse=True)
    drawn = bootstrap_counts(int(codes.max()) + 1, n_replicates, random_state=rng)
    return np.take(drawn, codes, axis=1)


def _draw_rows(sample: Sample, seed: int) -> Rows:
    """Rows of one replicate, in the order in which fairlearn would draw them."""
    if sample.clusters is None:
        # This is what DataFrame.sample draws from the same seed.
        return np.random.RandomState(seed).choice(sample.n, size=sample.n, replace=True)
    counts = _draw_counts(sample, 1, np.random.default_rng(seed))[0]
    return np.repeat(np.arange(sample.n), counts)


def _call(
    sample: Sample, parts: list[Rows], drawn: list[Rows], callables: list[FrameMetric]
) -> NDArray:
    """Values of callables, (n_replicates, n_parts, n_callables)."""
    out = np.full((len(drawn), len(parts), len(callables)), np.nan, dtype=object)
    within = np.zeros(sample.n, dtype=bool)
    for j, part in enumerate(parts):
        within[part] = True
        for i, rows in enumerate(drawn):
            chosen = rows[within[rows]]
            if len(chosen):
                for k, metric in enumerate(callables):
                    out[i, j, k] = sample.call_again(metric, chosen)
        within[part] = False
    try:
        return out.astype(np.float64)
    except (TypeError, ValueError) as error:
        _raise_not_scalar(out, error)
        raise


def _raise_not_scalar(values: NDArray, error: Exception) -> None:
    """Raise what fairlearn raises for a metric that is not a number."""
    try:
        for column in values.reshape(-1, values.shape[-1]).T:
            np.quantile(column, 0.5)
    except (TypeError, ValueError) as cause:
        raise ValueError(QUANTILE_ERROR) from cause
    raise ValueError(QUANTILE_ERROR) from error


def _kernel_values(
    scores: SortedScores, rows: Rows, counts: NDArray, metrics: list[FrameMetric]
) -> Floats:
    """Values of built-in metrics by replicate, NaN where no row was drawn."""
    weights = np.take(counts, rows, axis=1)
    if scores.weights is not None:
        weights = weights * scores.weights[0]
    # A row does not pair with its own copy.
    replicates = scores.reweighted(weights, frequency=False)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = [m.built_in.kernel(replicates) for m in metrics]  # type: ignore[union-attr]
    out = np.stack(values, axis=1)
    out[replicates.total == 0] = np.nan
    return out


# -- ranges -------------------------------------------------------------------------


def interval_cache(
    sample: Sample,
    replicates: Replicates,
    quantiles: list[float],
    extract: Callable[..., Any],
) -> dict[str, Any]:
    """Quantiles of all results, under the names of fairlearn's cache."""
    cells, names = sample.cells, [metric.name for metric in sample.metrics]
    parts = strata(cells)
    groups, overall = replicates.groups, replicates.overall
    tables = _Tables(cells, names, quantiles, extract)
    low, high = _by_stratum(groups, parts, np.nanmin, np.nanmax)
    lone = _lone(groups, parts)
    cache: dict[str, Any] = {
        "overall_ci": tables.overall(overall),
        "by_group_ci": tables.by_group(groups),
        "group_min_ci": tables.overall(low),
        "group_max_ci": tables.overall(high),
        "difference_ci": {},
        "ratio_ci": {},
    }
    for method in COMPARE_METHODS:
        if method == "between_groups":
            difference, ratio = high - low, _quotient(low, high)
        else:
            difference, ratio = _to_overall(groups, overall, parts)
        cache["difference_ci"][method] = tables.overall(_blank(difference, lone))
        cache["ratio_ci"][method] = tables.overall(_blank(ratio, lone))
    return cache


def _quotient(a: Floats | float, b: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.divide(a, b)


def _by_stratum(
    groups: Floats, parts: list[Rows], *functions: Callable
) -> tuple[Floats, ...]:
    """Functions over the groups of each stratum; NaN where none is estimable."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN", RuntimeWarning)
        return tuple(
            np.stack([f(groups[:, part], axis=1) for part in parts], axis=1)
            for f in functions
        )


def _lone(groups: Floats, parts: list[Rows]) -> NDArray[np.bool_]:
    """Where fewer than two of several groups can be compared."""
    estimable = np.stack(
        [np.isfinite(groups[:, part]).sum(axis=1) for part in parts], axis=1
    )
    several = np.array([len(part) >= 2 for part in parts])
    return (estimable < 2) & several[:, np.newaxis]


def _blank(values: Floats, where: NDArray[np.bool_]) -> Floats:
    return np.where(where, np.nan, values)


def _to_overall(
    groups: Floats, overall: Floats, parts: list[Rows]
) -> tuple[Floats, Floats]:
    """Largest distance of a group from its `overall`, and smallest ratio to it."""
    difference, ratio = np.empty_like(groups), np.empty_like(groups)
    for s, part in enumerate(parts):
        reference = overall[:, [s]]
        difference[:, part] = np.abs(groups[:, part] - reference)
        quotient = _quotient(groups[:, part], reference)
        ratio[:, part] = np.where(quotient > 1, _quotient(1.0, quotient), quotient)
    (largest,) = _by_stratum(difference, parts, np.nanmax)
    (smallest,) = _by_stratum(ratio, parts, np.nanmin)
    return largest, smallest


@dataclass(frozen=True)
class _Tables:
    """Arrays of replicates to a list of tables, one a quantile."""

    cells: Cells
    names: list[str]
    quantiles: list[float]
    extract: Callable[..., Any]

    def _quantiles(self, values: Floats) -> Floats:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "All-NaN", RuntimeWarning)
            found: Floats = np.nanquantile(values, self.quantiles, axis=0)
        return found

    def overall(self, values: Floats) -> list[Any]:
        """Shaped like fairlearn's `overall`."""
        k = self.cells.n_controls
        if not k:
            return [
                self.extract(pd.Series(row[0], self.names), no_control_levels=False)
                for row in self._quantiles(values)
            ]
        controls = self.cells.features[:k]
        shape = tuple(len(feature.levels) for feature in controls)
        first = [part[0] for part in strata(self.cells)]
        keys = self.cells.keys[first, :k]
        rows = np.ravel_multi_index(list(keys.T), shape)
        index = labelled(pd.RangeIndex(int(np.prod(shape))), controls)
        return self._framed(values, rows, index, no_control_levels=False)

    def by_group(self, values: Floats) -> list[Any]:
        """Shaped like fairlearn's `by_group`."""
        shape = [len(feature.levels) for feature in self.cells.features]
        index = labelled(pd.RangeIndex(int(np.prod(shape))), self.cells.features)
        rows = positions(self.cells)
        return self._framed(values, rows, index, no_control_levels=True)

    def _framed(
        self, values: Floats, rows: Rows, index: pd.Index, *, no_control_levels: bool
    ) -> list[Any]:
        out = []
        for found in self._quantiles(values):
            table = np.full((len(index), len(self.names)), np.nan)
            table[rows] = found
            frame = pd.DataFrame(table, index=index, columns=self.names)
            out.append(self.extract(frame, no_control_levels=no_control_levels))
        return out
