"""Audit of scores that come from several runs, such as a repeated cross-validation."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from tqdm.auto import tqdm

from .._random import RandomStateLike, child_seeds
from .._validation import ScoredRows, as_1d, check_same_length
from ._compose import about_metrics, about_parts, explained, reading
from ._frame import GroupMetricFrame
from ._frame_tables import table
from ._result import AuditResult
from ._run_tests import COLUMNS as TEST_COLUMNS
from ._run_tests import RunValues, run_tests
from ._tables import VALUE_COLUMNS, quiet

# Metrics that are means over rows, whose rows can be pooled over runs.
POOLED = {"brier_score_loss", "log_loss"}
RESULT_COLUMNS = ["run", "fold", "group", "metric", "sampling", "size", "value"]
ONE_RUN_EACH = (
    "runs may share cases, which are not known: name the case of each row by clusters="
)


def encode_runs(run: ArrayLike, n: int, kept: NDArray | None) -> tuple[NDArray, list]:
    """Codes and labels of the runs of the rows that are kept."""
    values = as_1d(run, "run")
    check_same_length(("y_true", np.empty(n)), ("run", values))
    codes, labels = pd.factorize(np.asarray(values, dtype=object))
    if (codes < 0).any():
        row = int(np.flatnonzero(codes < 0)[0])
        raise ValueError(f"run contains a missing value at row {row}")
    return codes if kept is None else codes[kept], list(labels)


def audit_runs(
    rows: ScoredRows,
    features: pd.DataFrame,
    runs: tuple[NDArray, list],
    reference: Any,
    options: dict[str, Any],
    random_state: RandomStateLike,
    progress: bool | None,
) -> AuditResult:
    """Audit every run, and bring the runs together."""
    codes, labels = runs
    found = [
        np.flatnonzero(codes == code) for code in range(len(labels)) if code in codes
    ]
    names = [label for code, label in enumerate(labels) if code in codes]
    folds = _folds(rows, found)
    whole = _frame(rows, features, np.arange(len(rows)), options | {"size_match": None})
    records: list[dict[str, Any]] = []
    seeds = child_seeds(random_state, len(found))
    for positions, name, fold, seed in zip(
        tqdm(found, desc="runs", disable=quiet(progress), leave=False),
        names,
        folds,
        seeds,
        strict=True,
    ):
        seeded = options | {"random_state": np.random.default_rng(seed)}
        frame = _frame(rows, features, positions, seeded)
        records += [{"run": name, "fold": fold} | r for r in _values(frame)]
    results = table(records, [*RESULT_COLUMNS, "reason"])
    tables = whole._tables
    metrics = about_metrics(tables)
    predictions = _predictions(rows, tables, codes, folds, names, labels)
    tests = _tests(results, predictions, reference, rows.clusters is not None)
    gaps = _gaps(results, tests, metrics)
    test, reason = None, ONE_RUN_EACH
    if rows.clusters is not None:
        try:
            test, reason = whole.equal_calibration_test(), None  # type: ignore[assignment]
        except ValueError as error:
            reason = str(error)
    return AuditResult(
        about_parts(whole),
        metrics,
        _means(results),
        gaps,
        test,
        list(whole._sf_names),
        None,
        int(options["n_resamples"]),
        test_reason=reason,
        runs=results,
        run_tests=tests,
    )


def _frame(
    rows: ScoredRows,
    features: pd.DataFrame,
    positions: NDArray[np.intp],
    options: dict[str, Any],
) -> GroupMetricFrame:
    """Metric frame of some of the rows."""
    names = options["metrics"]
    weights, clusters = rows.sample_weight, rows.clusters
    given = None if weights is None else {"sample_weight": weights[positions]}
    return GroupMetricFrame(
        y_true=rows.y[positions],
        y_pred=rows.p[positions],
        sensitive_features=features.iloc[positions].reset_index(drop=True),
        sample_params=None if given is None else dict.fromkeys(names, given),
        clusters=None if clusters is None else clusters[positions],
        progress=False,
        **options,
    )


def _folds(rows: ScoredRows, runs: list[NDArray[np.intp]]) -> list[int]:
    """Test fold of each run: runs of the same clusters share one."""
    if rows.clusters is None:
        return list(range(len(runs)))
    keys = [np.unique(rows.clusters[positions]).tobytes() for positions in runs]
    return pd.factorize(np.array(keys, dtype=object))[0].tolist()


def _values(frame: GroupMetricFrame) -> Iterator[dict[str, Any]]:
    """Every metric of a run, by group, on all rows and at equal size."""
    tables = frame._tables
    for part in (part for stratum in tables.strata for part in stratum):
        group, n = tables.shown[tables.keys[part[0]]], len(tables.matcher.rows(part))
        for metric in tables.sample.metrics:
            value, reason = tables.naive(part, metric)
            yield {
                "group": group,
                "metric": metric.name,
                "sampling": "naive",
                "size": n,
                "value": value,
                "reason": reason,
            }
    for record in tables.matched_records():
        names = ("metric", "size", "value", "reason")
        yield {
            "group": tables.shown[tables.keys[record["part"][0]]],
            "sampling": "size_matched",
        } | {name: record[name] for name in names}


def _means(results: pd.DataFrame) -> pd.DataFrame:
    """Mean over the runs, and the range of 95 % of them."""
    records = []
    keys = ["group", "metric", "sampling"]
    for key, part in results.groupby(keys, sort=False):
        known = part["value"].to_numpy(dtype=np.float64)
        known = known[np.isfinite(known)]
        several = len(known) > 1
        low, high = np.quantile(known, [0.025, 0.975]) if several else (np.nan,) * 2
        missing = part["reason"].dropna()
        reason = missing.iloc[0] if len(missing) else None
        if len(missing) and len(known):
            reason = f"estimable in {len(known):,} of {len(part):,} runs only"
        records.append(
            dict(zip(keys, key, strict=True))
            | {"size": round(part["size"].mean()), "low": low, "high": high}
            | {"value": known.mean() if len(known) else np.nan, "reason": reason}
            | {"method": f"mean and range of 95 % of {len(known)} runs"}
        )
    return table(records, list(VALUE_COLUMNS))


def _predictions(
    rows: ScoredRows,
    tables: Any,
    codes: NDArray,
    folds: list[int],
    names: list,
    labels: list,
) -> pd.DataFrame:
    """Rows of all runs, as the tests over runs take them."""
    shown = np.empty(len(tables.keys), dtype=object)
    shown[:] = [tables.shown[key] for key in tables.keys]
    fold = dict(zip(names, folds, strict=True))
    label = np.empty(len(labels), dtype=object)
    label[:] = labels
    run = label[codes]
    n = len(rows)
    return pd.DataFrame(
        {
            "run": run,
            "fold": [fold[name] for name in run],
            "row": np.arange(n),
            "outcome": rows.y,
            "score": rows.p,
            # No held-out map is known of scores that already exist.
            "calibrated": np.nan,
            "group": shown[tables.sample.cells.codes],
            "cluster": np.arange(n) if rows.clusters is None else rows.clusters,
            "sample_weight": np.ones(n)
            if rows.sample_weight is None
            else rows.sample_weight,
        }
    )


def _tests(
    results: pd.DataFrame, predictions: pd.DataFrame, reference: Any, clustered: bool
) -> pd.DataFrame:
    """Pooled tests of what is a mean over rows, others over the test folds."""
    pooled = results["metric"].isin(POOLED) & clustered
    parts = [
        run_tests(
            part, predictions, method=method, reference=reference, clustered=clustered
        )
        for part, method in (
            (results[pooled], "pooled"),
            (results[~pooled], "t_fold_means"),
        )
        if len(part)
    ]
    out = pd.concat(parts, ignore_index=True)
    if not clustered:
        # Runs may share their cases; as independent ones they nearly always reject.
        out[["statistic", "p_value"]] = np.nan
        out["unit"], out["note"] = "run", ONE_RUN_EACH
    order = {metric: i for i, metric in enumerate(results["metric"].unique())}
    out = out.sort_values("metric", key=lambda c: c.map(order), kind="stable")
    return out[list(TEST_COLUMNS)].reset_index(drop=True)


def _gaps(
    results: pd.DataFrame, tests: pd.DataFrame, metrics: pd.DataFrame
) -> pd.DataFrame:
    """Mean gap over the runs of each group from the reference, with its p-value."""
    robust = dict(zip(metrics["metric"], metrics["size_robust"], strict=True))
    runs, records = RunValues(results), []
    for key, found in tests.groupby(["metric", "group", "reference"], sort=False):
        metric, group, reference = key
        means = {
            sampling: _mean(runs.gaps(metric, sampling, group, reference))
            for sampling in runs.samplings[metric]
        }
        by_sampling = found.set_index("sampling")
        wanted = "naive" if robust[metric] else "size_matched"
        test = by_sampling.loc[wanted] if wanted in by_sampling.index else None
        records.append(
            {
                "metric": metric,
                "group": group,
                "reference": reference,
                "naive": means["naive"],
                "size": pd.NA,
                "size_matched": means.get("size_matched", np.nan),
                "low": np.nan,
                "high": np.nan,
                "p_value": np.nan if test is None else test["p_value"],
                "p_adjusted": np.nan,
                "exploratory": metric != metrics["metric"].iloc[0],
                "method": None if test is None else f"{test['method']}, {test['unit']}",
                "reason": None if test is None else test["note"],
            }
        )
    gaps = table(records, list(records[0])) if records else pd.DataFrame()
    gaps.insert(6, "explained_by_size", explained(gaps, robust))
    gaps["reading"] = [
        reading(g, size_robust=robust[g.metric]) for g in gaps.itertuples()
    ]
    return gaps


def _mean(gaps: NDArray) -> float:
    known = gaps[np.isfinite(gaps)]
    return float(known.mean()) if len(known) else np.nan
