"""Reading tables of cases and writing results whole or not at all."""

import os
import warnings
import zlib
from lzma import LZMAError
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ._atomic import write_atomically
from ._optional import import_optional

PARQUET = (".parquet", ".pq")
TAB = (".tsv", ".tab")


class InputError(ValueError):
    """A file or column cannot be used; the message is one clear line."""


# -- reading --------------------------------------------------------------------------


def read_table(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a table from CSV (comma or semicolon), TSV or Parquet, by its suffix."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder, not a table")
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    try:
        if any(suffix in PARQUET for suffix in suffixes):
            import_optional("pyarrow", extra="parquet")
            frame = pd.read_parquet(path)
        else:
            frame = _read_text(path, tabs=any(suffix in TAB for suffix in suffixes))
    except pd.errors.EmptyDataError:
        raise InputError(f"{path} is empty") from None
    except UnicodeDecodeError:
        raise InputError(
            f"{path} cannot be read: it is not UTF-8 text; save it as CSV in UTF-8"
        ) from None
    except (ImportError, InputError) as error:
        raise InputError(str(error)) from None
    except (OSError, EOFError, LZMAError, ValueError, zlib.error) as error:
        raise InputError(f"{path} cannot be read: {_one_line(error)}") from None
    if frame.empty:
        raise InputError(f"{path} holds a header but no rows")
    return frame


def _read_text(path: Path, tabs: bool) -> pd.DataFrame:
    separator, decimal = "\t" if tabs else ",", "."
    # The names as they are: pandas would rename one that occurs twice.
    header = _header(path, separator)
    if not tabs and len(header) == 1 and ";" in header[0]:
        # What spreadsheets write where the comma is the decimal mark.
        separator, decimal = ";", ","
        header = _header(path, separator)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            frame = pd.read_csv(
                path, sep=separator, decimal=decimal, index_col=False, low_memory=False
            )
        except pd.errors.ParserWarning:
            raise InputError(
                f"{path} cannot be read: rows have more fields than the header, which "
                f"names {len(header)}"
            ) from None
    frame.columns = pd.Index(header)
    return frame


def _header(path: Path, separator: str) -> list[str]:
    first = pd.read_csv(path, sep=separator, header=None, nrows=1, dtype=str)
    return [str(name).strip() for name in first.iloc[0]]


def _one_line(error: BaseException) -> str:
    """Message of an error, its first line."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


# -- columns --------------------------------------------------------------------------


def column(frame: pd.DataFrame, name: str) -> pd.Series:
    """A column by name, or an error that lists the names there are."""
    found = frame.columns == name
    if not found.any():
        names = ", ".join(str(c) for c in frame.columns[:20])
        more = ", ..." if len(frame.columns) > 20 else ""
        raise InputError(f"there is no column {name!r}; the columns are: {names}{more}")
    if found.sum() > 1:
        raise InputError(
            f"{found.sum()} columns are named {name!r}; rename all but one"
        )
    values: pd.Series = frame[name]
    return values


def group(frame: pd.DataFrame, name: str) -> pd.Series:
    """A column of groups; whole numbers stay whole where some are missing."""
    values = column(frame, name)
    if pd.api.types.is_float_dtype(values) and (values.dropna() % 1 == 0).all():
        return values.astype("Int64").astype(object)
    return values


def cluster(frame: pd.DataFrame, name: str) -> pd.Series:
    """A column of clusters, without gaps."""
    values = column(frame, name)
    _refuse(name, values, values.isna(), "must name the cluster of every row")
    return values


def numeric(frame: pd.DataFrame, name: str) -> pd.Series:
    """A column of numbers without gaps."""
    values = column(frame, name)
    numbers = pd.to_numeric(values, errors="coerce").astype(float)
    _refuse(name, values, ~np.isfinite(numbers), "must be numeric")
    return numbers


def probabilities(frame: pd.DataFrame, name: str) -> pd.Series:
    """A column of numbers within [0, 1]."""
    values = numeric(frame, name)
    outside = ~values.between(0.0, 1.0)
    _refuse(name, values, outside, "must hold probabilities between 0 and 1")
    return values


def weights(frame: pd.DataFrame, name: str) -> pd.Series:
    """A column of weights, none negative and not all zero."""
    values = numeric(frame, name)
    _refuse(name, values, values < 0, "must hold weights of at least 0")
    if not values.any():
        raise InputError(f"column {name!r} holds no weight above 0")
    return values


def _refuse(name: str, values: pd.Series, bad: pd.Series, expected: str) -> None:
    """Raise if any value is bad, and show the first."""
    bad = np.asarray(bad, dtype=bool)
    if not bad.any():
        return
    row = int(bad.argmax())
    value = values.iloc[row]
    shown = f"{value:g}" if isinstance(value, (float, np.floating)) else repr(value)
    what = "is empty" if pd.isna(value) else f"holds {shown}"
    others = f" ({bad.sum():,} such rows)" if bad.sum() > 1 else ""
    raise InputError(f"column {name!r} {expected}; data row {row + 1} {what}{others}")


def target(
    frame: pd.DataFrame, name: str, positive: str | None
) -> tuple[pd.Series, Any]:
    """Outcome column and its positive label, which is matched as text or number."""
    values = column(frame, name)
    _refuse(name, values, values.isna(), "must hold the outcome of every row")
    labels = sorted(pd.unique(values).tolist(), key=str)
    shown = ", ".join(str(label) for label in labels[:6])
    if len(labels) != 2:
        many = "one class only" if len(labels) == 1 else f"{len(labels)} classes"
        more = ", ..." if len(labels) > 6 else ""
        raise InputError(
            f"column {name!r} holds {many} ({shown}{more}); two are needed"
        )
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


# -- writing --------------------------------------------------------------------------


def check_outputs(source: str | None, *paths: str | None) -> None:
    """Refuse files that could not be written, before the work and not after it."""
    given = [Path(path) for path in paths if path is not None]
    for path in given:
        if str(path) == "-":
            raise InputError("- is no file here: name one")
        if path.is_dir():
            raise InputError(f"{path} cannot be written: it is a folder")
        if not path.parent.is_dir():
            raise InputError(f"{path} cannot be written: no folder {path.parent}")
        special = path.exists() and not path.is_file()
        touched = [path] if special else [path, path.parent]
        if not all(os.access(p, os.W_OK) for p in touched if p.exists()):
            raise InputError(f"{path} cannot be written: permission denied")
    places = [path.resolve() for path in given]
    if source is not None and Path(source).resolve() in places:
        raise InputError(f"{source} is the table to read and would be overwritten")
    if len(set(places)) < len(places):
        raise InputError(f"{given[0]} is named for two outputs")


def write(path: str | os.PathLike[str], text: str) -> None:
    """Write text beside the target and rename: never half a file."""
    path = Path(path)
    try:
        if path.exists() and not path.is_file():
            # A pipe, or /dev/stdout: what it stands for has no path to resolve.
            path.write_text(text, encoding="utf-8", newline="")
            return
        write_atomically(path.resolve(), text)  # a link stays a link
    except OSError as error:
        reason = error.strerror or _one_line(error)
        raise InputError(f"{path} cannot be written: {reason}") from None
