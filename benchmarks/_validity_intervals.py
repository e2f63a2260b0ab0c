"""Coverage of the 95 % intervals and of the rivals', by simulation.

Scores have log-odds 1.5 N(0, 1); the true probability is a curve of the score. Rows of
a patient share part of the score and, by a latent normal with correlation .5, of the
outcome, which leaves every row's probability as it is. The truth of a metric is its
value in an infinite population.
"""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from _cells import run_cells
from scipy.special import betaincinv, expit, ndtr
from scipy.stats import norm

from skcalfair._sorted_scores import SortedScores
from skcalfair._validation import ScoredRows
from skcalfair.audit import _intervals
from skcalfair.audit._intervals import GroupRows, gap_interval
from skcalfair.metrics._calibration_error import laplacian_pair_sums
from skcalfair.metrics._registry import METRICS
from skcalfair.resampling import bootstrap_counts

NAMES = {
    "CE2": "squared_calibration_error",
    "SKCE": "kernel_calibration_error",
    "dCE": "calibration_loss_log_loss",
    "dBrier": "calibration_loss_brier",
    "ECE": "expected_calibration_error",
    "AUC": "roc_auc",
    "Brier": "brier_score_loss",
}
CURVES = {
    "calibrated": expit,
    "slope .85": lambda x: expit(0.85 * x),
    "slope .6": lambda x: expit(0.6 * x),
    "Beta(2,2)": lambda x: betaincinv(2.0, 2.0, expit(x)),
    "Beta(3,1)": lambda x: betaincinv(3.0, 1.0, expit(x)),
}
SPREAD = 1.5
# Draws of the intervals here; the package uses more.
N_DRAWS = 999
BOOTSTRAPS = 200
# Share of the audits that the naive bootstrap is tried on.
RIVALS = 0.25
POPULATION = 400_001

# Show what the intervals that are refused for few clusters would do.
_intervals.FEWEST_DRAWN = _intervals.FEWEST_CLUSTERS

Params = dict[str, Any]


def cells() -> dict[str, Params]:
    """Every cell of the study: single groups, then gaps."""
    out: dict[str, Params] = {}
    for n in (200, 1000):
        for clusters in ("1", "3", "1-10"):
            for curve in ("calibrated", "slope .85", "slope .6", "Beta(2,2)"):
                name = f"{n}, {curve}, {clusters} a patient"
                out[name] = {"groups": [(n, curve, 0.0)], "clusters": clusters}
    pairs = [
        ("calibrated", "calibrated", 0.0),
        ("slope .6", "slope .6", 0.0),
        ("slope .6", "calibrated", 0.0),
        ("calibrated", "slope .6", 0.0),
        ("Beta(2,2)", "slope .85", 0.0),
        ("calibrated", "calibrated", -1.0),
    ]
    for clusters in ("1", "3"):
        for first, second, shift in pairs:
            name = f"200:5000, {first} - {second}, {clusters} a patient"
            if shift:
                name += f", shifted by {shift:g}"
            groups = [(200, first, shift), (5000, second, 0.0)]
            out[name] = {"groups": groups, "clusters": clusters}
    for curve, shift in (("calibrated", -3.25), ("slope .6", -4.6)):
        groups = [(300, curve, shift)]
        out[f"300, {curve}, prevalence 8 %"] = {"groups": groups, "clusters": "1"}
    for curve in ("calibrated", "slope .6"):
        out[f"300, {curve}, ten distinct scores"] = {
            "groups": [(300, curve, 0.0)],
            "clusters": "1",
            "distinct": 10,
        }
    for patients in (15, 25):
        for curve in ("calibrated", "slope .6"):
            name = f"{patients} patients, {curve}, 10 rows a patient"
            groups = [(10 * patients, curve, 0.0)]
            out[name] = {"groups": groups, "clusters": "10"}
    return out


def simulate(params: Params, rng: np.random.Generator) -> dict[str, float]:
    """One audit: whether each interval holds the truth, and how wide it is."""
    # The rivals take long, so they judge only some of the audits.
    rivals = rng.random() < RIVALS
    groups = []
    for i, group in enumerate(params["groups"]):
        rows = draw(*group, params["clusters"], params.get("distinct"), rng)
        if rows.clusters is not None:
            # Every patient belongs to one group.
            rows = replace(rows, clusters=2 * rows.clusters + i)
        groups.append(rows)
    truths = [truth(*group[1:], params.get("distinct")) for group in params["groups"]]
    rows = [
        GroupRows(group, random_state=rng, n_draws=N_DRAWS, level=0.95)
        for group in groups
    ]
    resampled = [bootstrap(group, rng) for group in groups] if rivals else []
    out = {}
    for label, name in NAMES.items():
        true = truths[0][label] - (truths[1][label] if len(groups) == 2 else 0.0)
        found = rows[0].interval(name) if len(rows) == 1 else gap_interval(*rows, name)
        out |= scored(label, true, found.low, found.high)
        if rivals:
            values = resampled[0][name]
            values = values - resampled[1][name] if len(groups) == 2 else values
            low, high = np.nanquantile(values, [0.025, 0.975])
            out |= scored(f"bootstrap {label}", true, low, high)
    return out


def scored(label: str, true: float, low: float, high: float) -> dict[str, float]:
    """Coverage and width; NaN where there is no interval."""
    if np.isnan(low):
        return {f"{label} covers": np.nan, f"{label} width": np.nan}
    covers = low - 1e-12 <= true <= high + 1e-12
    return {f"{label} covers": float(covers), f"{label} width": high - low}


def bootstrap(group: ScoredRows, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Metrics of naive bootstrap samples of rows."""
    rows = SortedScores.from_rows(ScoredRows(group.y, group.p))
    counts = bootstrap_counts(len(rows), BOOTSTRAPS, random_state=rng)
    replicates = rows.reweighted(counts, frequency=True)
    return {name: METRICS[name].kernel(replicates) for name in NAMES.values()}


def draw(
    n: int,
    curve: str,
    shift: float,
    clusters: str,
    distinct: int | None,
    rng: np.random.Generator,
) -> ScoredRows:
    """Scores and outcomes of one group."""
    if clusters == "1":
        x = SPREAD * rng.standard_normal(n) + shift
        x = grid(x, distinct, shift)
        y = rng.random(n) < CURVES[curve](x)
        return ScoredRows(y.astype(np.uint8), expit(x))
    codes = patients(n, clusters, rng)
    x = SPREAD * shared(codes, rng) + shift
    x = grid(x, distinct, shift)
    y = ndtr(shared(codes, rng)) < CURVES[curve](x)
    return ScoredRows(y.astype(np.uint8), expit(x), None, codes)


def patients(n: int, clusters: str, rng: np.random.Generator) -> np.ndarray:
    """Patient of each row."""
    low, _, high = clusters.partition("-")
    sizes = rng.integers(int(low), int(high or low) + 1, size=n)
    return np.repeat(np.arange(n), sizes)[:n]


def shared(codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Standard normal values with correlation .5 within a patient."""
    own, patient = rng.standard_normal(len(codes)), rng.standard_normal(codes[-1] + 1)
    return (own + patient[codes]) / np.sqrt(2.0)


def grid(x: np.ndarray, distinct: int | None, shift: float) -> np.ndarray:
    """Log-odds rounded to a few distinct values, if asked for."""
    if distinct is None:
        return x
    middles = norm.ppf((np.arange(distinct) + 0.5) / distinct)
    edges = norm.ppf(np.arange(1, distinct) / distinct)
    return SPREAD * middles[np.searchsorted(edges, (x - shift) / SPREAD)] + shift


@cache
def truth(curve: str, shift: float, distinct: int | None) -> dict[str, float]:
    """Metrics of the infinite population, by a fine grid of scores."""
    x = SPREAD * norm.ppf((np.arange(POPULATION) + 0.5) / POPULATION) + shift
    x = grid(x, distinct, shift)[::-1]
    p, q = expit(x), CURVES[curve](x)
    rows = SortedScores(p, np.zeros(len(p), dtype=np.uint8))
    starts = rows.uniform_starts(15)
    mass = np.diff(starts, append=len(p))
    sums = rows.segment_sums(starts, [q - p])[0, :, 0]
    squares = np.divide(sums**2, mass, out=np.zeros(len(sums)), where=mass > 0)
    best = platt(x, q)
    # Ties count half: the curve is followed from score to score.
    _, inverse = np.unique(-x, return_inverse=True)
    positive = np.bincount(inverse, weights=q)
    negative = np.bincount(inverse, weights=1.0 - q)
    below = negative.sum() - np.cumsum(negative) + negative / 2.0
    return {
        "CE2": float(squares.sum()) / len(p),
        "SKCE": 2.0
        * float(laplacian_pair_sums(p, (q - p)[None], 0.1)[0])
        / len(p) ** 2,
        "ECE": float(np.abs(sums).sum()) / len(p),
        "dCE": cross_entropy(q, p) - cross_entropy(q, best),
        "dBrier": brier(q, p) - brier(q, best),
        "AUC": float(positive @ below) / positive.sum() / negative.sum(),
        "Brier": brier(q, p),
    }


def platt(x: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Best Platt map of a population with true probabilities q."""
    line, theta = np.stack([x, np.ones_like(x)], axis=1), np.array([1.0, 0.0])
    for _ in range(50):
        fitted = expit(line @ theta)
        information = (line * (fitted * (1.0 - fitted))[:, None]).T @ line
        theta = theta + np.linalg.solve(information, line.T @ (q - fitted))
    return expit(line @ theta)


def cross_entropy(q: np.ndarray, p: np.ndarray) -> float:
    """Expected cross-entropy."""
    return float(-np.mean(q * np.log(p) + (1.0 - q) * np.log1p(-p)))


def brier(q: np.ndarray, p: np.ndarray) -> float:
    """Expected Brier score."""
    return float(np.mean(q * (1.0 - p) ** 2 + (1.0 - q) * p**2))


def main(n_audits: int, jobs: int | None, folder: str) -> None:
    """Run what is missing in the folder and print the tables."""
    print(run(n_audits, folder, jobs))


def run(n_audits: int | dict[str, int], folder: str, jobs: int | None) -> str:
    """Run all cells and compose the tables."""
    found = run_cells(cells(), simulate, n_audits, folder, jobs)
    columns = [*NAMES, *(f"bootstrap {label}" for label in NAMES)]
    audits = found.groupby("cell", sort=False)["audit"].size()
    n, error = audits.median(), np.sqrt(0.05 * 0.95 / audits.median())
    lines = [
        f"95 % intervals, {audits.min():,} to {audits.max():,} audits a cell; standard "
        f"error of a coverage of 95 % with {n:.0f} audits: {100 * error:.1f} points.",
        f"The percentile bootstrap of rows is tried on about {RIVALS:.0%} of them.",
        "The package refuses intervals of calibration errors below 25 patients; the",
        "rows with 15 show what they would do.",
        "",
    ]
    for part, title in (("covers", "Coverage (%)"), ("width", "Mean width")):
        table = found.groupby("cell", sort=False)[
            [f"{c} {part}" for c in columns]
        ].mean()
        table.columns = pd.MultiIndex.from_tuples(
            [
                (
                    "percentile bootstrap" if c.startswith("boot") else "skcalfair",
                    c.removeprefix("bootstrap "),
                )
                for c in columns
            ]
        )
        scale, digits = (100.0, 1) if part == "covers" else (1.0, 4)
        lines += [title, (scale * table).round(digits).to_string(), ""]
    refused = found.groupby("cell", sort=False)[[f"{c} covers" for c in NAMES]]
    share = refused.agg(lambda column: column.isna().mean())
    share.columns = list(NAMES)
    share = share[(share > 0).any(axis=1)]
    if len(share):
        lines += ["Refused (%)", (100.0 * share).round(1).to_string(), ""]
    return "\n".join(lines)
