"""Tools from Debian's packages, for tests: installed when this may be done, else the test says by its skip what is missing."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

_LOCK = Path(tempfile.gettempdir()) / "holdfast-tests-apt.lock"


def tool(name: str, package: str) -> str:
    """The path of the program. Without it the test is skipped; where CI is set it fails."""
    if (found := shutil.which(name)) is None and os.geteuid() == 0 and shutil.which("apt-get"):
        _install(package)
        found = shutil.which(name)
    if found is None:
        reason = f"{name} is missing: apt install {package}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def _install(package: str) -> None:
    with _LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        command = ["apt-get", "install", "-y", "--no-install-recommends", package]
        for before in ([], ["apt-get", "update"]):
            if before:
                subprocess.run(before, env=environment, capture_output=True, check=False, timeout=300)
            if (
                subprocess.run(
                    command, env=environment, capture_output=True, check=False, timeout=600
                ).returncode
                == 0
            ):
                return
