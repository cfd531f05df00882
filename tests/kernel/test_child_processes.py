"""How a process runs and ends: `sys.exit` in the code of others does not end it."""

from __future__ import annotations

import asyncio
import sys

import pytest

from holdfast.kernel.processes import run_to_its_end


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
