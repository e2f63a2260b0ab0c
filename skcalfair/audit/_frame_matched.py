"""Metrics of groups on subsamples of one size."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import gammaln

from .._sorted_scores import SortedScores
from ..metrics._calibration_error import squared_error_terms
from ..metrics._resampled import REPLICATES, replicate_values
from ..metrics._subsampled import subsample_values
from ..resampling import subsample_clusters, subsample_counts
from ._frame_metrics import FrameMetric
from ._frame_sample import NO_ROWS, Rows, Sample
from ._tables import Cell, matched_size, unusable

Floats = NDArray[np.float64]
# Cells whose rows are taken together.
Part = tuple[int, ...]
# Rows in all, or of each class: (positives, negatives).
Size = int | tuple[int, int]

NOT_A_NUMBER = "the metric is not a number"


def total(size: Size) -> int:
    """Rows of a subsample."""
    return size if isinstance(size, int) else sum(size)


@dataclass
class Matcher:
    """Metrics of parts of a sample at any size; what was drawn is kept."""

    sample: Sample
    size_match: str | int | None
    match_on: str
    n_resamples: int
    min_group_size: int
    seed: np.random.SeedSequence
    n_jobs: int | None
    _drawn: dict[tuple[Part, Size | None, bool], dict[str, Cell]] = field(
        default_factory=dict
    )
    _rows: dict[Part, Rows] = field(default_factory=dict)

    def rows(self, part: Part) -> Rows:
        """Rows of a part of the sample, ascending."""
        cells = self.sample.cells
        if len(part) == 1:
            return cells.rows(part[0])
        if part not in self._rows:
            self._rows[part] = np.sort(np.concatenate([cells.rows(c) for c in part]))
        return self._rows[part]

    def counts(self, part: Part) -> tuple[int, int]:
        """Positive and negative rows of a part; all are positive of unknown classes."""
        rows, y = self.rows(part), self.sample.outcome
        positives = len(rows) if y is None else int(y[rows].sum())
        return positives, len(rows) - positives

    def problem(self, part: Part) -> str | None:
        """Why nothing is estimated from a part, or None."""
        rows, clusters = self.rows(part), self.sample.clusters
        own = None if clusters is None else clusters[rows]
        problem = unusable(len(rows), own, self.min_group_size)
        if problem is not None:
            return problem
        if self.match_on == "classes" and min(self.counts(part)) == 0:
            return "only one class is present"
        return None

    def size_of(self, parts: Iterable[Part]) -> Size | None:
        """Size at which parts are compared: that of the smallest that can be used."""
        if self.size_match is None:
            return None
        given = None if isinstance(self.size_match, str) else int(self.size_match)
        if self.match_on == "classes":
            if given is not None:
                return given, given
            counts = [self.counts(p) for p in parts if self.problem(p) is None]
            if len(counts) < 2:
                return None
            positives, negatives = zip(*counts, strict=True)
            return min(positives), min(negatives)
        usable = [len(self.rows(p)) for p in parts if self.problem(p) is None]
        return matched_size(self.size_match, usable)

    def cells(
        self, part: Part, size: Size | None, *, biased_only: bool = False
    ) -> dict[str, Cell]:
        """Every metric on all rows of a part (None), or on subsamples of a size.

        With `biased_only`, those whose size matters; the others take as long and tell
        nothing.
        """
        if size == len(self.rows(part)) or size == self.counts(part):
            size = None
        if (part, size, False) in self._drawn:
            return self._drawn[part, size, False]
        key = part, size, biased_only
        if key not in self._drawn:
            metrics = [
                metric
                for metric in self.sample.metrics
                if not (biased_only and metric.size_robust)
            ]
            self._drawn[key] = self._evaluate(part, size, metrics)
        return self._drawn[key]

    def _evaluate(
        self, part: Part, size: Size | None, metrics: list[FrameMetric]
    ) -> dict[str, Cell]:
        problem = self.problem(part)
        if problem is None and size is not None and not self._fits(part, size):
            problem = f"fewer than {total(size)} rows"
            if isinstance(size, tuple):
                problem = f"fewer than {size[0]} positive or {size[1]} negative rows"
        if problem is not None:
            nothing = Cell(np.array([np.nan]), problem)
            return {metric.name: nothing for metric in metrics}
        entropy, key = self.seed.entropy, (*self.seed.spawn_key, *part)
        seed = np.random.SeedSequence(entropy, spawn_key=key)
        drawn = self._kernels(part, size, seed, metrics)
        drawn |= self._callables(part, size, seed, metrics)
        return {metric.name: drawn[metric.name] for metric in metrics}

    def _fits(self, part: Part, size: Size) -> bool:
        if isinstance(size, int):
            return size <= len(self.rows(part))
        return all(k <= n for k, n in zip(size, self.counts(part), strict=True))

    def _kernels(
        self,
        part: Part,
        size: Size | None,
        seed: np.random.SeedSequence,
        wanted: list[FrameMetric],
    ) -> dict[str, Cell]:
        out: dict[str, Cell] = {}
        rows = self.rows(part)
        for key, weighting in self.sample.weightings.items():
            metrics = {
                m.name: m.built_in
                for m in wanted
                if m.built_in is not None and m.weights == key
            }
            if not metrics:
                continue
            if not len(weighting.take(rows)):
                nothing = Cell(np.array([np.nan]), NO_ROWS)
                out |= dict.fromkeys(metrics, nothing)
                continue
            scores = weighting.scores(rows)
            kernels = {name: metric.kernel for name, metric in metrics.items()}
            values = _kernel_values(
                scores, kernels, size, self.n_resamples, seed, self.n_jobs
            )
            for name, metric in metrics.items():
                reason = None
                if metric.requirement and not np.isfinite(values[name]).all():
                    reason = metric.requirement(scores)
                out[name] = Cell(values[name], reason)
        return out

    def _callables(
        self,
        part: Part,
        size: Size | None,
        seed: np.random.SeedSequence,
        wanted: list[FrameMetric],
    ) -> dict[str, Cell]:
        metrics = [m for m in wanted if m.built_in is None]
        if not metrics:
            return {}
        rows = self.rows(part)
        if size is None:
            values = _called(self.sample, metrics, [rows])
        else:
            n = self.n_resamples
            sizes = [min(REPLICATES, n - i) for i in range(0, n, REPLICATES)]
            values = np.concatenate(
                Parallel(n_jobs=self.n_jobs)(
                    delayed(_called_on_draws)(self.sample, metrics, rows, size, b, s)
                    for b, s in zip(sizes, seed.spawn(len(sizes)), strict=True)
                )
            )
        reasons = [
            NOT_A_NUMBER if np.isinf(column).all() else None for column in values.T
        ]
        values[:, [reason is not None for reason in reasons]] = np.nan
        return {m.name: Cell(values[:, j], reasons[j]) for j, m in enumerate(metrics)}


def _kernel_values(
    scores: SortedScores,
    kernels: dict[str, Any],
    size: Size | None,
    n_resamples: int,
    seed: np.random.SeedSequence,
    n_jobs: int | None,
) -> dict[str, Floats]:
    if size is None:
        return {name: kernel(scores) for name, kernel in kernels.items()}
    rng = np.random.default_rng(seed)
    if isinstance(size, tuple):
        draw = partial(draw_classes, scores.y, size)
        return replicate_values(
            scores, kernels, draw, n_resamples, random_state=rng, n_jobs=n_jobs
        )
    if size > len(scores):  # rows of weight zero are none
        return {name: np.array([np.nan]) for name in kernels}
    return subsample_values(
        scores, kernels, size, n_resamples, random_state=rng, n_jobs=n_jobs
    )


def draw_classes(
    y: NDArray[np.uint8], size: tuple[int, int], n: int, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Subsamples with given numbers of positive and negative rows, as 0/1 counts."""
    out = np.zeros((n, len(y)), dtype=np.uint8)
    for label, k in ((1, size[0]), (0, size[1])):
        rows = np.flatnonzero(y == label)
        out[:, rows] = subsample_counts(len(rows), k, n, random_state=rng)
    return out


def _called_on_draws(
    sample: Sample,
    metrics: list[FrameMetric],
    rows: Rows,
    size: Size,
    n: int,
    seed: np.random.SeedSequence,
) -> Floats:
    """Values of callables on subsamples, (n, n_metrics)."""
    rng = np.random.default_rng(seed)
    if isinstance(size, tuple):
        assert sample.outcome is not None  # classes are matched of two only
        counts = draw_classes(sample.outcome[rows], size, n, rng)
    elif sample.clusters is None:
        counts = subsample_counts(len(rows), size, n, random_state=rng)
    else:
        _, codes = np.unique(sample.clusters[rows], return_inverse=True)
        counts = subsample_clusters(codes, size, n, random_state=rng)
    return _called(sample, metrics, [rows[np.flatnonzero(c)] for c in counts])


def _called(sample: Sample, metrics: list[FrameMetric], drawn: list[Rows]) -> Floats:
    """Values of callables; infinite in every row for what is not a number."""
    out = np.full((len(drawn), len(metrics)), np.nan)
    for i, rows in enumerate(drawn):
        for j, metric in enumerate(metrics):
            try:
                value = sample.call_again(metric, rows)
            except ValueError:
                continue  # refused, as by a metric of two classes for rows of one
            out[i, j] = value if np.isscalar(value) else np.inf
    return out


# -- rarefaction ----------------------------------------------------------------------


def expected_squared_error(scores: SortedScores, n_bins: int, size: int) -> float:
    """Mean of the squared calibration error over all subsamples of a size, exactly.

    Given its M rows, a bin contributes (M / size) U_b on average, and nothing for
    M = 1; M is hypergeometric.
    """
    mass, numerator, denominator = (a[0] for a in squared_error_terms(scores, n_bins))
    u = np.divide(
        numerator, denominator, out=np.zeros_like(mass), where=denominator > 0
    )
    n = len(scores)
    alone = mass * np.exp(
        _log_choose(n - mass, size - 1.0) - _log_choose(float(n), float(size))
    )
    return float(((size * mass / n - alone) * u).sum() / size)


def _log_choose(n: Any, k: float) -> Any:
    possible = np.asarray(n) >= k
    n = np.where(possible, n, k)
    value = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
    return np.where(possible, value, -np.inf)
