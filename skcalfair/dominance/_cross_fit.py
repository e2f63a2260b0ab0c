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
    halves = _usable_halves(cases, generator(random_state))
    everything = np.ones((1, len(cases)), dtype=bool)
    strategies = [len(study.names) - 2, len(study.names) - 1]
    models = list(range(study.n_models))
    readers = list(range(study.n_models, study.n_models + study.n_readers))
    choices = {"": models + readers, "model_": models, "reader_": readers}
    columns: dict[str, Floats] = {"cpg": GRID}
    for prefix, names in choices.items():
        among = np.array(names + strategies)
        in_sample, crossed = np.full((2, len(GRID)), np.nan)
        if names:
            in_sample = _judged(study, everything, everything, among)[0]
        if names and len(halves):
            crossed = _mean_of_known(_judged(study, halves, ~halves, among))
        columns[f"{prefix}in_sample"] = in_sample
        columns[f"{prefix}cross_fitted"] = crossed
    return pd.DataFrame(columns)


def _usable_halves(cases: Cases, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Both halves of each division; one of one class neither chooses nor judges."""
    halves = draw_halves(cases, N_DIVISIONS, rng)
    y = cases.is_positive
    usable = np.ones(len(halves), dtype=bool)
    for members in (halves[:, y], halves[:, ~y]):
        usable &= members.any(axis=1) & ~members.all(axis=1)
    return np.concatenate([halves[usable], ~halves[usable]])


def _mean_of_known(costs: Floats) -> Floats:
    """Mean over halves; a reader may have read no case of a class in some."""
    known = ~np.isnan(costs)
    total = np.where(known, costs, 0.0).sum(axis=0)
    counts = known.sum(axis=0)
    return np.where(counts > 0, total / np.maximum(counts, 1), np.nan)


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


def _judged(
    study: Study,
    choosing: NDArray[np.bool_],
    judging: NDArray[np.bool_],
    among: NDArray[np.intp],
) -> Floats:
    """Cost in some cases of what is best in others, shape (n_studies, n_gradients)."""
    size = study.block_size()
    blocks = []
    for start in range(0, len(choosing), size):
        block = slice(start, start + size)
        hulls = replicate_hulls(study, choosing[block], names=among)
        positive, negative = study.weigh(judging[block])
        places = hulls.best_places(GRID)
        rates = np.empty((2, *places.shape))
        for i, row in enumerate(places):
            distinct, inverse = np.unique(row, return_inverse=True)
            found = [
                _rates(study, hulls, first, positive[i : i + 1], negative[i : i + 1])
                for first in np.searchsorted(hulls.place, distinct)
            ]
            rates[:, i] = np.array(found).T[:, inverse]
        blocks.append(normalized_expected_cost(rates[0], rates[1], GRID))
    return np.concatenate(blocks)


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
