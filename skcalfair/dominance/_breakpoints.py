"""Uncertainty of the gradients at which the table changes owner."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ._cases import Cases
from ._fieller import UNKNOWN, FiellerSet, fieller_set
from ._operating_points import OperatingPoints
from ._pooled import ALWAYS, PooledHull, Vertex

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Breakpoint:
    """The last vertex of one run and the first of the next."""

    lower: Vertex  # best for the gradients below: more sensitive
    upper: Vertex
    cpg: float


def breakpoints(hull: PooledHull) -> list[Breakpoint]:
    """Breakpoints from low to high gradients."""
    return [
        Breakpoint(below[-1], above[0], above[0].cpg_from)
        for below, above in pairwise(hull.runs)
    ]


def fieller_from_points(points: OperatingPoints, change: Breakpoint) -> FiellerSet:
    """Fieller set from counts alone, as of readers of different cases."""
    if not points.has_counts:
        return UNKNOWN
    covariance = np.zeros((2, 2))
    for vertex in (change.lower, change.upper):
        if not vertex.points:
            continue
        i = vertex.points[0]
        for k, total in enumerate((points.positives[i], points.negatives[i])):
            n = float(total * points.unit)
            if n < 2:
                return UNKNOWN
            rate = ((vertex.tpr, vertex.fpr)[k] * n + 1.0) / (n + 2.0)
            covariance[k, k] += rate * (1.0 - rate) / n
    return fieller_set(_difference(change), covariance)


def fieller_from_cases(cases: Cases, calls: tuple[Floats, Floats]) -> FiellerSet:
    """Fieller set of two decisions on the same cases, pairing and clusters kept.

    `calls` are those of the lower and the upper decision; NaN where not read.
    """
    levels = [_levels(decided) for decided in calls]
    difference, least, units = np.zeros(2), np.zeros(2), np.zeros(2, dtype=np.intp)
    parts = []
    for k, rows in enumerate(cases.by_class):
        weights = np.ones(len(rows)) if cases.weights is None else cases.weights[rows]
        lower, upper = (decided[rows] for decided in calls)
        difference[k], influence = _difference_of_rates(weights, lower, upper)
        parts.append(influence)
        clusters = None if cases.clusters is None else cases.clusters[rows]
        units[k], least[k] = _smoothed_variance(weights, lower, upper, clusters, levels)
    if units.min() < 2:
        return UNKNOWN
    covariance = _covariance(cases, parts)
    for k in range(2):
        # A class without an error, or without a disagreement, does not show that there
        # can be none.
        found = covariance[k, k]
        variance = max(found * units[k] / (units[k] - 1), least[k])
        scale = np.sqrt(variance / found) if found > 0 else 0.0
        covariance[k, :] *= scale
        covariance[:, k] *= scale
        covariance[k, k] = variance
    return fieller_set(difference, covariance)


def _difference_of_rates(
    weights: Floats, lower: Floats, upper: Floats
) -> tuple[float, Floats]:
    """Difference of two rates in one class, and what each case adds to its error."""
    difference, influence = 0.0, np.zeros(len(weights))
    for sign, calls in ((1.0, lower), (-1.0, upper)):
        unread = np.isnan(calls)
        share = np.where(unread, 0.0, weights)
        share /= share.sum()
        known = np.where(unread, 0.0, calls)
        rate = float(share @ known)
        difference += sign * rate
        influence += sign * share * (known - rate)
    return difference, influence


def _covariance(cases: Cases, parts: list[Floats]) -> Floats:
    """Covariance of the two differences, from what each case or cluster adds."""
    if cases.clusters is None:
        return np.diag([float(part @ part) for part in parts])
    n = int(cases.clusters.max()) + 1
    sums = np.array(
        [
            np.bincount(cases.clusters[rows], part, n)
            for rows, part in zip(cases.by_class, parts, strict=True)
        ]
    )
    return sums @ sums.T


def _levels(calls: Floats) -> list[float]:
    """What a decision can be: both, or one for a trivial strategy."""
    low, high = float(np.fmin.reduce(calls)), float(np.fmax.reduce(calls))
    return [0.0, 1.0] if low < high else [low]


def _smoothed_variance(
    weights: Floats,
    lower: Floats,
    upper: Floats,
    clusters: NDArray[np.intp] | None,
    levels: list[list[float]],
) -> tuple[int, float]:
    """Number of independent units of a class, and a variance for the difference there.

    Two cases are added, spread over the combinations of the two decisions, as Agresti
    and Min do for paired proportions. A trivial strategy takes part as what it is.
    """
    code = 2.0 * lower + upper
    read = ~np.isnan(code)
    if not read.any():
        return 0, 0.0
    units = int(read.sum()) if clusters is None else len(np.unique(clusters[read]))
    found = np.bincount(code[read].astype(np.intp), weights[read], minlength=4)
    cells = [(a, b) for a in levels[0] for b in levels[1]]
    share = found / found.sum()
    counts = [units * share[int(2 * a + b)] + 2.0 / len(cells) for a, b in cells]
    p, d = np.array(counts) / (units + 2.0), np.array([a - b for a, b in cells])
    return units, float(p @ d**2 - (p @ d) ** 2) / units


def _difference(change: Breakpoint) -> Floats:
    return np.array(
        [change.lower.tpr - change.upper.tpr, change.lower.fpr - change.upper.fpr]
    )


def vertex_calls(cases: Cases, points: OperatingPoints, vertex: Vertex) -> Floats:
    """Decisions of a vertex on all cases: of its first owner, or the trivial one."""
    if not vertex.points:
        return np.full(len(cases), float(ALWAYS in vertex.owners))
    i = vertex.points[0]
    name = points.name[i]
    if points.kind[i] == "reader":
        return cases.calls[cases.reader_names.index(name)]
    scores = cases.scores[cases.model_names.index(name)]
    return (scores >= points.threshold[i]).astype(np.float64)


def replicate_gradients(
    cases: Cases, weights: Floats, calls: tuple[Floats, Floats]
) -> Floats:
    """Gradient at which two decisions cost the same in each resampled study.

    0 or infinite where one is better in both rates, NaN where the order is reversed.
    """
    rise, run = np.zeros(len(weights)), np.zeros(len(weights))
    for sign, decided in zip((1.0, -1.0), calls, strict=True):
        for total, members in ((rise, cases.is_positive), (run, ~cases.is_positive)):
            read = members & ~np.isnan(decided)
            w = weights[:, read]
            with np.errstate(invalid="ignore", divide="ignore"):
                total += sign * (w @ decided[read] / w.sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        gradient = np.where((rise > 0) & (run > 0), rise / run, np.nan)
    gradient[(rise <= 0) & (run >= 0)] = 0.0
    gradient[(rise >= 0) & (run <= 0) & ~((rise == 0) & (run == 0))] = np.inf
    gradient[(rise == 0) & (run == 0)] = np.nan
    return gradient


def breakpoint_frame(
    changes: list[Breakpoint], sets: list[FiellerSet], replicates: Floats | None
) -> pd.DataFrame:
    """A row for each breakpoint; `replicates` of shape (n_samples, n_breakpoints)."""
    percentiles = [_percentiles(replicates, k) for k in range(len(changes))]
    return pd.DataFrame(
        {
            "from_owner": [" = ".join(c.lower.owners) for c in changes],
            "to_owner": [" = ".join(c.upper.owners) for c in changes],
            "cpg": [c.cpg for c in changes],
            "fieller": [str(s) for s in sets],
            "fieller_low": [s.low for s in sets],
            "fieller_high": [s.high for s in sets],
            "percentile_low": [low for low, _ in percentiles],
            "percentile_high": [high for _, high in percentiles],
        }
    )


def _percentiles(replicates: Floats | None, k: int) -> tuple[float, float]:
    if replicates is None:
        return np.nan, np.nan
    known = replicates[~np.isnan(replicates[:, k]), k]
    if not len(known):
        return np.nan, np.nan
    # Infinite gradients cannot be interpolated.
    low, high = np.quantile(known, [0.025, 0.975], method="nearest")
    return float(low), float(high)
