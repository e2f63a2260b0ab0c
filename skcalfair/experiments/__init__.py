"""The two studies of calibration bias as functions that return tidy tables."""

from ._sample_size import SampleSizeResult, sample_size_study
from ._subgroup import SubgroupStudyResult, subgroup_study

__all__ = [
    "SampleSizeResult",
    "SubgroupStudyResult",
    "sample_size_study",
    "subgroup_study",
]
