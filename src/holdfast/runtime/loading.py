"""Find the user's Holdfast object by `module:name`."""

from __future__ import annotations

import importlib
import os
import sys

from holdfast.kernel.errors import UsageError
from holdfast.runtime.app import Holdfast


def load_app(spec: str) -> Holdfast:
    """Import the module, with the current folder in its path, and take the object from it."""
    module_name, _, name = spec.partition(":")
    if not module_name or not name:
        raise UsageError(
            f"{spec!r} does not name a Holdfast object. Write module:name, such as shop.tasks:hf."
        )
    if (folder := os.getcwd()) not in sys.path:  # noqa: PTH109  a path as text is what sys.path has
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise UsageError(
            f"There is no module {module_name!r} in {folder} or in the installed packages. "
            "Run this in the folder that has it."
        ) from error
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise UsageError(
                f"The module {module_name!r} has no {name!r}. Name the variable that holds Holdfast()."
            )
        found = getattr(found, part)
    if not isinstance(found, Holdfast):
        raise UsageError(f"{spec!r} is of the type {type(found).__name__}, not a Holdfast object.")
    return found
