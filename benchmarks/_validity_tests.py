"""Size and power of the tests of equal calibration, and of their rivals."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _cells import run_cells
from _validity_cells import (
    Params,
    draw,
    hard_cells,
    more_of,
    power_cells,
    size_cells,
)
from scipy.stats import chi2, wilcoxon

from skcalfair._log_odds import fit_platt, log_odds
from skcalfair._sorted_scores import SortedScores
from skcalfair._validation import ScoredRows
from skcalfair.audit._curve_tests import METHODS, make_problem
from skcalfair.audit._equal_amount import redrawn_squared_errors, squared_errors
from skcalfair.audit._group_score import Problem, group_score
from skcalfair.audit._spline import CurveBasis
from skcalfair.exceptions import NotEstimableError
from skcalfair.metrics._calibration_error import expected_error_kernel
from skcalfair.resampling import bootstrap_counts

N_DRAWS, N_PERMUTATIONS = 199, 99
BOOTSTRAPS = 100
# Outcomes are not redrawn where chi-square is this far from rejecting.
CLEAR = 0.3
RUNS = 25
LEVEL = 0.05
# Share of the audits that slow methods judge.
SHARES = {
    "wald": 0.2,
    "equal_amount": 0.2,
    "permutation": 0.2,
    "Platt LR": 0.2,
    "naive": 0.2,
}

OURS = ("score", "wald", "omnibus", "equal_amount", "permutation")
NAIVE = ("Platt LR", "ECE bootstrap", "matched once", "Wilcoxon")
RIVALS = ("Platt score", "CE2 redraw")


# -- tests ----------------------------------------------------------------------------


def simulate(params: Params, rng: np.random.Generator) -> dict[str, float]:
    """P-values of one audit; of slow methods in some audits only."""
    tried = {name: rng.random() < share for name, share in SHARES.items()}
    rows, codes = draw(params, rng)
    problem, p = make_problem(rows, codes, 2)
    if rows.sample_weight is not None:
        return {"wald": _p_value("wald", problem, p, rng)}
    if params.get("default_only"):
        return {"score": _p_value("score", problem, p, rng)}
    out: dict[str, float] = {}
    for name in OURS:
        if rows.clusters is not None and name == "permutation":
            continue
        if tried.get(name, True):
            out[name] = _p_value(name, problem, p, rng)
    if tried["Platt LR"]:
        out["Platt LR"] = platt_lr(rows, codes)
    if tried["naive"] and params.get("naive", True):
        out |= naive(rows, codes, rng)
    if params.get("power"):
        out |= rivals(rows, codes, rng)
    return out


def _p_value(
    name: str, problem: Problem, p: np.ndarray, rng: np.random.Generator
) -> float:
    """P-value, infinite where the method says that it cannot be had."""
    try:
        if name == "omnibus":
            clear = group_score(problem, omnibus=True).p_value
            if clear > CLEAR:
                return clear
        draws = N_PERMUTATIONS if name == "permutation" else N_DRAWS
        return METHODS[name].run(problem, p, draws, rng).p_value
    except NotEstimableError:
        return np.inf


def platt_lr(rows: ScoredRows, codes: np.ndarray) -> float:
    """Likelihood ratio of one Platt fit against one a group; ignores clusters."""
    x, y = log_odds(rows.p), rows.y

    def loss(where: np.ndarray) -> float:
        fit = fit_platt(x[where], y[where])
        z = fit.slope * x[where] + fit.intercept
        return float(np.sum(np.logaddexp(0.0, z) - y[where] * z))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        everyone = np.ones(len(x), dtype=bool)
        ratio = loss(everyone) - loss(codes == 0) - loss(codes == 1)
    return float(chi2.sf(2.0 * ratio, 2))


def naive(
    rows: ScoredRows, codes: np.ndarray, rng: np.random.Generator
) -> dict[str, float]:
    """Tests of an ECE gap as they are commonly made, as p-values of 0 or 1."""
    parts = [
        SortedScores.from_rows(ScoredRows(rows.y[codes == k], rows.p[codes == k]))
        for k in (0, 1)
    ]
    boots = [_bootstrap(part, rng) for part in parts]
    out = {"ECE bootstrap": _outside(boots[0] - boots[1])}
    m = min(len(part) for part in parts)
    big = max(parts, key=len)
    small = boots[int(np.argmin([len(part) for part in parts]))]
    once = big.take(np.sort(rng.choice(len(big), m, replace=False)))
    out["matched once"] = _outside(small - _bootstrap(once, rng))
    out["Wilcoxon"] = _runs(parts, m, rng)
    return out


def _bootstrap(part: SortedScores, rng: np.random.Generator) -> np.ndarray:
    counts = bootstrap_counts(len(part), BOOTSTRAPS, random_state=rng)
    return expected_error_kernel(part.reweighted(counts))


def _outside(gaps: np.ndarray) -> float:
    low, high = np.quantile(gaps, [0.025, 0.975])
    return float(low <= 0.0 <= high)


def _runs(parts: list[SortedScores], m: int, rng: np.random.Generator) -> float:
    """Signed ranks of size-matched ECE over runs on 80 % of the rows."""
    gaps = []
    for _ in range(RUNS):
        values = []
        for part in parts:
            rows = np.sort(rng.choice(len(part), int(0.8 * m), replace=False))
            values.append(expected_error_kernel(part.take(rows))[0])
        gaps.append(values[0] - values[1])
    return float(wilcoxon(gaps).pvalue)


def rivals(
    rows: ScoredRows, codes: np.ndarray, rng: np.random.Generator
) -> dict[str, float]:
    """Valid rivals under a Platt null: score test, and the CE2 gap redrawn."""
    x = log_odds(rows.p)
    line = np.stack([np.ones_like(x), x], axis=1)
    basis = CurveBasis(line, line)
    y = rows.y.astype(float)
    problem = Problem(y, basis, codes, 2, rows.clusters)
    observed = squared_errors(problem, rows.p)
    drawn = redrawn_squared_errors(problem, rows.p, N_DRAWS, rng)
    gap, gaps = observed[0] - observed[1], drawn[:, 0] - drawn[:, 1]
    above = (1 + np.sum(gaps >= gap)) / (N_DRAWS + 1)
    below = (1 + np.sum(gaps <= gap)) / (N_DRAWS + 1)
    return {
        "Platt score": group_score(problem).p_value,
        "CE2 redraw": min(1.0, 2.0 * min(above, below)),
    }


# -- tables ---------------------------------------------------------------------------

SIZE = """Size: per cent rejected at the nominal 5 % where no group differs.

One group is m, the other n rows; "shift 1": its log-odds lie 1 higher. "score" is the
default (method="auto"): {more:,} audits a cell, standard error {error:.1f} points;
"omnibus": {audits:,}; all others: about {share:,}. "n.e." is the share of audits in
which the method says that it cannot be had. permutation is refused for rows of the same
patient. Rivals: Platt LR, the likelihood ratio of one Platt fit against one a group;
ECE bootstrap, a 95 % percentile interval of the difference of ECE that excludes 0;
matched once, the same with one subsample of the larger group; Wilcoxon, signed ranks of
size-matched ECE over 25 resampled runs. All four ignore patients."""

HARD = """Size in harder circumstances: {more:,} audits a cell of score (standard error
{error:.1f} points), {audits:,} of omnibus, about {share:,} of the others.

The package refuses score below 10 patients in a group, wald and equal_amount below 25,
omnibus below 60, equal_amount also below 20 rows of a class, and groups of fewer than
30 rows unless told otherwise; the figures show what the methods would do. "1-10 rows":
patients of mixed sizes beside 2,000 rows of like patients; "correlation .9 : .3": the
latent correlation of a patient's outcomes in the one and the other group, otherwise .5.
"15 % at 0 and 1": scores beyond a limit are exactly 0 or 1. Survey weights: wald is
then the default; {survey:,} audits."""

POWER = """Power: per cent rejected where the groups differ; {audits:,} audits a cell,
about {share:,} of wald, equal_amount, permutation and Platt LR.

Rivals that hold their level under a common Platt curve, but not under others: Platt
score, the score test with a Platt fit as the common curve; CE2 redraw, the gap of CE2
with signs redrawn around that fit. Platt LR ignores patients, so that its power in the
rows with 3 a patient is not valid."""


def table(frame: pd.DataFrame, methods: tuple[str, ...]) -> str:
    """Per cent rejected, by cell and method."""
    names = {cell: str(cell).partition(" ")[2] for cell in frame["cell"].unique()}
    width = max(map(len, names.values())) + 1
    columns = {m: max(len(m) + 2, 8 if m in CERTAIN else 15) for m in methods}
    lines = [" " * width + "".join(m.rjust(w) for m, w in columns.items())]
    for cell, part in frame.groupby("cell", sort=False):
        cells = [_share(part, m).rjust(w) for m, w in columns.items()]
        lines.append(names[cell].ljust(width) + "".join(cells))
    return "\n".join(line.rstrip() for line in lines)


# Methods that are always to be had.
CERTAIN = ("score", "omnibus", "equal_amount", "permutation", *NAIVE)


def _share(part: pd.DataFrame, method: str) -> str:
    p = part[method].dropna().to_numpy() if method in part else np.array([])
    found = p[np.isfinite(p)]
    if not len(found):
        return "-"
    missing = 100.0 * (1.0 - len(found) / len(p))
    text = f"{100.0 * np.mean(found <= LEVEL):.1f}"
    return text + (f" ({missing:.0f} n.e.)" if missing >= 0.5 else "")


def main(n_audits: int, jobs: int | None, folder: Path) -> None:
    """Run what is missing in the folder and print the tables."""
    print(report(n_audits, jobs, folder))


def report(n_audits: int, jobs: int | None, folder: Path) -> str:
    """Tables of size and power; `n_audits` a cell of the main table, twice of auto."""
    fewer = max(1, n_audits * 3 // 10)

    def both(cells: dict[str, Params], audits: int, more: int) -> pd.DataFrame:
        frame = run_cells(cells, simulate, audits, folder, jobs)
        further = run_cells(more_of(cells), simulate, more, folder, jobs)
        names = dict(zip(more_of(cells), cells, strict=True))
        further["cell"] = further["cell"].map(names)
        return pd.concat([frame, further])

    size = both(size_cells(), n_audits, n_audits)
    hard = both(hard_cells(), fewer, n_audits - fewer)
    power = run_cells(power_cells(), simulate, fewer, folder, jobs)
    parts = [
        (SIZE, 2 * n_audits, n_audits, size, (*OURS, *NAIVE)),
        (HARD, n_audits, fewer, hard, (*OURS, "Platt LR")),
        (POWER, fewer, fewer, power, (*OURS, "Platt LR", *RIVALS)),
    ]
    return "\n\n\n".join(_titled(*part) for part in parts)


def _titled(
    title: str, more: int, audits: int, frame: pd.DataFrame, methods: tuple[str, ...]
) -> str:
    numbers = {
        "more": more,
        "audits": audits,
        "survey": more,
        "share": int(audits * SHARES["wald"]),
        "error": 100.0 * np.sqrt(LEVEL * (1.0 - LEVEL) / more),
    }
    return title.format(**numbers) + "\n\n" + table(frame, methods)
