"""Choosing on one half of the cases, judging on the other."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._random import RandomStateLike, generator
from ._bootstrap import GRID
from ._cases import Cases
from ._costs import normalized_expected_cost
from ._replicates import ReplicateHulls, Study, replicate_hulls

Floats = NDArray[np.float64]

# Random divisions into halves, each used in both directions.
N_DIVISIONS = 50


def cross_fit(cases: Cases, random_state: RandomStateLike) -> pd.DataFrame:
    """Cost of the best choice on its own cases, and on cases that did not choose it."""
    study = Study(cases)
    halves = draw_halves(cases, N_DIVISIONS, generator(random_state))
    halves = np.concatenate([halves, ~halves])
    trivial = np.arange(len(study.names) - 2, len(study.names))
    models = np.arange(study.n_models)
    readers = np.arange(study.n_models, study.n_models + study.n_readers)
    columns: dict[str, Floats] = {"cpg": GRID}
    choices = {"": np.concatenate([models, readers]), "model_": models}
    choices["reader_"] = readers
    for prefix, names in choices.items():
        among = np.concatenate([names, trivial])
        everything = np.ones((1, len(cases)), dtype=np.uint8)
        full = replicate_hulls(study, everything, names=among)
        columns[f"{prefix}in_sample"] = _judged(study, full, everything)
        chosen = [
            _judged(study, replicate_hulls(study, half, names=among), ~half)
            for half in (halves[i : i + 1] for i in range(len(halves)))
        ]
        columns[f"{prefix}cross_fitted"] = np.nanmean(chosen, axis=0)
        if not len(names):
            columns[f"{prefix}in_sample"][:] = np.nan
            columns[f"{prefix}cross_fitted"][:] = np.nan
    return pd.DataFrame(columns)


def draw_halves(cases: Cases, n: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Random halves of the cases: within each class, or of whole patients."""
    halves = np.zeros((n, len(cases)), dtype=bool)
    if cases.clusters is not None:
        n_clusters = int(cases.clusters.max()) + 1
        for half in halves:
            chosen = rng.permutation(n_clusters) < n_clusters // 2
            half[:] = chosen[cases.clusters]
        return halves
    for outcome in (True, False):
        members = np.flatnonzero(cases.is_positive == outcome)
        for half in halves:
            half[rng.permutation(members)[: len(members) // 2]] = True
    return halves


def _judged(study: Study, hulls: ReplicateHulls, counts: NDArray) -> Floats:
    """Cost, in cases with these counts, of what is best in those of the hull."""
    places = hulls.best_places(GRID)[0]
    positive, negative = study.weigh(counts)
    rates: dict[int, tuple[float, float]] = {}
    for place in np.unique(places):
        i = int(np.searchsorted(hulls.place, place))
        rates[int(place)] = _rates(study, hulls, i, positive, negative)
    tpr = np.array([rates[int(place)][0] for place in places])
    fpr = np.array([rates[int(place)][1] for place in places])
    return normalized_expected_cost(tpr, fpr, GRID)


def _rates(
    study: Study, hulls: ReplicateHulls, i: int, positive: Floats, negative: Floats
) -> tuple[float, float]:
    """Rates of a decision in other cases than those that chose it."""
    name, threshold = int(hulls.name[i]), hulls.threshold[i]
    if name >= study.n_models + study.n_readers:
        trivial = float(threshold == -np.inf)
        return trivial, trivial
    if name >= study.n_models:
        tpr, fpr = study.reader_rates(name - study.n_models, positive, negative)
        return float(tpr[0]), float(fpr[0])
    called = study.scores[name] >= threshold
    tpr, fpr = (w[0, called].sum() / w.sum() for w in (positive, negative))
    return float(tpr), float(fpr)
