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
    influence = np.zeros((len(cases), 2))
    difference = np.zeros(2)
    for sign, decided in zip((1.0, -1.0), calls, strict=True):
        rates, parts = _influence(cases, decided)
        difference += sign * rates
        influence += sign * parts
    if cases.clusters is not None:
        summed = np.zeros((int(cases.clusters.max()) + 1, 2))
        np.add.at(summed, cases.clusters, influence)
        influence = summed
    covariance = influence.T @ influence
    for k, outcome in enumerate((True, False)):
        n, least = _smoothed_variance(cases, calls, outcome)
        if n < 2:
            return UNKNOWN
        # A class without an error, or without a disagreement, does not show that there
        # can be none.
        found = covariance[k, k]
        variance = max(found * n / (n - 1), least)
        scale = np.sqrt(variance / found) if found > 0 else 0.0
        covariance[k, :] *= scale
        covariance[:, k] *= scale
        covariance[k, k] = variance
    return fieller_set(difference, covariance)


def _smoothed_variance(
    cases: Cases, calls: tuple[Floats, Floats], outcome: bool
) -> tuple[int, float]:
    """Number of independent units of a class, and a variance for the difference there.

    Two cases are added, spread over the combinations of the two decisions, as Agresti
    and Min do for paired proportions. A trivial strategy takes part as what it is.
    """
    lower, upper = calls
    read = (cases.is_positive == outcome) & ~np.isnan(lower) & ~np.isnan(upper)
    if not read.any():
        return 0, 0.0
    units = read.sum() if cases.clusters is None else len(set(cases.clusters[read]))
    weights = np.ones(len(cases)) if cases.weights is None else cases.weights
    share = weights[read] / weights[read].sum()
    values = [
        [0.0, 1.0] if np.ptp(decided) else [float(decided[0])]
        for decided in (lower[~np.isnan(lower)], upper[~np.isnan(upper)])
    ]
    cells = [(a, b) for a in values[0] for b in values[1]]
    n = float(units)
    added = 2.0 / len(cells)
    probability = [
        (n * share[(lower[read] == a) & (upper[read] == b)].sum() + added) / (n + 2.0)
        for a, b in cells
    ]
    d = np.array([a - b for a, b in cells])
    p = np.array(probability)
    return int(units), float(p @ d**2 - (p @ d) ** 2) / n


def _influence(cases: Cases, calls: Floats) -> tuple[Floats, Floats]:
    """Rates (TPR, FPR) of a decision, and what each case adds to their error."""
    weights = np.ones(len(cases)) if cases.weights is None else cases.weights
    rates, parts = np.zeros(2), np.zeros((len(cases), 2))
    for k, members in enumerate((cases.is_positive, ~cases.is_positive)):
        read = members & ~np.isnan(calls)
        share = weights[read] / weights[read].sum()
        rates[k] = share @ calls[read]
        parts[read, k] = share * (calls[read] - rates[k])
    return rates, parts


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
