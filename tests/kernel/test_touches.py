"""Waking other processes by touching a file."""

import asyncio
import subprocess
import sys

import pytest

from holdfast.kernel.touches import touch, watch

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has inotify")


@linux
async def test_a_touch_of_another_process_is_told(tmp_path):
    path, told = tmp_path / "file", asyncio.Event()
    path.write_bytes(b"as it was")
    end = watch(str(path), told.set)
    subprocess.run([sys.executable, "-c", f"from holdfast.kernel.touches import touch; touch({str(path)!r})"], check=True)  # fmt: skip
    async with asyncio.timeout(10):
        await told.wait()
    assert path.read_bytes() == b"as it was"
    told.clear()
    path.write_bytes(b"written")  # which is no touch
    end()
    touch(str(path))
    await asyncio.sleep(0.01)
    assert not told.is_set()


@linux
async def test_many_touches_are_read_at_once(tmp_path):
    path, told = tmp_path / "file", []
    path.touch()
    end = watch(str(path), lambda: told.append(1))
    for _ in range(100):
        touch(str(path))
    await asyncio.sleep(0.01)
    end()
    assert 1 <= len(told) < 10


async def test_what_is_not_there_is_neither_touched_nor_watched(tmp_path):
    path = str(tmp_path / "nothing")
    touch(path)
    assert watch(path, lambda: None) is None
