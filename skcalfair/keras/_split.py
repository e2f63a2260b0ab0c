"""Rows held out of training for early stopping."""

import warnings

import numpy as np
from numpy.typing import NDArray

from ..model_selection import NestedStratifiedGroupKFold

Rows = NDArray[np.intp]

# Groups are dealt into as many folds at most, some of which are held out.
MOST_FOLDS = 20


def validation_rows(
    codes: Rows,
    groups: Rows | None,
    fraction: float,
    labels: list,
    seed: np.random.SeedSequence,
) -> Rows:
    """Rows to hold out: stratified by class, and groups as a whole; sorted."""
    rng = np.random.default_rng(seed)
    if groups is None:
        return _stratified(codes, fraction, labels, rng)
    return _stratified_groups(codes, groups, fraction, labels, rng)


def _stratified(
    codes: Rows, fraction: float, labels: list, rng: np.random.Generator
) -> Rows:
    """A share of each class, at least one row."""
    held_out = []
    for code, label in enumerate(labels):
        rows = np.flatnonzero(codes == code)
        if len(rows) < 2:
            raise ValueError(
                f"class {label!r} has only one row, so that training and validation "
                "cannot both have one. Pass X_val and y_val, or use "
                "early_stopping=False"
            )
        n = min(max(round(fraction * len(rows)), 1), len(rows) - 1)
        held_out.append(rng.permutation(rows)[:n])
    return np.sort(np.concatenate(held_out))


def _stratified_groups(
    codes: Rows,
    groups: Rows,
    fraction: float,
    labels: list,
    rng: np.random.Generator,
) -> Rows:
    """Whole groups, with about the same share of each class."""
    n_groups = [len(np.unique(groups[codes == code])) for code in range(len(labels))]
    rarest = int(np.argmin(n_groups))
    if n_groups[rarest] < 2:
        raise ValueError(
            f"class {labels[rarest]!r} occurs in one of groups only, so that training "
            "and validation cannot both have it. Pass X_val and y_val, or use "
            "early_stopping=False"
        )
    # Fine folds hold out the right number of rows, coarse ones rather every class.
    for n_folds in range(min(MOST_FOLDS, n_groups[rarest]), 1, -1):
        wanted = min(max(round(fraction * n_folds), 1), n_folds - 1)
        folds = NestedStratifiedGroupKFold(n_folds, random_state=rng)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*some folds have none of them")
            parts = [test for _, test in folds.split(None, codes, groups=groups)]
        held_out = np.concatenate(parts[:wanted])
        rest = np.concatenate(parts[wanted:])
        if all(np.unique(codes[rows]).size == len(labels) for rows in (held_out, rest)):
            return np.sort(held_out).astype(np.intp)
    raise ValueError(
        "groups cannot be divided so that training and validation both have every "
        f"class of {labels}. Pass X_val and y_val, or use early_stopping=False"
    )
