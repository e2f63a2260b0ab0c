"""Claim 3: the worked example of the dominance table, and its erratum."""

from typing import Any

import pandas as pd
from _claims_tables import IMAGES, Tables, number

from skcalfair.displays import DominanceDisplay
from skcalfair.dominance import DominanceTable

PUBLISHED = pd.DataFrame(
    {
        "name": ["Model A", "Specialist A", "Specialist B", "Specialist C", "Model B"],
        "kind": ["model", "reader", "reader", "reader", "model"],
        "sensitivity": [0.93, 0.89, 0.83, 0.75, 0.62],
        "specificity": [0.60, 0.73, 0.85, 0.92, 0.95],
    }
)
SCREENING, CLINIC = 0.177, 0.41
# The study's two decisions; the second also with the cost ratio read the other way.
DECISIONS = {
    "screening": (SCREENING, 1.0),
    "in the clinic": (CLINIC, 5.0),
    "in the clinic, inverse": (CLINIC, 0.2),
}


def tables() -> Tables:
    correct = DominanceTable.from_operating_points(PUBLISHED)
    printed = DominanceTable.from_operating_points(PUBLISHED, convention="as_published")
    return {"worked": worked(correct, printed), "decisions": decided(correct, printed)}


def worked(correct: DominanceTable, printed: DominanceTable) -> pd.DataFrame:
    """Both conventions side by side, a row for each owner."""
    prevalences = [SCREENING, CLINIC]
    ours = correct.table(prevalences).set_index("owner")
    theirs = printed.table(prevalences).set_index("owner")
    rows = []
    for owner, row in ours.iterrows():
        cells = {"owner": owner, "CPG from": number(row["cpg_from"], 4)}
        in_print = theirs.loc[owner] if owner in theirs.index else None
        for prevalence in prevalences:
            name = f"cost_ratio_from@{prevalence:g}"
            at = f"{100 * prevalence:g} %"
            cells[f"cost ratio from, {at}"] = number(row[name], 4)
            cells[f"printed, {at}"] = _cell(in_print, name)
        cells["(sens, spec)"] = (
            f"({row['sensitivity_to']:g}, {row['specificity_to']:g})"
        )
        for rate in ("ppv", "npv"):
            name = f"{rate}_to@{SCREENING:g}"
            cells[f"{rate.upper()}, 17.7 %"] = number(row[name], 2)
            cells[f"{rate.upper()} printed"] = _cell(in_print, name)
        rows.append(cells)
    return pd.DataFrame(rows)


def _cell(row: Any, name: str) -> str:
    return "" if row is None else number(row[name], 2)


def decided(correct: DominanceTable, printed: DominanceTable) -> pd.DataFrame:
    """Who is best at the study's own examples, by expected cost and as printed."""
    rows = []
    for name, (prevalence, ratio) in DECISIONS.items():
        decision = correct.at(prevalence, ratio)
        costs = decision.table.set_index("name")["expected_cost"]
        ranges = printed.table(prevalence)
        low, high = (
            ranges[f"cost_ratio_{end}@{prevalence:g}"] for end in ("from", "to")
        )
        (in_print,) = ranges.loc[(low < ratio) & (ratio < high), "owner"]
        best = decision.winners[0]
        rows.append(
            {
                "decision": name,
                "prevalence": f"{100 * prevalence:g} %",
                "cost ratio": f"{ratio:g}",
                "CPG": number(decision.cpg, 2),
                "least expected cost": best,
                "cost in 1,000": number(costs[best], 1),
                "as printed": in_print,
                "its cost in 1,000": number(costs[in_print], 1),
            }
        )
    return pd.DataFrame(rows)


def run() -> Tables:
    """Both tables, and the figure."""
    table = DominanceTable.from_operating_points(PUBLISHED)
    points = list(DECISIONS.values())[:2]
    display = DominanceDisplay.from_table(table, prevalence=SCREENING, points=points)
    display.plot().figure_.savefig(IMAGES / "claims_dominance.png", dpi=110)
    return tables()
