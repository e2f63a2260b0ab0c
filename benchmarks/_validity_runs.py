"""Tests over the runs of a study, 5 test folds of 5 refits, by simulation.

Both groups are scored alike: log-odds 2 N(0, 1), with .3 N(0, 1) of each refit on top.
The calibrator of a run is the Platt fit to 240 other rows. Rows of a patient share most
of their score and, by a latent normal with correlation .5, of their outcome.
"""

from typing import Any

import numpy as np
import pandas as pd
from _cells import run_cells
from scipy.special import expit, ndtr

from skcalfair._log_odds import fit_platt
from skcalfair.audit._run_tests import CONTRIBUTIONS, RUN_TESTS, run_tests
from skcalfair.metrics import expected_calibration_error

Params = dict[str, Any]

N_FOLDS = N_REFITS = 5
VALIDATION = 240
LEVEL = 0.05
ECE = "expected_calibration_error"
LABELS = {
    ECE: "ECE",
    "brier_score_loss": "Brier score",
    "log_loss": "log loss",
    "calibration_loss_brier": "cal. loss (Brier)",
    "calibration_loss_log_loss": "cal. loss (log loss)",
}


def cells() -> dict[str, Params]:
    """Studies without a true gap, then two with one."""
    plain = {"slope": 1.0, "shift": 0.0, "rows": 1}
    sizes = {"1423:71": (1423, 71), "500:500": (500, 500)}
    out = {}
    for name, n in sizes.items():
        for rows in (1, 3):
            out[f"{name}, {rows} a patient"] = plain | {"n": n, "rows": rows}
    out["1423:71, prevalence 8 %"] = plain | {"n": (1423, 71), "shift": -3.7}
    out["1423:71, slope .4 v 1"] = plain | {"n": (1423, 71), "slope": 0.4}
    out["1300:194, slope .5 v 1"] = plain | {"n": (1300, 194), "slope": 0.5}
    return out


def simulate(params: Params, rng: np.random.Generator) -> dict[str, float]:
    """P-value of every method, metric and sampling in one study."""
    results, predictions = study(**params, rng=rng)
    out = {}
    for method in RUN_TESTS:
        found = run_tests(
            results, predictions, method=method, clustered=params["rows"] > 1
        )
        for row in found.itertuples():
            # The pooled methods leave what is no mean over rows to the fold means.
            if row.method == method:
                out[f"{method}|{row.metric}|{row.sampling}"] = row.p_value
    return out


def study(
    n: tuple[int, int], slope: float, shift: float, rows: int, rng: np.random.Generator
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Results and predictions as a `SubgroupAuditor` has them."""
    group = np.repeat(["large", "small"], n)
    patient = np.arange(sum(n)) // rows
    x, y = outcomes(patient, np.where(group == "small", slope, 1.0), shift, rng)
    fold = rng.permutation(patient[-1] + 1)[patient] % N_FOLDS
    results, predictions = [], []
    for run in range(N_FOLDS * N_REFITS):
        test = np.flatnonzero(fold == run // N_REFITS)
        z = x[test] + 0.3 * rng.standard_normal(len(test))
        q = calibrated(z, shift, rng)
        frame = pd.DataFrame(
            {
                "run": run,
                "fold": run // N_REFITS,
                "row": test,
                "outcome": y[test],
                "score": expit(z),
                "calibrated": q,
                "group": group[test],
                "cluster": patient[test],
                "sample_weight": 1.0,
            }
        )
        predictions.append(frame)
        results += values(frame, rng)
    columns = ["run", "fold", "group", "metric", "sampling", "size", "value"]
    return pd.DataFrame(results, columns=columns), pd.concat(predictions)


def outcomes(
    patient: np.ndarray, slope: np.ndarray, shift: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Log-odds of the scores, and outcomes."""
    shared = 2.0 * rng.standard_normal(patient[-1] + 1)[patient]
    x = shared + 0.5 * rng.standard_normal(len(patient)) + shift
    latent = rng.standard_normal(len(patient))
    if patient[-1] + 1 < len(patient):
        latent += rng.standard_normal(patient[-1] + 1)[patient]
        latent /= np.sqrt(2.0)
    return x, (ndtr(latent) < expit(slope * x)).astype(np.uint8)


def calibrated(z: np.ndarray, shift: float, rng: np.random.Generator) -> np.ndarray:
    """Scores by the Platt fit to a validation set."""
    x, y = outcomes(np.arange(VALIDATION), np.ones(VALIDATION), shift, rng)
    x += 0.3 * rng.standard_normal(VALIDATION)
    fit = fit_platt(x, y)
    return expit(fit.slope * z + fit.intercept)


def values(frame: pd.DataFrame, rng: np.random.Generator) -> list[tuple]:
    """Records of one run: every metric by group, on all rows and at equal size."""
    parts = dict(list(frame.groupby("group")))
    size = min(len(part) for part in parts.values())
    start = (frame["run"].iloc[0], frame["fold"].iloc[0])
    out = []
    for name, part in parts.items():
        drawn = part.iloc[rng.permutation(len(part))[:size]]
        for sampling, rows in (("naive", part), ("size_matched", drawn)):
            for metric in LABELS:
                value = value_of(metric, rows)
                out.append((*start, name, metric, sampling, len(rows), value))
    return out


def value_of(metric: str, rows: pd.DataFrame) -> float:
    """Metric of some rows."""
    y, p, q = (rows[c].to_numpy() for c in ("outcome", "score", "calibrated"))
    if metric == ECE:
        return expected_calibration_error(y, p)
    return float(np.mean(CONTRIBUTIONS[metric](y, p, q)))


TITLE = """Tests over runs: per cent rejected at the nominal 5 %, {audits:,} studies a
cell; standard error of a true 5 %: {error:.1f} points.

5 test folds of 5 refits; the small group's slope is 1, as the large one's, where none
is given. "pooled" is the default; "-" where a method is not made for the metric."""


def main(n_audits: int, jobs: int | None, folder: str) -> None:
    """Run what is missing in the folder and print the table."""
    found = run_cells(cells(), simulate, n_audits, folder, jobs)
    error = 100.0 * np.sqrt(LEVEL * (1.0 - LEVEL) / n_audits)
    print(TITLE.format(audits=n_audits, error=error))
    for cell, part in found.groupby("cell", sort=False):
        print(f"\n{cell}")
        print(table(part))


def table(part: pd.DataFrame) -> str:
    """Per cent rejected, by metric and method."""
    head = f"{'':34s}" + "".join(f"{m:>23s}" for m in RUN_TESTS)
    lines = [head]
    for metric, label in LABELS.items():
        for sampling in ("naive", "size_matched"):
            row = [
                part.get(f"{method}|{metric}|{sampling}", pd.Series(dtype=float))
                for method in RUN_TESTS
            ]
            shown = [f"{100 * (p < LEVEL).mean():.1f}" if len(p) else "-" for p in row]
            name = f"{label}, {'all rows' if sampling == 'naive' else 'equal size'}"
            lines.append(f"{name:34s}" + "".join(f"{s:>23s}" for s in shown))
    return "\n".join(lines)
