"""Generated images of skin lesions."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

from skcalfair.datasets import make_skin_lesions
from skcalfair.metrics import calibration_loss


@pytest.fixture(scope="module")
def lesions():
    return make_skin_lesions(600, size=24, random_state=0)


def test_shapes(lesions):
    assert lesions.images.shape == (600, 24, 24, 3)
    assert lesions.images.dtype == np.uint8
    for name in ("target", "skin_tone", "patient", "posterior"):
        assert lesions[name].shape == (600,)
    assert set(lesions.target.tolist()) == {0, 1}
    assert set(lesions.skin_tone.tolist()) == {"dark", "light"}


def test_the_same_seed_gives_the_same_images():
    one, same, other = (
        make_skin_lesions(70, size=16, random_state=seed) for seed in (0, 0, 1)
    )
    for name, values in one.items():
        np.testing.assert_array_equal(values, same[name])
    assert (one.images != other.images).any()
    rng = np.random.default_rng
    np.testing.assert_array_equal(
        make_skin_lesions(5, size=8, random_state=rng(3)).images,
        make_skin_lesions(5, size=8, random_state=rng(3)).images,
    )


def test_skin_is_as_dark_as_it_says(lesions):
    corner = lesions.images[:, :3, :3].mean(axis=(1, 2, 3))
    is_dark = lesions.skin_tone == "dark"
    assert corner[is_dark].max() < corner[~is_dark].min()
    # The centre belongs to the lesion, which is darker than the skin.
    centre = lesions.images[:, 11:13, 11:13].mean(axis=(1, 2, 3))
    assert (centre < corner).mean() > 0.98


def test_a_patient_has_one_skin_tone(lesions):
    patients, counts = np.unique(lesions.patient, return_counts=True)
    assert patients.tolist() == list(range(len(patients)))
    assert set(counts.tolist()) == {1, 2}
    for patient in patients[:50]:
        assert len(set(lesions.skin_tone[lesions.patient == patient])) == 1
    single = make_skin_lesions(10, size=8, rows_per_patient=1, random_state=0)
    assert single.patient.tolist() == list(range(10))


def test_shares_are_those_asked_for():
    lesions = make_skin_lesions(
        3000, size=8, prevalence=0.2, dark_share=0.7, random_state=0
    )
    assert lesions.target.mean() == pytest.approx(0.2, abs=0.03)
    assert (lesions.skin_tone == "dark").mean() == pytest.approx(0.7, abs=0.04)
    tones = make_skin_lesions(20, size=8, dark_share=0.0, random_state=0).skin_tone
    assert set(tones) == {"light"}


def test_posterior_is_calibrated_and_as_separable_as_it_says():
    lesions = make_skin_lesions(4000, size=8, separability=1.0, random_state=1)
    # The area under the curve of two normal features, each a distance of 1 apart.
    auc = roc_auc_score(lesions.target, lesions.posterior)
    assert auc == pytest.approx(0.8413, abs=0.02)
    assert calibration_loss(lesions.target, lesions.posterior) < 0.002


def test_images_tell_the_label_and_the_tone_does_not(lesions):
    # Share of dark pixels and unevenness of the border, roughly.
    gray = lesions.images.astype(float) / lesions.images[:, :3, :3].mean(
        axis=(1, 2), keepdims=True
    )
    features = np.sort(gray.reshape(600, -1), axis=1)[:, ::100]
    scores = cross_val_predict(
        LogisticRegression(max_iter=2000),
        features,
        lesions.target,
        method="decision_function",
    )
    assert roc_auc_score(lesions.target, scores) > 0.8
    tone = lesions.images[:, :3, :3].mean(axis=(1, 2, 3))
    assert abs(roc_auc_score(lesions.target, tone) - 0.5) < 0.07


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 4}, "'size' parameter"),
        ({"prevalence": 0.0}, "'prevalence' parameter"),
        ({"dark_share": 1.5}, "'dark_share' parameter"),
        ({"separability": -1.0}, "'separability' parameter"),
        ({"rows_per_patient": (2, 1)}, "rows_per_patient must be"),
        ({"random_state": "a"}, "random_state"),
    ],
)
def test_parameters_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        make_skin_lesions(5, **options)
