"""
Which calibration metric can be trusted in a small group?
=========================================================

A metric for small groups must say the same whatever their size, and still tell good
calibration from bad. Two kinds of scores are drawn again and again at several sizes:
perfectly calibrated, and over-confident.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skcalfair.datasets import BetaDecalibrator, make_calibrated_scores
from skcalfair.displays import SampleSizeDisplay
from skcalfair.metrics import (
    calibration_loss,
    expected_calibration_error,
    metric_table,
    squared_calibration_error,
)

METRICS = {
    "expected_calibration_error": expected_calibration_error,
    "squared_calibration_error": squared_calibration_error,
    "calibration_loss_brier": lambda y, p: calibration_loss(y, p, score="brier"),
}
SIZES = [71, 140, 280, 560, 1120]
N_SAMPLES = 100

whole = make_calibrated_scores(max(SIZES) * N_SAMPLES, random_state=0).frame
perfect = whole["score"].to_numpy()
kinds = {
    "calibrated": perfect,
    "over-confident": BetaDecalibrator(2.5, 2.5).fit_transform(perfect[:, None])[:, 0],
}
records = [
    (kind, size, name, metric(whole["outcome"].to_numpy()[rows], scores[rows]))
    for kind, scores in kinds.items()
    for size in SIZES
    for start in range(0, size * N_SAMPLES, size)
    for rows in [slice(start, start + size)]
    for name, metric in METRICS.items()
]
values = pd.DataFrame(records, columns=["decalibration", "n", "metric", "value"])
values["fraction"] = values["n"] / max(SIZES)

# %%
# **What to see.** The expected calibration error (ECE) of 71 perfectly calibrated rows
# is larger than that of 1,120 over-confident ones: by itself it cannot tell a small
# group from a badly calibrated one. The squared error (CE2) and the calibration loss
# have the same mean at every size, zero for calibrated scores; a small group only makes
# them noisier.

display = SampleSizeDisplay(values).plot()
for ax in display.axes_.ravel():
    ax.set_xscale("log")
    ax.set_xticks(np.array(SIZES) / max(SIZES), [str(size) for size in SIZES])
    ax.minorticks_off()
for ax in display.axes_[-1]:
    ax.set_xlabel("rows")
for column in display.axes_.T:
    limits = [ax.get_ylim() for ax in column]
    for ax in column:
        ax.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))
plt.show()

# %%
# The table of metrics says of each whether groups of unequal size may be compared by
# it.

metric_table().loc[list(METRICS), ["label", "size_robust"]]
