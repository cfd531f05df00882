"""Make one measurement: a fresh database, a process in the system's own environment, a limit on its time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from bench import environments
from bench.environments import ROOT
from bench.servers import Servers
from bench.systems import System

LIMIT = 120.0  # seconds for one measurement
_TOO_SHORT = 3.0  # seconds: a drain that is over sooner is made again with more jobs


class Failed(Exception):
    """A measurement gave no figure; the text says why."""


def measure(
    servers: Servers, system: System, measure: str, options: dict[str, Any], *, limit: float = LIMIT
) -> dict[str, Any]:
    answer = _once(servers, system, measure, options, limit)
    if measure == "drain" and answer["seconds"] < min(_TOO_SHORT, options["seconds"] * 0.7):
        answer = _once(servers, system, measure, options | {"guess": answer["rate"]}, limit)
    return answer


def _once(
    servers: Servers, system: System, measure: str, options: dict[str, Any], limit: float
) -> dict[str, Any]:
    place = Path(tempfile.mkdtemp(prefix="step-", dir=servers.folder))
    try:
        interpreter = sys.executable if system.environment is None else environments.make(system.environment)
        _run(
            [str(interpreter), "-m", "bench.drive", system.module, measure, json.dumps(options)],
            os.environ | _settings(system) | _places(servers, system, place),
            place,
            limit,
        )  # fmt: skip
        return _answer(place)
    except environments.NotInstalled as error:
        raise Failed(f"cannot be installed: {error}") from None
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _places(servers: Servers, system: System, place: Path) -> dict[str, str]:
    broker = servers.fresh(system.broker, place) if system.broker else ""
    return {
        "BENCH_URL": servers.fresh(system.store, place),
        "BENCH_BROKER": broker,
        "BENCH_FOLDER": str(place),
    }


def _settings(system: System) -> dict[str, str]:
    ours = [str(ROOT), str(ROOT / "src")] if system.environment is None else [str(ROOT)]
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep) if system.environment is None else []
    return {
        "PYTHONPATH": os.pathsep.join([*ours, *filter(None, given)]),
        "VIRTUAL_ENV": "",
        **system.settings,
    }


def _run(command: list[str], settings: dict[str, str], place: Path, limit: float) -> None:
    with (place / "said").open("wb") as said:
        driver = subprocess.Popen(
            command, cwd=ROOT, env=settings, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
        )  # fmt: skip
        try:
            driver.wait(limit)
        except subprocess.TimeoutExpired:
            raise Failed(f"was not over after {limit:g} s") from None
        finally:
            if driver.poll() is None:
                _end_tree(driver)


def _end_tree(driver: subprocess.Popen[bytes]) -> None:
    """The driver and the workers it has started."""
    with suppress(psutil.Error):
        for process in psutil.Process(driver.pid).children(recursive=True):
            with suppress(psutil.Error):
                process.kill()
    driver.kill()
    driver.wait()


def _answer(place: Path) -> dict[str, Any]:
    if not (place / "answer").exists():
        raise Failed(_last_line(place / "said") or "gave no answer")
    answer: dict[str, Any] = json.loads((place / "answer").read_text())
    if "error" in answer:
        worker = _last_line(place / "workers.log")
        raise Failed(answer["error"] + (f" (worker: {worker})" if worker else ""))
    return answer


def _last_line(file: Path) -> str:
    lines = file.read_text(errors="replace").strip().splitlines() if file.exists() else []
    return lines[-1][:200] if lines else ""


def run_quietly(command: list[str]) -> None:
    """A helper of ours in another environment."""
    subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True, timeout=LIMIT)
