"""Gaps between the groups of a metric frame, with intervals and tests."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from ._frame_matched import Part, Size, total
from ._frame_metrics import FrameMetric
from ._frame_tables import NO_INTERVAL, FrameTables, table
from ._intervals import N_DRAWS, Interval, gap_interval, matched_gap_interval
from ._multiplicity import adjust

NO_CLASS_MATCHED = "no interval is known for rows drawn by class"
ALPHA = 0.05


@dataclass(frozen=True)
class Gaps:
    """Comparisons of the groups of a frame."""

    tables: FrameTables

    def against(self, reference: Any) -> pd.DataFrame:
        """One row per metric and comparison."""
        pairs = list(self._pairs(reference))
        metrics = self.tables.sample.metrics
        # A Monte Carlo p-value can be as small as Holm's smallest threshold.
        n_draws = max(N_DRAWS, int(len(pairs) / ALPHA))
        records = [
            self._gap(metric, part, other, name, n_draws)
            for part, other, name in self.tables.bar(pairs, "gaps")
            for metric in metrics
        ]
        primary = metrics[0].name if metrics else None
        for record in records:
            record["exploratory"] = record["metric"] != primary
        p = np.array([r["p_value"] for r in records if not r["exploratory"]])
        # What cannot be tested was asked too.
        adjusted = iter(adjust(p, family=len(p)))
        for record in records:
            record["p_adjusted"] = np.nan if record["exploratory"] else next(adjusted)
        columns = ["metric", "group", "reference", "naive", "size", "size_matched"]
        columns += ["low", "high", "p_value", "p_adjusted", "exploratory"]
        columns += ["method", "reason"]
        controls = self.tables.columns(controls_only=True)
        order = {metric.name: j for j, metric in enumerate(metrics)}
        records.sort(key=lambda record: order[record["metric"]])
        return table(records, [*controls, *columns])

    def _pairs(self, reference: Any) -> Iterator[tuple[Part, Part, Any]]:
        """Parts to compare, and the name of the second."""
        rest = isinstance(reference, str) and reference == "rest"
        if rest and "rest" in self.tables.shown:
            raise ValueError(
                "reference='rest' is ambiguous: a group has that name; rename it"
            )
        if reference is not None and not rest:
            reference = self._group(reference)
        for stratum in self.tables.strata:
            if rest and len(stratum) > 1:
                for part in stratum:
                    others = tuple(c for (c,) in stratum if c != part[0])
                    yield part, others, "rest"
                continue
            for part, base in combinations(stratum, 2):
                first, second = self.tables.keys[part[0]], self.tables.keys[base[0]]
                if reference in (None, second):
                    yield part, base, self.tables.shown[second]
                elif reference == first:
                    yield base, part, self.tables.shown[first]

    def _group(self, reference: Any) -> Any:
        """Group that a user means: its value, tuple of values, or name."""
        if isinstance(reference, list):
            reference = tuple(reference)
        for key, name in self.tables.shown.items():
            if reference in (key, name):
                return key
        raise ValueError(
            f"reference must be None, 'rest' or one of the groups "
            f"{list(self.tables.shown.values())}; got {reference!r}"
        )

    def _gap(
        self, metric: FrameMetric, part: Part, other: Part, name: Any, n_draws: int
    ) -> dict[str, Any]:
        size = self.tables.matcher.size_of([part, other])
        (first, problem), (second, problem_2) = (
            self.tables.naive(p, metric) for p in (part, other)
        )
        record = self.tables.labels(part[0], controls_only=True) | {
            "metric": metric.name,
            "group": self.tables.shown[self.tables.keys[part[0]]],
            "reference": name,
            "naive": first - second,
            "size": pd.NA if size is None else total(size),
            "size_matched": np.nan,
        }
        if problem or problem_2:
            who = record["group"] if problem else name
            reason = f"{who}: {problem or problem_2}"
            return record | _limits(Interval(np.nan, reason=reason))
        if size is not None and not metric.size_robust:
            one, two = (
                self.tables.matcher.cells(p, size, biased_only=True)
                for p in (part, other)
            )
            record["size_matched"] = one[metric.name].value - two[metric.name].value
        found = self._gap_interval(metric, part, other, size, record, n_draws)
        return record | _limits(found)

    def _gap_interval(
        self,
        metric: FrameMetric,
        part: Part,
        other: Part,
        size: Size | None,
        record: dict[str, Any],
        n_draws: int,
    ) -> Interval:
        if metric.built_in is None:
            return self.tables.percentiles(record["naive"], metric, part, other)
        standard = metric.standard
        if standard is None:
            return Interval(np.nan, reason=f"{NO_INTERVAL} with other parameters")
        a, b = (self.tables.group_rows(p, metric, n_draws) for p in (part, other))
        if metric.size_robust:
            return gap_interval(a, b, standard)
        if isinstance(size, tuple):
            return Interval(np.nan, reason=NO_CLASS_MATCHED)
        if size is None or np.isnan(record["size_matched"]):
            why = "no common size" if size is None else "not estimable at that size"
            return Interval(np.nan, reason=f"size bias, and {why}")
        return matched_gap_interval(
            a,
            b,
            standard,
            size=size,
            value=record["size_matched"],
            random_state=np.random.default_rng(
                self.tables.child_seed(*part, *other, 0)
            ),
        )


def _limits(found: Interval) -> dict[str, Any]:
    return {
        "low": found.low,
        "high": found.high,
        "p_value": found.p_value,
        "method": found.method or None,
        "reason": found.reason,
    }
