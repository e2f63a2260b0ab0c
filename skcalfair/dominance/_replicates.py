"""Pooled hulls of many resampled studies at once.

A block of bootstrap samples (or of halves) is a matrix of counts with a row for each.
All its curves lie one after another in flat arrays, so that numpy's loops run over a
million points instead of Python's over a thousand curves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ._cases import Cases
from ._hull import segment_hulls
from ._pooled import ALWAYS, NEVER

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]

# Rows of the score axis are cut into blocks of about so many counts.
BLOCK_CELLS = 2_000_000


class Study:
    """A reader study prepared for resampling: cases in the order of each model."""

    def __init__(self, cases: Cases) -> None:
        self.names = [*cases.model_names, *cases.reader_names, NEVER, ALWAYS]
        self.n_models = len(cases.model_names)
        self.n_readers = len(cases.reader_names)
        self.is_positive = cases.is_positive
        self.weights = (
            None if cases.weights is None else cases.weights / cases.weights.mean()
        )
        self.orders = [np.argsort(-scores, kind="stable") for scores in cases.scores]
        self.thresholds, self.ends = [], []
        for scores, order in zip(cases.scores, self.orders, strict=True):
            descending = scores[order]
            ends = np.append(np.flatnonzero(np.diff(descending)), len(order) - 1)
            self.ends.append(ends)
            self.thresholds.append(descending[ends])
        self.scores, self.calls = cases.scores, cases.calls

    @property
    def kinds(self) -> list[str]:
        """Kind of each name."""
        return (
            ["model"] * self.n_models + ["reader"] * self.n_readers + ["strategy"] * 2
        )

    def block_size(self) -> int:
        """Number of resampled studies in a block."""
        return max(1, min(64, BLOCK_CELLS // len(self.is_positive)))

    def weigh(self, counts: NDArray) -> tuple[Floats, Floats]:
        """Weights of the positive and negative cases in each resampled study."""
        w = counts if self.weights is None else counts * self.weights
        return w * self.is_positive, w * ~self.is_positive

    def model_curve(
        self, model: int, positive: Floats, negative: Floats
    ) -> tuple[Floats, Floats]:
        """Rates (TPR, FPR) of shape (n_studies, n_thresholds), highest first."""
        order, ends = self.orders[model], self.ends[model]
        rates = []
        for weights in (positive, negative):
            sums = np.cumsum(weights[:, order], axis=1)[:, ends]
            rates.append(sums / sums[:, -1:])
        return rates[0], rates[1]

    def reader_rates(
        self, reader: int, positive: Floats, negative: Floats
    ) -> tuple[Floats, Floats]:
        """Rates (TPR, FPR) of a reader; NaN where no such case was read."""
        called = self.calls[reader] == 1
        read = ~np.isnan(self.calls[reader])
        with np.errstate(invalid="ignore", divide="ignore"):
            return (
                positive[:, called].sum(axis=1) / positive[:, read].sum(axis=1),
                negative[:, called].sum(axis=1) / negative[:, read].sum(axis=1),
            )


@dataclass(frozen=True)
class ReplicateHulls:
    """Hulls of a block of resampled studies.

    Points are flat arrays sorted by study and x; `place` numbers the distinct points,
    and `vertex` says of each place whether it is a vertex.
    """

    n_studies: int
    n_names: int
    study: Positions
    x: Floats
    y: Floats
    name: Positions
    threshold: Floats
    place: Positions
    vertex: NDArray[np.bool_]

    @cached_property
    def on_hull(self) -> NDArray[np.bool_]:
        """Whether each name has a vertex, of shape (n_studies, n_names)."""
        found = np.zeros((self.n_studies, self.n_names), dtype=bool)
        owned = self.vertex[self.place]
        found[self.study[owned], self.name[owned]] = True
        return found

    def best_places(self, cpg: Floats) -> Positions:
        """Place of the vertex with least cost, of shape (n_studies, n_gradients)."""
        first = np.flatnonzero(np.diff(self.place, prepend=-1))
        vertices = first[self.vertex[self.place[first]]]
        x, y, study = self.x[vertices], self.y[vertices], self.study[vertices]
        starts = np.searchsorted(study, np.arange(self.n_studies + 1))
        best = np.empty((self.n_studies, len(cpg)), dtype=np.intp)
        for i, (a, b) in enumerate(pairwise(starts)):
            # Slopes fall with x; a vertex is best from the slope after it on.
            slopes = np.diff(y[a:b]) / np.diff(x[a:b])
            at = len(slopes) - np.searchsorted(slopes[::-1], cpg)
            best[i] = self.place[vertices[a + at]]
        return best

    def vertices(self) -> "ReplicateVertices":
        """Every vertex with the gradients it is best for, and its owners."""
        first = np.flatnonzero(np.diff(self.place, prepend=-1))
        at = first[self.vertex[self.place[first]]]
        x, y, study = self.x[at], self.y[at], self.study[at]
        with np.errstate(invalid="ignore", divide="ignore"):
            slopes = np.diff(y) / np.diff(x)
        ends = np.diff(study) > 0
        # Slopes fall with x: the first vertex of a study is best without upper limit.
        high = np.append(np.inf, np.where(ends, np.inf, slopes))
        low = np.append(np.where(ends, 0.0, slopes), 0.0)
        return ReplicateVertices(
            low, high, self.owners_of_place[self.place[at]], self.n_studies
        )

    @cached_property
    def owners_of_place(self) -> NDArray[np.bool_]:
        """Who owns each place, of shape (n_places, n_names)."""
        owners = np.zeros((int(self.place[-1]) + 1, self.n_names), dtype=bool)
        owners[self.place, self.name] = True
        return owners


@dataclass(frozen=True)
class ReplicateVertices:
    """Vertices of resampled studies: gradients `low` to `high`, and who owns them.

    `owners` has the shape (n_vertices, n_names).
    """

    low: Floats
    high: Floats
    owners: NDArray[np.bool_]
    n_studies: int

    def support(self, cpg: float) -> Floats:
        """Share of the studies in which each name is best at a gradient."""
        best = (self.low <= cpg) & (cpg < self.high)
        share: Floats = self.owners[best].sum(axis=0) / self.n_studies
        return share


def join_vertices(
    parts: Sequence[ReplicateVertices], owners: Sequence[NDArray[np.bool_]]
) -> ReplicateVertices:
    """Vertices of several blocks, with their owners as given."""
    return ReplicateVertices(
        np.concatenate([part.low for part in parts]),
        np.concatenate([part.high for part in parts]),
        np.concatenate(owners),
        sum(part.n_studies for part in parts),
    )


def replicate_hulls(
    study: Study,
    counts: NDArray,
    readers: NDArray[np.bool_] | None = None,
    names: Positions | None = None,
) -> ReplicateHulls:
    """Hulls of resampled studies with these counts of cases.

    `readers` of shape (n_studies, n_readers) says which readers take part, `names`
    which names (by default all).
    """
    positive, negative = study.weigh(counts)
    wanted = set(range(len(study.names))) if names is None else set(names.tolist())
    parts = [
        _model_points(study, j, positive, negative)
        for j in range(study.n_models)
        if j in wanted
    ]
    for r in range(study.n_readers):
        if study.n_models + r in wanted:
            taking_part = None if readers is None else readers[:, r]
            parts.append(_reader_points(study, r, positive, negative, taking_part))
    n, last = len(counts), len(study.names)
    for name, rate, threshold in ((last - 2, 0.0, np.inf), (last - 1, 1.0, -np.inf)):
        same = np.full(n, rate)
        parts.append(
            (np.arange(n), same, same, np.full(n, name), np.full(n, threshold))
        )
    return _pool(n, len(study.names), parts)


Part = tuple[Positions, Floats, Floats, Positions, Floats]


def _model_points(study: Study, j: int, positive: Floats, negative: Floats) -> Part:
    """Vertices of the model's own hulls, without the trivial ones."""
    tpr, fpr = study.model_curve(j, positive, negative)
    n, k = tpr.shape
    zeros = np.zeros((n, 1))
    x, y = np.hstack([zeros, fpr]).ravel(), np.hstack([zeros, tpr]).ravel()
    segment = np.repeat(np.arange(n), k + 1)
    kept = segment_hulls(x, y, segment)
    kept = kept[(kept % (k + 1) > 0) & ((x[kept] < 1) | (y[kept] < 1))]
    thresholds = study.thresholds[j][kept % (k + 1) - 1]
    return segment[kept], x[kept], y[kept], np.full(len(kept), j), thresholds


def _reader_points(
    study: Study,
    r: int,
    positive: Floats,
    negative: Floats,
    taking_part: NDArray[np.bool_] | None,
) -> Part:
    tpr, fpr = study.reader_rates(r, positive, negative)
    known = ~(np.isnan(tpr) | np.isnan(fpr))
    if taking_part is not None:
        known &= taking_part
    rows = np.flatnonzero(known)
    name = np.full(len(rows), study.n_models + r)
    return rows, fpr[rows], tpr[rows], name, np.full(len(rows), np.nan)


def _pool(n_studies: int, n_names: int, parts: list[Part]) -> ReplicateHulls:
    columns = zip(*parts, strict=True)
    study, x, y, name, threshold = (np.concatenate(column) for column in columns)
    order = np.lexsort((name, -y, x, study))
    study, x, y, name, threshold = (
        column[order] for column in (study, x, y, name, threshold)
    )
    # Equal fractions are equal floats, as a division is rounded correctly.
    is_new = np.ones(len(x), dtype=bool)
    is_new[1:] = (np.diff(study) > 0) | (np.diff(x) != 0) | (np.diff(y) != 0)
    place = np.cumsum(is_new) - 1
    first = np.flatnonzero(is_new)
    # Within a study only points higher than all to their left can be best.
    height = y[first] + 2.0 * study[first]
    highest = np.maximum.accumulate(height)
    rises = np.ones(len(first), dtype=bool)
    rises[1:] = highest[1:] > highest[:-1]
    candidates = first[rises]
    hull = candidates[segment_hulls(x[candidates], y[candidates], study[candidates])]
    vertex = np.zeros(int(place[-1]) + 1, dtype=bool)
    vertex[place[hull]] = True
    return ReplicateHulls(
        n_studies, n_names, study, x, y, name, threshold, place, vertex
    )
