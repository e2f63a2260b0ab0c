"""What the uncertainty of a dominance table promises, by simulation.

Run with ``python benchmarks/dominance_validity.py [--studies N]``; the output is kept
in ``doc/benchmarks/dominance_validity.txt``.
"""

import argparse

import numpy as np
import pandas as pd
from scipy.stats import norm

from skcalfair.dominance import DominanceTable


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=1000)
    n = parser.parse_args().studies
    print(f"{n} simulated studies each, 100 cases of each class unless stated.\n")
    reader_on_the_curve(n)
    equal_readers(n)
    fieller_coverage(n)
    few_positives(n)


def binormal(
    rng: np.random.Generator, separation: float, n: int = 100
) -> tuple[np.ndarray, np.ndarray]:
    """Truth and scores of n cases of each class."""
    y = np.repeat([0, 1], n)
    return y, rng.normal(size=2 * n) + separation * y


def reader_on_the_curve(n_studies: int) -> None:
    """A reader exactly on the model's own curve: no gain at a gradient of 1 is true."""
    rows = []
    for seed in range(n_studies):
        rng = np.random.default_rng(seed)
        y, score = binormal(rng, 1.0)
        _, seen = binormal(rng, 1.0)
        X = pd.DataFrame({"model": score, "reader": (seen > 0.5).astype(float)})
        table = DominanceTable(cross_fit=True, random_state=seed).fit(X, y)
        inside = "reader" in set(table.dominated_["name"])
        # Twice the normalised cost at a gradient of 1 is 1 - (TPR - FPR).
        at_one = 2 * table.cross_fit_.iloc[len(table.cross_fit_) // 2]
        naive = at_one["reader_in_sample"] - at_one["model_in_sample"]
        crossed = at_one["reader_in_sample"] - at_one["model_cross_fitted"]
        rows.append((inside, naive, crossed))
    inside, naive, crossed = np.mean(rows, axis=0)
    print("A reader exactly on the model's ROC curve (separation 1, gradient 1):")
    print(f"  inside the hull in {100 * inside:.0f} % of studies")
    print(f"  gain of the model in TPR - FPR: {naive:+.3f} on the cases that chose its")
    print(f"  threshold, {crossed:+.3f} cross-fitted; 0 in truth\n")


def equal_readers(n_studies: int) -> None:
    """Two equal readers: how often one has nearly all of the bootstrap support."""
    high = 0
    for seed in range(n_studies):
        rng = np.random.default_rng(seed)
        y, one = binormal(rng, 1.5)
        _, other = binormal(rng, 1.5)
        X = pd.DataFrame({"a": one > 0.75, "b": other > 0.75}).astype(float)
        table = DominanceTable(n_bootstrap=200, random_state=seed).fit(X, y)
        frame = table.dominance_support_
        at_one = frame[np.isclose(frame["cpg"], 1.0)].set_index("name")["support"]
        high += at_one[["a", "b"]].max() > 0.95
    print("Two readers of equal skill and threshold (separation 1.5, gradient 1):")
    print(
        f"  one has a support above .95 in {100 * high / n_studies:.1f} % of studies\n"
    )


def fieller_coverage(n_studies: int) -> None:
    """Coverage of the paired Fieller sets of a breakpoint between two fixed points."""
    print("Fieller sets of the gradient between two readers who see the same score")
    print("(thresholds .3 and 1; separation 1.2), 95 %:")
    for n_cases in (30, 100, 300):
        hits = unbounded = shown = 0
        cuts = np.array([0.3, 1.0])
        truth = -np.diff(norm.sf(cuts - 1.2))[0] / -np.diff(norm.sf(cuts))[0]
        for seed in range(n_studies):
            y, score = binormal(np.random.default_rng(seed), 1.2, n_cases)
            X = pd.DataFrame({"low": score > cuts[0], "high": score > cuts[1]})
            rows = DominanceTable().fit(X.astype(float), y).breakpoints_
            row = rows[(rows["from_owner"] == "low") & (rows["to_owner"] == "high")]
            if len(row) == 1:
                low, high = row[["fieller_low", "fieller_high"]].to_numpy()[0]
                shown += 1
                hits += low <= truth <= high
                unbounded += np.isinf(high)
        print(
            f"  {n_cases:>3} cases of each class: covered in "
            f"{100 * hits / shown:.1f} %, unbounded in "
            f"{100 * unbounded / shown:.1f} % of {shown} studies that name both"
        )


def few_positives(n_studies: int) -> None:
    """Coverage where few positives leave a reader without a miss in many studies."""
    print("\nFieller sets of the gradient between one reader and calling nobody, 95 %:")
    for positives, negatives, sens, fpr in (
        (5, 200, 0.8, 0.2),
        (10, 200, 0.9, 0.1),
        (16, 811, 0.9, 0.01),
    ):
        hits, hits_of_all = [], []
        for seed in range(n_studies):
            rng = np.random.default_rng(seed)
            y = np.repeat([1, 0], [positives, negatives])
            calls = rng.random(len(y)) < np.where(y == 1, sens, fpr)
            X = pd.DataFrame({"r": calls.astype(float)})
            rows = DominanceTable(readers=["r"]).fit(X, y).breakpoints_
            row = rows[rows["to_owner"] == "never positive"]
            if len(row) == 1:
                low, high = row[["fieller_low", "fieller_high"]].to_numpy()[0]
                hits.append(low <= sens / fpr <= high)
                if calls[y == 1].all():
                    hits_of_all.append(hits[-1])
        print(
            f"  {positives:>2} positives, {negatives} negatives: covered in "
            f"{100 * np.mean(hits):.1f} %; in {100 * np.mean(hits_of_all):.1f} % of "
            f"the {len(hits_of_all)} studies in which all positives were found"
        )


if __name__ == "__main__":
    main()
