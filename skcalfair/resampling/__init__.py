"""Resampling as indices and weights: size matching, bootstrap and permutation."""

from typing import TYPE_CHECKING, Any

from ._bootstrap import bootstrap_clusters, jackknife_counts, stratified_bootstrap
from ._draws import bootstrap_counts, subsample_clusters, subsample_counts
from ._intervals import BootstrapInterval, bca_interval, percentile_interval
from ._permutation import permutation_p_value, permute_within_strata

if TYPE_CHECKING:
    from ._size_matcher import GroupSizeMatcher

__all__ = [
    "BootstrapInterval",
    "GroupSizeMatcher",
    "bca_interval",
    "bootstrap_clusters",
    "bootstrap_counts",
    "jackknife_counts",
    "percentile_interval",
    "permutation_p_value",
    "permute_within_strata",
    "stratified_bootstrap",
    "subsample_clusters",
    "subsample_counts",
]


# imbalanced-learn takes long to import, and most of the package does without it.
def __getattr__(name: str) -> Any:
    if name == "GroupSizeMatcher":
        from ._size_matcher import GroupSizeMatcher

        return GroupSizeMatcher
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
