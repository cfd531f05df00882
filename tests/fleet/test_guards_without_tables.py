"""Guards on a database without tables: whoever starts there says so, once, and guards do not say it before that."""

import subprocess
import sys

import pytest
from waiting import until

from holdfast import Holdfast
from holdfast.fleet import guards as fleet
from holdfast.guards import Limiter
from holdfast.kernel.errors import SchemaMissing

PROGRAM = """
from holdfast import Holdfast
from holdfast.guards import Limiter

hf = Holdfast({url!r})
api = hf.guard("api", limiter=Limiter(rate=10))


@hf.task(rate=10)
async def send() -> None: ...
"""


async def test_a_worker_says_it_once(empty_postgres_url, notes):
    hf = Holdfast(empty_postgres_url)
    hf.guard("api", limiter=Limiter(rate=10))
    async with hf:
        with pytest.raises(SchemaMissing):
            await hf.worker().start()
    assert [name for name, _ in notes if name.startswith("guards.")] == []


def test_so_does_the_command(empty_postgres_url, tmp_path):
    (tmp_path / "prog.py").write_text(PROGRAM.format(url=empty_postgres_url))
    command = [sys.executable, "-m", "holdfast", "worker", "prog:hf"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert done.stderr.count("holdfast migrate") == 1
    assert "by themselves" not in done.stderr


async def test_who_goes_on_without_tables_hears_of_it_later(empty_postgres_url, notes, monkeypatch):
    monkeypatch.setattr(fleet, "_MIGRATING", 0.5)
    hf = Holdfast(empty_postgres_url)
    hf.guard("api", limiter=Limiter(rate=10))
    async with hf:
        await until(lambda: "guards.alone" in [name for name, _ in notes])
        await hf.migrate()
        await until(lambda: "guards.together" in [name for name, _ in notes])
    told = [name for name, _ in notes if name.startswith("guards.")]
    assert (told.count("guards.alone"), told.count("guards.together")) == (1, 1)


async def test_who_migrates_at_once_hears_nothing(empty_postgres_url, notes):
    hf = Holdfast(empty_postgres_url)
    hf.guard("api", limiter=Limiter(rate=10))
    async with hf:
        await hf.migrate()
        await until(lambda: hf._inside.fleet.trouble() is None)
    assert [name for name, _ in notes if name.startswith("guards.")] == []
