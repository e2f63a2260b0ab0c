"""
Readers against a model
=======================

A simulated reader study: a model scores 800 cases and five readers call each of them
positive or negative. Every reader is a little better than the model, and each draws
the line elsewhere. Who should decide?
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skcalfair.displays import DominanceDisplay, RocReadersDisplay
from skcalfair.dominance import DominanceTable

rng = np.random.default_rng(4)
ill = (rng.random(800) < 0.3).astype(int)
study = pd.DataFrame({"model": 1.7 * ill + rng.normal(size=800)})
# What a reader sees is a little clearer than the model's score; the threshold from
# which on a case is called positive differs.
for reader, threshold in zip("ABCDE", [-0.4, 0.4, 1.0, 1.6, 2.4], strict=True):
    seen = 1.95 * ill + rng.normal(size=800)
    study[f"reader {reader}"] = (seen > threshold).astype(int)

table = DominanceTable(n_bootstrap=300, random_state=0).fit(study, ill)
table.table_[["cpg_from", "cpg_to", "owner", "sensitivity_from", "specificity_from"]]

# %%
# **What to see.** The readers lie above the curve of the model, and own most of
# the hull. The cross, the mean of their rates, lies under the curve: judged by it, the
# model would seem to be better than the readers.

CHOSEN = [(0.3, 1.0), (0.05, 0.02)]
RocReadersDisplay.from_table(table, study, ill, points=CHOSEN).plot()
plt.show()

# %%
# Along the gradient the readers who call many cases positive are best where misses are
# dear, and the strict ones where false alarms are. The model is best at the ends, which
# no reader covers. Below, the share of bootstrap samples in which each is best:
# support, not evidence, but enough to see where the choice of the owner is a toss-up.

DominanceDisplay.from_table(table, prevalence=0.3, points=CHOSEN).plot()
plt.show()

# %%
# At a prevalence of 30 % and equal costs, per 1,000 people:

table.at(0.3, 1.0).table[["name", "TP", "FN", "FP", "TN", "extra_cost"]].round(1)
