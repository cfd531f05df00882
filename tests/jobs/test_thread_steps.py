"""Steps from threads that a plain task starts itself: between them there is no order, within one there is."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast import Backoff, Job
from holdfast.kernel.errors import UsageError
from holdfast.store.states import State
from holdfast.testing import drain

AGAIN = Backoff(attempts=3, first=0, ceiling=0)


class Boom(Exception):
    """A failure of the task."""


@pytest.fixture
def calls():
    return []


async def test_two_threads_may_come_in_any_order(hf, calls):
    @hf.task(retry=AGAIN)
    def ship(job: Job) -> None:
        def pack(name: str, wait: float) -> None:
            time.sleep(wait)
            for part in ("box", "label"):
                job.blocking.step(f"{name}:{part}", calls.append, f"{name}:{part}")

        is_first = job.attempt == 1
        job.blocking.step("plan", calls.append, "plan")
        waits = {"a": 0.0 if is_first else 0.2, "b": 0.2 if is_first else 0.0}
        threads = [threading.Thread(target=pack, args=each) for each in waits.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if is_first:
            raise Boom

    handle = await ship.enqueue()
    assert [each.state for each in await drain(hf)] == [State.QUEUED, State.SUCCEEDED]
    assert sorted(calls) == ["a:box", "a:label", "b:box", "b:label", "plan"]
    branches = {each.name: each.branch for each in await hf.store.steps.load(handle.id, 0)}
    assert branches == {
        "plan": "",
        "a:box": "a:box",
        "a:label": "a:box",
        "b:box": "b:box",
        "b:label": "b:box",
    }


async def test_what_would_wait_for_its_own_transaction_is_refused_at_once(hf, calls):
    if hf._inside.location.kind != "sqlite":
        pytest.skip("only there a transaction keeps all others out")
    hf.event("order.placed", unheard=True)

    @hf.task
    async def other() -> None: ...

    def refused(way):
        with pytest.raises(UsageError, match="Pass tx=tx when it takes that"):
            way()

    @hf.task(retry=AGAIN)
    def ship(job: Job) -> None:
        if job.attempt == 1:
            with hf.blocking.transaction() as tx:
                refused(other.enqueue_sync)
                refused(lambda: hf.blocking.emit("order.placed", {}))
                refused(lambda: hf.blocking.transaction().__enter__())
                other.options(tx=tx).enqueue_sync()
                refused(lambda: job.blocking.step("a", calls.append, "first"))
        job.blocking.step("a", calls.append, "second")

    await ship.enqueue()
    began = time.monotonic()
    found = await drain(hf)
    assert sorted(each.state for each in found) == [State.QUEUED, State.SUCCEEDED, State.SUCCEEDED]
    assert calls in (["first"], ["first", "second"]), "its end is kept later, or it is done again"
    assert time.monotonic() - began < 4, "nobody waited until the transaction was cut off"


async def test_it_does_not_matter_which_thread_of_a_pool_does_what(hf, calls):
    @hf.task(retry=AGAIN)
    def ship(job: Job) -> list[int]:
        is_first = job.attempt == 1

        def pack(number: int) -> int:
            return job.blocking.step(f"pack:{number}", lambda: calls.append(number) or number)

        with ThreadPoolExecutor(1 if is_first else 3) as pool:
            found = list(pool.map(pack, range(6) if is_first else reversed(range(6))))
        if is_first:
            raise Boom
        return sorted(found)

    await ship.enqueue()
    ran = await drain(hf)
    assert [(each.state, each.result) for each in ran] == [
        (State.QUEUED, None),
        (State.SUCCEEDED, list(range(6))),
    ]
    assert sorted(calls) == list(range(6))


async def test_a_failure_is_not_handled_by_what_its_thread_does_next(hf, calls):
    def pack(number: int) -> int:
        calls.append(number)
        if calls == [0]:
            raise Boom
        return number

    @hf.task(retry=AGAIN)
    def ship(job: Job) -> int:
        with ThreadPoolExecutor(1) as pool:
            packed = [pool.submit(job.blocking.step, f"pack:{each}", pack, each) for each in range(3)]
        return sum(each.result() for each in packed)

    await ship.enqueue()
    ran = await drain(hf)
    assert [(each.state, each.result) for each in ran] == [(State.QUEUED, None), (State.SUCCEEDED, 3)]
    assert calls == [0, 1, 2, 0]


async def test_a_thread_may_try_again_while_the_task_goes_on(hf, calls):
    def upload() -> None:
        calls.append(1)
        if len(calls) < 3:
            raise OSError("cut off")

    @hf.task(retry=Backoff(attempts=1))
    def ship(job: Job) -> None:
        def patient() -> None:
            while True:
                try:
                    return job.blocking.step("upload", upload)
                except OSError:
                    time.sleep(0.05)

        with ThreadPoolExecutor(1) as pool:
            uploaded = pool.submit(patient)
            for number in range(10):
                job.blocking.step(f"own:{number}", time.sleep, 0.02)
        uploaded.result()

    await ship.enqueue()
    [ran] = await drain(hf)
    assert (ran.state, len(calls)) == (State.SUCCEEDED, 3)


async def test_within_a_thread_the_order_is_fixed(hf, calls):
    @hf.task(retry=AGAIN)
    def ship(job: Job) -> None:
        errors = []

        def pack() -> None:
            try:
                for name in ("box", "a", "b") if job.attempt == 1 else ("box", "b", "a"):
                    job.blocking.step(name, calls.append, name)
            except Exception as error:
                errors.append(error)

        thread = threading.Thread(target=pack)
        thread.start()
        thread.join()
        raise errors[0] if errors else Boom

    await ship.enqueue()
    ran = await drain(hf)
    assert [each.state for each in ran] == [State.QUEUED, State.DEAD]
    assert "the other way round" in ran[-1].error
    assert calls == ["box", "a", "b"]


async def test_a_thread_that_tries_again_for_another_goes_on_in_its_place(hf, calls):
    """A later attempt finds the label done, and goes straight through in the first of them."""
    moods = [Boom]

    def label() -> None:
        if moods:
            raise moods.pop()
        calls.append("label")

    @hf.task(retry=AGAIN)
    def ship(job: Job) -> None:
        def pack(number: int) -> None:
            if number == 0:
                job.blocking.step("box", calls.append, "box")
            job.blocking.step("label", label)
            job.blocking.step("send", calls.append, "send")

        with ThreadPoolExecutor() as pool:
            for number in range(2):
                try:
                    pool.submit(pack, number).result()
                    break
                except Boom:
                    continue
        if job.attempt == 1:
            raise Boom

    await ship.enqueue()
    assert [each.state for each in await drain(hf)] == [State.QUEUED, State.SUCCEEDED]
    assert calls == ["box", "label", "send"]
