"""
Why patients must stay on one side of a split
=============================================

Three images of each patient look alike and share the diagnosis. A model that has seen
one of them in training recognises the others. How much better does it look than it is
to new patients, and what do folds by patient change?
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold

from skcalfair.model_selection import NestedStratifiedGroupKFold


def draw(n_patients, seed):
    """Three images of each patient: weak signal, strong likeness."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(n_patients), 3)
    outcome = rng.integers(2, size=n_patients)
    look = rng.normal(size=(n_patients, 8))
    look[:, 0] += 1.0 * outcome
    X = look[patient] + 0.2 * rng.normal(size=(len(patient), 8))
    dark = rng.random(n_patients) < 0.1
    return X, outcome[patient], patient, np.where(dark[patient], "dark", "light")


X, y, patient, tone = draw(500, seed=0)
X_new, y_new, *_ = draw(2000, seed=1)

# %%
# The folds by patient also keep the shares of class and skin tone alike.

by_patient = NestedStratifiedGroupKFold(5, 5, random_state=0)
splits = {
    "by image": list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)),
    "by patient": list(by_patient.split(X, y, groups=patient, sensitive_features=tone)),
}
METRICS = {"AUC": roc_auc_score, "Brier score": brier_score_loss}
records = []
for name, folds in splits.items():
    for train, test in folds:
        model = RandomForestClassifier(50, random_state=0).fit(X[train], y[train])
        p, p_new = (model.predict_proba(rows)[:, 1] for rows in (X[test], X_new))
        for metric, function in METRICS.items():
            records.append((name, metric, function(y[test], p), function(y_new, p_new)))
found = pd.DataFrame(records, columns=["split", "metric", "test fold", "new patients"])
found.groupby(["metric", "split"]).mean().round(3)

# %%
# **What to see.** Split by image, the test folds promise an area under the ROC curve
# (AUC) and a Brier score far better than what the same models reach on new patients
# (dashed line). Split by patient, the test folds scatter around the truth about new
# patients.

BLUE, ORANGE = "#0072B2", "#D55E00"
fig, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
for ax, metric in zip(axes, METRICS, strict=True):
    of_metric = found[found["metric"] == metric]
    for at, (name, color, marker) in enumerate(
        [("by image", ORANGE, "s"), ("by patient", BLUE, "o")]
    ):
        rows = of_metric[of_metric["split"] == name]
        x = at + np.linspace(-0.12, 0.12, len(rows))
        ax.plot(x, rows["test fold"], marker, color=color, label=f"test folds {name}")
        ax.hlines(
            rows["new patients"].mean(),
            at - 0.3,
            at + 0.3,
            color=color,
            ls="--",
            label="new patients" if at else None,
        )
    ax.set_xticks([0, 1], ["by image", "by patient"])
    ax.set(xlim=(-0.5, 1.5), title=metric)
    ax.spines[["top", "right"]].set_visible(False)
handles, labels = axes[1].get_legend_handles_labels()
fig.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
plt.show()

# %%
# The shares of each combination of class and skin tone in the five test folds:

shares = [
    pd.Series(y[test]).astype(str).str.cat(tone[test], sep=", ").value_counts(True)
    for _, test in splits["by patient"]
]
pd.DataFrame(shares, index=[f"fold {k}" for k in range(5)]).round(3)

# %%
# For calibration the rows that are left of each fold are divided once more, into
# training and validation rows. No patient is on two sides of any of these runs.

runs = list(by_patient.split_nested(X, y, groups=patient, sensitive_features=tone))
shared = [
    len(set(patient[a]) & set(patient[b]))
    for run in runs
    for a, b in [(run[0], run[1]), (run[0], run[2]), (run[1], run[2])]
]
print(f"{len(runs)} runs, {sum(shared)} patients on two sides")
