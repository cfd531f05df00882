"""Wake-ups between processes that share a SQLite file."""

import asyncio
import sys

import pytest
from waiting import until

from holdfast.kernel.ids import new_id
from holdfast.store.records import NewJob
from holdfast.store.sqlite import wakeups
from holdfast.store.sqlite.store import SqliteStore


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has inotify")
@pytest.mark.parametrize("name", ["x.db", "link.db", "linked/x.db"])
async def test_another_process_need_not_wait_for_the_next_look(tmp_path, monkeypatch, name):
    """Nor one that knows the file by a link, or by a relative path."""
    monkeypatch.setattr(wakeups, "EVERY", 60.0)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.db").symlink_to(tmp_path / "x.db")
    (tmp_path / "linked").symlink_to(tmp_path)
    mine, other = SqliteStore(tmp_path / "x.db"), SqliteStore(name)
    await mine.open()
    await other.open()
    assert await mine.wakeups.wait(["default"], 10)  # the first look says yes
    waiting = asyncio.ensure_future(mine.wakeups.wait(["default"], 30))
    await until(lambda: mine.wakeups._bell.is_awaited)
    await other.jobs.enqueue([NewJob(id=new_id(), task="t")])
    async with asyncio.timeout(10):
        assert await waiting
    await mine.close()
    await other.close()
