"""`make publisher`, as a newcomer starts it: the addresses that it prints answer, and Ctrl-C ends everything."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import psutil
import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.timeout(300)
def test_it_starts_with_something_to_see_and_ends_by_one_signal():
    command = [sys.executable, "-m", "tools.start", "publisher"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    started = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        said = ""
        for line in started.stdout:
            said += line
            if line.startswith("Ctrl-C ends everything"):
                break
        children = psutil.Process(started.pid).children(recursive=True)
        assert len(children) >= 4, said
        pages, outside, probes = (
            re.search(rf"{name}: +(http://127.0.0.1:\d+)", said)[1]
            for name in ("Pages", "Simulated DeviantArt", "Probes and metrics")
        )
        for address in (f"{pages}/login", outside, f"{probes}/health"):
            assert httpx.get(address, timeout=30).status_code == 200, address
        assert "published by 1 artists" in httpx.get(outside, timeout=30).text
        folder = Path(re.search(r"Mails: +(\S+)", said)[1]).parent
        assert folder.is_dir()
        started.send_signal(signal.SIGINT)
        said += started.stdout.read()
        assert started.wait(90) == 0, said[-3000:]
        assert not [each for each in children if each.is_running()]
        assert not folder.exists()
    finally:
        started.terminate()
        started.wait(90)
        started.stdout.close()
