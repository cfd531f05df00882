"""Chromium for the browser tests: found, or installed from the distribution's packages where that is allowed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
MISSING = (
    "There is no Chromium, so the browser tests cannot run. Install it (apt-get install chromium), "
    "or run `make test` as root, which does."
)
_PATIENCE = 240  # seconds for the packages


def find() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name)) is not None), None)


def install() -> None:
    """By apt, which only root may do. What it says is shown when it fails."""
    for command in (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"],
    ):
        done = subprocess.run(
            command,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
        if done.returncode:
            print(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}", file=sys.stderr)
            return


def main() -> int:
    """What `make test` does before the tests. Without a Chromium they say so themselves, and fail only where CI is set."""
    if find() is None and hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get"):
        print("Installing Chromium for the browser tests, once.", flush=True)
        install()
    if find() is None:
        print(MISSING, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
