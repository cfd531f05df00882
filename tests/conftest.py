"""Fixtures for everyone: a PostgreSQL server, shared by the whole run, with fresh databases on it; Valkeys; and a NATS."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # `import servers` works in every folder below

from server_fixtures import *  # noqa: F403  pytest finds them here

from holdfast import Holdfast
from holdfast.kernel.telemetry import subscribe

# A shell that starts us in the background has us ignore Ctrl-C, and so would every process that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A test that waits for the disk proves no more: what is killed here is processes, not the machine.
_MEMORY = Path("/dev/shm")
if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > 2**30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'jobs.db'}"
    return request.getfixturevalue("postgres_url")


@pytest.fixture
async def hf(url):
    async with Holdfast(url) as opened:
        yield opened


@pytest.fixture
def notes():
    """The names of all notes, in their order, with their fields."""
    heard: list[tuple[str, dict]] = []
    stop = subscribe(lambda name, fields: heard.append((name, dict(fields))))
    yield heard
    stop()


@pytest.fixture
def left_threads():
    """The threads of these names that this test has begun and that do not end; those of other tests are theirs."""
    before = set(threading.enumerate())

    def left(*names):
        ours = [each for each in set(threading.enumerate()) - before if each.name in names]
        for each in ours:
            each.join(5)  # one that has answered may still be on its last line
        return [each.name for each in ours if each.is_alive()]

    return left
