"""Speed of the metric kernels, as ratios to other libraries in the same run.

One thread, CPU time, the best of a few runs. Slow peers are extrapolated from a few
replicates, which the table says. Run with ``python benchmarks/kernels.py [--quick]``.
"""

import argparse
import time
import tracemalloc
from collections.abc import Callable
from functools import partial

import numpy as np
from fairlearn.metrics import MetricFrame
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    log_loss,
    roc_auc_score,
)
from threadpoolctl import threadpool_limits

import skcalfair
from skcalfair._log_odds import fit_platt, log_odds, sigmoid
from skcalfair.metrics import expected_calibration_error
from skcalfair.metrics._calibration_loss import held_out_loss_kernel
from skcalfair.metrics._evaluate import sorted_scores
from skcalfair.metrics._registry import METRICS
from skcalfair.metrics._resampled import replicate_values
from skcalfair.resampling import bootstrap_counts

SLOPE, INTERCEPT = 0.9, 0.1  # a held-out Platt map, the same for all competitors
SHARED = (
    "roc_auc",
    "average_precision",
    "expected_calibration_error",
    "maximum_calibration_error",
    "adaptive_calibration_error",
    "squared_calibration_error",
    "log_loss",
    "brier_score_loss",
)


def make_scores(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Calibrated scores without ties."""
    rng = np.random.default_rng(seed)
    p = sigmoid(1.5 * rng.normal(size=n))
    return (rng.random(n) < p).astype(np.int64), p


def best_time(job: Callable[[], object], repeats: int) -> float:
    """CPU seconds of the fastest of several runs, after one to warm up."""
    job()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        job()
        times.append(time.process_time() - start)
    return min(times)


# -- the ten metrics as a user would write them with scikit-learn ---------------------


def bincount_ece(y: np.ndarray, p: np.ndarray, n_bins: int = 15) -> float:
    """Bare ECE: no validation, no weights."""
    bins = np.minimum((p * n_bins).astype(np.intp), n_bins - 1)
    mass = np.bincount(bins, minlength=n_bins)
    gaps = np.bincount(bins, weights=y, minlength=n_bins) - np.bincount(
        bins, weights=p, minlength=n_bins
    )
    return float(np.abs(gaps).sum() / mass.sum())


def bin_sums(y: np.ndarray, p: np.ndarray, n_bins: int = 15) -> list[np.ndarray]:
    bins = np.minimum((p * n_bins).astype(np.intp), n_bins - 1)
    r = y - p
    columns = (None, r, r * r)
    return [np.bincount(bins, weights=c, minlength=n_bins) for c in columns]


def simple_mce(y: np.ndarray, p: np.ndarray) -> float:
    mass, residual, _ = bin_sums(y, p)
    return float(np.max(np.abs(residual[mass > 0] / mass[mass > 0])))


def simple_adaptive(y: np.ndarray, p: np.ndarray) -> float:
    parts = np.array_split((y - p)[np.argsort(p)], 15)
    return float(sum(abs(part.sum()) for part in parts) / len(p))


def simple_squared(y: np.ndarray, p: np.ndarray) -> float:
    mass, residual, squares = bin_sums(y, p)
    u = (residual**2 - squares) / np.maximum(mass * (mass - 1), 1)
    return float((mass * u).sum() / mass.sum())


def gain(score: Callable, y: np.ndarray, p: np.ndarray) -> float:
    q = sigmoid(SLOPE * log_odds(p) + INTERCEPT)
    return float(score(y, p) - score(y, q))


PEERS: dict[str, Callable] = {
    "roc_auc": roc_auc_score,
    "average_precision": average_precision_score,
    "ece": bincount_ece,
    "mce": simple_mce,
    "adaptive": simple_adaptive,
    "squared": simple_squared,
    "log_loss": log_loss,
    "brier": brier_score_loss,
    "loss_log": partial(gain, log_loss),
    "loss_brier": partial(gain, brier_score_loss),
}


def refitted_gain(score: Callable, y: np.ndarray, p: np.ndarray) -> float:
    x = log_odds(p)[:, np.newaxis]
    fit = LogisticRegression(C=np.inf, tol=1e-10).fit(x, y)
    return float(score(y, p) - score(y, fit.predict_proba(x)[:, 1]))


REFITTED = PEERS | {
    "loss_log": partial(refitted_gain, log_loss),
    "loss_brier": partial(refitted_gain, brier_score_loss),
}


def loop_seconds(peers: dict[str, Callable], n: int, replicates: int) -> float:
    """CPU seconds a replicate of drawing indices and calling each function."""
    y, p = make_scores(n)
    rng = np.random.default_rng(1)

    def job() -> None:
        for _ in range(replicates):
            rows = rng.integers(n, size=n)
            for function in peers.values():
                function(y[rows], p[rows])

    return best_time(job, 1) / replicates


def fairlearn_seconds(n: int, n_boot: int) -> float:
    """CPU seconds a replicate of fairlearn's bootstrap, beyond the plain frame."""
    y, p = make_scores(n)
    # Without a name that its callables miss, fairlearn cannot list partial objects.
    functions = {name: _named(name, f) for name, f in PEERS.items()}

    def job(**options: object) -> None:
        MetricFrame(
            metrics=functions,
            y_true=y,
            y_pred=p,
            sensitive_features=np.zeros(n, dtype=int),
            **options,
        )

    plain = best_time(job, 1)
    boot = best_time(
        lambda: job(n_boot=n_boot, ci_quantiles=[0.025, 0.975], random_state=0), 1
    )
    return (boot - plain) / n_boot


def _named(name: str, function: Callable) -> Callable:
    def metric(y_true: np.ndarray, y_pred: np.ndarray) -> float:
        return function(np.asarray(y_true), np.asarray(y_pred))

    metric.__name__ = name
    return metric


# -- skcalfair ------------------------------------------------------------------------


def kernels(own_fit: bool) -> dict[str, Callable]:
    chosen = {name: METRICS[name].kernel for name in SHARED}
    for score in ("log_loss", "brier"):
        name = f"calibration_loss_{score}"
        chosen[name] = (
            METRICS[name].kernel
            if own_fit
            else partial(
                held_out_loss_kernel, score=score, slope=SLOPE, intercept=INTERCEPT
            )
        )
    return chosen


def draw(n: int, n_replicates: int, rng: np.random.Generator) -> np.ndarray:
    return bootstrap_counts(n, n_replicates, random_state=rng)


def bootstrap(n: int, n_replicates: int, own_fit: bool) -> None:
    """From raw arrays to replicate values: validate, sort, draw and evaluate."""
    y, p = make_scores(n)
    replicate_values(
        sorted_scores(y, p),
        kernels(own_fit),
        partial(draw, n),
        n_replicates,
        frequency=False,
        random_state=0,
    )


def peak_megabytes(job: Callable[[], object]) -> float:
    """Highest memory beyond what is held at the start."""
    tracemalloc.start()
    job()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 2**20


# -- table --------------------------------------------------------------------------


def report(text: str, value: str, target: str = "") -> None:
    print(f"{text:<66} {value:>12}  {target}", flush=True)


def single_evaluations(n: int, repeats: int) -> None:
    y, p = make_scores(n)
    own = best_time(lambda: expected_calibration_error(y, p), repeats)
    bare = best_time(lambda: bincount_ece(y, p), repeats)
    curve = best_time(lambda: calibration_curve(y, p, n_bins=15), repeats)
    report(f"ECE, {n:,} rows", f"{own * 1e3:.1f} ms")
    report("  time over a bare bincount", f"{own / bare:.2f}x", "target <= 3x")
    report("  calibration_curve over ours", f"{curve / own:.1f}x")
    try:
        from netcal.metrics import ECE
    except ImportError:
        report("  netcal over ours", "not installed")
    else:
        measure = ECE(bins=15).measure
        report(
            "  netcal over ours", f"{best_time(lambda: measure(p, y), 1) / own:.1f}x"
        )
    x = log_odds(p)
    labels = y.astype(np.uint8)
    own = best_time(lambda: fit_platt(x, labels), repeats)
    peer = LogisticRegression(C=np.inf)
    theirs = best_time(lambda: peer.fit(x[:, np.newaxis], y), repeats)
    report(f"Platt fit, {n:,} rows", f"{own * 1e3:.1f} ms")
    report("  LogisticRegression(C=inf) over ours", f"{theirs / own:.1f}x", ">= 4x")


def bootstraps(n: int, n_replicates: int, peer_replicates: int) -> None:
    title = f"{n_replicates:,} bootstraps x ten metrics x {n:,} rows"
    for own_fit, peers in ((False, PEERS), (True, REFITTED)):
        own = best_time(lambda fit=own_fit: bootstrap(n, n_replicates, fit), 1)
        how = "Platt refitted in each" if own_fit else "held-out Platt map"
        report(f"{title}, {how}", f"{own:.2f} s")
        loop = loop_seconds(peers, n, peer_replicates) * n_replicates
        report(
            f"  loop over scikit-learn over ours (from {peer_replicates})",
            f"{loop / own:.0f}x",
            ">= 50x",
        )
        if not own_fit:
            frame = fairlearn_seconds(n, peer_replicates) * n_replicates
            report(
                f"  fairlearn n_boot over ours (from {peer_replicates})",
                f"{frame / own:.0f}x",
                ">= 1,000x",
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    large, medium, replicates = (10**4, 10**4, 20) if quick else (10**6, 10**5, 1000)
    simd = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    print(f"skcalfair {skcalfair.__version__}, numpy {np.__version__}, SIMD {simd}")
    with threadpool_limits(1):
        single_evaluations(large, 1 if quick else 5)
        bootstraps(medium, replicates, 2)
        small = best_time(lambda: bootstrap(75, 10_000, False), 3)
        report(
            "10,000 bootstraps x ten metrics x 75 rows", f"{small:.3f} s", "<= 0.15 s"
        )
        small = best_time(lambda: bootstrap(75, 10_000, True), 3)
        report("  with the Platt map refitted in each", f"{small:.3f} s")
        y, p = make_scores(large)

        def evaluate() -> None:
            scores = sorted_scores(y, p)
            for kernel in kernels(True).values():
                kernel(scores)

        def resample() -> None:
            replicate_values(
                sorted_scores(y, p), kernels(False), partial(draw, large), 16
            )

        report(
            f"memory above the input, ten metrics, {large:,} rows",
            f"{peak_megabytes(evaluate):.0f} MB",
            "<= 150 MB",
        )
        report(
            "  the same with 16 bootstrap replicates",
            f"{peak_megabytes(resample):.0f} MB",
            "<= 150 MB",
        )


if __name__ == "__main__":
    main()
