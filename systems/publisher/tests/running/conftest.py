"""Helpers of this folder can be imported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "web")]  # `import deployed` and `import processes` work here


@pytest.fixture
def any_url(tmp_path):
    """Processes are the same on both stores; what differs is tried in work/ on both."""
    return f"sqlite:///{tmp_path / 'publisher.db'}"
