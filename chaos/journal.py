"""What a process knew, and when: one line of JSON each, on the disk before it goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Journal:
    def __init__(self, file: Path) -> None:
        self._file = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, **facts: Any) -> None:
        os.write(self._file, json.dumps(facts).encode() + b"\n")
        os.fsync(self._file)


def read(*files: Path) -> Iterator[dict[str, Any]]:
    """Whole lines: a writer that was killed in the middle of its last one has not said it."""
    for file in files:
        for line in file.read_bytes().split(b"\n")[:-1]:
            yield json.loads(line)
