"""Sagas whose worker dies at every crash point, one after the other: all done, all undone, or a person is asked. I23, I24."""

from __future__ import annotations

import asyncio

import pytest

from holdfast import Backoff, Undo
from holdfast.jobs.executor import Executor
from holdfast.jobs.judge import Released, Settled
from holdfast.jobs.run import Run
from holdfast.kernel.clock import monotonic
from holdfast.kernel.crashpoints import Crash, armed
from holdfast.kernel.spawn import start
from holdfast.kernel.threads import Threads
from holdfast.store.records import Finish
from holdfast.store.saga_records import OVER, STUCK, SagaState
from holdfast.testing.draining import promote

there: set[str] = set()  # what was done to the world, and not undone
intents: list[str] = []  # calls whose step was not recorded as begun
watched = {}
failed: list[str] = []

ONCE = Backoff(attempts=1)


async def do(what: str) -> str:
    """As at the other side of a keyed call: a second one changes nothing."""
    saga_id, step = what.split("/")
    record = await watched["hf"].sagas.get(saga_id)
    steps = {each.name: each for each in await watched["hf"].store.steps.load(record.job_id, 0)}
    if step not in steps or steps[step].plan is None:
        intents.append(what)
    there.add(what)
    return what


async def undo(what: str) -> None:
    there.discard(what)


async def give_back(what: str | None) -> None:
    there.discard(what)


async def refuse(what: str) -> None:
    raise ConnectionError(what)


async def book(saga, *steps):
    for step in steps:
        await saga.step(step, do, f"{saga.id}/{step}", undo=Undo(undo, f"{saga.id}/{step}"))


async def plain(saga):
    await book(saga, "a", "b")
    await saga.step("c", do, f"{saga.id}/c", undo=give_back)


async def failing(saga):
    await plain(saga)
    raise ValueError("no")


async def fail_once(what: str) -> None:
    if not failed:
        failed.append(what)
        raise ConnectionError(what)


async def failing_once(saga):
    """Once it is decided to go back, no later run goes forward again, although it could."""
    await plain(saga)
    await saga.step("fail", fail_once, "no")


async def waiting(saga):
    await book(saga, "a")
    await saga.signal("go")
    await saga.gather(book(saga, "b"), saga.sleep(0), book(saga, "c", "d"))


async def failing_beside(saga):
    await book(saga, "a")
    await saga.gather(book(saga, "b", "c"), saga.step("fail", refuse, "no", undo=Undo(undo, "nothing")))


async def do_and_break(what: str) -> str:
    await do(what)
    raise ConnectionError("no answer")


async def doubtful_beside(saga):
    """Others go on beside a step that has failed, and may have been done; then its failure ends the saga."""
    failed = asyncio.Event()

    async def break_first():
        try:
            await saga.step("a", do_and_break, f"{saga.id}/a", undo=Undo(undo, f"{saga.id}/a"), retry=ONCE)
        finally:
            failed.set()

    async def go_on():
        await failed.wait()
        await book(saga, "b")

    await saga.gather(break_first(), go_on())


async def past_the_pivot(saga):
    await book(saga, "a")
    await saga.step("pivot", do, f"{saga.id}/pivot", pivot=True)
    await saga.step("fail", refuse, "no")


async def refusing_to_undo(saga):
    await book(saga, "a")
    await saga.step("b", do, f"{saga.id}/b", undo=Undo(refuse, "no"))
    raise ValueError("no")


async def parent(saga):
    await book(saga, "a")
    await saga.run_child(watched["child"], id="child")
    raise ValueError("no")


ALL = {"s/a", "s/b", "s/c"}
WORKLOADS = {
    "plain": (plain, SagaState.DONE, ALL),
    "failing": (failing, SagaState.UNDONE, set()),
    "failing once": (failing_once, None, None),
    "waiting": (waiting, SagaState.DONE, ALL | {"s/d"}),
    "failing beside": (failing_beside, SagaState.UNDONE, set()),
    "doubtful beside": (doubtful_beside, SagaState.UNDONE, set()),
    "past the pivot": (past_the_pivot, SagaState.NEEDS_OPERATOR, {"s/a", "s/pivot"}),
    "refusing to undo": (refusing_to_undo, SagaState.NEEDS_OPERATOR, {"s/a", "s/b"}),
    "parent": (parent, SagaState.UNDONE, set()),
}


ALONE = ("plain", "failing", "failing once", "past the pivot", "refusing to undo")  # one thing at a time


class Bench:
    """Runs claimed jobs as a worker does, and dies at one crash point."""

    def __init__(self, hf):
        self._hf, self._threads = hf, Threads(2)
        self._executor = Executor(
            hf.store,
            hf._inside.registry,
            self._threads,
            worker="w",
            lease=30,
            portal=hf._inside.portal,
            resources={},
        )

    async def run(self, claim, dying=None):
        endings = []
        if dying is not None:
            dying.is_running = True
        run = Run(claim, self._hf._inside.registry.get(claim.task), monotonic() + 30)
        run.work = start(self._executor.run(run, lambda _, ending: endings.append(ending)), name="run")
        await asyncio.wait([run.work])
        if dying is not None:
            dying.is_running = False
        if isinstance(run.work.exception(), Crash):
            await self._hf.store.claims.release([claim])  # as when its lease has ended
            return
        if isinstance(endings[0], Released):
            await self._hf.store.claims.release([claim])
        elif not isinstance(endings[0], Settled):
            await self._hf.store.claims.finish([Finish(claim, endings[0])])

    async def turn(self, dying=None):
        """Whether there was anything to do."""
        await promote(self._hf)
        claims = await self._hf.store.claims.claim({"default": 1}, lease=30, worker="w")
        for claim in claims:
            await self.run(claim, dying)
        return bool(claims)

    def close(self):
        self._threads.close()


class Dying:
    """The crash point that is passed as the n-th is the last that its run comes to.

    With `commits`, those before and after each commit of the run count too: where the store has no thread of its own.
    """

    def __init__(self, at, *, commits):
        self._at, self._passed, self._commits = at, 0, commits
        self.died_at, self.is_running = None, False

    def __call__(self, name):
        if self.died_at is not None or name.startswith(("transaction.", "schedule.", "relay.", "view.")):
            return
        if name.startswith("store.") and not (self._commits and self.is_running):
            return
        self._passed += 1
        if self._passed == self._at:
            self.died_at = name
            raise Crash(name)


@pytest.mark.parametrize("name", WORKLOADS)
async def test_a_worker_that_dies_at_any_point(hf, name):
    body, state, left = WORKLOADS[name]
    watched["hf"] = hf
    watched["child"] = hf.saga("child")(lambda_child)
    saga = hf.saga("s", undo_retry=Backoff(attempts=1))(body)
    bench, points, at = Bench(hf), set(), 0
    while True:
        at += 1
        there.clear()
        intents.clear()
        failed.clear()
        await forget(hf)
        dying = Dying(at, commits=hf._inside.location.kind == "postgres" and name in ALONE)
        with armed("*", dying):
            record = await carried(hf, bench, saga, dying)
        if state is None:  # it depends on where it died
            assert (record.state, there) in ((SagaState.DONE, ALL), (SagaState.UNDONE, set())), dying.died_at
        else:
            assert (record.state, there) == (state, left), f"died at {dying.died_at}: {record}"
        assert intents == [], "a step's intent, with its undo, is durable before its call"
        if dying.died_at is None:
            break
        points.add(dying.died_at)
    bench.close()
    expected = {"effect.begun", "effect.called", "step.recorded"}
    if state is SagaState.UNDONE:
        expected |= {"saga.decided", "undo.begun", "undo.called", "undo.recorded", "saga.over"}
    if hf._inside.location.kind == "postgres" and name in ALONE:
        expected |= {"store.before_commit", "store.after_commit"}
    assert expected <= points


async def lambda_child(saga):
    await book(saga, "x")


async def carried(hf, bench, saga, dying):
    run = await saga.start(id="s")
    await run.signal("go")
    for _ in range(100):
        busy = await bench.turn(dying)
        record = await run.record()
        if (record.state in OVER or record.state in STUCK) and not busy:
            return record
    raise AssertionError(f"it does not come to an end: {record}")


async def forget(hf):
    """Sagas and jobs of the round before."""
    await hf.store.sagas.prune(keep=0)
    async with hf.transaction() as tx:
        prefix = "holdfast_" if hf._inside.location.kind == "sqlite" else "holdfast."
        await tx.execute(f"DELETE FROM {prefix}saga")
        if hf._inside.location.kind == "sqlite":
            for table in ("queued", "running", "parked", "over", "job"):
                await tx.execute(f"DELETE FROM {prefix}{table}")
        else:
            for table in ("job", "history", "step"):
                await tx.execute(f"DELETE FROM {prefix}{table}")
