"""Run a program that forks, and look what it has stored."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from holdfast import Holdfast

UNSAFE = "a power failure can lose what was acknowledged"  # of the tests' PostgreSQL
SLOW = "held the write lock"  # a busy machine
PROGRAM = Path(__file__).with_name("forking.py")


async def run(scenario, url):
    """What it has written; it ends well, and in time."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "ignore::DeprecationWarning", str(PROGRAM), scenario, url),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(60):
            out, errors = await process.communicate()
    except TimeoutError:
        process.kill()
        out, errors = await process.communicate()
        pytest.fail(f"it hangs, after {out.decode()!r} and {errors.decode()!r}")
    said = [line for line in errors.decode().splitlines() if UNSAFE not in line and SLOW not in line]
    assert (process.returncode, said) == (0, []), said
    return out.decode().splitlines()


async def numbers_of(url):
    async with Holdfast(url) as hf, hf.transaction() as tx:
        table = "holdfast_job" if "sqlite" in url else "holdfast.job"
        return [json.loads(args)["n"] for (args,) in await tx.fetch(f"SELECT args FROM {table}")]
