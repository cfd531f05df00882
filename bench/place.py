"""Where a program of the bench is told what to use. Only the standard library: it also runs beside the peers."""

from __future__ import annotations

import os
from pathlib import Path

BULK = 10_000  # jobs in one bulk call
PAD = "x" * 40


def url() -> str:
    """The database, made anew for each measurement."""
    return os.environ["BENCH_URL"]


def broker() -> str:
    """The broker that carries events; empty where the database does."""
    return os.environ.get("BENCH_BROKER", "")


def folder() -> Path:
    """For counts, logs and what a library wants to leave behind; empty at first."""
    return Path(os.environ["BENCH_FOLDER"])


def arguments(number: int, sent: int = 0, nap: float = 0.0) -> dict[str, object]:
    """About 100 bytes as JSON."""
    return {"number": number, "sent": sent, "nap": nap, "pad": PAD, "tail": "0123456789"}
