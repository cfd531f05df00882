"""Flags: asked in memory, decided by people, heard of in every process within two seconds."""

from __future__ import annotations

import asyncio
import os
import sys
import time

import pytest

from holdfast import Holdfast
from holdfast.errors import StoreUnavailable, UsageError
from holdfast.runtime.cli import main


async def test_what_nobody_has_set_is_the_default(hf):
    assert not await hf.flag("statistics")
    assert await hf.flag("statistics", default=True)


async def test_the_process_that_sets_it_knows_at_once(hf):
    await hf.flags.set("statistics", True, by="ada", reason="the new page")
    assert await hf.flag("statistics")
    [found] = await hf.flags.list()
    assert (found.name, found.tenant, found.value, found.set_by, found.reason) == (
        "statistics", None, True, "ada", "the new page",
    )  # fmt: skip
    await hf.flags.unset("statistics")
    assert not await hf.flag("statistics")


async def test_a_tenant_counts_before_everyone(hf):
    await hf.flags.set("fast", True)
    await hf.flags.set("fast", False, tenant="acme")
    assert await hf.flag("fast", tenant="other")
    assert not await hf.flag("fast", tenant="acme", default=True)
    await hf.flags.unset("fast", tenant="acme")
    assert await hf.flag("fast", tenant="acme")


OTHER = """
import asyncio, time
from holdfast import Holdfast

async def main():
    async with Holdfast() as hf:
        known = None
        while True:
            if (value := await hf.flag("fast")) is not known:
                print(value, time.time(), flush=True)
                known = value
            await asyncio.sleep(0.005)

asyncio.run(main())
"""


async def test_other_processes_hear_of_it_within_two_seconds(hf, url):
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OTHER, env={**os.environ, "HOLDFAST_URL": url}, stdout=asyncio.subprocess.PIPE
    )
    took = []
    try:
        assert await asyncio.wait_for(other.stdout.readline(), 30)
        for value in (True, False, True, False, True):
            began = time.time()
            await hf.flags.set("fast", value)
            said, at = (await asyncio.wait_for(other.stdout.readline(), 10)).decode().split()
            assert said == str(value)
            took.append(float(at) - began)
    finally:
        other.kill()
        await other.wait()
    assert sorted(took)[len(took) // 2] < 2, took


async def test_the_first_who_ask_all_hear_what_is_stored(hf, url):
    await hf.flags.set("fast", True)
    async with Holdfast(url) as other:
        assert await asyncio.gather(*(other.flag("fast") for _ in range(20))) == [True] * 20


async def test_one_looks_for_the_whole_process_whichever_loop_asks(hf):
    await hf.flags.set("fast", True)
    assert await hf.flag("fast")
    told = []

    def elsewhere():
        told.append(asyncio.run(hf.flag("fast")))

    for _ in range(5):
        await asyncio.to_thread(elsewhere)
        told.append(await hf.flag("fast"))
    assert told == [True] * 10
    assert [task.get_name() for task in asyncio.all_tasks()].count("flags") == 1


async def test_whatever_fails_it_goes_on_looking(hf, monkeypatch, notes):
    version = hf.store.flags.version

    async def broken():
        raise OSError("not one of ours")

    monkeypatch.setattr(hf.store.flags, "version", broken)
    assert await hf.flag("fast", default=True), "nobody knows, so the default counts"
    assert any(name == "flags.not_read" for name, _ in notes)
    monkeypatch.setattr(hf.store.flags, "version", version)
    await hf.store.flags.set("fast", False, tenant=None, actor="ada", reason="", tx=None)
    async with asyncio.timeout(5):
        while await hf.flag("fast", default=True):
            await asyncio.sleep(0.02)


async def test_a_database_that_does_not_answer_holds_up_one_question_alone(hf, url, monkeypatch):
    """A frozen one, for half a minute: the default counts, until it answers."""
    await hf.flags.set("fast", True)
    gate = asyncio.Event()
    async with Holdfast(url) as other:
        version, clock = other.store.flags.version, asyncio.get_running_loop().time

        async def frozen():
            await gate.wait()
            return await version()

        monkeypatch.setattr(other.store.flags, "version", frozen)
        began = clock()
        assert await asyncio.gather(*(other.flag("fast") for _ in range(20))) == [False] * 20
        assert clock() - began >= 2
        before = asyncio.create_task(asyncio.sleep(0))
        assert not await other.flag("fast")
        assert not before.done(), "no later question waits"
        assert not await asyncio.to_thread(other.blocking.flag, "fast")
        gate.set()
        async with asyncio.timeout(10):
            while not await other.flag("fast"):
                await asyncio.sleep(0.02)


async def test_a_slow_look_does_not_bring_back_what_was(hf, monkeypatch):
    """A look has read all flags and stands still; meanwhile somebody sets one here, and knows it at once, and goes on knowing it."""
    every = hf.store.flags.all
    reading, go_on = asyncio.Event(), asyncio.Event()

    async def slow():
        found = await every()
        reading.set()
        await go_on.wait()
        return found

    assert not await hf.flag("fast")
    await hf.store.flags.set("other", True, tenant=None, actor="ada", reason="", tx=None)
    monkeypatch.setattr(hf.store.flags, "all", slow)
    late = asyncio.create_task(hf.flags._copy.look())
    await reading.wait()
    monkeypatch.setattr(hf.store.flags, "all", every)
    await hf.flags.set("fast", True)
    assert await hf.flag("fast")
    go_on.set()
    await late
    assert await hf.flag("fast")


async def test_a_flag_is_set_though_the_look_behind_it_fails(hf, monkeypatch, notes):
    assert not await hf.flag("fast")

    async def version():
        raise StoreUnavailable("gone")

    with monkeypatch.context() as patched:
        patched.setattr(hf.store.flags, "version", version)
        await hf.flags.set("fast", True)
        await hf.flags.unset("fast")
    assert any(name == "flags.not_read" for name, _ in notes)


async def test_it_counts_when_its_transaction_has_committed(hf):
    assert not await hf.flag("fast")
    async with hf.transaction() as tx:
        await hf.flags.set("fast", True, tx=tx)
    async with asyncio.timeout(5):
        while not await hf.flag("fast"):
            await asyncio.sleep(0.01)


async def test_asking_does_not_ask_the_store(hf, monkeypatch):
    await hf.flags.set("fast", True)
    assert await hf.flag("fast")

    async def version():
        raise StoreUnavailable("gone")

    monkeypatch.setattr(hf.store.flags, "version", version)
    for _ in range(1000):
        assert await hf.flag("fast")


async def test_without_a_store_the_last_decision_counts_on(tmp_path, notes, monkeypatch):
    async with Holdfast(f"sqlite:///{tmp_path / 'a.db'}") as hf:
        await hf.flags.set("fast", True)
        assert await hf.flag("fast")

        async def version():
            raise StoreUnavailable("gone")

        monkeypatch.setattr(hf.store.flags, "version", version)
        async with asyncio.timeout(10):
            while not any(name == "flags.not_read" for name, _ in notes):
                await asyncio.sleep(0.05)
        assert await hf.flag("fast")


async def test_a_name_that_is_none_is_refused(hf):
    for wrong in ("", 7, "a\nb"):
        with pytest.raises(UsageError):
            await hf.flag(wrong)
    with pytest.raises(UsageError, match="value is True or False"):
        await hf.flags.set("fast", "on")


def test_sync_code_asks_and_sets(tmp_path):
    hf = Holdfast(f"sqlite:///{tmp_path / 'a.db'}")
    assert not hf.blocking.flag("fast")
    hf.blocking.flags.set("fast", True)
    assert hf.blocking.flag("fast")
    assert [each.name for each in hf.blocking.flags.list()] == ["fast"]
    assert hf.blocking.flags.unset("fast")
    hf.blocking.close()


def test_the_command_line(tmp_path, capsys):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    assert main(["migrate", "--url", url]) == 0
    assert main(["flags", "set", "fast", "on", "--tenant", "acme", "--reason", "try it", "--url", url]) == 0
    assert "fast is on for acme." in capsys.readouterr().out
    assert main(["flags", "--url", url]) == 0
    assert "acme" in capsys.readouterr().out
    assert main(["flags", "unset", "fast", "--url", url]) == 1
    assert "'fast' is not set" in capsys.readouterr().err
    assert main(["flags", "unset", "fast", "--tenant", "acme", "--url", url]) == 0
