"""What all checked claims share: how numbers are printed, kept and looked up."""

import re
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import t

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "doc" / "benchmarks" / "checked_claims"
IMAGES = ROOT / "doc" / "images"
PAGE = ROOT / "doc" / "user_guide" / "checked_claims.rst"
TEMPLATE = Path(__file__).with_name("_claims_page.rst")

# The leading columns that name a row of each kept table.
KEYS = {
    "synthetic": 2,
    "replicated": 2,
    "study": 1,
    "cohorts": 1,
    "cohort_tests": 1,
    "scenarios": 2,
    "runs": 1,
    "ecg_sex": 1,
    "ecg_age": 2,
    "ecg_summary": 1,
    "worked": 1,
    "decisions": 1,
    "readers": 3,
    "reader_costs": 3,
    "reader_errors": 2,
    "reader_summary": 1,
    "setup": 1,
}

Tables = dict[str, pd.DataFrame]


def number(value: float, digits: int = 3) -> str:
    """The value with this many decimals, or an empty cell; no minus before zero."""
    if pd.isna(value):
        return ""
    if np.isinf(value):
        return "infinity"
    shown = f"{value:,.{digits}f}"
    return shown.removeprefix("-") if float(shown.replace(",", "")) == 0 else shown


def significant(value: float, digits: int = 3) -> str:
    """The value with this many significant digits and no exponent."""
    if pd.isna(value) or np.isinf(value) or value == 0:
        return number(value, 0)
    return number(value, max(digits - 1 - int(np.floor(np.log10(abs(value)))), 0))


def p_value(value: float) -> str:
    if pd.isna(value):
        return ""
    return "< .001" if value < 0.001 else f"{value:.3f}"


def interval(low: float, high: float, digits: int = 3) -> str:
    if pd.isna(low) or pd.isna(high):
        return "none"
    return f"{number(low, digits)} to {number(high, digits)}"


def mean_and_interval(values: ArrayLike) -> tuple[float, float, float]:
    """Mean of independent values, with its 95 % t interval."""
    values = np.asarray(values, dtype=float)
    half = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return (
        float(values.mean()),
        float(values.mean() - half),
        float(values.mean() + half),
    )


def keep(tables: Tables) -> None:
    """Write tables of text as CSV files."""
    KEPT.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.to_csv(KEPT / f"{name}.csv", index=False, lineterminator="\n")


def kept(name: str) -> pd.DataFrame:
    """A kept table, every cell as text."""
    return pd.read_csv(KEPT / f"{name}.csv", dtype=str, keep_default_na=False)


def cells() -> dict[str, dict[str, dict[str, str]]]:
    """Every kept table: table, row (its leading columns, joined) and column."""
    found = {}
    for name, n_keys in KEYS.items():
        table = kept(name)
        rows = table.iloc[:, :n_keys].agg(" ".join, axis=1)
        if rows.duplicated().any():
            raise ValueError(f"rows of {name} are not unique")
        found[name] = {row: table.iloc[i].to_dict() for i, row in enumerate(rows)}
    return found


def rendered() -> str:
    """The page: the template, its placeholders filled from the kept tables."""
    text = TEMPLATE.read_text(encoding="utf-8").format(**cells())
    return "\n\n".join(_wrapped(block) for block in text.rstrip().split("\n\n")) + "\n"


def _wrapped(block: str) -> str:
    """Paragraphs and lists wrapped anew; headings, tables, directives as they are."""
    if re.match(r"\.\. |=|\s", block) or re.search(r"\n[-=~]{3,}$", block):
        return block
    items = re.split(r"\n(?=- )", block)
    return "\n".join(
        textwrap.fill(
            " ".join(item.split()),
            width=88,
            subsequent_indent="  " if item.startswith("- ") else "",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for item in items
    )
