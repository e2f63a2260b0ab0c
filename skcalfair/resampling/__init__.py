"""Resampling as weights: exact draws of bootstrap samples and subsamples."""

from ._draws import bootstrap_counts, subsample_clusters, subsample_counts

__all__ = ["bootstrap_counts", "subsample_clusters", "subsample_counts"]
