"""Calibrators: transformers from score to probability, and the classifier wrapper."""

from ._classifier import CalibratedClassifier
from ._platt import PlattCalibrator

__all__ = ["CalibratedClassifier", "PlattCalibrator"]
