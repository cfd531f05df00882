"""A worker's memory does not grow with the jobs it has run."""

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import Holdfast

JOBS, BATCH = 24_000, 2_000
PROGRAM = """
import asyncio, sys
from holdfast import Holdfast

hf = Holdfast(sys.argv[1])

@hf.task(name="small")
async def small(number: int, pad: str) -> int:
    return number

async def main():
    async with hf, hf.worker({"default": 50}) as service:
        step = 0
        while step < 3:
            if service.worker.finished >= (step + 1) * JOBS // 3:
                step += 1
                print(size(), flush=True)
            await asyncio.sleep(0.01)

def size():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4

asyncio.run(main())
""".replace("JOBS", str(JOBS))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process's size so")
async def test_a_worker_stays_as_large_as_it_is(url, tmp_path):
    hf = Holdfast(url)

    @hf.task(name="small")
    async def small(number: int, pad: str) -> int: ...

    await hf.migrate()
    async with hf:
        for _ in range(JOBS // BATCH):
            await small.enqueue_many([{"number": number, "pad": "x" * 100} for number in range(BATCH)])
    program = Path(tmp_path / "program.py")
    program.write_text(PROGRAM)
    told = subprocess.run([sys.executable, program, url], capture_output=True, text=True, check=True, timeout=60)  # fmt: skip
    first, _, last = map(int, told.stdout.split())
    assert last - first < 3_000, f"it grew by {last - first} kB over {JOBS * 2 // 3:,} jobs"
