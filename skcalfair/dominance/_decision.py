"""The best decision at one prevalence and cost ratio."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ._costs import expected_cost, gradient, predictive_values
from ._pooled import ALWAYS, NEVER, PooledHull

# Counts are shown for so many people.
_PEOPLE = 1000


@dataclass(frozen=True)
class OptimalDecision:
    """Who decides best at one prevalence and cost ratio, and what it costs.

    Parameters
    ----------
    prevalence : float
        Share of positives in the population of use, in (0, 1).
    cost_ratio : float
        Cost of a false positive over that of a false negative.
    cpg : float
        Cost-prevalence gradient, ``(1 - prevalence) / prevalence * cost_ratio``.
    winners : tuple of str
        Everybody with the least expected cost; several where they tie.
    table : DataFrame
        Everybody at their best threshold here, by rising cost: `name`, `kind`,
        `is_best`, `threshold`, `sensitivity`, `specificity`, the expected numbers `TP`,
        `FN`, `FP` and `TN` per 1,000 people, `ppv`, `npv`, the `expected_cost` per
        1,000 people in costs of one false negative, and the `extra_cost` over the best.

    See Also
    --------
    DominanceTable.at : Returns this.

    Examples
    --------
    >>> import pandas as pd
    >>> from skcalfair.dominance import DominanceTable
    >>> points = pd.DataFrame(
    ...     {"name": ["A", "B"], "sensitivity": [0.9, 0.7], "specificity": [0.7, 0.95]}
    ... )
    >>> decision = DominanceTable.from_operating_points(points).at(0.5, 1.0)
    >>> decision.winners
    ('B',)
    >>> decision.runners_up[["name", "extra_cost"]].round(1)
                  name  extra_cost
    0                A        25.0
    1  always positive       325.0
    2   never positive       325.0
    """

    prevalence: float
    cost_ratio: float
    cpg: float
    winners: tuple[str, ...]
    table: pd.DataFrame

    @property
    def runners_up(self) -> pd.DataFrame:
        """Everybody else, by rising extra cost."""
        return self.table[~self.table["is_best"]].reset_index(drop=True)

    def summary(self) -> str:
        """
        Say the result in words.

        Returns
        -------
        str
            Several lines.
        """
        best = self.table.iloc[0]
        lines = [
            f"At a prevalence of {100 * self.prevalence:.4g} % and a cost ratio of "
            f"{self.cost_ratio:g} (false positive to false negative), the "
            f"cost-prevalence gradient is {self.cpg:.4g}.",
            f"Least expected cost: {self._winners_in_words()}.",
            f"Of 1,000 people: {best['TP']:.1f} true positives, {best['FN']:.1f} "
            f"missed, {best['FP']:.1f} false alarms, {best['TN']:.1f} true negatives; "
            f"PPV {_value(best['ppv'])}, NPV {_value(best['npv'])}; cost "
            f"{best['expected_cost']:.1f} false negatives.",
        ]
        if len(self._winning_points()) > 1:
            lines[-1] = f"By {best['name']}, of{lines[-1].removeprefix('Of')}"
        others = self.runners_up.head(3)
        if len(others):
            parts = [
                f"{row.name_} +{row.extra_cost:.1f}"
                for row in others.rename(columns={"name": "name_"}).itertuples()
            ]
            lines.append(f"Next: {', '.join(parts)} per 1,000.")
        return "\n".join(lines)

    def _winning_points(self) -> dict[tuple[float, float], list[str]]:
        """Sensitivity and specificity of the winners, each with whose it is."""
        points: dict[tuple[float, float], list[str]] = {}
        for _, row in self.table[self.table["is_best"]].iterrows():
            rates = (row["sensitivity"], row["specificity"])
            name = row["name"] + _at_threshold(row["threshold"])
            points.setdefault(rates, []).append(name)
        return points

    def _winners_in_words(self) -> str:
        return "; the same cost: ".join(
            f"{' = '.join(names)}, sensitivity {sens:.3f}, specificity {spec:.3f}"
            for (sens, spec), names in self._winning_points().items()
        )


def _at_threshold(threshold: float) -> str:
    return f" (threshold {threshold:.6g})" if np.isfinite(threshold) else ""


def _value(value: float) -> str:
    return "not defined" if np.isnan(value) else f"{value:.3f}"


def decide(
    hull: PooledHull, kinds: dict[str, str], prevalence: float, cost_ratio: float
) -> OptimalDecision:
    """Everybody's best point at a prevalence and cost ratio, best first."""
    cpg = gradient(prevalence, cost_ratio)
    winners = tuple(name for name, _ in hull.best(cpg))
    points = hull.points
    rows = []
    for name, (_, i) in hull.costs_by_name(cpg).items():
        trivial = {ALWAYS: (1.0, 0.0, -np.inf), NEVER: (0.0, 1.0, np.inf)}.get(name)
        sens, spec, threshold = trivial or (
            points.sensitivity[i],
            points.specificity[i],
            points.threshold[i],
        )
        kind = kinds.get(name, "strategy")
        rows.append((name, kind, name in winners, threshold, sens, spec))
    columns = ["name", "kind", "is_best", "threshold", "sensitivity", "specificity"]
    table = pd.DataFrame(rows, columns=columns)
    _add_consequences(table, prevalence, cost_ratio)
    # Winners first, and in their own order.
    table = table.sort_values(
        ["is_best", "extra_cost"], ascending=[False, True], kind="stable"
    )
    return OptimalDecision(
        prevalence, cost_ratio, cpg, winners, table.reset_index(drop=True)
    )


def _add_consequences(
    table: pd.DataFrame, prevalence: float, cost_ratio: float
) -> None:
    sens, spec = table["sensitivity"].to_numpy(), table["specificity"].to_numpy()
    positives, negatives = _PEOPLE * prevalence, _PEOPLE * (1.0 - prevalence)
    table["TP"], table["FN"] = positives * sens, positives * (1.0 - sens)
    table["FP"], table["TN"] = negatives * (1.0 - spec), negatives * spec
    table["ppv"], table["npv"] = predictive_values(sens, spec, prevalence)
    cost = _PEOPLE * expected_cost(sens, spec, prevalence, cost_ratio)
    table["expected_cost"] = cost
    table["extra_cost"] = np.where(table["is_best"], 0.0, cost - cost.min())
