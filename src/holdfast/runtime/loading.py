"""Find the user's Holdfast object by `module:name`, and say plainly what is wrong when it is not there."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show
from holdfast.runtime.app import Holdfast

_OURS = str(Path(__file__).parent.parent)  # what we refuse was written elsewhere
_FORM = "Write the module and the name in it, such as shop.tasks:hf."


def load_app(name: str) -> Holdfast:
    """The Holdfast object of a program, imported with the current folder in reach."""
    module_name, colon, path = name.partition(":")
    if not colon or not path or not all(part.isidentifier() for part in f"{module_name}.{path}".split(".")):
        raise UsageError(f"{show(name)} names no Holdfast. {_FORM}")
    found: Any = _import(module_name)
    for part in path.split("."):
        if not hasattr(found, part):
            _refuse(name, f"There is no {path!r} in the module {module_name}.", _import(module_name))
        found = getattr(found, part)
    if not isinstance(found, Holdfast):
        _refuse(name, f"{name} is of the type {type(found).__name__}, not a Holdfast.", _import(module_name))
    return found


def _refuse(name: str, why: str, module: ModuleType) -> NoReturn:
    module_name = name.partition(":")[0]
    there = [f"{module_name}:{each}" for each, value in vars(module).items() if isinstance(value, Holdfast)]
    raise UsageError(f"{why} {'There is: ' + ', '.join(there) + '.' if there else _FORM}")


def _import(name: str) -> ModuleType:
    if (here := os.getcwd()) not in sys.path:  # noqa: PTH109  sys.path holds texts
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise UsageError(_failed(name, error)) from error
        raise UsageError(
            f"There is no module {error.name!r} in {here} or where Python looks. Change to the program's folder, or install it."
        ) from error
    except (Exception, SystemExit) as error:
        raise UsageError(_failed(name, error)) from error


def _failed(name: str, error: BaseException) -> str:
    """Where the user's code failed: the last line of theirs says more than the whole stack."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename
    ]
    theirs = [frame for frame in frames if not frame.filename.startswith(_OURS)]
    place = f", in {theirs[-1].filename} line {theirs[-1].lineno}" if theirs else ""
    if isinstance(error, SyntaxError):
        place = f", in {error.filename} line {error.lineno}"
    told = str(error).rstrip(".")
    return f"The module {name} cannot be imported: {type(error).__name__}: {told}{place}. Mend that first."
