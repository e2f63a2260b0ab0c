"""
Is it the group, or where the group is treated?
===============================================

Women are treated mostly at hospital B, whose scores are over-confident for everybody.
An audit by sex alone finds a calibration gap. Comparing women and men within the same
hospital, with the hospital as control feature, says whose it is.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skcalfair.audit import GroupMetricFrame
from skcalfair.datasets import make_subgroup_scores

cohort = make_subgroup_scores(
    {("F", "A"): 800, ("M", "A"): 4000, ("F", "B"): 4000, ("M", "B"): 800},
    slope={("F", "A"): 1.0, ("M", "A"): 1.0, ("F", "B"): 0.45, ("M", "B"): 0.45},
    random_state=0,
).frame
cohort["sex"], cohort["hospital"] = zip(*cohort["group"], strict=True)


def audit(**control):
    return GroupMetricFrame(
        metrics="squared_calibration_error",
        y_true=cohort["outcome"],
        y_pred=cohort["score"],
        sensitive_features=cohort[["sex"]],
        random_state=0,
        **control,
    )


alone = audit()
within = audit(control_features=cohort[["hospital"]])
print("gap by sex alone:", round(alone.difference(), 4))
print("gap within each hospital:", within.difference().round(4).to_dict())

# %%
# Several sensitive features at once are possible as well: each combination is a group.

by_both = GroupMetricFrame(
    metrics={"ECE": "expected_calibration_error", "CE2": "squared_calibration_error"},
    y_true=cohort["outcome"],
    y_pred=cohort["score"],
    sensitive_features=cohort[["sex", "hospital"]],
    random_state=0,
)
by_both.by_group.round(4)

# %%
# **What to see.** On the left the scores seem to serve women far worse. Within each
# hospital (right) women and men hardly differ, and both are badly off at B: it is the
# hospital that needs new calibration, not one of the sexes.

fig, axes = plt.subplots(
    1, 2, figsize=(7.5, 3.4), layout="constrained", sharey=True, width_ratios=[1, 2]
)
styles = {"F": ("#0072B2", ""), "M": ("#D55E00", "///")}
bars = {"alone": alone.by_group, "within": within.by_group}
for k, (sex, (color, hatch)) in enumerate(styles.items()):
    look = {"color": color, "hatch": hatch, "edgecolor": "0.2", "width": 0.36}
    axes[0].bar(0.4 * k - 0.2, alone.by_group[sex], label=sex, **look)
    at = np.arange(2) + 0.4 * k - 0.2
    axes[1].bar(at, [within.by_group[hospital, sex] for hospital in "AB"], **look)
axes[0].set(xticks=[0], xticklabels=["all"], ylabel="squared calibration error (CE2)")
axes[1].set(xticks=[0, 1], xticklabels=["hospital A", "hospital B"])
axes[0].set_title("by sex alone")
axes[1].set_title("by sex, within the hospital")
axes[0].legend(frameon=False)
for ax in axes:
    ax.axhline(0, color="0.35", lw=0.8)
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# How sex and hospital go together:

pd.crosstab(cohort["sex"], cohort["hospital"])
