"""Blocks of work that survive an interruption: each leaves one whole file or none."""

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.parallel import Parallel, delayed
from tqdm.auto import tqdm

from .._atomic import UNFINISHED, write_atomically
from .._random import RandomStateLike

# A file is written in far less time than this; an older one belongs to nobody.
ABANDONED_SECONDS = 3600.0

Key = Mapping[str, Any]


def run_blocks(
    work: Callable[..., Any],
    arguments: Sequence[tuple[Any, ...]],
    *,
    folder: str | os.PathLike[str] | None = None,
    keys: Sequence[Key] = (),
    encode: Callable[[Any], Any] | None = None,
    decode: Callable[[Any], Any] | None = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
    what: str = "blocks",
) -> list[Any]:
    """Return ``work(*a)`` for each of the arguments, in their order.

    With a folder, results found there under the same key are not computed again, and a
    new one is written as soon as it is there. A key is a mapping ready for JSON that
    names all the result depends on. `encode` makes a result ready for JSON (None: not
    to be kept) and `decode` undoes it.
    """
    path = None if folder is None else Path(folder)
    if path is not None:
        path.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(path)
    files = [None] * len(arguments) if path is None else [_file(path, k) for k in keys]
    jobs = (
        delayed(_block)(work, given, file, encode, decode)
        for given, file in zip(arguments, files, strict=True)
    )
    found = Parallel(n_jobs=n_jobs, return_as="generator")(jobs)
    disable = None if progress is None else not progress
    return list(
        tqdm(found, total=len(arguments), desc=what, disable=disable, leave=False)
    )


def check_resumable(
    folder: str | os.PathLike[str] | None, random_state: RandomStateLike
) -> None:
    """Refuse to keep results under seeds that never come again."""
    if folder is not None and random_state is None:
        raise ValueError(
            "results_folder needs a random_state: with None every call draws other "
            "numbers, so that nothing could be continued"
        )


def seed_key(seed: np.random.SeedSequence) -> list[Any]:
    """What makes a seed, ready for JSON."""
    return [seed.entropy, list(seed.spawn_key)]


def digest(*arrays: np.ndarray) -> str:
    """Short text that stands for the contents of arrays."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(f"{array.dtype.str}{array.shape}".encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()[:32]


def _block(
    work: Callable[..., Any],
    given: tuple[Any, ...],
    file: Path | None,
    encode: Callable[[Any], Any] | None,
    decode: Callable[[Any], Any] | None,
) -> Any:
    """Result of a block, from its file if that is there."""
    if file is not None and file.exists():
        kept = json.loads(file.read_text(encoding="utf-8"))["result"]
        return kept if decode is None else decode(kept)
    result = work(*given)
    if file is not None:
        kept = result if encode is None else encode(result)
        if kept is not None:
            write_atomically(file, json.dumps({"result": kept}))
    return result


def _file(folder: Path, key: Key) -> Path:
    text = json.dumps(key, sort_keys=True)
    return folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


def _remove_abandoned(folder: Path) -> None:
    """Remove what killed runs were writing; others may be writing right now."""
    prefix, suffix = UNFINISHED
    for path in folder.glob(f"{prefix}*{suffix}"):
        try:
            if time.time() - path.stat().st_mtime > ABANDONED_SECONDS:
                path.unlink()
        except FileNotFoundError:
            pass  # somebody was faster
