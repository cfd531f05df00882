"""A phase on a disk of its own, which is small: the harness runs once more, where a tmpfs is mounted that nobody else sees."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from pathlib import Path

from chaos.faults.disks import SMALL
from chaos.phase import Phase, Row
from chaos.report import read

_SIZE = "24m"


async def run(phase: Phase, seed: int) -> Row:
    """The row that it finds there; one that says why when nothing can be mounted here."""
    fault = phase.fault()
    if any(shutil.which(program) is None for program in ("unshare", "mount")):
        return Row(fault=fault.name, store="sqlite", skipped="no unshare or mount on this machine")
    with tempfile.TemporaryDirectory(prefix="holdfast-chaos-disk-") as name:
        disk, results = Path(name, "disk"), Path(name, "results")
        disk.mkdir()
        code, told = await _inside(phase, disk, results, seed)
        if "unshare: " in told or "mount: " in told:
            return Row(
                fault=fault.name, store="sqlite", skipped=f"nothing can be mounted here: {told.strip()}"
            )
        if not (results / "chaos.json").exists():
            return Row(fault=fault.name, store="sqlite", notes=[f"exit code {code}: {told[-2000:]}"])
        return read(results / "chaos.json")[0]


async def _inside(phase: Phase, disk: Path, results: Path, seed: int) -> tuple[int | None, str]:
    run = f"mount -t tmpfs -o size={_SIZE} tmpfs {disk} && exec {sys.executable} -m chaos {phase.key}"
    run += f" --store sqlite --results {results} --seed {seed}"
    process = await asyncio.create_subprocess_exec(
        "unshare", "--mount", "--user", "--map-root-user", "sh", "-c", run,
        env={**os.environ, SMALL: str(disk)}, cwd=Path(__file__).parents[1], start_new_session=True,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        out, _ = await process.communicate()
    except asyncio.CancelledError:
        process.terminate()  # it ends what it has started
        await process.wait()
        raise
    return process.returncode, out.decode()
