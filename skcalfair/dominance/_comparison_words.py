"""The three common comparisons in words: what they say, and what they get wrong."""

import textwrap
from collections.abc import Sequence
from typing import Any

import pandas as pd

from .._text import join, plural, shorten, table
from ._words import MOST_ROWS, NAME_WIDTH, WIDTH, gradient, owner_text, rate, span

MEAN_IS_WRONG = (
    "What this gets wrong: a mean of points lies inside their hull, so that readers "
    "who are each on a curve, some careful and some bold, have a mean below it. It "
    "errs in favour of the model. Chance is not allowed for."
)
AREA_IS_WRONG = (
    "What this gets wrong: outside of the range in which readers decide, their hull is "
    "a straight line to a corner, so that their area is too small. Within the range, a "
    "hull picks the best of points that chance has moved. Chance is not allowed for."
)
POINT_IS_WRONG = (
    "What this gets wrong: somebody chose the point, and the answer depends on it. "
    "Which rate matters depends on prevalence and costs, which are left out. The "
    "intervals take the threshold as given, and are somewhat too short."
)
_NARROW = 24  # characters of a name beside two intervals
TABLE = (
    "What the dominance table says, by the cost-prevalence gradient, CPG = (negatives "
    "per positive) * (cost of a false positive / cost of a false negative):"
)


def paragraphs(*parts: str) -> str:
    """Paragraphs that fit a terminal; tables as they are."""
    return "\n\n".join(part if "\n" in part else wrap(part) for part in parts if part)


def wrap(text: str) -> str:
    """Lines that fit a terminal."""
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def short(name: Any) -> str:
    """Name of a reader or model, not too long."""
    return shorten(str(name), NAME_WIDTH)


def the_model(name: str) -> str:
    """The model, with its name if it has one."""
    return "the model" if name == "model" else f"the model {short(name)}"


def some(names: Sequence[str]) -> str:
    """Names as in a sentence, so many as fit."""
    shown = [short(name) for name in names[:MOST_ROWS]]
    more = len(names) - len(shown)
    return join([*shown, f"{more} more"] if more else shown)


def dominance(frame: pd.DataFrame, best: Sequence[str], n_readers: int) -> str:
    """Who is best where, and which readers are best somewhere."""
    rows = [["CPG", "best", "sensitivity", "specificity"]]
    for row in frame.to_dict("records"):
        rows.append(
            [
                span(row, "cpg", gradient, always=True),
                owner_text(row["owners"]),
                span(row, "sensitivity", rate),
                span(row, "specificity", rate),
            ]
        )
    of = f"Of {plural(n_readers, 'reader')}, {len(best)}"
    verdict = f"{of} decide best at some CPG: {some(best)}."
    if len(best) == 1:
        verdict = f"{of} decides best at some CPG: {some(best)}."
    elif not best:
        verdict = f"{of} decide best at any CPG."
    return f"{wrap(TABLE)}\n\n{table(rows, left={0, 1})}\n\n{wrap(verdict)}"


def differences(readers: pd.DataFrame) -> str:
    """Both differences of each reader, with their intervals and the reading."""
    rows = [["reader", "sensitivity: model - reader", "specificity", "reading"]]
    for row in readers.head(MOST_ROWS).to_dict("records"):
        rows.append(
            [
                shorten(str(row["reader"]), _NARROW),
                _difference(row, "sensitivity"),
                _difference(row, "specificity"),
                row["reading"],
            ]
        )
    text = table(rows, left={0, 3})
    more = len(readers) - MOST_ROWS
    return f"{text}\n\nAnd {plural(more, 'reader')} more." if more > 0 else text


def _difference(row: dict[str, Any], which: str) -> str:
    low, high = row[f"{which}_low"], row[f"{which}_high"]
    # A difference of zero has no sign.
    value = f"{row[f'{which}_difference'] + 0.0:+.3f}"
    return value if pd.isna(low) else f"{value} ({low:+.3f} to {high:+.3f})"


READINGS = {
    "model": "the model is better in one rate, beyond chance, and not worse in the "
    "other",
    "reader": "the same of the reader",
    "trade-off": "one is better in one rate and one in the other: nothing follows",
    "chance": "no difference is shown in either rate; the intervals say how large a "
    "difference the data allow",
    "equal": "both are one point",
    "untested": "with weights there is no interval",
}


def readings(found: Sequence[str]) -> str:
    """What the readings that occur mean."""
    known = [f'"{name}": {text}' for name, text in READINGS.items() if name in found]
    return f"Readings: {'; '.join(known)}."
