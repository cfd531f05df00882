"""Make .venv: the locked dependencies, each checked by its hash, and Holdfast itself, editable. Needs no package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = str(VENV / "bin" / "python")
LOCKED = ["--require-hashes", "--requirement", str(ROOT / "requirements" / "dev.txt")]
# Hatchling is among the locked packages, so the build needs nothing that was not checked.
HOLDFAST = ["--no-deps", "--no-build-isolation", "--editable", str(ROOT)]


def main() -> int:
    print(
        f"Setting up .venv with Python {sys.version.split()[0]}, this takes a moment the first time.",
        flush=True,
    )
    for install in installers():
        try:
            install()
        except subprocess.CalledProcessError as error:
            print(f"{install.__name__} did not succeed (exit code {error.returncode}).", file=sys.stderr)
        else:
            (VENV / ".ready").touch()
            return 0
    print("The set-up failed; the reason stands above.", file=sys.stderr)
    return 1


def installers() -> list[Callable[[], None]]:
    """The ways to try, best first. uv reads other settings than pip, so where it fails pip may still reach an index."""
    return [with_uv, with_pip] if uv_works() else [with_pip]


def uv_works() -> bool:
    """Whether uv can be run. A version manager's shim may be on the path and know no uv."""
    return (
        shutil.which("uv") is not None
        and subprocess.run(["uv", "--version"], capture_output=True, check=False).returncode == 0
    )


def with_uv() -> None:
    if not usable():
        # The full path: a bare version would be looked up among shims, or downloaded.
        run(
            "uv", "venv", "--quiet", "--clear", "--no-python-downloads", "--python", sys.executable, str(VENV)
        )
    run("uv", "pip", "install", "--quiet", "--python", PYTHON, *LOCKED)
    run("uv", "pip", "install", "--quiet", "--python", PYTHON, *HOLDFAST)


def with_pip() -> None:
    if not usable() or not has_pip():
        run(sys.executable, "-m", "venv", "--clear", str(VENV))
    run(PYTHON, "-m", "pip", "install", "--quiet", *LOCKED)
    run(PYTHON, "-m", "pip", "install", "--quiet", *HOLDFAST)


def usable() -> bool:
    """Whether .venv holds a working interpreter of the version that runs now."""
    ask = [PYTHON, "-c", f"import sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"]
    return (
        os.access(PYTHON, os.X_OK) and subprocess.run(ask, capture_output=True, check=False).returncode == 0
    )


def has_pip() -> bool:
    return (
        subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0
    )


def run(*command: str) -> None:
    # A virtual environment that happens to be active must not receive the packages.
    environment = {
        name: value for name, value in os.environ.items() if name not in {"VIRTUAL_ENV", "PYTHONHOME"}
    }
    subprocess.run(command, check=True, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
