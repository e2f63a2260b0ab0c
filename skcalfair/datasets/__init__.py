"""Data sets: generators with a known truth, and public sets of scores and readers."""

from ._beta_decalibrator import BetaDecalibrator
from ._calibrated import make_calibrated_scores
from ._data_home import get_data_home
from ._ecg import fetch_ecg_readers
from ._pad_ufes import load_pad_ufes_20
from ._reader_study import make_reader_study
from ._skin_lesions import make_skin_lesions
from ._subgroups import (
    make_skin_tone_cohort,
    make_subgroup_scores,
)

__all__ = [
    "BetaDecalibrator",
    "fetch_ecg_readers",
    "get_data_home",
    "load_pad_ufes_20",
    "make_calibrated_scores",
    "make_reader_study",
    "make_skin_lesions",
    "make_skin_tone_cohort",
    "make_subgroup_scores",
]
