"""
An image classifier, audited by skin tone
=========================================

A small demonstration of ``VGG19Classifier``: it learns to tell generated lesions
apart, is calibrated, and is audited for light and dark skin. The images are 32 pixels
wide and the network starts from random weights, so that a CPU needs less than a minute.
With real images, leave ``weights`` and ``input_size`` as they are, and use a GPU.
"""

import matplotlib.pyplot as plt
from sklearn.frozen import FrozenEstimator

from skcalfair.audit import audit_scores
from skcalfair.calibration import CalibratedClassifier
from skcalfair.datasets import make_skin_lesions
from skcalfair.keras import VGG19Classifier

lesions = make_skin_lesions(280, size=32, dark_share=0.3, random_state=0)
fig, axes = plt.subplots(2, 6, figsize=(8, 3), layout="constrained")
for row, label in enumerate(["benign", "malignant"]):
    of_class = (lesions.target == row).nonzero()[0]
    for ax, i in zip(axes[row], of_class, strict=False):
        ax.imshow(lesions.images[i])
        ax.set(xticks=[], yticks=[])
    axes[row, 0].set_ylabel(label)
plt.show()

# %%
# Train on some patients. ``groups`` keeps the images of a patient on one side of the
# validation split, by which training is stopped.

train = lesions.patient < 45
model = VGG19Classifier(
    weights=None, input_size=(32, 32), batch_size=16, max_epochs=6, random_state=0
)
model.fit(lesions.images[train], lesions.target[train], groups=lesions.patient[train])

fig, ax = plt.subplots(figsize=(5, 3), layout="constrained")
epochs = range(1, model.n_iter_ + 1)
ax.plot(epochs, model.history_["loss"], "o-", color="#0072B2", label="training")
ax.plot(epochs, model.history_["val_loss"], "s--", color="#D55E00", label="validation")
ax.set(xlabel="epoch", ylabel="weighted cross-entropy")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# After so few steps, the network ranks lesions better than it knows their
# probabilities. Platt scaling on other patients mends that; the audit is on a third
# part.

rest = (lesions.patient >= 45) & (lesions.patient < 90)
calibrated = CalibratedClassifier(FrozenEstimator(model))
calibrated.fit(lesions.images[rest], lesions.target[rest])

test = lesions.patient >= 90
result = audit_scores(
    lesions.target[test],
    calibrated.predict_proba(lesions.images[test]),
    sensitive_features=lesions.skin_tone[test],
    clusters=lesions.patient[test],
    metrics=["roc_auc", "brier_score_loss", "expected_calibration_error"],
    n_resamples=100,
    random_state=0,
)
columns = ["metric", "group", "sampling", "size", "value", "low", "high"]
result.values[columns].round(2)
