"""Speed of GroupMetricFrame, as ratios to fairlearn's MetricFrame in the same run.

One thread, CPU time, the best of a few runs. fairlearn is timed on a tenth of the rows
or on two replicates and extrapolated, which the table says. Run with
``python benchmarks/audit.py [--quick]``.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from fairlearn.metrics import MetricFrame
from kernels import (
    PEERS,
    REFITTED,
    SHARED,
    _named,
    best_time,
    make_scores,
    peak_megabytes,
    report,
)
from threadpoolctl import threadpool_limits

import skcalfair
from skcalfair.audit import GroupMetricFrame
from skcalfair.metrics import calibration_loss

N_GROUPS = 20
FIVE = {
    "roc_auc": "roc_auc",
    "average_precision": "average_precision",
    "ece": "expected_calibration_error",
    "log_loss": "log_loss",
    "brier": "brier_score_loss",
}


def ten_metrics(held_out: bool) -> dict[str, object]:
    """The ten metrics; the calibration losses by a held-out map, or refitted."""
    metrics: dict[str, object] = {name: name for name in SHARED}
    fold = dict(zip(("y_val", "p_val"), make_scores(2_000, seed=7), strict=True))
    for score in ("log_loss", "brier"):
        name = f"calibration_loss_{score}"
        metrics[name] = name
        if held_out:
            metrics[name] = partial(
                calibration_loss, score=score, recalibrate="held_out", **fold
            )
    return metrics


def frame(n: int, groups: np.ndarray, metrics: dict, **options: object) -> Callable:
    y, p = make_scores(n)

    def job() -> GroupMetricFrame:
        return GroupMetricFrame(
            metrics=metrics,
            y_true=y,
            y_pred=p,
            sensitive_features=groups,
            random_state=0,
            progress=False,
            **options,
        )

    return job


def fairlearn_seconds(
    n: int, groups: np.ndarray, peers: dict, **options: object
) -> float:
    y, p = make_scores(n)
    functions = {name: _named(name, f) for name, f in peers.items()}

    def job() -> None:
        MetricFrame(
            metrics=functions,
            y_true=y,
            y_pred=p,
            sensitive_features=groups,
            random_state=0,
            **options,
        )

    return best_time(job, 1)


def plain_audits(n: int, repeats: int) -> None:
    numbers = np.random.default_rng(1).integers(N_GROUPS, size=n)
    texts = np.array([f"group {i:02d}" for i in range(N_GROUPS)])[numbers]
    part = n // 10
    for held_out, peers in ((True, PEERS), (False, REFITTED)):
        how = "held-out Platt map" if held_out else "Platt refitted in each group"
        for kind, groups in (("whole-number", numbers), ("text", texts)):
            own = best_time(frame(n, groups, ten_metrics(held_out)), repeats)
            theirs = 10 * fairlearn_seconds(part, groups[:part], peers)
            title = f"{kind} groups, {how}"
            report(f"ten metrics x {N_GROUPS} {title}", f"{own:.2f} s")
            report(
                f"  fairlearn over ours (from {part:,} rows)",
                f"{theirs / own:.0f}x",
                ">= 100x",
            )


def bootstraps(n: int, n_boot: int) -> None:
    groups = np.random.default_rng(1).integers(5, size=n)
    options = {"n_boot": n_boot, "ci_quantiles": [0.025, 0.975]}
    own = best_time(frame(n, groups, FIVE, **options), 3)
    peers = {name: PEERS[name] for name in FIVE}
    plain = fairlearn_seconds(n, groups, peers)
    two = fairlearn_seconds(n, groups, peers, **options | {"n_boot": 2})
    theirs = plain + n_boot * (two - plain) / 2
    report(f"n_boot={n_boot}, five metrics x 5 groups x {n:,} rows", f"{own:.2f} s")
    report("  fairlearn over ours (from 2 samples)", f"{theirs / own:.0f}x", ">= 500x")


def groups_of(n: int, smallest: int) -> np.ndarray:
    """Twenty groups: one of a given size, the others sharing the rest."""
    rest = np.arange(n - smallest) % (N_GROUPS - 1) + 1
    groups = np.concatenate([np.zeros(smallest, dtype=np.intp), rest])
    return np.random.default_rng(2).permutation(groups)


def matched(n: int, n_resamples: int) -> None:
    even = n // N_GROUPS
    sizes = [(500, "<= 3 s"), (even // 10, "<= 30 s"), (even // 2, "<= 30 s")]
    for size, target in [*sizes, (even - even // 20, "<= 30 s")]:
        groups = groups_of(n, size)
        made = frame(n, groups, ten_metrics(True), n_resamples=n_resamples)()
        seconds = cold_time(made)
        title = f"{n_resamples:,} subsamples of {size:,} rows"
        report(f"{title}, ten metrics x {N_GROUPS} groups", f"{seconds:.1f} s", target)
    refitted = frame(n, groups_of(n, 500), ten_metrics(False), n_resamples=n_resamples)
    seconds = cold_time(refitted())
    report("  of 500 rows, the Platt map refitted in each", f"{seconds:.1f} s")
    few = frame(n, groups_of(n, even // 2), ten_metrics(True), n_resamples=40)
    report(
        "memory above the input, frame and table",
        f"{peak_megabytes(lambda: few().size_matched):.0f} MB",
        "<= 1,000 MB",
    )


def cold_time(made: GroupMetricFrame) -> float:
    """CPU seconds of the table of a frame that has not computed it yet."""
    start = time.process_time()
    _ = made.size_matched
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    large, medium = (4 * 10**4, 10**4) if quick else (10**6, 10**5)
    simd = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    print(f"skcalfair {skcalfair.__version__}, numpy {np.__version__}, SIMD {simd}")
    print(f"{large:,} rows unless another number is given")
    with threadpool_limits(1):
        plain_audits(large, 1 if quick else 3)
        bootstraps(medium, 10 if quick else 100)
        matched(large, 40 if quick else 1000)


if __name__ == "__main__":
    main()
