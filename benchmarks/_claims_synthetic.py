"""Claim 1: which calibration metrics grow as the test set shrinks."""

import pandas as pd
from _claims_tables import (
    IMAGES,
    Tables,
    interval,
    mean_and_interval,
    number,
    p_value,
)
from tqdm import tqdm

from skcalfair.datasets import make_calibrated_scores
from skcalfair.displays import SampleSizeDisplay
from skcalfair.experiments import SampleSizeResult, sample_size_study
from skcalfair.metrics import metric_table

N_ROWS, N_SPLITS = 1_000_000, 100
# Independent data sets, each with a small study of its own.
N_SETS, SET_ROWS, SET_SPLITS = 30, 100_000, 10
SHOWN = [
    "expected_calibration_error",
    "maximum_calibration_error",
    "adaptive_calibration_error",
    "calibration_loss_log_loss",
    "calibration_loss_brier",
]
LABEL = metric_table()["label"]


def study(n_rows: int, n_splits: int, seed: int) -> SampleSizeResult:
    frame = make_calibrated_scores(n_rows, random_state=seed).frame
    return sample_size_study(
        frame["outcome"],
        frame["score"],
        n_splits=n_splits,
        random_state=seed,
        progress=False,
    )


def full_table(result: SampleSizeResult) -> pd.DataFrame:
    """Means at a tenth and at all of the test rows, over the splits of one data set."""
    rows = []
    for row in result.wilcoxon.itertuples():
        grows = not row.size_robust
        rows.append(
            {
                "scores": row.decalibration,
                "metric": LABEL[row.metric],
                "10 % of rows": number(row.value, 5),
                "all rows": number(row.reference_value, 5),
                "difference": number(row.value - row.reference_value, 5),
                "ratio": number(row.value / row.reference_value, 2) if grows else "",
                "Wilcoxon p": p_value(row.p_value),
            }
        )
    return pd.DataFrame(rows)


def growth(result: SampleSizeResult) -> pd.DataFrame:
    """Mean at a tenth of the test rows less that at all of them."""
    table = result.wilcoxon
    return table[["decalibration", "metric"]].assign(
        growth=table["value"] - table["reference_value"]
    )


def replicated_table(growths: list[pd.DataFrame]) -> pd.DataFrame:
    """Growth over independent data sets, with an interval that is one."""
    rows = []
    of_sets = pd.concat(growths).groupby(["decalibration", "metric"], sort=False)
    for (scores, metric), values in of_sets["growth"]:
        mean, low, high = mean_and_interval(values)
        rows.append(
            {
                "scores": scores,
                "metric": LABEL[metric],
                "growth": number(mean, 5),
                "95 % interval": interval(low, high, 5),
                "sets that grow": str(int((values > 0).sum())),
            }
        )
    return pd.DataFrame(rows)


def run() -> Tables:
    """Both tables, and the figure."""
    result = study(N_ROWS, N_SPLITS, seed=0)
    display = SampleSizeDisplay.from_result(result, metrics=SHOWN).plot()
    display.figure_.savefig(IMAGES / "claims_sample_size.png", dpi=110)
    growths = [
        growth(study(SET_ROWS, SET_SPLITS, seed=1 + k))
        for k in tqdm(range(N_SETS), desc="independent data sets", disable=None)
    ]
    return {"synthetic": full_table(result), "replicated": replicated_table(growths)}
