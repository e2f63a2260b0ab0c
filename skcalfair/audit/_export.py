"""An audit as JSON and CSV files."""

import json
import os

from .._files import write
from ._result import AuditResult


def write_json(result: AuditResult, path: str | os.PathLike[str]) -> None:
    """Every number of an audit as JSON."""
    text = json.dumps(result.to_dict(), indent=2, allow_nan=False, ensure_ascii=False)
    write(path, text + "\n")


def write_csv(result: AuditResult, path: str | os.PathLike[str]) -> None:
    """The long table of values as CSV; intersections have a column for each feature."""
    parts = result.groups.drop(columns=["n", "positives", "clusters", "reason"])
    values = parts.merge(result.values, on="group", sort=False)
    write(path, values.to_csv(index=False, lineterminator="\n"))
