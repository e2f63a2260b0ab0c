"""
A dominance table from published points
=======================================

A publication gives the operating points of two models and three specialists. Who
decides best at which cost and prevalence, and what goes wrong with the cost ratios as
they were printed?
"""

import matplotlib.pyplot as plt
import pandas as pd

from skcalfair.displays import DominanceDisplay, RocReadersDisplay
from skcalfair.dominance import DominanceTable

published = pd.DataFrame(
    {
        "name": ["Model A", "Specialist A", "Specialist B", "Specialist C", "Model B"],
        "kind": ["model", "reader", "reader", "reader", "model"],
        "sensitivity": [0.93, 0.89, 0.83, 0.75, 0.62],
        "specificity": [0.60, 0.73, 0.85, 0.92, 0.95],
    }
)
PREVALENCE = 0.177
table = DominanceTable.from_operating_points(published, prevalence=PREVALENCE)
shown = ["owner", "cpg_from", "cpg_to", "cost_ratio_from@0.177", "cost_ratio_to@0.177"]
table.table(PREVALENCE)[shown].round(3)

# %%
# The same in the layout of the publication, whose cost ratios are
# ``CPG * (1 - pi) / pi`` where the expected cost says ``CPG * pi / (1 - pi)``.

printed = DominanceTable.from_operating_points(published, convention="as_published")
printed.table(PREVALENCE)[shown].round(2)

# %%
# At equal costs the printed columns name Model A, since a cost ratio of 1 is below
# 1.43. By the expected cost it is Model B, and Model A is the worst of the five.

print(table.at(PREVALENCE, 1.0).summary())
table.at(PREVALENCE, 1.0).table[["name", "FN", "FP", "expected_cost", "extra_cost"]]

# %%
# **What to see.** From common to rare (left to right) the best decision goes from
# Model A over the specialists to Model B. At 17.7 % and equal costs the best is Model
# B; the scale above the strip gives the true cost ratios.

DominanceDisplay.from_table(
    table, prevalence=PREVALENCE, points=[(PREVALENCE, 1.0)]
).plot()
plt.show()

# %%
# The lines of equal cost touch the hull at the point that is best: each model and
# specialist owns the part of the hull around it. The cross, the mean of the
# specialists, is a point that none of them has.

RocReadersDisplay.from_table(
    table, points=[(PREVALENCE, 1.0), (PREVALENCE, 0.05)]
).plot()
plt.show()
