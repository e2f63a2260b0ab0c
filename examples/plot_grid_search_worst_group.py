"""
How much should the small site count in training?
=================================================

A marker means something else at a small site than at the large one, and the model knows
nothing of sites. A grid search over the weight of the small site in training is scored
twice: by the log loss of all rows, and by that of the worst site at equal size.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from skcalfair.metrics import get_scorer, make_group_scorer

rng = np.random.default_rng(0)
n = 6000
X = pd.DataFrame(
    {"marker": rng.normal(size=n), "site": np.where(rng.random(n) < 0.1, "B", "A")}
)
log_odds = np.where(X["site"] == "B", 1.5 + 0.2 * X["marker"], 1.5 * X["marker"] - 0.5)
y = (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int)


class SiteWeighted(ClassifierMixin, BaseEstimator):
    """Logistic regression on the marker; rows of site B count `weight` times."""

    def __init__(self, weight=1.0):
        self.weight = weight

    def fit(self, X, y):
        weights = np.where(X["site"] == "B", self.weight, 1.0)
        self.model_ = LogisticRegression().fit(X[["marker"]], y, weights)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X[["marker"]])


WEIGHTS = [1, 2, 4, 8, 16, 32, 64]
search = GridSearchCV(
    SiteWeighted(),
    {"weight": WEIGHTS},
    scoring={
        "all rows": get_scorer("neg_log_loss"),
        "worst site": make_group_scorer(
            "log_loss", aggregate="max", sensitive_features="site"
        ),
    },
    refit="worst site",
    cv=StratifiedKFold(5, shuffle=True, random_state=0),
).fit(X, y)

# %%
# **What to see.** Scored by all rows the search keeps the weight at 1, the best for the
# large site, and the small one pays for it. Scored by the worst site it chooses the
# weight at which both sites do about equally well, at a price for the average.

results = pd.DataFrame(search.cv_results_)
fig, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
for name, color, marker, ls in [
    ("all rows", "#0072B2", "o", "-"),
    ("worst site", "#D55E00", "s", "--"),
]:
    loss = -results[f"mean_test_{name}"]
    ax.plot(WEIGHTS, loss, color=color, marker=marker, ls=ls, label=name)
    best = loss.idxmin()
    ax.plot(WEIGHTS[best], loss[best], "o", ms=14, mfc="none", mec=color)
ax.set(xscale="log", xlabel="weight of a row of site B", ylabel="log loss")
ax.set_xticks(WEIGHTS, [str(weight) for weight in WEIGHTS])
ax.minorticks_off()
ax.legend(frameon=False, title="scored by (best: ring)")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The model that is kept:

search.best_estimator_
