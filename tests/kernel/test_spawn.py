"""Tasks are kept alive and their failures told; threads answer coroutines."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest

from holdfast.kernel.context import context, within
from holdfast.kernel.loops import LoopThread, PerLoop, call_from_thread
from holdfast.kernel.spawn import Reply, cancel, deliver, mailbox, over, spawn, start_thread, to_its_end
from holdfast.kernel.world import Pause, Take


class TestSpawn:
    async def test_a_task_that_nobody_holds_is_not_collected(self):
        done = asyncio.Event()

        async def work() -> None:
            await asyncio.sleep(0)
            gc.collect()
            await asyncio.sleep(0)
            done.set()

        spawn(work(), name="work")
        gc.collect()
        await done.wait()

    async def test_a_failure_is_told_once_and_a_cancellation_is_none(self, notes):
        async def fail() -> None:
            raise ValueError("no")

        task, stopped = spawn(fail(), name="failing"), spawn(asyncio.Event().wait(), name="stopped")
        stopped.cancel()
        await asyncio.wait([task, stopped])
        await asyncio.sleep(0)
        assert notes == [("task.failed", {"task": "failing", "error": "ValueError('no')"})]

    async def test_what_goes_to_its_end_does_so_whoever_is_cancelled(self):
        begun, go, ended = asyncio.Event(), asyncio.Event(), []

        async def work() -> str:
            begun.set()
            await go.wait()
            ended.append(True)
            return "done"

        waits = asyncio.create_task(to_its_end(work()))
        await begun.wait()
        for _ in range(3):
            waits.cancel()
            await asyncio.sleep(0)
        assert not waits.done()
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await waits
        assert ended
        assert await to_its_end(work()) == "done"

    async def test_its_value_can_be_awaited(self):
        async def work() -> int:
            return 7

        assert await spawn(work(), name="work") == 7


class TestLoops:
    async def test_a_task_of_any_loop_can_be_cancelled(self):
        async def begin():
            return spawn(asyncio.Event().wait(), name="waits")

        beside = LoopThread("beside")
        here, there = await begin(), await asyncio.to_thread(call_from_thread, beside.loop, begin())
        cancel(here)
        cancel(there)
        await over(here)
        await asyncio.to_thread(call_from_thread, beside.loop, over(there))
        await asyncio.to_thread(beside.stop)
        assert here.cancelled()
        assert there.cancelled()
        cancel(there)  # its loop is gone

    def test_each_loop_has_its_own_and_one_that_is_closed_is_forgotten(self):
        async def get():
            found = each.get()
            assert each.get() is found
            return found

        each = PerLoop(object)
        first, second = asyncio.run(get()), asyncio.run(get())
        assert first is not second
        assert list(each._made.values()) == [second]


class TestThreads:
    async def test_a_thread_takes_all_that_waits_and_answers_with_one_wake_up(self):
        inbox = mailbox()
        batches: list[int] = []

        def body():
            while True:
                batch = yield Take(inbox)
                batches.append(len(batch))
                if None in batch:
                    return
                deliver([(reply, number * 2) for number, reply in batch])

        replies = [Reply() for _ in range(100)]
        for number, reply in enumerate(replies):
            inbox.put((number, reply))
        thread = start_thread("doubler", body())
        assert [await reply for reply in replies] == [number * 2 for number in range(100)]
        assert batches[0] == 100
        assert thread.alive()
        inbox.put(None)
        await thread.ended()
        assert not thread.alive()

    async def test_an_exception_is_raised_where_the_answer_is_awaited(self):
        reply: Reply[int] = Reply()

        def body():
            deliver([(reply, KeyError("gone"))])
            yield from ()

        thread = start_thread("failing", body())
        with pytest.raises(KeyError, match="gone"):
            await reply
        await thread.ended()

    async def test_timeouts_and_pauses_also_in_the_past(self):
        taken: list[list[str]] = []
        inbox = mailbox()

        def body():
            taken.append((yield Take(inbox, timeout=0.001)))
            taken.append((yield Take(inbox, timeout=-5)))
            assert (yield Pause(0.001)) is None
            assert (yield Pause(-5)) is None
            inbox.put("a")
            taken.append((yield Take(inbox, timeout=-5)))

        await start_thread("patient", body()).ended()
        assert taken == [[], [], ["a"]]

    async def test_a_thread_takes_the_context_along(self):
        seen: list[str | None] = []

        def body():
            seen.append(context().job_id)
            seen.append(threading.current_thread().name)
            yield from ()

        with within(job_id="j"):
            thread = start_thread("knowing", body())
        await thread.ended()
        assert seen == ["j", "knowing"]

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
    @pytest.mark.parametrize("what", ["raises", "yields nonsense"])
    async def test_a_body_that_fails_is_told_and_ends(self, notes, what):
        def body():
            if what == "raises":
                raise OSError("disk is gone")
            yield "nonsense"

        thread = start_thread("failing", body())
        await thread.ended()
        assert not thread.alive()
        if what == "raises":
            assert notes == [("thread.failed", {"thread": "failing", "error": "OSError('disk is gone')"})]


class TestReply:
    async def test_an_answer_that_comes_too_late_is_dropped(self):
        reply: Reply[int] = Reply()
        waiting = asyncio.ensure_future(reply)
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        deliver([(reply, 1), (reply, ValueError())])
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def test_only_the_first_answer_counts(self):
        reply: Reply[int] = Reply()
        reply.fill(1)
        reply.fill(2)
        assert await reply == 1

    def test_a_closed_loop_does_not_keep_the_others_from_hearing(self, notes):
        async def make() -> Reply[int]:
            return Reply()

        closed = asyncio.new_event_loop()
        gone = closed.run_until_complete(make())
        closed.close()

        async def live() -> int:
            reply: Reply[int] = Reply()
            deliver([(gone, 1), (reply, 2)])
            return await reply

        assert asyncio.run(live()) == 2
        assert notes == [("reply.unheard", {"count": 1})]
