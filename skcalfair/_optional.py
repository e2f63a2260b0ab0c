"""Import of optional dependencies with one clear error."""

from importlib import import_module
from types import ModuleType


def import_optional(name: str, *, extra: str) -> ModuleType:
    """Import module `name`, or say which extra of skcalfair brings it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{name} is needed for this but could not be imported ({error}). "
            f'Install it with: pip install "skcalfair[{extra}]"'
        ) from error
