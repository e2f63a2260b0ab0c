"""What calibration metrics report at different sample sizes, by simulation.

Scores with log-odds 1.5 N(0, 1), perfectly calibrated or over-confident (the true
log-odds are 0.6 times those of the score). Means over seeded samples, with standard
errors; ``python benchmarks/size_bias.py`` prints the table kept in
``doc/benchmarks/size_bias.txt``.
"""

import argparse
from functools import partial

import numpy as np
from scipy.stats import norm

from skcalfair._log_odds import sigmoid
from skcalfair._sorted_scores import SortedScores
from skcalfair._validation import ScoredRows
from skcalfair.metrics._calibration_loss import calibration_loss_kernel
from skcalfair.metrics._registry import METRICS

SIZES = (100, 300, 1000, 5000)
KERNELS = {
    "ECE": METRICS["expected_calibration_error"].kernel,
    "MCE": METRICS["maximum_calibration_error"].kernel,
    "AdaECE": METRICS["adaptive_calibration_error"].kernel,
    "CORP MCB (Brier)": METRICS["corp_miscalibration"].kernel,
    "CE2": METRICS["squared_calibration_error"].kernel,
    "SKCE": METRICS["kernel_calibration_error"].kernel,
    "dCE in-sample": partial(
        calibration_loss_kernel, score="log_loss", corrected=False
    ),
    "dCE corrected": METRICS["calibration_loss_log_loss"].kernel,
    "dBrier in-sample": partial(
        calibration_loss_kernel, score="brier", corrected=False
    ),
    "dBrier corrected": METRICS["calibration_loss_brier"].kernel,
}


def draw(
    n: int, slope: float, per_patient: int, rng: np.random.Generator
) -> ScoredRows:
    """Scores and outcomes; rows of a patient share half of the outcome's noise."""
    x = 1.5 * rng.normal(size=n)
    patients = np.arange(n) // per_patient
    noise = rng.normal(size=n)
    if per_patient > 1:
        noise = (noise + rng.normal(size=patients.max() + 1)[patients]) / np.sqrt(2)
    y = (norm.cdf(noise) < sigmoid(slope * x)).astype(np.uint8)
    return ScoredRows(y, sigmoid(x), clusters=patients if per_patient > 1 else None)


def means(
    n: int, slope: float, per_patient: int, ignore: bool, repeats: int
) -> dict[str, tuple[float, float]]:
    """Mean and standard error of every metric over `repeats` samples."""
    rng = np.random.default_rng([n, int(10 * slope), per_patient])
    values: dict[str, list[float]] = {name: [] for name in KERNELS}
    for _ in range(repeats):
        rows = draw(n, slope, per_patient, rng)
        scores = SortedScores.from_rows(ScoredRows(rows.y, rows.p) if ignore else rows)
        for name, kernel in KERNELS.items():
            values[name].append(float(kernel(scores)[0]))
    return {
        name: (float(np.nanmean(v)), float(np.nanstd(v) / np.sqrt(len(v))))
        for name, v in values.items()
    }


def print_table(title: str, columns: dict[str, dict[str, tuple[float, float]]]) -> None:
    print(f"\n{title}\n")
    print(f"{'':<18}" + "".join(f"{column:>20}" for column in columns))
    for name in KERNELS:
        cells = [
            f"{column[name][0]:>12.4f} ({column[name][1]:.4f})"
            for column in columns.values()
        ]
        print(f"{name:<18}" + " ".join(cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    scale = 0.02 if parser.parse_args().quick else 1.0
    repeats = {n: max(4, int(scale * min(2000, 1_000_000 // n))) for n in SIZES}
    print("Mean over simulated samples (standard error)")
    for slope, words in ((1.0, "calibrated: the truth is 0"), (0.6, "slope 0.6")):
        columns = {f"n = {n:,}": means(n, slope, 1, False, repeats[n]) for n in SIZES}
        print_table(f"Independent rows, {words}", columns)
    columns = {
        f"{k} rows{', ignored' if ignore else ''}": means(
            300, 1.0, k, ignore, repeats[300]
        )
        for k in (3, 10)
        for ignore in (False, True)
    }
    print_table("300 calibrated rows, several a patient (the truth is 0)", columns)


if __name__ == "__main__":
    main()
