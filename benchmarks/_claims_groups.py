"""Claim 2: whether calibration gaps between unequal groups disappear at equal size."""

import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from _claims_tables import (
    IMAGES,
    ROOT,
    Tables,
    interval,
    mean_and_interval,
    number,
    p_value,
)
from tqdm import tqdm

from skcalfair._log_odds import log_odds
from skcalfair.audit import GroupMetricFrame, audit_scores, equal_calibration_test
from skcalfair.datasets import (
    fetch_ecg_readers,
    make_skin_tone_cohort,
    make_subgroup_scores,
)
from skcalfair.displays import GroupRunsDisplay
from skcalfair.experiments import SubgroupStudyResult, subgroup_study
from skcalfair.metrics import metric_table

LABEL = metric_table()["label"]
METRICS = [
    "roc_auc",
    "expected_calibration_error",
    "maximum_calibration_error",
    "adaptive_calibration_error",
    "squared_calibration_error",
    "calibration_loss_log_loss",
    "calibration_loss_brier",
]
N_COHORTS = 40
N_DRAWS = 200
LARGE = {"light": 500_000, "dark": 500_000}  # where only a true gap is left
# Light and dark skin: what is true of the scores of dark skin.
SCENARIOS = {
    "equal": {},
    "lower risk, equally calibrated": {"score_shift": {"light": 0.0, "dark": -2.0}},
    "over-confident": {"slope": {"light": 1.0, "dark": 0.4}},
}
SCENARIO_METRICS = [
    "expected_calibration_error",
    "squared_calibration_error",
    "calibration_loss_brier",
]
SAMPLINGS = {"all rows": "naive", "equal size": "size_matched"}
AGES = {"17-39": 39, "40-59": 59, "60-79": 79, "80+": 200}
BLUE, ORANGE = "#0072B2", "#D55E00"


# -- a whole study on each of many cohorts --------------------------------------------


def cohort_study(seed: int) -> SubgroupStudyResult:
    """Train, calibrate and audit 25 times on a cohort without any true gap."""
    cohort = make_skin_tone_cohort(random_state=seed)
    noise = np.random.default_rng([1, seed]).normal(size=len(cohort))
    return subgroup_study(
        None,
        pd.DataFrame({"marker": log_odds(cohort["score"].to_numpy()) + noise}),
        cohort["malignant"],
        sensitive_features=cohort["skin_tone"],
        groups=cohort["patient"],
        metrics=METRICS,
        n_resamples=20,
        random_state=seed,
        progress=False,
    )


def equal_p(study: SubgroupStudyResult) -> float:
    """Equal calibration of the calibrated scores, the five refits of a row averaged."""
    rows = study.predictions.groupby("row").agg(
        {"outcome": "first", "calibrated": "mean", "group": "first", "cluster": "first"}
    )
    return equal_calibration_test(
        rows["outcome"],
        rows["calibrated"],
        sensitive_features=rows["group"],
        clusters=rows["cluster"],
        random_state=0,
    ).p_value


def study_table(study: SubgroupStudyResult) -> pd.DataFrame:
    """Mean gap (dark less light) over the runs of one study, with both tests."""
    keys = ["metric", "sampling"]
    published = study.published_tests.set_index(keys)["p_value"]
    ours = study.tests.set_index(keys)["p_value"]
    rows = []
    for gap in study.gaps.itertuples():
        cells = {"metric": LABEL[gap.metric]}
        for shown, sampling in SAMPLINGS.items():
            key = gap.metric, sampling
            cells[f"gap, {shown}"] = number(getattr(gap, sampling))
            cells[f"Wilcoxon p, {shown}"] = p_value(published.get(key, np.nan))
            cells[f"shared rows p, {shown}"] = p_value(ours.get(key, np.nan))
        rows.append(cells)
    return pd.DataFrame(rows)


def cohort_tables(studies: list[SubgroupStudyResult]) -> Tables:
    """Mean gaps over independent cohorts, and in how many of them a test rejects."""
    gaps = pd.concat(study.gaps for study in studies).groupby("metric")
    tables = {
        "Wilcoxon": pd.concat(study.published_tests for study in studies),
        "shared rows": pd.concat(study.tests for study in studies),
    }
    means, tests = [], []
    for metric in METRICS:
        mean_cells, test_cells = {"metric": LABEL[metric]}, {"metric": LABEL[metric]}
        for shown, sampling in SAMPLINGS.items():
            mean, low, high = mean_and_interval(gaps.get_group(metric)[sampling])
            mean_cells[f"gap, {shown}"] = number(mean, 4)
            mean_cells[f"95 % interval, {shown}"] = interval(low, high, 4)
        for name, table in tables.items():
            for shown, sampling in SAMPLINGS.items():
                of = (table["metric"] == metric) & (table["sampling"] == sampling)
                test_cells[f"{name}, {shown}"] = rejections(table.loc[of, "p_value"])
        means.append(mean_cells)
        tests.append(test_cells)
    p = pd.Series([equal_p(study) for study in studies])
    tests.append(
        {"metric": "equal calibration", "shared rows, all rows": rejections(p)}
    )
    return {"cohorts": pd.DataFrame(means), "cohort_tests": pd.DataFrame(tests)}


def rejections(p: pd.Series) -> str:
    """How many p-values are below .05; empty where there is no test."""
    return str((p < 0.05).sum()) if len(p) else ""


# -- scores without a classifier, with and without a true gap -------------------------


def scenario_draw(name: str, seed: int) -> dict[str, float]:
    """Gaps on all rows and at equal size, and the p-value of equal calibration."""
    frame = make_subgroup_scores(random_state=seed, **SCENARIOS[name]).frame
    data = {"sensitive_features": frame["group"], "random_state": seed}
    y, p = frame["outcome"], frame["score"]
    audit = GroupMetricFrame(
        metrics=SCENARIO_METRICS, y_true=y, y_pred=p, n_resamples=40, **data
    )
    matched = audit.size_matched.pivot(index="metric", columns="group", values="value")
    found = {"p": equal_calibration_test(y, p, **data).p_value}
    for metric in SCENARIO_METRICS:
        by_group = audit.by_group[metric]
        found[f"naive {metric}"] = by_group["dark"] - by_group["light"]
        found[f"size_matched {metric}"] = (
            matched.loc[metric, "dark"] - matched.loc[metric, "light"]
        )
    return found


def true_gaps(name: str) -> pd.Series:
    """Gaps between groups so large that their size no longer matters."""
    frame = make_subgroup_scores(LARGE, random_state=0, **SCENARIOS[name]).frame
    by_group = GroupMetricFrame(
        metrics=SCENARIO_METRICS,
        y_true=frame["outcome"],
        y_pred=frame["score"],
        sensitive_features=frame["group"],
    ).by_group
    return by_group.loc["dark"] - by_group.loc["light"]


def scenario_table() -> pd.DataFrame:
    """Mean gaps over the draws of each scenario."""
    rows = []
    for name in tqdm(SCENARIOS, desc="scenarios", disable=None):
        draws = pd.DataFrame([scenario_draw(name, seed) for seed in range(N_DRAWS)])
        true = true_gaps(name)
        rejected = f"{100 * (draws['p'] < 0.05).mean():.1f} %"
        for metric in SCENARIO_METRICS:
            cells = {
                "scores of dark skin": name,
                "metric": LABEL[metric],
                "true gap": number(true[metric], 3),
            }
            for shown, sampling in SAMPLINGS.items():
                values = draws[f"{sampling} {metric}"].dropna()
                mean, low, high = mean_and_interval(values)
                cells[f"gap, {shown}"] = number(mean, 4)
                cells[f"95 % interval, {shown}"] = interval(low, high, 4)
            cells["equal calibration rejected"] = rejected
            rows.append(cells)
    return pd.DataFrame(rows)


# -- tests over runs, from the kept simulation ----------------------------------------


def runs_table() -> pd.DataFrame:
    """The cell of that study's shape from `validity_runs.txt`."""
    text = (ROOT / "doc" / "benchmarks" / "validity_runs.txt").read_text("utf-8")
    block = text.split("1423:71, 1 a patient\n")[1].split("\n\n")[0]
    header, *lines = block.splitlines()
    rows = []
    for line in lines:
        metric, *values = re.split(r"\s{2,}", line.strip())
        found = dict(zip(header.split(), values, strict=True))
        rows.append(
            {
                "metric": metric,
                "Wilcoxon over 25 runs": found["wilcoxon_as_published"],
                "t test of fold means": found["t_fold_means"],
                "pooled rows": found["pooled"].removeprefix("-"),
            }
        )
    return pd.DataFrame(rows)


# -- the ECG scores -------------------------------------------------------------------


def ecg_gaps() -> pd.DataFrame:
    """Gaps of every diagnosis, and of all stacked, by sex and by age band."""
    ecg = fetch_ecg_readers()
    band = pd.cut(ecg.age, [0, *AGES.values()], labels=list(AGES)).astype(str)
    parts = []
    jobs = [
        (diagnosis, feature, values)
        for diagnosis in [*ecg.diagnoses, "all six"]
        for feature, values in [("sex", ecg.sex), ("age", band)]
    ]
    for diagnosis, feature, values in tqdm(jobs, desc="ECG", disable=None):
        of = ecg.diagnoses if diagnosis == "all six" else [diagnosis]
        group = np.tile(values, len(of))
        y = np.concatenate([ecg.truth[one] for one in of])
        p = np.concatenate([ecg.scores[one] for one in of])
        patient = np.tile(np.arange(len(values)), len(of))
        result = audit_scores(
            y,
            p,
            sensitive_features=group,
            clusters=patient if len(of) > 1 else None,
            metrics=["expected_calibration_error", "squared_calibration_error"],
            n_resamples=500,
            random_state=0,
            progress=False,
        )
        gaps = result.gaps.assign(
            diagnosis=diagnosis, feature=feature, equal=result.test.p_value
        )
        counts = pd.Series(y).groupby(group).agg(["size", "sum"])
        gaps["rows"] = gaps["group"].map(counts["size"])
        gaps["positive"] = gaps["group"].map(counts["sum"])
        gaps["others_positive"] = counts["sum"].sum() - gaps["positive"]
        gaps["score_to_prevalence"] = p.mean() / y.mean()
        parts.append(gaps)
    return pd.concat(parts, ignore_index=True)


def _ecg_row(ece: pd.Series, ce2: pd.Series) -> dict[str, str]:
    return {
        "ECE gap, all rows": number(ece["naive"], 4),
        "equal size": number(ece["size_matched"], 4),
        "95 % interval": interval(ece["low"], ece["high"], 4),
        "CE2 gap": number(ce2["naive"], 4),
        "CE2 interval": interval(ce2["low"], ce2["high"], 4),
        "equal calibration p": p_value(ece["equal"]),
    }


def ecg_tables(gaps: pd.DataFrame) -> Tables:
    sex, age = [], []
    for (diagnosis, feature, group), both in gaps.groupby(
        ["diagnosis", "feature", "group"], sort=False
    ):
        rows = both.set_index("metric")
        ece = rows.loc["expected_calibration_error"]
        ce2 = rows.loc["squared_calibration_error"]
        if feature == "sex":
            counts = f"{ece['positive']} : {ece['others_positive']}"
            sex.append(
                {"diagnosis": diagnosis, "positive F : M": counts} | _ecg_row(ece, ce2)
            )
        elif diagnosis == "all six" or group == "80+":
            counts = f"{ece['positive']} of {ece['rows']:,}"
            age.append(
                {"diagnosis": diagnosis, "age": group, "positive": counts}
                | _ecg_row(ece, ce2)
            )
    return {
        "ecg_sex": pd.DataFrame(sex),
        "ecg_age": pd.DataFrame(age),
        "ecg_summary": ecg_summary(gaps),
    }


def ecg_summary(gaps: pd.DataFrame) -> pd.DataFrame:
    """How many gaps of one diagnosis shrink, and the smallest p-value of all."""
    ece = gaps[
        (gaps["metric"] == "expected_calibration_error")
        & (gaps["diagnosis"] != "all six")
    ]
    shrunk = ece["size_matched"].abs() < 0.5 * ece["naive"].abs()
    p = ece.drop_duplicates(["diagnosis", "feature"])["equal"]
    stacked = gaps.loc[gaps["diagnosis"] == "all six", "score_to_prevalence"]
    summary = {
        "mean score over prevalence": number(stacked.iloc[0], 2),
        "gaps": len(ece),
        "gaps that at least halve at equal size": int(shrunk.sum()),
        "gaps with an interval": int(ece["low"].notna().sum()),
        "tests of equal calibration": len(p),
        "tests below .05": int((p < 0.05).sum()),
        "smallest p": p_value(p.min()),
        "smallest p by Holm": p_value(min(1.0, len(p) * p.min())),
    }
    return pd.DataFrame({"what": summary.keys(), "value": map(str, summary.values())})


# -- figures --------------------------------------------------------------------------


def draw_gaps(studies: list[SubgroupStudyResult], gaps: pd.DataFrame) -> None:
    """ECE gap on all rows and at equal size: simulated cohorts, and the ECG scores."""
    simulated = pd.concat(study.gaps for study in studies)
    ece = "expected_calibration_error"
    simulated = simulated[simulated["metric"] == ece].sort_values("naive")
    real = gaps[(gaps["metric"] == ece) & gaps["feature"].isin(["sex", "age"])]
    real = real[(real["feature"] == "sex") | (real["group"] == "80+")]
    names = [
        f"{row.diagnosis}, {'F - M' if row.feature == 'sex' else '80+ - rest'}"
        for row in real.itertuples()
    ]
    fig, axes = plt.subplots(1, 2, figsize=(9.5, 5.2), layout="constrained")
    panels = [
        (axes[0], simulated, f"{len(simulated)} simulated cohorts, no true gap"),
        (axes[1], real, "ECG scores"),
    ]
    for ax, table, title in panels:
        at = np.arange(len(table))
        naive, matched = table["naive"], table["size_matched"]
        ax.hlines(at, naive, matched, color="0.7", lw=1, zorder=1)
        ax.plot(naive, at, "s", color=ORANGE, mfc="none", label="all rows")
        ax.plot(matched, at, "o", color=BLUE, label="equal size", ms=5)
        ax.axvline(0, color="0.35", lw=0.8, zorder=0)
        ax.set(xlabel="ECE gap", title=title)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set(yticks=[], ylabel="cohort (dark skin less light skin)")
    axes[1].set_yticks(np.arange(len(real)), names)
    axes[1].invert_yaxis()
    handles, labels = axes[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    fig.savefig(IMAGES / "claims_gaps.png", dpi=110)


def run() -> Tables:
    """All tables, and both figures."""
    studies = [
        cohort_study(seed)
        for seed in tqdm(range(N_COHORTS), desc="cohorts", disable=None)
    ]
    gaps = ecg_gaps()
    GroupRunsDisplay.from_result(studies[0]).plot(n_columns=4).figure_.savefig(
        IMAGES / "claims_cohort.png", dpi=110
    )
    draw_gaps(studies, gaps)
    return {
        "study": study_table(studies[0]),
        **cohort_tables(studies),
        "scenarios": scenario_table(),
        "runs": runs_table(),
        **ecg_tables(gaps),
    }
