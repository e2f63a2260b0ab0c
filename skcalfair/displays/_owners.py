"""What the displays of a dominance table share: owners, their styles, chosen points."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from .._validation import check_cost_ratio, check_prevalence
from ._style import REFERENCE, fill_style, series_style

ALWAYS, NEVER = "always positive", "never positive"
# The strategies that need no one are grey, and told apart by hatch and line style.
_TRIVIAL: dict[str, dict[str, Any]] = {
    ALWAYS: {"linestyle": (0, (1, 1.5)), "marker": ">", "hatch": ""},
    NEVER: {"linestyle": (0, (4, 1.5)), "marker": "<", "hatch": "|||"},
}
# What bootstrap support says of all models, and of all readers, together. Lines of
# chosen points are black too, but have no markers.
_UNIONS: dict[str, str] = {"any model": "o", "any reader": "s"}
_N_STYLES = 8
# Gradients this close are equal: one is computed from a prevalence and a cost ratio.
_TIE = 1e-12


class OwnerStyles:
    """Colour, marker, line style and hatch of each owner, by order of appearance.

    Owners of the hull come first, so that they differ most; 64 owners all differ.
    """

    def __init__(self, owners: Iterable[str]) -> None:
        others = {*_TRIVIAL, *_UNIONS}
        known = [owner for owner in dict.fromkeys(owners) if owner not in others]
        self._number = {owner: i for i, owner in enumerate(known)}

    def line(self, owner: str) -> dict[str, Any]:
        """Colour and line style; a line of many points also has hollow markers."""
        if owner in _TRIVIAL:
            return {"color": REFERENCE, "linestyle": _TRIVIAL[owner]["linestyle"]}
        if owner in _UNIONS:
            return {
                "color": "black",
                "linestyle": (0, (1, 1.5)),
                "marker": _UNIONS[owner],
                "markevery": 0.08,
                "markersize": 5,
                "markerfacecolor": "white",
            }
        number = self._number[owner]
        return {
            "color": series_style(number)["color"],
            "linestyle": series_style(self._shifted(number))["linestyle"],
        }

    def point(self, owner: str) -> dict[str, Any]:
        """Colour and marker."""
        if owner in _TRIVIAL:
            return {"color": REFERENCE, "marker": _TRIVIAL[owner]["marker"]}
        number = self._number[owner]
        return {
            "color": series_style(number)["color"],
            "marker": series_style(self._shifted(number))["marker"],
        }

    def fill(self, owner: str) -> dict[str, Any]:
        """Face colour, hatch and edge colour."""
        if owner in _TRIVIAL:
            hatch = _TRIVIAL[owner]["hatch"]
            return {"facecolor": "0.93", "hatch": hatch, "edgecolor": "0.6"}
        number = self._number[owner]
        style = fill_style(number, alpha=0.55)
        return style | {"hatch": fill_style(self._shifted(number))["hatch"]}

    @staticmethod
    def _shifted(number: int) -> int:
        """Number of the second mark: the ninth owner repeats a colour, not a pair."""
        return number + number // _N_STYLES


def owner_segments(hull: pd.DataFrame) -> pd.DataFrame:
    """Maximal runs of vertices of the same owner, from low to high gradients."""
    run = (hull["owner"] != hull["owner"].shift()).cumsum()
    groups = hull.groupby(run, sort=True)
    return pd.DataFrame(
        {
            "owner": groups["owner"].first(),
            "cpg_from": groups["cpg_from"].first(),
            "cpg_to": groups["cpg_to"].last(),
        }
    ).reset_index(drop=True)


def chosen_points(hull: pd.DataFrame, points: Any) -> pd.DataFrame:
    """Gradient, winner and winning vertex for pairs of prevalence and cost ratio."""
    rows = []
    for prevalence, cost_ratio in _pairs(points):
        cpg = (1.0 - prevalence) / prevalence * cost_ratio
        below = hull["cpg_from"] <= cpg * (1.0 + _TIE)
        best = hull[below & (cpg <= hull["cpg_to"] * (1.0 + _TIE))]
        rows.append(
            {
                "prevalence": prevalence,
                "cost_ratio": cost_ratio,
                "cpg": cpg,
                "owner": " = ".join(dict.fromkeys(best["owner"])),
                "fpr": 1.0 - best["specificity"].iloc[0],
                "tpr": best["sensitivity"].iloc[0],
            }
        )
    columns = ["prevalence", "cost_ratio", "cpg", "owner", "fpr", "tpr"]
    return pd.DataFrame(rows, columns=columns)


def _pairs(points: Any) -> list[tuple[float, float]]:
    if points is None:
        return []
    if np.ndim(points) == 1 and len(points) == 2:
        points = [points]
    try:
        pairs = [(float(prevalence), float(ratio)) for prevalence, ratio in points]
    except (TypeError, ValueError):
        raise ValueError(
            "points must be pairs (prevalence, cost_ratio), for example "
            f"[(0.1, 1.0)]; got {points!r}"
        ) from None
    for prevalence, ratio in pairs:
        check_prevalence(prevalence, "points: a prevalence")
        check_cost_ratio(ratio, "points: a cost ratio")
    return pairs


def describe_pair(prevalence: float, cost_ratio: float) -> str:
    """A chosen point in words, for a legend."""
    return f"prevalence {100 * prevalence:.3g} %, cost ratio {cost_ratio:.3g}"


def check_has_hull(table: Any) -> pd.DataFrame:
    """The hull of a fitted table."""
    hull = getattr(table, "hull_", None)
    if hull is None:
        raise ValueError(
            "table must be a fitted DominanceTable, or one made from operating points; "
            f"got {type(table).__name__} without hull_"
        )
    return hull
