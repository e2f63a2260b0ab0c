"""The two studies of calibration bias as functions that return tidy tables."""

from ._sample_size import SampleSizeResult, sample_size_study

__all__ = ["SampleSizeResult", "sample_size_study"]
