"""The study of sample sizes in full: what comes out, its time and its memory.

A million rows with known posteriors, three decalibrations, 100 splits, ten fractions,
seven metrics; one thread, CPU time. A plain loop over scikit-learn and netcal (AdaECE
and CE2, which they have not, in NumPy) does one split of the same study in the same
run, and is extrapolated to all. Run with ``python benchmarks/sample_size_study.py
[--quick]``.
"""

import argparse
import resource
import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
from kernels import report, simple_adaptive, simple_mce, simple_squared
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss
from threadpoolctl import threadpool_limits

import skcalfair
from skcalfair._log_odds import log_odds
from skcalfair.datasets import BetaDecalibrator, make_calibrated_scores
from skcalfair.experiments import SampleSizeResult, sample_size_study
from skcalfair.experiments._sample_size import DECALIBRATIONS, FRACTIONS
from skcalfair.metrics import metric_table

TEST = VALIDATION = 0.2
Peers = dict[str, Callable]


def numpy_ece(y: np.ndarray, p: np.ndarray, n_bins: int = 15) -> float:
    """ECE as one would write it."""
    bins = np.clip(np.ceil(p * n_bins).astype(int) - 1, 0, n_bins - 1)
    total = 0.0
    for b in range(n_bins):
        held = bins == b
        if held.any():
            total += held.mean() * abs(y[held].mean() - p[held].mean())
    return float(total)


def peers() -> tuple[str, Peers]:
    """The calibration errors by netcal, or by NumPy where netcal is missing."""
    plain = {"AdaECE": simple_adaptive, "CE2": simple_squared}
    if find_spec("netcal") is None:
        return "NumPy", plain | {"ECE": numpy_ece, "MCE": simple_mce}
    from netcal.metrics import ECE, MCE

    ece, mce = ECE(bins=15), MCE(bins=15)
    return "netcal", plain | {
        "ECE": lambda y, p: ece.measure(p, y),
        "MCE": lambda y, p: mce.measure(p, y),
    }


def plain_split(y: np.ndarray, p: np.ndarray, functions: Peers, seed: int) -> None:
    """One split of the study, metric by metric and sample by sample."""
    rng = np.random.default_rng(seed)
    n = len(y)
    for shapes in DECALIBRATIONS.values():
        q = BetaDecalibrator(*shapes).fit_transform(p[:, np.newaxis])[:, 0]
        order = rng.permutation(n)
        validation = order[: round(VALIDATION * n)]
        test = order[len(validation) : len(validation) + round(TEST * n)]
        platt = LogisticRegression(C=np.inf)
        platt.fit(log_odds(q[validation])[:, np.newaxis], y[validation])
        for fraction in FRACTIONS:
            rows = rng.choice(test, round(fraction * len(test)), replace=False)
            y_true, before = y[rows], q[rows]
            after = platt.predict_proba(log_odds(before)[:, np.newaxis])[:, 1]
            for function in functions.values():
                function(y_true, before)
            for score in (log_loss, brier_score_loss):
                score(y_true, before) - score(y_true, after)


def peak_gigabytes() -> float:
    """Highest memory of this process so far, libraries included."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def seconds(job: Callable[[], object]) -> tuple[float, object]:
    start = time.process_time()
    found = job()
    return time.process_time() - start, found


def claims(result: SampleSizeResult) -> None:
    """Mean at 10 % and 100 % of the test rows, and Wilcoxon's p-value over splits."""
    table = result.wilcoxon
    small, large = table["n"].iloc[0], table["reference_n"].iloc[0]
    print(f"\nMean over the splits, {small:,} against {large:,} test rows")
    labels = metric_table()["label"]
    print(
        f"{'':<12} {'':<24} {'10 %':>11} {'100 %':>11} {'ratio':>7} {'Wilcoxon p':>11}"
    )
    for row in table.itertuples():
        ratio = row.value / row.reference_value
        steady = abs(row.reference_value) < 1e-5 and row.size_robust
        print(
            f"{row.decalibration:<12} {labels[row.metric]:<24} {row.value:>11.6f} "
            f"{row.reference_value:>11.6f} {'' if steady else f'{ratio:.2f}':>7} "
            f"{row.p_value:>11.2g}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    n, n_splits = (20_000, 10) if quick else (1_000_000, 100)
    simd = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    print(f"skcalfair {skcalfair.__version__}, numpy {np.__version__}, SIMD {simd}")
    with threadpool_limits(1):
        frame = make_calibrated_scores(n, random_state=0).frame
        y, p = frame["outcome"].to_numpy(), frame["score"].to_numpy()
        before = peak_gigabytes()
        own, result = seconds(
            lambda: sample_size_study(y, p, n_splits=n_splits, random_state=0)
        )
        after = peak_gigabytes()
        title = f"{n:,} rows x 3 decalibrations x {n_splits} splits x 10 x 7"
        report(title, f"{own:.1f} s", "<= 20 s")
        report("  highest memory, libraries included", f"{after:.2f} GB", "< 1 GB")
        report("  the same with the scores alone", f"{before:.2f} GB")
        name, functions = peers()
        plain_split(y[:1000], p[:1000], functions, 0)
        loop, _ = seconds(lambda: plain_split(y, p, functions, 0))
        report(
            f"  loop over scikit-learn and {name} over ours (from 1 split)",
            f"{loop * n_splits / own:.0f}x",
            ">= 25x",
        )
    claims(result)


if __name__ == "__main__":
    main()
