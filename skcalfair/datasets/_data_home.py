"""The folder that holds downloaded data sets."""

import os
from pathlib import Path

from sklearn.utils._param_validation import validate_params


@validate_params(
    {"data_home": [str, os.PathLike, None]}, prefer_skip_nested_validation=True
)
def get_data_home(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder that holds downloaded data sets.

    Nothing is created: a fetcher makes the folder when it downloads its first file.

    Parameters
    ----------
    data_home : str or path-like, default=None
        The folder; ``~`` is the home directory. If None, the environment variable
        ``SKCALFAIR_DATA`` names it, and without that it is ``~/skcalfair_data``.

    Returns
    -------
    pathlib.Path
        The folder, which may not exist.

    See Also
    --------
    fetch_ecg_readers : Read the ECG reader study from this folder.

    Examples
    --------
    >>> from skcalfair.datasets import get_data_home
    >>> get_data_home("~/studies").name
    'studies'
    """
    # An empty variable counts as unset.
    folder = data_home or os.environ.get("SKCALFAIR_DATA") or "~/skcalfair_data"
    return Path(folder).expanduser()
