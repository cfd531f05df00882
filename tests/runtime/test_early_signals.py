"""A worker or relay that is asked to leave before it has begun leaves in order, however long its program takes to import."""

import asyncio
import os
import signal
import sys

import pytest

PROGRAM = """
import os, time
os.write(1, b"importing\\n")
time.sleep(30)
"""
# In place of a library that Holdfast needs: so slow may a cold disk be.
SLOW_LIBRARY = PROGRAM
COMMANDS = [("worker",), ("worker", "--processes", "2"), ("relay",)]


async def begun(folder, *command, library=False):
    if library:
        (folder / "msgspec.py").write_text(SLOW_LIBRARY)
    (folder / "shop.py").write_text(PROGRAM)
    name, *options = command
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "holdfast", name, "shop:hf", *options),
        cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    async with asyncio.timeout(30):
        assert await process.stdout.readline() == b"importing\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
async def test_while_its_program_is_imported(tmp_path, command, number):
    process = await begun(tmp_path, *command)
    process.send_signal(number)
    async with asyncio.timeout(10):
        _, errors = await process.communicate()
    assert process.returncode == 0
    assert f"{number.name}: leaving before it has begun".encode() in errors
    assert b"Traceback" not in errors


async def test_while_holdfast_itself_is_imported(tmp_path):
    process = await begun(tmp_path, "worker", library=True)
    process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(10):
        await process.communicate()
    assert process.returncode == 0


async def test_other_commands_and_programs_are_left_alone(tmp_path):
    code = "import signal, holdfast; print(signal.getsignal(signal.SIGTERM))"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code, "worker"), stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    assert said.decode().strip() == str(signal.SIG_DFL)
