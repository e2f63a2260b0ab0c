"""Image classifiers for scikit-learn, on Keras 3; Keras is imported when fitting."""

from ._classifier import VGG19Classifier

__all__ = ["VGG19Classifier"]
