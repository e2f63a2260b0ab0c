"""Checkpoints of a fit, one folder for each combination of parameters and data."""

import json
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._atomic import replacing

Arrays = list[NDArray]


@dataclass
class Progress:
    """What a fit has to know to go on after an epoch."""

    entropy: list[int]
    spawn_key: list[int]
    history: dict[str, list[float]] = field(default_factory=dict)
    best_epoch: int = 0
    stopped: bool = False

    @property
    def epochs(self) -> int:
        """Epochs done."""
        return len(self.history.get("loss", []))


class Digest:
    """Hash of parameters and data, fed bit by bit."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16)

    def add(self, *values: Any) -> None:
        """Add values that repr tells apart, and arrays."""
        for value in values:
            self._hash.update(type(value).__name__.encode() + b":")
            if isinstance(value, np.ndarray):
                self.add(value.dtype.str, value.shape)
                self._hash.update(
                    repr(value.tolist()).encode()
                    if value.dtype.hasobject
                    else value.tobytes()
                )
            elif isinstance(value, bytes):
                self._hash.update(value)
            else:
                self._hash.update(repr(value).encode())
            self._hash.update(b"\0")

    def hex(self) -> str:
        """Return the hash as text."""
        return self._hash.hexdigest()


def pixel_digest(pixels: NDArray) -> bytes:
    """Hash of an image."""
    return blake2b(pixels.tobytes(), digest_size=16).digest()


class Checkpoint:
    """Folder with the state after the last epoch, and the best weights."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def _state(self) -> Path:
        return self.folder / "state.npz"

    def load(self) -> tuple[Progress, Arrays, Arrays | None] | None:
        """Progress, current variables and best weights, if there are any."""
        if not self._state.exists():
            return None
        try:
            with np.load(self._state, allow_pickle=False) as file:
                progress = Progress(**json.loads(str(file["progress"])))
                current = _in_order(file)
            best = None
            if progress.best_epoch:
                with np.load(self._best(progress.best_epoch)) as file:
                    best = _in_order(file)
        except Exception as error:
            raise ValueError(
                f"the checkpoint in {str(self.folder)!r} cannot be read ({error}); "
                "delete that folder to start anew"
            ) from error
        return progress, current, best

    def save(self, progress: Progress, current: Arrays, best: Arrays | None) -> None:
        """Write the state after an epoch; the previous one is valid until then."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if progress.best_epoch and best is not None:
            path = self._best(progress.best_epoch)
            if not path.exists():
                _write(path, best)
        _write(self._state, current, progress=json.dumps(asdict(progress)))
        for path in self.folder.glob("best-*.npz"):
            if path != self._best(progress.best_epoch):
                path.unlink(missing_ok=True)

    def delete(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _best(self, epoch: int) -> Path:
        return self.folder / f"best-{epoch:05d}.npz"


def _write(path: Path, arrays: Iterable[NDArray], **more: str) -> None:
    """Write a file that is there as a whole or not at all."""
    named: dict[str, Any] = {
        # Files cannot hold bfloat16, which float32 holds exactly.
        f"{i:05d}": array.astype(np.float32) if array.dtype.kind == "V" else array
        for i, array in enumerate(arrays)
    }
    with replacing(path, "wb") as file:
        np.savez(file, **(named | more))


def _in_order(file: Any) -> Arrays:
    return [file[name] for name in sorted(file.files) if name.isdigit()]
