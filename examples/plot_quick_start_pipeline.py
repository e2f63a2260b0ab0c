"""
Quick start: calibrate a pipeline and look at every group
=========================================================

Naive Bayes counts the evidence of correlated features as often as it comes, so that
its probabilities are too extreme. Does Platt scaling mend that, and for both sites
alike?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalfair.audit import audit_scores
from skcalfair.calibration import CalibratedClassifier
from skcalfair.displays import ReliabilityDisplay

rng = np.random.default_rng(0)
marker = rng.normal(size=3000)
X = marker[:, np.newaxis] + 0.7 * rng.normal(size=(3000, 8))  # eight readings of it
y = (rng.random(3000) < 1 / (1 + np.exp(-1.5 * marker))).astype(int)
site = np.where(np.arange(3000) % 6, "large site", "small site")

models = {
    "as it is": make_pipeline(StandardScaler(), GaussianNB()),
    "with Platt scaling": make_pipeline(
        StandardScaler(), CalibratedClassifier(GaussianNB())
    ),
}
folds = StratifiedKFold(5, shuffle=True, random_state=0)
scores = {
    name: cross_val_predict(model, X, y, cv=folds, method="predict_proba")[:, 1]
    for name, model in models.items()
}

# %%
# **What to see.** Without calibration the curves are flatter than the diagonal and
# leave the bars in which calibrated scores would stay: the model is over-confident at
# both sites. Platt scaling brings them back; the small site stays more ragged, as its
# longer bars allow.

fig, axes = plt.subplots(2, 2, figsize=(7, 7.4), layout="constrained")
for row, (name, p) in zip(axes, scores.items(), strict=True):
    ReliabilityDisplay.from_predictions(y, p, sensitive_features=site).plot(row)
    row[0].set_ylabel(f"{name}\nobserved frequency")
plt.show()

# %%
# The audit says the same in words, with the part of the gap that sample size explains.

result = audit_scores(
    y,
    scores["with Platt scaling"],
    sensitive_features=site,
    metrics=["calibration_loss_brier", "expected_calibration_error"],
    random_state=0,
)
print(result.summary())
