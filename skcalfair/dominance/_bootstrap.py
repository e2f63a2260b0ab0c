"""Paired bootstrap of the cases of a reader study, and of its readers."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray

from .._random import RandomStateLike, child_seeds
from ..resampling import bootstrap_clusters, stratified_bootstrap
from ._breakpoints import replicate_gradients
from ._cases import Cases
from ._replicates import (
    ReplicateVertices,
    Study,
    join_vertices,
    replicate_hulls,
)

Floats = NDArray[np.float64]
Calls = list[tuple[Floats, Floats]]

# Gradients at which support is reported: four for each factor of ten.
GRID: Floats = np.logspace(-3, 3, 49)


@dataclass(frozen=True)
class BootstrapResult:
    """Shares of bootstrap samples, and the breakpoints in each of them."""

    names: list[str]
    kinds: list[str]
    on_hull: Floats
    vertices: ReplicateVertices
    gradients: Floats
    without_support: slice

    @property
    def support(self) -> pd.DataFrame:
        """How often each name has a vertex."""
        columns = {"name": self.names, "kind": self.kinds, "on_hull": self.on_hull}
        return pd.DataFrame(columns)

    def dominance(self, cpg: Iterable[float]) -> pd.DataFrame:
        """How often each name is best, a row for each gradient and name."""
        grid = list(cpg)
        shares = np.array([self.vertices.support(m) for m in grid])
        shares[:, self.without_support] = np.nan
        return pd.DataFrame(
            {
                "cpg": np.repeat(grid, len(self.names)),
                "name": self.names * len(grid),
                "kind": self.kinds * len(grid),
                "support": shares.ravel(),
            }
        )


def bootstrap_study(
    cases: Cases,
    changes: Calls,
    n_bootstrap: int,
    *,
    resample_readers: bool,
    random_state: RandomStateLike,
    n_jobs: int | None,
) -> BootstrapResult:
    """Resample the cases of a study; `changes` are the decisions at its breakpoints."""
    study = Study(cases)
    size = study.block_size()
    sizes = [min(size, n_bootstrap - start) for start in range(0, n_bootstrap, size)]
    seeds = child_seeds(random_state, len(sizes))
    blocks = Parallel(n_jobs=n_jobs)(
        delayed(_block)(cases, study, changes, n, seed, resample_readers)
        for n, seed in zip(sizes, seeds, strict=True)
    )
    on_hull = np.concatenate([block[0] for block in blocks]).mean(axis=0)
    vertices = join_vertices(
        [block[1] for block in blocks],
        [_add_unions(study, block[1].owners) for block in blocks],
    )
    names, kinds = _with_unions(study)
    # Left out of a third of the samples, a reader's share says little of it.
    hidden = _named_readers(study) if resample_readers else slice(0, 0)
    on_hull[hidden] = np.nan
    gradients = np.concatenate([block[2] for block in blocks])
    return BootstrapResult(names, kinds, on_hull, vertices, gradients, hidden)


def _block(
    cases: Cases,
    study: Study,
    changes: Calls,
    n: int,
    seed: np.random.SeedSequence,
    resample_readers: bool,
) -> tuple[NDArray[np.bool_], ReplicateVertices, Floats]:
    """Who is on the hull of some bootstrap samples, their vertices and breakpoints."""
    rng = np.random.default_rng(seed)
    counts = draw_cases(cases, n, rng)
    readers = None
    if resample_readers:
        drawn = rng.integers(study.n_readers, size=(n, study.n_readers))
        readers = (drawn[:, :, None] == np.arange(study.n_readers)).any(axis=1)
    hulls = replicate_hulls(study, counts, readers)
    weights = counts if study.weights is None else counts * study.weights
    gradients = np.empty((n, len(changes)))
    for k, calls in enumerate(changes):
        gradients[:, k] = replicate_gradients(cases, weights.astype(float), calls)
    return _add_unions(study, hulls.on_hull), hulls.vertices(), gradients


def draw_cases(cases: Cases, n: int, rng: np.random.Generator) -> NDArray:
    """Counts of n bootstrap samples: within each class, or of whole patients."""
    truth = cases.is_positive.astype(np.intp)
    if cases.clusters is None:
        return stratified_bootstrap(truth, n, random_state=rng)
    clusters = cases.clusters
    n_clusters = int(clusters.max()) + 1
    positives = np.bincount(clusters, truth, n_clusters)
    sizes = np.bincount(clusters, minlength=n_clusters)
    if ((positives == 0) | (positives == sizes)).all():
        return stratified_bootstrap(truth, n, clusters=clusters, random_state=rng)
    return _with_both_classes(cases.is_positive, clusters, n, rng)


def _with_both_classes(
    is_positive: NDArray[np.bool_],
    clusters: NDArray[np.intp],
    n: int,
    rng: np.random.Generator,
) -> NDArray:
    """Whole patients of both truths cannot be stratified; redraw one-class samples."""
    counts = bootstrap_clusters(clusters, n, random_state=rng)
    while True:
        positive = (counts * is_positive).any(axis=1)
        negative = (counts * ~is_positive).any(axis=1)
        lacking = np.flatnonzero(~(positive & negative))
        if not len(lacking):
            return counts
        counts[lacking] = bootstrap_clusters(clusters, len(lacking), random_state=rng)


def _named_readers(study: Study) -> slice:
    return slice(study.n_models, study.n_models + study.n_readers)


def _with_unions(study: Study) -> tuple[list[str], list[str]]:
    """Names and kinds, with those of any model and any reader at the end."""
    return (
        [*study.names, "any model", "any reader"],
        [*study.kinds, "model", "reader"],
    )


def _add_unions(study: Study, owned: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Append whether any model, and any reader, is among the owners."""
    m = study.n_models
    any_model = owned[..., :m].any(axis=-1, keepdims=True)
    any_reader = owned[..., _named_readers(study)].any(axis=-1, keepdims=True)
    return np.concatenate([owned, any_model, any_reader], axis=-1)
