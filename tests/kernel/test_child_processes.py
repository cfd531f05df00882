"""How processes run and end: `sys.exit` in the code of others does not end ours, and nothing is left of a child."""

from __future__ import annotations

import asyncio
import signal
import sys

import psutil
import pytest
from waiting import until

from holdfast.kernel.processes import run_to_its_end, talk_to_child


async def leaves(code):
    sys.exit(code)


def test_sys_exit_in_a_task_ends_that_task_and_not_the_loop():
    """Whoever awaits it is told; what runs beside it goes on."""

    async def awaits(code):
        async with asyncio.TaskGroup() as group:
            group.create_task(leaves(code))

    async def main():
        beside = asyncio.create_task(asyncio.sleep(0.05, "goes on"))
        for code in (3, 4):
            with pytest.raises(SystemExit):
                await awaits(code)
        asyncio.get_running_loop().call_soon(sys.exit, 5)
        assert await beside == "goes on"
        return 0

    told = []
    assert run_to_its_end(main(), lambda exit_: told.append(exit_.code)) == 0
    assert told == [3, 4, 5]


def test_what_the_program_itself_raises_ends_it():
    with pytest.raises(SystemExit, match="6"):
        run_to_its_end(leaves(6), pytest.fail)

    async def fails():
        raise KeyError("k")

    with pytest.raises(KeyError):
        run_to_its_end(fails(), pytest.fail)


async def test_a_killed_guard_has_a_successor(tmp_path):
    """Or what a task's own process has started would outlive us, who were to be killed next."""

    def guards():
        return [child for child in psutil.Process().children() if "killpg" in " ".join(_line(child))]

    code = f"import sys, time\nsys.stdin.read()\nopen({str(tmp_path / 'on')!r}, 'w').close()\ntime.sleep(600)"
    talking = asyncio.create_task(talk_to_child([sys.executable, "-c", code], b"go"))
    await until((tmp_path / "on").exists)
    [guard] = guards()
    guard.send_signal(signal.SIGKILL)
    await until(lambda: [each for each in guards() if each.pid != guard.pid])
    talking.cancel()
    await asyncio.wait([talking])
    assert guards() == []


def _line(process):
    try:
        return process.cmdline()
    except psutil.Error:
        return []
