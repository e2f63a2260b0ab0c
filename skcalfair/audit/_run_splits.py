"""Rows of the runs of a study: training, validation and test."""

import inspect
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing

from .._validation import Groups, ScoredRows, check_same_length, encode_groups
from ..model_selection import NestedStratifiedGroupKFold

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]
Seed = np.random.SeedSequence

# One part in so many of the training rows fits the calibrator where cv yields none,
# or in as many as the rarer class has patients.
CALIBRATION_PARTS = 5


@dataclass(frozen=True)
class StudyRows:
    """What a study knows of its rows beside X; `kept` are those of positive weight."""

    y: NDArray
    labels: list[Any]
    outcome: NDArray[np.uint8]
    pos_label: Any
    groups: Groups
    clusters: Positions | None
    weights: Floats | None
    kept: Positions

    def __len__(self) -> int:
        return len(self.y)

    @property
    def weights_are_counts(self) -> bool:
        """Whether the weights can be numbers of rows."""
        w = self.weights
        return w is None or bool((w == np.floor(w)).all())

    def scored(self, positions: Positions, p: Floats) -> ScoredRows:
        """Some rows with their probabilities."""
        w, c = self.weights, self.clusters
        return ScoredRows(
            self.outcome[positions],
            p,
            None if w is None else w[positions],
            None if c is None else c[positions],
            self.pos_label,
        )


def known_groups(sensitive_features: Any, n: int, kept: NDArray) -> Groups:
    """Groups that occur in rows of positive weight; one for all without features."""
    if sensitive_features is None:
        return Groups(np.zeros(n, dtype=np.intp), ["all"], ["sensitive_features"])
    groups = encode_groups(sensitive_features, n, missing="drop")
    found = np.unique(groups.codes[kept])
    found = found[found >= 0]
    if not found.size:
        raise ValueError(
            "sensitive_features gives no row a group: all values are missing"
        )
    new_code = np.full(len(groups.labels) + 1, -1, dtype=np.intp)
    new_code[found] = np.arange(len(found))
    labels = [groups.labels[code] for code in found]
    return Groups(new_code[groups.codes], labels, groups.names)


@dataclass(frozen=True)
class Split:
    """Rows of a run. `fold` numbers the distinct test sets."""

    train: Positions
    validation: Positions
    test: Positions
    fold: int = 0
    reason: str | None = None


def make_splits(
    cv: Any,
    X: Any,
    rows: StudyRows,
    metadata: dict[str, Any],
    seed: Seed,
) -> list[Split]:
    """Rows of every run, from a splitter or an iterable of pairs or triples."""
    cv_seed, inner_seed = seed.spawn(2)
    found = [
        _as_split(run, parts, rows)
        for run, parts in enumerate(_raw_splits(cv, X, rows, metadata, cv_seed))
    ]
    if not found:
        raise ValueError("cv yields no split")
    folds: dict[bytes, int] = {}
    inner_seeds = inner_seed.spawn(len(found))
    return [
        replace(
            _with_validation(split, rows, own_seed),
            fold=folds.setdefault(np.sort(split.test).tobytes(), len(folds)),
        )
        for split, own_seed in zip(found, inner_seeds, strict=True)
    ]


def _raw_splits(
    cv: Any, X: Any, rows: StudyRows, metadata: dict[str, Any], seed: Seed
) -> Iterator[tuple[Any, ...]]:
    """Pairs or triples of positions in the caller's rows."""
    rng = np.random.default_rng(seed)
    if cv is None:
        cv = NestedStratifiedGroupKFold(random_state=rng)
    elif isinstance(cv, (int, np.integer)):
        cv = NestedStratifiedGroupKFold(int(cv), random_state=rng).split
    if isinstance(cv, Iterable) and not hasattr(cv, "split"):
        yield from (tuple(parts) for parts in cv)
        return
    split = getattr(cv, "split_nested", getattr(cv, "split", cv))
    kept, y = rows.kept, rows.y
    if len(kept) < len(rows):
        # Rows of weight zero are not there, so no fold may depend on them.
        X, y = _safe_indexing(X, kept), y[kept]
        metadata = {
            name: None if values is None else _take(values, kept)
            for name, values in metadata.items()
        }
    known = inspect.signature(split).parameters
    options = {name: v for name, v in metadata.items() if name in known}
    with warnings.catch_warnings():
        # A splitter that ignores them may still keep them whole; see shared_clusters.
        warnings.filterwarnings("ignore", "The groups parameter is ignored")
        found = list(split(X, y, **options))
    for parts in found:
        yield tuple(kept[_positions(part, len(kept))] for part in parts)


def _take(values: Any, positions: Positions) -> Any:
    if isinstance(values, dict):
        return {name: _take(column, positions) for name, column in values.items()}
    return _safe_indexing(values, positions)


def _as_split(run: int, parts: tuple[Any, ...], rows: StudyRows) -> Split:
    if len(parts) not in (2, 3):
        raise ValueError(
            "cv must yield (train, test) or (train, validation, test) rows; run "
            f"{run} has {len(parts)} parts"
        )
    present = np.zeros(len(rows), dtype=bool)
    present[rows.kept] = True
    taken = np.zeros(len(rows), dtype=bool)
    positions = []
    for part in parts:
        found = _positions(part, len(rows))
        found = found[present[found]]
        if taken[found].any():
            raise ValueError(
                f"run {run} of cv has row {found[taken[found]][0]} in more than one of "
                "the training, validation and test parts"
            )
        taken[found] = True
        positions.append(found)
    train, test = positions[0], positions[-1]
    validation = positions[1] if len(parts) == 3 else np.empty(0, dtype=np.intp)
    if len(parts) == 3 and not validation.size:
        return Split(train, validation, test, reason="no validation rows")
    return Split(train, validation, test)


def _positions(part: ArrayLike, n: int) -> Positions:
    """Row numbers from positions or a mask."""
    found = np.asarray(part)
    if found.dtype == bool:
        check_same_length(("a mask of cv", found), ("X", np.empty(n)))
        return np.flatnonzero(found)
    found = found.astype(np.intp)
    if found.size and not (found.min() >= -n and found.max() < n):
        raise ValueError(f"cv yields row {found.max()}, but there are {n} rows")
    return found % n


def _with_validation(split: Split, rows: StudyRows, seed: Seed) -> Split:
    """Hold a part of the training rows out for the calibrator, if cv gave none."""
    if split.validation.size or split.reason:
        return split
    train = split.train
    unit = np.arange(len(train)) if rows.clusters is None else rows.clusters[train]
    rarest = min(len(np.unique(unit[rows.outcome[train] == y])) for y in (0, 1))
    parts = min(CALIBRATION_PARTS, max(rarest, 2))
    cv = NestedStratifiedGroupKFold(parts, random_state=np.random.default_rng(seed))
    metadata = {"groups": unit, "sensitive_features": rows.groups.codes[train]}
    if rows.clusters is None:
        del metadata["groups"]
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*some folds have none of them")
            rest, validation = next(cv.split(None, rows.outcome[train], **metadata))
    except ValueError as error:
        why = f"no training rows can be held out for the calibrator: {error}"
        return replace(split, reason=why)
    return replace(split, train=train[rest], validation=train[validation])


def shared_clusters(splits: list[Split], rows: StudyRows) -> int:
    """Number of runs in which a cluster is on two sides."""
    if rows.clusters is None:
        return 0
    return sum(
        bool(
            np.intersect1d(rows.clusters[s.train], rows.clusters[s.validation]).size
            or np.intersect1d(
                rows.clusters[np.concatenate([s.train, s.validation])],
                rows.clusters[s.test],
            ).size
        )
        for s in splits
    )
