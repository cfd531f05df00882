"""An API process whose event loop stands still ends itself; one that is only busy, or was stopped as a whole, does not."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from holdfast.errors import UsageError
from holdfast.web import watchdog

PROGRAM = """
import asyncio, sys, time
from holdfast.web import watchdog

async def main():
    with watchdog(1):
        print("begun", flush=True)
        if sys.argv[1] == "stuck":
            time.sleep(60)
        for _ in range(30):
            await asyncio.sleep(0)
            time.sleep(0.05)
    time.sleep(1.5)

asyncio.run(main())
"""


def started(tmp_path, how):
    (tmp_path / "api.py").write_text(PROGRAM)
    process = subprocess.Popen(
        [sys.executable, tmp_path / "api.py", how], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "begun\n"
    return process


def test_who_stands_still_ends(tmp_path):
    process = started(tmp_path, "stuck")
    _, told = process.communicate(timeout=30)
    assert process.returncode == 70
    assert "the event loop has stood still for 1 s" in told


def test_who_is_busy_or_was_stopped_does_not(tmp_path):
    process = started(tmp_path, "busy")
    os.kill(process.pid, signal.SIGSTOP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2)
    os.kill(process.pid, signal.SIGCONT)
    _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (0, "")


async def test_no_time_at_all_is_refused():
    with pytest.raises(UsageError, match="seconds must be"), watchdog(0):
        await asyncio.sleep(0)
