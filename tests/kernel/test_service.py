"""Services start in order, stop in reverse, survive each other's failures, and say what is wrong."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.kernel.service import Periodic, Services


class Probe:
    def __init__(self, name: str, log: list[str], *, fails: str = "", trouble: str | None = None) -> None:
        self.name, self.log, self.fails, self._trouble = name, log, fails, trouble

    async def start(self) -> None:
        if self.fails == "start":
            raise RuntimeError(f"{self.name} cannot start")
        self.log.append(f"+{self.name}")

    async def stop(self) -> None:
        self.log.append(f"-{self.name}")
        if self.fails == "stop":
            raise RuntimeError(f"{self.name} cannot stop")

    def trouble(self) -> str | None:
        return self._trouble


class TestServices:
    async def test_order(self):
        log: list[str] = []
        async with Services([Probe(name, log) for name in "abc"]):
            assert log == ["+a", "+b", "+c"]
        assert log[3:] == ["-c", "-b", "-a"]

    async def test_when_one_cannot_start_those_before_it_are_stopped(self):
        log: list[str] = []
        services = Services(
            [Probe("a", log), Probe("b", log), Probe("c", log, fails="start"), Probe("d", log)]
        )
        with pytest.raises(RuntimeError, match="c cannot start"):
            await services.start()
        assert log == ["+a", "+b", "-b", "-a"]
        await services.stop()
        assert log == ["+a", "+b", "-b", "-a"]

    async def test_a_start_that_is_cancelled_stops_what_had_started(self):
        log: list[str] = []
        slow = Probe("slow", log)
        slow.start = asyncio.Event().wait  # type: ignore[method-assign]
        task = asyncio.create_task(Services([Probe("a", log), slow]).start())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert log == ["+a", "-a"]

    async def test_one_that_cannot_stop_keeps_nobody_running(self, notes):
        log: list[str] = []
        async with Services([Probe("a", log), Probe("b", log, fails="stop"), Probe("c", log)]):
            pass
        assert log[3:] == ["-c", "-b", "-a"]
        assert [name for name, _ in notes] == ["service.stop_failed"]

    async def test_stopping_what_never_started_or_twice(self):
        log: list[str] = []
        services = Services([Probe("a", log)])
        await services.stop()
        await services.start()
        await services.stop()
        await services.stop()
        assert log == ["+a", "-a"]

    async def test_trouble_is_told_together(self):
        log: list[str] = []
        services = Services(
            [Probe("a", log, trouble="a is ill"), Probe("b", log), Probe("c", log, trouble="c too")]
        )
        assert services.trouble() is None
        async with services:
            assert services.trouble() == "a is ill; c too"


class TestPeriodic:
    async def test_again_and_again_with_jitter(self, paper):
        done = asyncio.Event()
        turns: list[float] = []

        async def turn() -> None:
            turns.append(paper.time)
            paper.chance = (len(turns) % 3) / 2  # 0, a half and 1, in turn
            if len(turns) == 6:
                done.set()

        periodic = Periodic("tidy", turn, every=10)
        await periodic.start()
        await done.wait()
        await periodic.stop()
        assert paper.slept[:5] == [10.0, 12.0, 8.0, 10.0, 12.0]

    async def test_a_failed_turn_is_told_and_the_next_is_tried(self, paper, notes):
        seen: list[str | None] = []
        done = asyncio.Event()

        async def turn() -> None:
            seen.append(periodic.trouble())
            if len(seen) == 1:
                raise OSError("disk is gone")
            if len(seen) == 3:
                done.set()

        periodic = Periodic("tidy", turn, every=10)
        await periodic.start()
        await done.wait()
        await periodic.stop()
        assert seen[:3] == [None, "tidy: disk is gone", None]
        assert notes[0] == ("periodic.failed", {"name": "tidy", "error": "OSError('disk is gone')"})

    async def test_stopping_ends_the_turn_and_leaves_nothing(self):
        ended = asyncio.Event()
        begun = asyncio.Event()

        async def turn() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        periodic = Periodic("tidy", turn, every=10)
        await periodic.stop()
        await periodic.start()
        await begun.wait()
        await periodic.stop()
        await periodic.stop()
        assert ended.is_set()
        assert [task.get_name() for task in asyncio.all_tasks() if task.get_name() == "tidy"] == []
