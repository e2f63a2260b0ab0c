"""
Which calibration metrics grow as the test set shrinks?
=======================================================

Scores whose true probabilities are known are decalibrated to three degrees, and seven
metrics look at ever smaller samples of the test rows. A small version of the synthetic
study behind this package: 20,000 rows instead of a million, 30 splits instead of 100.
"""

import matplotlib.pyplot as plt

from skcalfair.datasets import make_calibrated_scores
from skcalfair.displays import DecalibrationDisplay, SampleSizeDisplay
from skcalfair.experiments import sample_size_study

scores = make_calibrated_scores(20_000, random_state=0).frame
result = sample_size_study(
    scores["outcome"], scores["score"], n_splits=30, random_state=0
)
DecalibrationDisplay.from_result(result).plot()
plt.show()

# %%
# **What to see.** The expected, the maximum and the adaptive calibration error (ECE,
# MCE, AdaECE) rise to the left, as the sample shrinks; most so in the first row, where
# the scores are perfect and all of it is the metric's own error, and hardly in the
# last. The squared error (CE2), the Brier score and the calibration losses only get
# noisier.

SampleSizeDisplay.from_result(result).plot()
plt.show()

# %%
# The same in numbers: the mean in a tenth of the test rows, and in all of them.

columns = ["decalibration", "metric", "value", "reference_value", "p_value"]
result.wilcoxon[columns].round(4)
