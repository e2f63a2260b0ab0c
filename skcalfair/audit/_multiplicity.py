"""P-values of several comparisons, adjusted for their number."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import false_discovery_control

Floats = NDArray[np.float64]


def adjust(p: Floats, correction: str = "holm", *, family: int | None = None) -> Floats:
    """Adjusted p-values by "holm" or "fdr_bh"; NaN stays NaN.

    `family` is the number of comparisons for Holm's method; by default those whose
    p-value is known.
    """
    out = np.full(len(p), np.nan)
    known = np.flatnonzero(~np.isnan(p))
    if correction == "fdr_bh":
        out[known] = false_discovery_control(p[known]) if len(known) else []
        return out
    order = known[np.argsort(p[known], kind="stable")]
    steps = ((family or len(known)) - np.arange(len(order))) * p[order]
    out[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return out
