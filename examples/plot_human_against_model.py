"""
Readers against a model
=======================

A simulated reader study: a model scores 800 cases and five readers call each of them
positive or negative. Every reader is a little better than the model, and each draws
the line elsewhere. Who should decide, and how sure is that?
"""

import matplotlib.pyplot as plt
from scipy.stats import norm

from skcalfair.datasets import make_reader_study
from skcalfair.displays import DominanceDisplay, RocReadersDisplay
from skcalfair.dominance import DominanceTable

# Readers see the two classes 1.95 standard deviations apart, the model 1.7; the
# threshold from which on a reader calls a case positive differs.
READERS = {
    f"reader {name}": (norm.sf(threshold - 1.95), norm.cdf(threshold))
    for name, threshold in zip("ABCDE", [-0.4, 0.4, 1.0, 1.6, 2.4], strict=True)
}
study = make_reader_study(
    800, readers=READERS, models={"model": 1.7}, prevalence=0.3, random_state=4
)
table = DominanceTable(n_bootstrap=300, cross_fit=True, random_state=0)
table.fit(study.data, study.target)
table.table_[["cpg_from", "cpg_to", "owner", "sensitivity_from", "specificity_from"]]

# %%
# **What to see.** The readers lie above the curve of the model and own most of the
# hull. The cross, the mean of their rates, lies under the curve: judged by it, the
# model would seem to be better than the readers.

CHOSEN = [(0.3, 1.0), (0.05, 0.02)]
RocReadersDisplay.from_table(table, study.data, study.target, points=CHOSEN).plot()
plt.show()

# %%
# Along the gradient the whiskers say how far each change of the owner may be off. The
# lower panel says how often each would have been best in other samples of the cases:
# support, not evidence.

DominanceDisplay.from_table(table, prevalence=0.3, points=CHOSEN).plot()
plt.show()

# %%
# The same in numbers: sets that reach 0 or infinity are unbounded.

table.breakpoints_[["from_owner", "to_owner", "cpg", "fieller"]].round(2)

# %%
# At a prevalence of 30 % and equal costs, per 1,000 people:

table.at(0.3, 1.0).table[["name", "TP", "FN", "FP", "TN", "extra_cost"]].round(1)

# %%
# The winner was picked on these cases. Chosen on one half and judged on the other, the
# best of the readers and the best threshold of the model cost a little more; the gap
# between the two columns of the model is what picking its threshold is worth.

columns = [
    f"{who}_{how}"
    for who in ("model", "reader")
    for how in ("in_sample", "cross_fitted")
]
table.cross_fit_.loc[[20, 24, 28], ["cpg", *columns]].round(4)
