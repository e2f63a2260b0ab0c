"""
Does a calibration gap survive at equal size?
=============================================

A classifier is trained, calibrated and tested 25 times on a cohort in which twenty rows
of light skin stand against each one of dark skin, and in which a score means the same
for both. Its calibration errors are compared on all rows, and at equal size.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skcalfair.datasets import make_skin_tone_cohort
from skcalfair.displays import GroupBalanceDisplay, GroupRunsDisplay, SampleSizeDisplay
from skcalfair.experiments import subgroup_study

cohort = make_skin_tone_cohort()
p = cohort["score"]
noise = np.random.default_rng(0).normal(size=len(p))
METRICS = [
    "roc_auc",
    "expected_calibration_error",
    "adaptive_calibration_error",
    "calibration_loss_log_loss",
]
study = subgroup_study(
    None,  # logistic regression on standardised features
    pd.DataFrame({"marker": np.log(p / (1 - p)) + noise}),
    cohort["malignant"],
    sensitive_features=cohort["skin_tone"],
    groups=cohort["patient"],
    metrics=METRICS,
    n_resamples=20,
    random_state=0,
)
GroupBalanceDisplay.from_result(study).plot()
plt.show()

# %%
# **What to see.** On all rows the calibration errors of dark skin are several times
# those of light skin, without any overlap. Once light skin is cut to the same number of
# rows most of that is gone; what is left, like the gap of the area under the ROC curve
# (AUC), is the chance of one cohort with 71 rows of dark skin.

GroupRunsDisplay.from_result(study).plot()
plt.show()

# %%
# The reason shows without any groups: the fewer of all test rows are looked at, the
# larger the expected calibration error of the same model.

SampleSizeDisplay.from_result(study, metrics=METRICS[1:]).plot()
plt.show()

# %%
# On all rows every test sees the sample size. At equal size the published test, which
# takes the 25 runs for independent pairs, still finds gaps of the expected calibration
# error; one that knows which rows the runs share does not.

keys = ["metric", "sampling"]
pd.DataFrame(
    {
        "as published": study.published_tests.set_index(keys)["p_value"],
        "by shared rows": study.tests.set_index(keys)["p_value"],
    }
).round(4)
