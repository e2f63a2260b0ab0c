"""A dominance table as JSON, CSV and Markdown files."""

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from .._files import write
from ._words import assumed_prevalences, markdown

FRAMES = (
    "hull",
    "dominated",
    "pairing",
    "breakpoints",
    "support",
    "dominance_support",
    "cross_fit",
)


def to_dict(
    dominance: Any, prevalences: Sequence[float] | None, cost_ratio: float | None
) -> dict[str, Any]:
    """Every number as plain Python objects; NaN is None, infinity the text "inf"."""
    known = assumed_prevalences(dominance, prevalences)
    found: dict[str, Any] = {
        "convention": dominance.convention,
        "has_counts": dominance.operating_points_.has_counts,
        "n_bootstrap": dominance.n_bootstrap,
        "operating_points": records(dominance.operating_points_.to_frame()),
        "table": records(dominance.table(known)),
        "decisions": [
            _decision(dominance.at(prevalence, cost_ratio)) for prevalence in known
        ],
    }
    for name in FRAMES:
        frame = getattr(dominance, f"{name}_", None)
        found[name] = None if frame is None else records(frame)
    return found


def _decision(decision: Any) -> dict[str, Any]:
    return {
        "prevalence": decision.prevalence,
        "cost_ratio": decision.cost_ratio,
        "cpg": decision.cpg,
        "winners": list(decision.winners),
        "table": records(decision.table),
    }


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a table as plain dicts."""
    return [
        {str(key): _plain(value) for key, value in row.items()}
        for row in frame.to_dict("records")
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None if np.isnan(value) else str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return None if value is pd.NA else str(value)


def write_files(
    dominance: Any,
    prevalences: Sequence[float] | None = None,
    cost_ratio: float | None = None,
    *,
    json_path: str | os.PathLike[str] | None = None,
    csv_path: str | os.PathLike[str] | None = None,
    markdown_path: str | os.PathLike[str] | None = None,
) -> None:
    """Write what is asked for: all numbers, the table, or the description."""
    if json_path:
        found = to_dict(dominance, prevalences, cost_ratio)
        text = json.dumps(found, indent=2, allow_nan=False, ensure_ascii=False)
        write(json_path, text + "\n")
    if csv_path:
        frame = dominance.table(assumed_prevalences(dominance, prevalences))
        frame = frame.drop(columns="owners")
        write(csv_path, frame.to_csv(index=False, lineterminator="\n"))
    if markdown_path:
        write(markdown_path, markdown(dominance, prevalences, cost_ratio))
