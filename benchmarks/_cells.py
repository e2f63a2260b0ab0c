"""Simulation cells, resumable: a killed run loses at most the block under way."""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from tqdm import tqdm

from skcalfair._atomic import write_atomically

# Audits of one block, which is one file of results.
BLOCK = 50

Simulate = Callable[[Any, np.random.Generator], Mapping[str, float]]


def run_cells(
    cells: Mapping[str, Any],
    simulate: Simulate,
    n_audits: int | Mapping[str, int],
    folder: str | os.PathLike[str],
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """Simulate every cell and return one row an audit.

    Parameters
    ----------
    cells : dict
        Parameters of each cell by its name, ready for JSON.
    simulate : callable
        ``simulate(parameters, generator)`` gives the results of one audit by name.
    n_audits : int or dict
        Audits of each cell.
    folder : path
        Where blocks of results are kept; those found there are not run again.
    n_jobs : int, default=None
        Processes; the results do not depend on it.

    Returns
    -------
    pandas.DataFrame
        Columns `cell`, `audit` and one for each result.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    blocks = [
        (cell, start, min(BLOCK, wanted - start))
        for cell in cells
        for wanted in [n_audits if isinstance(n_audits, int) else n_audits[cell]]
        for start in range(0, wanted, BLOCK)
    ]
    jobs = (
        delayed(_block)(folder, cell, cells[cell], simulate, start, n)
        for cell, start, n in blocks
    )
    found = Parallel(n_jobs=n_jobs, return_as="generator")(jobs)
    frames = list(tqdm(found, total=len(blocks), desc="blocks", disable=None))
    return pd.concat(frames, ignore_index=True)


def _block(
    folder: Path, cell: str, parameters: Any, simulate: Simulate, start: int, n: int
) -> pd.DataFrame:
    """Results of some audits of a cell, from the folder if they are there."""
    key = hashlib.sha256(
        json.dumps([cell, parameters, start, n], default=str).encode()
    ).hexdigest()
    path = folder / f"{key[:24]}.json"
    if not path.exists():
        # The seed follows from the cell and the audit alone.
        seed = int(hashlib.sha256(cell.encode()).hexdigest()[:8], 16)
        results = [
            dict(simulate(parameters, np.random.default_rng([seed, audit])))
            for audit in range(start, start + n)
        ]
        write_atomically(path, json.dumps(results))
    frame = pd.DataFrame(json.loads(path.read_text()))
    frame.insert(0, "audit", np.arange(start, start + n))
    frame.insert(0, "cell", cell)
    return frame
