"""The ECG reader study of Ribeiro et al. (2020): a network and human readers."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.utils import Bunch
from sklearn.utils._param_validation import validate_params

from ._data_home import get_data_home

FOLDER = "automatic-ecg-diagnosis"
BASE_URL = (
    "https://raw.githubusercontent.com/antonior92/automatic-ecg-diagnosis/"
    "403934867cea25a85b54faca025ac65b1ac18a45/"
)
DIAGNOSES = ["1dAVb", "RBBB", "LBBB", "SB", "AF", "ST"]
READERS = [
    "cardiologist1",
    "cardiologist2",
    "cardiology_residents",
    "emergency_residents",
    "medical_students",
]
# The files, by their path upstream.
SHA256 = {
    "data/attributes.csv": (
        "b73740ae175d320beb5c85d3e300798a0e51a493f5887c9755cfa63b9480485a"
    ),
    "data/annotations/gold_standard.csv": (
        "4a0ed70593339c915c18187f3d4298a540db60db2563f1e17f2226f6302ba7bd"
    ),
    "data/annotations/dnn.csv": (
        "5ab557afa703c31b6fc33db8a613ea5650e7eaf414d1c62f864e77447aa2a34d"
    ),
    "data/annotations/cardiologist1.csv": (
        "4490e884bee80d21b404f28325d92feac3f5975b72b660c0e1f2e02f78009ab5"
    ),
    "data/annotations/cardiologist2.csv": (
        "22c57bd72082614592ba58aac549f0a9c439345024e6b7c7e2e6ad27312cd1f0"
    ),
    "data/annotations/cardiology_residents.csv": (
        "66d4e6f9e21dad0b5f3b8472f5997799e8bd79eb2675926a026e3cb6ab8d2635"
    ),
    "data/annotations/emergency_residents.csv": (
        "daf7ab02eb04998ab9dbc823b715a04765a1761507df88ceb8fddad1ed56182d"
    ),
    "data/annotations/medical_students.csv": (
        "352cdec373fc2b2792665f9795603fed2b87e434e4f698ac0ef0e2846bc23595"
    ),
    "dnn_predicts/model.npy": (
        "125c30aa6dcaf18a91a285877c52ba0b0e2edcb7dfc4bc9cc099cacd9bea69bd"
    ),
}
ELSEWHERE = (
    "pass data_home=, or set the environment variable SKCALFAIR_DATA, to a folder that "
    f"holds a copy or a clone of the project in {FOLDER}{os.sep}"
)

DESCR = """\
ECG reader study
----------------

827 twelve-lead electrocardiograms of 827 patients in Brazil. A deep neural network,
two cardiologists, two cardiology residents, two emergency residents and two medical
students each say which of six abnormalities they see: first-degree atrioventricular
block (1dAVb), right and left bundle branch block (RBBB, LBBB), sinus bradycardia (SB),
atrial fibrillation (AF) and sinus tachycardia (ST). The residents and the students
read half of the recordings each, so that a pair makes up one reader here.

The gold standard derives from the two cardiologists: where they agree, their common
diagnosis is the truth; where they do not, a third specialist who knew both answers
decided. They are therefore favoured in any comparison with the other readers or with
the network.

The positive findings are few: 1dAVb 28, RBBB 34, LBBB 30, SB 16, AF 13, ST 37.

The published calls of the network (`dnn_calls`) are not exactly its published scores
(`scores`) above a threshold: in 1dAVb two recordings, in SB, AF and ST one each differ
from every threshold.

Source: Ribeiro, A. H., Ribeiro, M. H., Paixao, G. M. M. et al. "Automatic diagnosis of
the 12-lead ECG using a deep neural network". Nature Communications 11, 1760 (2020).
https://doi.org/10.1038/s41467-020-15432-4
Files: https://github.com/antonior92/automatic-ecg-diagnosis, licence MIT.
"""


@validate_params(
    {"data_home": [str, os.PathLike, None], "download_if_missing": ["boolean"]},
    prefer_skip_nested_validation=True,
)
def fetch_ecg_readers(
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> Bunch:
    """Load the ECG reader study: a neural network and five readers on 827 ECGs.

    The files (about 110 kB) are read from the folder ``automatic-ecg-diagnosis`` in
    `data_home`, which may be a clone of the original repository, and checked against
    their SHA-256 sums. Missing ones are downloaded there.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Where the data sets live, as in `get_data_home`: by default the environment
        variable ``SKCALFAIR_DATA``, then ``~/skcalfair_data``. It may be read-only if
        no file is missing.
    download_if_missing : bool, default=True
        Whether to download missing files. If False, they are an error.

    Returns
    -------
    sklearn.utils.Bunch
        Row i of every member is the same electrocardiogram:

        truth : DataFrame of shape (827, 6)
            Gold standard, 1 where the diagnosis (column) is present, otherwise 0.
        scores : DataFrame of shape (827, 6)
            Scores of the neural network, floats in [0, 1].
        readers : dict of str to DataFrame of shape (827, 6)
            Calls, 0 or 1, of ``"cardiologist1"``, ``"cardiologist2"``,
            ``"cardiology_residents"``, ``"emergency_residents"`` and
            ``"medical_students"``.
        dnn_calls : DataFrame of shape (827, 6)
            Calls, 0 or 1, of the neural network as published.
        age : Series of shape (827,)
            Age in years, 17 to 97.
        sex : Series of shape (827,)
            ``"F"`` (506) or ``"M"`` (321).
        diagnoses : list of str
            The six column names: 1dAVb, RBBB, LBBB, SB, AF and ST.
        DESCR : str
            Description of the data set.

    Raises
    ------
    FileNotFoundError
        If files are missing and `download_if_missing` is False.
    OSError
        If a download fails, or a file found is not the published one. No partial file
        is left, and a file found is never changed.

    See Also
    --------
    make_subgroup_scores : Simulate scores by group with a known truth.

    Notes
    -----
    The gold standard derives from the two cardiologists: where they agree it is their
    common diagnosis, elsewhere a third specialist who knew both answers decided. They
    are therefore favoured in a comparison with the network or the other readers.

    The data are published under the MIT licence [1]_; the study is [2]_.

    References
    ----------
    .. [1] https://github.com/antonior92/automatic-ecg-diagnosis
    .. [2] Ribeiro, A. H., Ribeiro, M. H., Paixao, G. M. M. et al. (2020). "Automatic
       diagnosis of the 12-lead ECG using a deep neural network". Nature
       Communications 11, 1760. https://doi.org/10.1038/s41467-020-15432-4

    Examples
    --------
    >>> from skcalfair.datasets import fetch_ecg_readers
    >>> ecg = fetch_ecg_readers()  # doctest: +SKIP
    >>> ecg.truth["AF"].sum()  # doctest: +SKIP
    13
    >>> (
    ...     ecg.readers["medical_students"]["AF"] & ecg.truth["AF"]
    ... ).sum()  # doctest: +SKIP
    12
    """
    folder = get_data_home(data_home) / FOLDER
    paths = {name: _locate(folder, name) for name in SHA256}
    missing = [name for name, path in paths.items() if not path.exists()]
    if missing and not download_if_missing:
        raise FileNotFoundError(
            f"the ECG reader study is not complete in {folder}: "
            f"{', '.join(str(paths[name]) for name in missing)} not found; "
            f"use download_if_missing=True, or {ELSEWHERE}"
        )
    for name, path in paths.items():
        if name in missing:
            _download(name, path)
        else:
            _check_sha256(name, path)
    return _read(paths)


def _locate(folder: Path, name: str) -> Path:
    """Path of a file, which may be missing: ``data/`` exists in a clone only."""
    in_clone = folder / name
    in_copy = folder / name.removeprefix("data/")
    if in_copy.exists() or not (folder / "data").is_dir():
        return in_copy
    return in_clone


def _check_sha256(name: str, path: Path) -> None:
    """Refuse a file other than the published one."""
    content = path.read_bytes()
    if path.suffix == ".csv":
        # git may convert the line ends of a clone on Windows.
        content = content.replace(b"\r\n", b"\n")
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256[name]:
        raise OSError(
            f"{path} is not the published file {name} of {FOLDER}: its SHA-256 is "
            f"{found}, expected {SHA256[name]}. Move it away to download it anew, or "
            f"{ELSEWHERE}"
        )


def _download(name: str, path: Path) -> None:
    """Download to a temporary file; only a complete and right one is moved to path."""
    import pooch  # takes as long to import as the rest of the subpackage

    try:
        pooch.retrieve(
            BASE_URL + name,
            known_hash=f"sha256:{SHA256[name]}",
            fname=path.name,
            path=path.parent,
        )
    except (OSError, ValueError) as error:
        raise OSError(
            f"could not download {name} of the project {FOLDER} from {BASE_URL} to "
            f"{path}: {error}. Without a connection to the internet, {ELSEWHERE}"
        ) from error


def _read(paths: dict[str, Path]) -> Bunch:
    def calls(annotator: str) -> pd.DataFrame:
        return pd.read_csv(paths[f"data/annotations/{annotator}.csv"])[DIAGNOSES]

    attributes = pd.read_csv(paths["data/attributes.csv"])
    scores = np.load(paths["dnn_predicts/model.npy"], allow_pickle=False)
    return Bunch(
        truth=calls("gold_standard"),
        scores=pd.DataFrame(scores, columns=DIAGNOSES, dtype=np.float64),
        readers={reader: calls(reader) for reader in READERS},
        dnn_calls=calls("dnn"),
        age=attributes["age"],
        sex=attributes["sex"],
        diagnoses=list(DIAGNOSES),
        DESCR=DESCR,
    )
