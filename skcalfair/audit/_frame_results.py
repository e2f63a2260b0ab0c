"""From values by cell to the tables that fairlearn makes of them."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ._fairlearn import AnnotatedMetricFunction, DisaggregatedResult, GroupResult
from ._frame_features import Cells, Feature
from ._frame_sample import Sample

CELL = "cell"


def evaluate(sample: Sample) -> GroupResult:
    """Every metric overall (by control level) and by group."""
    cells = sample.cells
    values: dict[frozenset, dict[str, Any]] = {}
    parts = strata(cells)
    for part in parts:
        values[frozenset(part.tolist())] = sample.values(stratum_rows(cells, part))
    for cell in range(len(cells)):
        key = frozenset([cell])
        if key not in values:
            values[key] = sample.values(cells.rows(cell))
    return assemble(cells, values, [metric.name for metric in sample.metrics])


def strata(cells: Cells) -> list[NDArray[np.intp]]:
    """Cells that `overall` is about: all of them, or those of a control level."""
    return cells.strata() if cells.n_controls else [np.arange(len(cells))]


def stratum_rows(cells: Cells, part: NDArray[np.intp]) -> NDArray[np.intp] | None:
    """Rows of some cells, ascending; None for all rows."""
    if len(part) == len(cells):
        return None
    return np.sort(np.concatenate([cells.rows(cell) for cell in part]))


def assemble(
    cells: Cells, values: dict[frozenset, dict[str, Any]], names: list[str]
) -> GroupResult:
    """Let fairlearn arrange values that are looked up by the cells they belong to.

    Its frame holds a row for each cell, with level codes in place of labels; types,
    order and absent intersections are then fairlearn's own.
    """
    # The names that groupby sees must differ from the column of cells.
    columns = [f"feature {j}" for j in range(len(cells.features))]
    frame = pd.DataFrame(cells.keys, columns=columns)
    frame[CELL] = np.arange(len(cells))

    def look_up(name: str) -> AnnotatedMetricFunction:
        return AnnotatedMetricFunction(
            func=lambda found: values[frozenset(found.tolist())][name],
            name=name,
            positional_argument_names=[CELL],
        )

    k = cells.n_controls
    result = DisaggregatedResult.create(
        data=frame,
        annotated_functions={name: look_up(name) for name in names},
        sensitive_feature_names=columns[k:],
        control_feature_names=columns[:k] or None,
    )
    overall, by_group = result.overall, result.by_group
    if k:
        overall.index = labelled(overall.index, cells.features[:k])
    present = by_group.index.isin(pd.MultiIndex.from_arrays(cells.keys.T).tolist())
    if len(columns) == 1:
        present = np.ones(len(by_group), dtype=bool)
    by_group.index = labelled(by_group.index, cells.features)
    return GroupResult(overall, by_group, present)


def labelled(index: pd.Index, features: list[Feature]) -> pd.Index:
    """Index of labels in place of an index of level codes."""
    if len(features) == 1:
        return features[0].index().take(np.asarray(index, dtype=np.intp))
    levels = [feature.index() for feature in features]
    return pd.MultiIndex.from_product(levels, names=[f.name for f in features])


def positions(cells: Cells) -> NDArray[np.intp]:
    """Row of each cell in the `by_group` table, absent intersections counted."""
    shape = tuple(len(feature.levels) for feature in cells.features)
    return np.ravel_multi_index(list(cells.keys.T), shape)
