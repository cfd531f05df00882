"""Helpers of this folder can be imported."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "web")]  # `import deployed` and `import processes` work here
