"""The tables that a metric frame adds to fairlearn's: by group, and between groups."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm.auto import tqdm

from ._frame_bootstrap import Replicates
from ._frame_matched import (
    NOT_A_NUMBER,
    Matcher,
    Part,
    expected_squared_error,
    total,
)
from ._frame_metrics import FrameMetric
from ._frame_sample import Sample
from ._intervals import N_DRAWS, GroupRows, Interval
from ._tables import Cell, feature_column, group_names, quiet

NO_INTERVAL = "no interval is known for this metric"


@dataclass
class FrameTables:
    """Tidy tables of a sample; `values` are those by group, (n_cells, n_metrics)."""

    sample: Sample
    matcher: Matcher
    values: NDArray
    replicates: Replicates | None = None
    progress: bool | None = None
    _groups: dict[Any, GroupRows] = field(default_factory=dict)

    # -- labels -----------------------------------------------------------------

    @cached_property
    def strata(self) -> list[list[Part]]:
        """Groups that are compared with each other, as single cells."""
        cells = self.sample.cells
        return [[(int(c),) for c in stratum] for stratum in cells.strata()]

    @cached_property
    def keys(self) -> list[Any]:
        """Group of each cell, control levels left out: a value, or a tuple."""
        k = self.sample.cells.n_controls
        found = [self.sample.cells.labels(c)[k:] for c in range(len(self.sample.cells))]
        single = len(self.sample.cells.features) == k + 1
        return [label[0] for label in found] if single else found

    @cached_property
    def shown(self) -> dict[Any, Any]:
        """Name of each group, in one text for an intersection."""
        return group_names(list(dict.fromkeys(self.keys)))

    def columns(self, *, controls_only: bool = False) -> list[str]:
        """Columns that hold the features; what a table has already is prefixed."""
        cells = self.sample.cells
        k = cells.n_controls
        features = cells.features[:k] if controls_only else cells.features
        names = [feature_column(feature.name) for feature in features]
        if len(cells.features) == k + 1 and cells.features[k].name == "group":
            return names[:k]  # the column of groups is that feature
        return names

    def labels(self, cell: int, *, controls_only: bool = False) -> dict[str, Any]:
        """Values of the features in a cell, by column."""
        columns = self.columns(controls_only=controls_only)
        return dict(zip(columns, self.sample.cells.labels(cell), strict=False))

    def bar(self, items: list, what: str) -> Iterator:
        """Progress over a list; silent where nobody watches."""
        yield from tqdm(items, desc=what, disable=quiet(self.progress), leave=False)

    # -- one group --------------------------------------------------------------

    def naive(self, part: Part, metric: FrameMetric) -> tuple[float, str | None]:
        """Value on all rows, or the reason why there is none."""
        problem = self.matcher.problem(part)
        if problem is not None:
            return np.nan, problem
        if len(part) > 1:
            cell = self.matcher.cells(part, None)[metric.name]
            return cell.value, cell.note
        found = self.values[part[0], self.sample.metrics.index(metric)]
        if not np.isscalar(found):
            return np.nan, NOT_A_NUMBER
        value = float(found)  # type: ignore[arg-type]
        if np.isnan(value) or metric.keeps_own_value:
            reason = self.sample.reason(metric, self.matcher.rows(part))
            if reason or np.isnan(value):
                return np.nan, reason or "undefined"
        return value, None

    def interval(self, part: Part, metric: FrameMetric) -> Interval:
        """Confidence interval of a group's value."""
        value, reason = self.naive(part, metric)
        if reason is not None:
            return Interval(value, reason=reason)
        if metric.built_in is None:
            return self.percentiles(value, metric, part)
        if metric.standard is None:
            return Interval(value, reason=f"{NO_INTERVAL} with other parameters")
        return self.group_rows(part, metric).interval(metric.standard)

    def group_rows(
        self, part: Part, metric: FrameMetric, n_draws: int = N_DRAWS
    ) -> GroupRows:
        """Rows of a part prepared for intervals, kept for other metrics."""
        key = (part, metric.weights, n_draws)
        if key not in self._groups:
            weighting = self.sample.weightings[metric.weights]
            rows = weighting.take(self.matcher.rows(part))
            seed = np.random.default_rng(self.child_seed(*part, len(self.keys)))
            self._groups[key] = GroupRows(
                rows, counts=weighting.counts, random_state=seed, n_draws=n_draws
            )
        return self._groups[key]

    def child_seed(self, *key: int) -> np.random.SeedSequence:
        """Seed of its own for each key."""
        seed = self.matcher.seed
        return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, *key))

    def percentiles(self, value: float, metric: FrameMetric, *parts: Part) -> Interval:
        """Percentile range of bootstrap values of a group, or of their difference."""
        if self.replicates is None or any(len(part) > 1 for part in parts):
            return Interval(value, reason=NO_INTERVAL)
        column = self.sample.metrics.index(metric)
        draws = self.replicates.groups[:, parts[0][0], column]
        if len(parts) > 1:
            draws = draws - self.replicates.groups[:, parts[1][0], column]
        low, high = Cell(np.append(draws, np.nan)).range
        what = "rows" if self.sample.clusters is None else "clusters"
        method = f"percentiles of {len(draws)} bootstrap samples of {what}"
        return Interval(value, low, high, method=method)

    def matched_records(self) -> Iterator[dict[str, Any]]:
        """One record per group and metric at the matched size of its stratum."""
        everything = [
            (part, self.matcher.size_of(stratum))
            for stratum in self.strata
            for part in stratum
        ]
        for part, size in self.bar(everything, "groups"):
            if size is None:
                continue
            cells = self.matcher.cells(part, size)
            for metric in self.sample.metrics:
                cell = cells[metric.name]
                low, high = cell.range
                yield {
                    "part": part,
                    "metric": metric.name,
                    "size": total(size),
                    "value": cell.value,
                    "low": low,
                    "high": high,
                    "reason": cell.note,
                }

    def matched(self) -> pd.DataFrame:
        """Table of values at matched sizes."""
        records = [
            self.labels(r["part"][0])
            | {"group": self.shown[self.keys[r.pop("part")[0]]]}
            | r
            for r in map(dict, self.matched_records())
        ]
        columns = ["group", "metric", "size", "value", "low", "high", "reason"]
        return table(records, [*self.columns(), *columns])

    def matched_difference(self) -> pd.DataFrame:
        """Largest difference at equal size, one row per control level."""
        cells, names = self.sample.cells, [m.name for m in self.sample.metrics]
        out = np.full((len(self.strata), len(names)), np.nan)
        for s, stratum in enumerate(self.strata):
            size = self.matcher.size_of(stratum)
            if size is None:
                continue
            found = [self.matcher.cells(part, size) for part in stratum]
            for j, name in enumerate(names):
                values = np.array([cell[name].value for cell in found])
                if np.isfinite(values).sum() > 1:
                    out[s, j] = np.nanmax(values) - np.nanmin(values)
        k = cells.n_controls
        levels = [cells.labels(stratum[0][0])[:k] for stratum in self.strata]
        index: Any = None
        if k == 1:
            index = pd.Index(
                [level[0] for level in levels], name=cells.features[0].name
            )
        elif k:
            feature_names = [feature.name for feature in cells.features[:k]]
            index = pd.MultiIndex.from_tuples(levels, names=feature_names)
        return pd.DataFrame(out, index=index, columns=names)

    def rows_by_level(self) -> dict[tuple, dict[str, Any]]:
        """Arguments of a test of calibration, by control level."""
        sample, out = self.sample, {}
        if not sample.weightings:
            raise ValueError(
                "equal_calibration_test needs probabilities of a positive class and "
                "a built-in metric among metrics"
            )
        key = min(sample.weightings)
        for stratum in self.strata:
            part = tuple(cell for (cell,) in stratum)
            rows = self.matcher.rows(part)
            kept = sample.weightings[key].take(rows)
            groups = np.empty(len(self.keys), dtype=object)
            groups[:] = [self.shown[name] for name in self.keys]
            w = sample.weightings[key].rows.sample_weight
            codes = sample.cells.codes[rows if w is None else rows[w[rows] > 0]]
            level = sample.cells.labels(part[0])[: sample.cells.n_controls]
            out[level] = {
                "y_true": kept.y,
                "y_prob": kept.p,
                "sensitive_features": groups[codes],
                "clusters": kept.clusters,
            }
            if kept.sample_weight is not None:
                out[level]["sample_weight"] = kept.sample_weight
        return out

    def long(self, matched: pd.DataFrame) -> pd.DataFrame:
        """One row per group, metric and sampling."""
        records = []
        parts = [part for stratum in self.strata for part in stratum]
        known = iter(matched.to_dict("records"))
        sized = {c for s in self.strata if self.matcher.size_of(s) for (c,) in s}
        for part in self.bar(parts, "groups"):
            about = self.about(part)
            for metric in self.sample.metrics:
                found = self.interval(part, metric)
                records.append(
                    about
                    | {"metric": metric.name, "sampling": "naive"}
                    | {"size": about["n"], "value": found.value}
                    | {"low": found.low, "high": found.high}
                    | {"method": found.method or None, "reason": found.reason}
                )
            if part[0] not in sized:
                continue
            for _ in self.sample.metrics:
                row = next(known)
                several = not np.isnan(row["low"])
                method = "range of 95 % of the subsamples" if several else None
                names = ("metric", "size", "value", "low", "high", "reason")
                records.append(
                    about
                    | {"sampling": "size_matched", "method": method}
                    | {name: row[name] for name in names}
                )
        columns = ["group", "n", "positives", "clusters", "metric", "sampling", "size"]
        columns += ["value", "low", "high", "method", "reason"]
        return table(records, [*self.columns(), *columns])

    def about(self, part: Part) -> dict[str, Any]:
        """Features, name and counts of a group."""
        sample, rows = self.sample, self.matcher.rows(part)
        y, clusters = sample.outcome, sample.clusters
        return self.labels(part[0]) | {
            "group": self.shown[self.keys[part[0]]],
            "n": len(rows),
            "positives": pd.NA if y is None else int(y[rows].sum()),
            "clusters": pd.NA if clusters is None else len(np.unique(clusters[rows])),
        }

    # -- rarefaction ------------------------------------------------------------

    def rarefaction(self, fractions: list[float], overall: bool) -> pd.DataFrame:
        """One row per group, metric and fraction of its rows."""
        parts: list[Part] = [part for stratum in self.strata for part in stratum]
        if overall:
            parts = [tuple(c for (c,) in stratum) for stratum in self.strata]
        records = []
        jobs = [(part, fraction) for part in parts for fraction in fractions]
        for part, fraction in self.bar(jobs, "subsamples"):
            about = self.labels(part[0], controls_only=overall)
            about["group"] = "all" if overall else self.shown[self.keys[part[0]]]
            n = len(self.matcher.rows(part))
            size = max(1, round(fraction * n))
            cells = self.matcher.cells(part, size)
            for metric in self.sample.metrics:
                record = {"metric": metric.name, "fraction": fraction, "size": size}
                records.append(
                    about | record | self._rarefied(metric, part, size, cells)
                )
        columns = ["group", "metric", "fraction", "size", "value", "low", "high"]
        columns += ["method", "reason"]
        return table(records, [*self.columns(controls_only=overall), *columns])

    def _rarefied(
        self, metric: FrameMetric, part: Part, size: int, cells: dict[str, Cell]
    ) -> dict[str, Any]:
        cell = cells[metric.name]
        low, high = cell.range
        record = {"value": cell.value, "low": low, "high": high, "reason": cell.note}
        if len(cell.draws) < 2:
            record["method"] = None if record["reason"] else "all rows"
            return record
        record["method"] = f"mean of {len(cell.draws)} subsamples"
        known = metric.built_in
        if (
            known is not None
            and known.name == "squared_calibration_error"
            and metric.weights == -1
            and self.sample.clusters is None
        ):
            scores = self.sample.weightings[-1].scores(self.matcher.rows(part))
            n_bins = getattr(known.kernel, "keywords", {}).get("n_bins", 15)
            record["value"] = expected_squared_error(scores, n_bins, size)
            record["method"] = "exact expectation"
        return record


INTEGERS = ("n", "positives", "clusters", "size")
TEXTS = ("method", "reason")


def table(records: list[dict[str, Any]], columns: list[str]) -> pd.DataFrame:
    """Records as a table of fixed columns: whole numbers whole, None as None."""
    out = {}
    for name in columns:
        values = [record[name] for record in records]
        dtype: Any = None
        if name in INTEGERS:
            dtype = "Int64"
        elif name in TEXTS:
            dtype = object
        elif name in ("value", "low", "high", "naive", "size_matched", "fraction"):
            dtype = np.float64
        out[name] = pd.Series(values, dtype=dtype)
    return pd.DataFrame(out, columns=columns)
