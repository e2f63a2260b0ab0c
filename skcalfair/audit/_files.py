"""Reading score files and writing results whole or not at all."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd

from .._optional import import_optional
from ._result import AuditResult

PARQUET = (".parquet", ".pq")
TAB = (".tsv", ".tab")


class InputError(ValueError):
    """A file or column cannot be used; the message is one clear line."""


def read_scores(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a table from CSV (comma or semicolon), TSV or Parquet, by its suffix."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    try:
        if any(suffix in PARQUET for suffix in suffixes):
            import_optional("pyarrow", extra="parquet")
            frame = pd.read_parquet(path)
        else:
            tabs = any(suffix in TAB for suffix in suffixes)
            frame = _read_text(path, "\t" if tabs else ",")
    except pd.errors.EmptyDataError:
        raise InputError(f"{path} is empty") from None
    except ImportError as error:
        raise InputError(str(error)) from None
    except (OSError, ValueError) as error:
        text = str(error).strip().splitlines()[0]
        raise InputError(f"{path} cannot be read: {text}") from None
    if frame.empty:
        raise InputError(f"{path} holds a header but no rows")
    return frame


def _read_text(path: Path, separator: str) -> pd.DataFrame:
    frame = pd.read_csv(path, sep=separator)
    if separator == "," and len(frame.columns) == 1 and ";" in str(frame.columns[0]):
        # What spreadsheets write where the comma is the decimal mark.
        frame = pd.read_csv(path, sep=";", decimal=",")
    return frame


def column(frame: pd.DataFrame, name: str) -> pd.Series:
    """A column by name, or an error that lists the names there are."""
    if name not in frame.columns:
        names = ", ".join(str(c) for c in frame.columns[:20])
        raise InputError(f"there is no column {name!r}; the columns are: {names}")
    found: pd.Series = frame[name]
    return found


def numeric(frame: pd.DataFrame, name: str) -> pd.Series:
    """A column of numbers without gaps."""
    values = column(frame, name)
    numbers = pd.to_numeric(values, errors="coerce")
    bad = numbers.isna()
    if bad.any():
        row = int(bad.to_numpy().argmax())
        value = values.iloc[row]
        what = "is missing" if pd.isna(value) else f"is not a number: {value!r}"
        raise InputError(
            f"column {name!r} must be numeric; data row {row + 1} {what} "
            f"({int(bad.sum())} such rows)"
        )
    return numbers.astype(float)


def target(
    frame: pd.DataFrame, name: str, positive: str | None
) -> tuple[pd.Series, Any]:
    """Outcome column and its positive label, which is matched as text or number."""
    values = column(frame, name)
    missing = int(values.isna().sum())
    if missing:
        raise InputError(
            f"column {name!r} has {missing} missing outcomes; leave those rows out"
        )
    labels = list(pd.unique(values))
    shown = ", ".join(str(label) for label in labels[:6])
    if len(labels) != 2:
        many = "one class only" if len(labels) == 1 else f"{len(labels)} classes"
        raise InputError(f"column {name!r} holds {many} ({shown}); two are needed")
    if positive is None:
        if set(labels) <= {0, 1} or set(labels) <= {-1, 1}:
            return values, 1
        raise InputError(
            f"column {name!r} holds {shown}; say which is positive by --positive"
        )
    for label in labels:
        if str(label) == positive or _equal_numbers(label, positive):
            return values, label
    raise InputError(f"--positive {positive!r} is not in column {name!r}: {shown}")


def _equal_numbers(label: Any, text: str) -> bool:
    try:
        return float(label) == float(text)
    except (TypeError, ValueError):
        return False


def write_json(result: AuditResult, path: str | os.PathLike[str]) -> None:
    """Every number of an audit as JSON."""
    _write(path, json.dumps(result.to_dict(), indent=2, allow_nan=False) + "\n")


def write_csv(result: AuditResult, path: str | os.PathLike[str]) -> None:
    """The long table of values as CSV, group columns first."""
    values = result.values.copy()
    labels = values.pop("group")
    for j, feature in enumerate(result.features):
        values.insert(
            j, feature, [k[j] if len(result.features) > 1 else k for k in labels]
        )
    _write(path, values.to_csv(index=False))


def _write(path: str | os.PathLike[str], text: str) -> None:
    """Write beside the target and rename: never half a file."""
    path = Path(path)
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        os.unlink(temporary)
        raise InputError(f"{path} cannot be written: {error.strerror}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def probabilities(frame: pd.DataFrame, name: str) -> pd.Series:
    """A column of numbers within [0, 1]."""
    values = numeric(frame, name)
    outside = ~values.between(0.0, 1.0)
    if outside.any():
        row = int(outside.to_numpy().argmax())
        raise InputError(
            f"column {name!r} must hold probabilities between 0 and 1; data row "
            f"{row + 1} holds {values.iloc[row]:g} ({int(outside.sum())} such rows)"
        )
    return values
