"""Servers for the systems' tests: the same as those of the framework's."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from server_fixtures import *  # noqa: F403  pytest finds them here
