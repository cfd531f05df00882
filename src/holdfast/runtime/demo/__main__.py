"""`python -m holdfast.runtime.demo`: tell the story, count what is in the database, and say whether every promise was kept."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from holdfast.runtime.demo.story import tell


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder:
        return 0 if asyncio.run(tell(Path(folder))) else 1


if __name__ == "__main__":
    sys.exit(main())
