"""PAD-UFES-20: clinical images of skin lesions with the patients' skin type."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import Bunch
from sklearn.utils._param_validation import StrOptions, validate_params

from ._data_home import get_data_home

METADATA = "metadata.csv"
FOLDERS = ("PAD-UFES-20", "pad-ufes-20", "zr7vgbcyr2-1")
COLUMNS = ("patient_id", "lesion_id", "img_id", "diagnostic", "fitspatrick")
BENIGN = ("ACK", "SEK", "NEV")
MALIGNANT = ("BCC", "SCC", "MEL")
SKIN_TONES = {"light": (1, 2, 3), "dark": (4, 5, 6)}
SUFFIXES = (".png", ".jpg", ".jpeg")
PUBLISHED = (
    "the data set is published at https://doi.org/10.17632/zr7vgbcyr2.1 (Mendeley "
    "Data, licence CC BY 4.0)"
)

DESCR = """\
PAD-UFES-20
-----------

2,298 clinical images of 1,641 skin lesions of 1,373 patients, taken with smartphones
in Brazil. Three diagnoses are benign: actinic keratosis (ACK), seborrheic keratosis
(SEK) and nevus (NEV); three are malignant: basal cell carcinoma (BCC), squamous cell
carcinoma (SCC) and melanoma (MEL). All malignant ones are proven by biopsy. 1,494
images have the patient's skin type on the Fitzpatrick scale, I to VI.

Source: Pacheco, A. G. C., Lima, G. R., Salomao, A. S. et al. "PAD-UFES-20: a skin
lesion dataset composed of patient data and clinical images collected from
smartphones". Data in Brief 32, 106221 (2020). https://doi.org/10.1016/j.dib.2020.106221
Files: Mendeley Data, https://doi.org/10.17632/zr7vgbcyr2.1, licence CC BY 4.0.
"""


@validate_params(
    {
        "data_home": [str, os.PathLike, None],
        "skin_tones": [Mapping, None],
        "unknown": [str, None],
        "missing_images": [StrOptions({"raise", "drop", "keep"})],
    },
    prefer_skip_nested_validation=True,
)
def load_pad_ufes_20(
    data_home: str | os.PathLike[str] | None = None,
    *,
    skin_tones: Mapping[str, Iterable[int]] | None = None,
    unknown: str | None = "unknown",
    missing_images: str = "raise",
) -> Bunch:
    """Read the skin-lesion images of PAD-UFES-20 and who they belong to.

    The data set [1]_ is not part of this package and is not downloaded: get it from
    Mendeley Data [2]_ and unpack it, the archives of images as well.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Where it is unpacked: the folder of ``metadata.csv``, or one that holds it as
        ``PAD-UFES-20``. By default as in `get_data_home`: the environment variable
        ``SKCALFAIR_DATA``, then ``~/skcalfair_data``. Images may be in any folders
        below, with extensions in any case.
    skin_tones : dict of str to iterable of int, default=None
        Name of each group of Fitzpatrick skin types 1 to 6. None is
        ``{"light": (1, 2, 3), "dark": (4, 5, 6)}``. Types that are not named count
        as unknown.
    unknown : str or None, default="unknown"
        Name of the group of rows whose skin type is unknown. None leaves it missing, so
        that `SubgroupAuditor` trains on these rows and does not test them, as in [3]_.
    missing_images : {"raise", "drop", "keep"}, default="raise"
        What to do with rows whose image is not found: an error, leave them out, or
        keep them with None as path, for work on the metadata alone.

    Returns
    -------
    sklearn.utils.Bunch
        Row i of every member is the same image:

        paths : Series of shape (n_images,)
            Path of each image, text.
        target : Series of shape (n_images,)
            1 for a malignant diagnosis, 0 for a benign one.
        skin_tone : Series of shape (n_images,)
            Group of skin types, text.
        groups : Series of shape (n_images,)
            Patient of each image, text.
        frame : DataFrame of shape (n_images, n_columns)
            All columns of the metadata, ``fitspatrick`` as numbers.
        target_names : list of str
            ``["benign", "malignant"]``.
        DESCR : str
            Description of the data set.

    Raises
    ------
    FileNotFoundError
        If there is no ``metadata.csv``, or images are not found.
    ValueError
        If the metadata have not the published columns or diagnoses, or a skin type is
        named twice or is none.

    See Also
    --------
    make_skin_tone_cohort : Simulated scores in the shape of this set.
    skcalfair.experiments.subgroup_study : The study that was made with it.

    References
    ----------
    .. [1] Pacheco, A. G. C., Lima, G. R., Salomao, A. S. et al. (2020). "PAD-UFES-20: a
       skin lesion dataset composed of patient data and clinical images collected from
       smartphones". Data in Brief 32, 106221.
    .. [2] https://doi.org/10.17632/zr7vgbcyr2.1, licence CC BY 4.0.
    .. [3] Ricci Lara, M. A., Mosquera, C., Ferrante, E. and Echeveste, R. (2023).
       "Towards unraveling calibration biases in medical image analysis".
       arXiv:2305.05101.

    Examples
    --------
    >>> from skcalfair.datasets import load_pad_ufes_20
    >>> lesions = load_pad_ufes_20("~/PAD-UFES-20")  # doctest: +SKIP
    >>> lesions.target.sum()  # doctest: +SKIP
    1089
    """
    folder = _find_folder(get_data_home(data_home))
    frame = _read_metadata(folder / METADATA)
    paths = _find_images(folder, frame["img_id"])
    absent = paths.isna()
    if absent.any() and missing_images == "raise":
        raise FileNotFoundError(
            f"{absent.sum():,} of {len(frame):,} images of PAD-UFES-20 are not in "
            f"{folder} or below, for example {frame['img_id'][absent].iloc[0]}; unpack "
            "all archives of images, or pass missing_images='drop' or 'keep'"
        )
    if missing_images == "drop":
        frame = frame[~absent].reset_index(drop=True)
        paths = paths[~absent].reset_index(drop=True)
    diagnosis = frame["diagnostic"]
    return Bunch(
        paths=paths,
        target=diagnosis.isin(MALIGNANT).astype(np.int64).rename("target"),
        skin_tone=_skin_tone(frame["fitspatrick"], skin_tones, unknown),
        groups=frame["patient_id"].rename("groups"),
        frame=frame,
        target_names=["benign", "malignant"],
        DESCR=DESCR,
    )


def _find_folder(home: Path) -> Path:
    """Folder of the metadata."""
    candidates = [home, *(home / name for name in FOLDERS)]
    for folder in candidates:
        if (folder / METADATA).is_file():
            return folder
    raise FileNotFoundError(
        f"{METADATA} of PAD-UFES-20 is neither in {home} nor in {FOLDERS[0]} there; "
        f"{PUBLISHED}: unpack it and pass its folder as data_home="
    )


def _read_metadata(path: Path) -> pd.DataFrame:
    texts = dict.fromkeys(COLUMNS[:-1], str)
    try:
        frame = pd.read_csv(path, dtype=texts)
    except ValueError as error:
        raise ValueError(f"{path} cannot be read as a table: {error}") from error
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        raise ValueError(
            f"{path} has no column {missing[0]!r}; expected {list(COLUMNS)} among "
            f"others, got {list(frame.columns)}"
        )
    frame["diagnostic"] = frame["diagnostic"].str.strip().str.upper()
    known = frame["diagnostic"].isin(BENIGN + MALIGNANT)
    if not known.all():
        row = int(np.flatnonzero(~known)[0])
        raise ValueError(
            f"{path} must hold the diagnoses {list(BENIGN + MALIGNANT)}; got "
            f"{frame['diagnostic'].iloc[row]!r} at row {row}"
        )
    frame["fitspatrick"] = pd.to_numeric(frame["fitspatrick"])
    for name in ("patient_id", "img_id"):
        if frame[name].isna().any():
            row = int(np.flatnonzero(frame[name].isna())[0])
            raise ValueError(f"{path} has no {name} at row {row}")
    return frame


def _find_images(folder: Path, names: pd.Series) -> pd.Series:
    """Path of each image, None if there is no such file; case does not matter."""
    files: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in SUFFIXES and path.is_file():
            files.setdefault(path.stem.lower(), str(path))
    paths = [files.get(_stem(name)) for name in names]
    return pd.Series(paths, dtype=object, name="path")


def _stem(name: str) -> str:
    """Name of an image without its extension, in small letters."""
    name = name.strip().lower()
    return name.removesuffix(next((s for s in SUFFIXES if name.endswith(s)), ""))


def _skin_tone(
    types: pd.Series,
    skin_tones: Mapping[str, Iterable[int]] | None,
    unknown: str | None,
) -> pd.Series:
    """Group of each Fitzpatrick type."""
    names: dict[Any, str] = {}
    for name, members in (SKIN_TONES if skin_tones is None else skin_tones).items():
        for member in members:
            if member not in range(1, 7) or member in names:
                raise ValueError(
                    "skin_tones must name each of the types 1 to 6 once at most; got "
                    f"{member!r} for {name!r}"
                )
            names[member] = name
    tone = [names.get(value, unknown) for value in types.tolist()]
    return pd.Series(tone, dtype=object, name="skin_tone")
