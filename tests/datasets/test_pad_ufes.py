import numpy as np
import pandas as pd
import pytest

from skcalfair.datasets import load_pad_ufes_20

# patient, lesion, image, diagnosis, skin type: missing, and as the set writes it.
ROWS = [
    ("PAT_1", "10", "PAT_1_10_1.png", "BCC", "2.0"),
    ("PAT_1", "11", "PAT_1_11_2.png", "NEV", "2.0"),
    ("PAT_2", "12", "PAT_2_12_3.png", "SCC", ""),
    ("PAT_3", "13", "PAT_3_13_4.png", "MEL", "5.0"),
    ("PAT_4", "14", "PAT_4_14_5.png", "ACK", "3.0"),
    ("PAT_5", "15", "PAT_5_15_6.png", "SEK", "4.0"),
]


@pytest.fixture
def folder(tmp_path):
    """A small folder of the published shape, with extensions in both cases."""
    home = tmp_path / "PAD-UFES-20"
    places = {
        "imgs_part_1": ["PAT_1_10_1.png", "PAT_1_11_2.PNG"],
        "imgs_part_2": ["PAT_2_12_3.png", "pat_3_13_4.JPG", "notes.txt"],
        "imgs_part_3/deeper": ["PAT_4_14_5.Png", "PAT_5_15_6.png"],
    }
    for place, names in places.items():
        (home / "images" / place).mkdir(parents=True)
        for name in names:
            (home / "images" / place / name).write_bytes(b"")
    columns = ["patient_id", "lesion_id", "img_id", "diagnostic", "fitspatrick"]
    frame = pd.DataFrame(ROWS, columns=columns)
    frame["age"] = range(50, 56)
    frame.to_csv(home / "metadata.csv", index=False)
    return home


@pytest.mark.parametrize("of_parent", [False, True])
def test_reads_the_published_shape(folder, of_parent):
    lesions = load_pad_ufes_20(folder.parent if of_parent else folder)
    assert lesions.target.tolist() == [1, 0, 1, 1, 0, 0]
    assert lesions.target_names == ["benign", "malignant"]
    assert lesions.skin_tone.tolist() == [
        "light", "light", "unknown", "dark", "light", "dark",
    ]  # fmt: skip
    assert lesions.groups.tolist() == ["PAT_1", "PAT_1", *(f"PAT_{i}" for i in "2345")]
    assert lesions.frame["age"].tolist() == list(range(50, 56))
    stems = [path.rsplit(".", 1)[0].lower() for path in lesions.paths]
    for stem, row in zip(stems, ROWS, strict=True):
        assert stem.endswith(row[2].removesuffix(".png").lower())
    assert "CC BY 4.0" in lesions.DESCR


def test_environment_names_the_folder(folder, monkeypatch):
    monkeypatch.setenv("SKCALFAIR_DATA", str(folder.parent))
    assert len(load_pad_ufes_20().target) == 6


def test_unknown_skin_types(folder):
    missing = load_pad_ufes_20(folder, unknown=None).skin_tone
    assert missing.isna().tolist() == [False, False, True, False, False, False]
    narrow = load_pad_ufes_20(
        folder, skin_tones={"II": [2], "V": [5]}, unknown="other"
    ).skin_tone
    assert narrow.tolist() == ["II", "II", "other", "V", "other", "other"]


def test_missing_images(folder):
    (folder / "images/imgs_part_2/PAT_2_12_3.png").unlink()
    with pytest.raises(FileNotFoundError, match=r"1 of 6 .*PAT_2_12_3"):
        load_pad_ufes_20(folder)
    dropped = load_pad_ufes_20(folder, missing_images="drop")
    for member in ("paths", "target", "skin_tone", "groups", "frame"):
        assert len(dropped[member]) == 5
        assert dropped[member].index.equals(pd.RangeIndex(5))
    assert "PAT_2" not in set(dropped.groups)
    kept = load_pad_ufes_20(folder, missing_images="keep")
    assert kept.paths.isna().tolist() == [False, False, True, False, False, False]


def test_image_names_without_extension(folder):
    frame = pd.read_csv(folder / "metadata.csv")
    frame["img_id"] = frame["img_id"].str.removesuffix(".png")
    frame["diagnostic"] = frame["diagnostic"].str.lower() + " "
    frame.to_csv(folder / "metadata.csv", index=False)
    lesions = load_pad_ufes_20(folder)
    assert lesions.paths.notna().all()
    assert lesions.target.sum() == 3


def change(folder, **columns):
    frame = pd.read_csv(folder / "metadata.csv")
    for name, values in columns.items():
        frame[name] = values
    frame.to_csv(folder / "metadata.csv", index=False)


def test_refuses_other_tables(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"10.17632/zr7vgbcyr2.1"):
        load_pad_ufes_20(tmp_path / "nowhere")
    change(folder, diagnostic="XYZ")
    with pytest.raises(ValueError, match="got 'XYZ' at row 0"):
        load_pad_ufes_20(folder)
    change(folder, diagnostic="NEV", patient_id=np.nan)
    with pytest.raises(ValueError, match="no patient_id at row 0"):
        load_pad_ufes_20(folder)
    pd.DataFrame({"img_id": ["a"]}).to_csv(folder / "metadata.csv", index=False)
    with pytest.raises(ValueError, match="no column 'patient_id'"):
        load_pad_ufes_20(folder)
    (folder / "metadata.csv").write_text("")
    with pytest.raises(ValueError, match="cannot be read"):
        load_pad_ufes_20(folder)


@pytest.mark.parametrize(
    "skin_tones", [{"light": [0]}, {"light": [1], "dark": [1]}], ids=str
)
def test_refuses_skin_types(folder, skin_tones):
    with pytest.raises(ValueError, match="types 1 to 6 once"):
        load_pad_ufes_20(folder, skin_tones=skin_tones)
