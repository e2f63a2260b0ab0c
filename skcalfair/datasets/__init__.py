"""Data sets: generators with a known truth, and public sets of scores and readers."""

from ._data_home import get_data_home
from ._ecg import fetch_ecg_readers
from ._subgroups import (
    make_skin_tone_cohort,
    make_subgroup_scores,
)

__all__ = [
    "fetch_ecg_readers",
    "get_data_home",
    "make_skin_tone_cohort",
    "make_subgroup_scores",
]
