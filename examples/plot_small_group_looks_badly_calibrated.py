"""
A small group looks badly calibrated because it is small
========================================================

Two groups with perfectly calibrated scores: 1,423 rows and 71 rows. The expected
calibration error (ECE) of the small group is several times larger. Is that unfair?
"""

import matplotlib.pyplot as plt
import pandas as pd

from skcalfair.audit import audit_scores
from skcalfair.datasets import make_skin_tone_cohort

cohort = make_skin_tone_cohort(random_state=0)
cohort.groupby("skin_tone")["malignant"].agg(["size", "mean"])

# %%
# Cut the large group down to many sizes and look at what the metrics report there.

METRICS = {
    "expected_calibration_error": "ECE",
    "squared_calibration_error": "squared calibration error (CE2)",
}
SIZES = [40, 71, 140, 280, 560, 1120, 1423]

values = []
for size in SIZES:
    result = audit_scores(
        cohort["malignant"],
        cohort["score"],
        sensitive_features=cohort["skin_tone"],
        metrics=list(METRICS),
        size_match=size,
        n_resamples=300,
        random_state=0,
    )
    values.append(result.values.query("sampling == 'size_matched'"))
values = pd.concat(values)

# %%
# **What to see.** The ECE of light skin grows along the curve as rows are taken away,
# although its scores stay perfectly calibrated, and dark skin lies where light skin of
# the same size does: the gap is only sample size. The squared calibration error stays
# at the true value, 0, at every size.

BLUE, ORANGE = "#0072B2", "#D55E00"
fig, axes = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
for ax, (metric, label) in zip(axes, METRICS.items(), strict=True):
    of_metric = values[values["metric"] == metric]
    light = of_metric[of_metric["group"] == "light"]
    dark = of_metric.query("group == 'dark' and size == 71")
    low, high = (
        light["low"].fillna(light["value"]),
        light["high"].fillna(light["value"]),
    )
    ax.fill_between(light["size"], low, high, color=BLUE, alpha=0.2, lw=0)
    ax.plot(
        light["size"], light["value"], "o-", color=BLUE, label="light skin, cut to size"
    )
    ax.plot(71, dark["value"], "D", color=ORANGE, ms=9, label="dark skin, all 71 rows")
    ax.axhline(0, color="0.3", ls="--", lw=1, label="truth for both")
    ax.set(xscale="log", xlabel="rows", ylabel=label)
    ax.set_xticks(SIZES[:-1], [f"{size:,}" for size in SIZES[:-1]])
    ax.minorticks_off()
    ax.spines[["top", "right"]].set_visible(False)
axes[0].legend(frameon=False)
fig.suptitle("Equally and perfectly calibrated; bands hold 95 % of subsamples", size=11)
plt.show()
