"""Speed of the dominance table, as a ratio to sorting the same scores.

One thread. Run with ``python benchmarks/dominance.py [--quick]``; the output is kept in
``doc/benchmarks/dominance.txt``.
"""

import argparse
import resource
import time

import numpy as np
import pandas as pd
from kernels import best_time

import skcalfair
from skcalfair.dominance import DominanceTable


def make_study(
    n: int, n_models: int, n_readers: int, seed: int = 0
) -> tuple[pd.DataFrame, np.ndarray]:
    """Scores without ties, of models and readers of about equal skill."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.3
    columns = {}
    for j in range(n_models):
        columns[f"model{j}"] = rng.normal(size=n) + (1.2 + 0.02 * j) * y
    for r in range(n_readers):
        cut = 2.0 * (r + 0.5) / max(n_readers, 1) - 0.4
        columns[f"reader{r}"] = (rng.normal(size=n) + 1.3 * y > cut).astype(float)
    return pd.DataFrame(columns), y.astype(int)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    quick = parser.parse_args().quick
    n, n_cases, n_bootstrap = (20_000, 200, 50) if quick else (1_000_000, 2000, 1000)
    simd = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    print(f"skcalfair {skcalfair.__version__}, numpy {np.__version__}, SIMD {simd}")
    fit_against_argsort(n)
    bootstrap(n_cases, n_bootstrap)


def fit_against_argsort(n: int) -> None:
    """20 models and 50 readers, against `numpy.argsort` of the models' scores."""
    X, y = make_study(n, 20, 50)
    scores = [X[f"model{j}"].to_numpy() for j in range(20)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fit = best_time(lambda: DominanceTable().fit(X, y), 2)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    argsort = best_time(lambda: [np.argsort(s) for s in scores], 2)
    print(
        f"20 models x {n:,} rows, 50 readers: fit {fit:.2f} s, argsort "
        f"{argsort:.2f} s, ratio {fit / argsort:.2f}"
    )
    print(
        f"peak memory {peak / 2**20:.2f} GB, of which {before / 2**20:.2f} GB were "
        "there with the study"
    )


def bootstrap(n_cases: int, n_bootstrap: int) -> None:
    """Paired bootstrap of 10 models and 10 readers."""
    X, y = make_study(n_cases, 10, 10)
    start = time.perf_counter()
    DominanceTable(n_bootstrap=n_bootstrap, random_state=0).fit(X, y)
    print(
        f"{n_bootstrap:,} paired bootstrap samples, 10 models + 10 readers x "
        f"{n_cases:,} cases: {time.perf_counter() - start:.1f} s"
    )


if __name__ == "__main__":
    main()
