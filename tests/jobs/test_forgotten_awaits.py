"""A missing `await` is never a success: runs, steps, handlers and transactions fail, and name what was not awaited."""

from __future__ import annotations

import asyncio
import warnings

import pytest

from holdfast import Backoff, Event, Job, Tx
from holdfast.guards import Bulkhead, Limiter
from holdfast.jobs.job import attempt_of
from holdfast.kernel.errors import NeverAwaited, UsageError
from holdfast.store.states import State
from holdfast.testing import drain

ONCE = Backoff(attempts=1)


@pytest.fixture
def done():
    """What was done."""
    return []


@pytest.fixture
async def shop(hf):
    """With a table for what is written."""
    async with hf.transaction() as tx:
        await tx.execute("DROP TABLE IF EXISTS orders")  # databases are used again
        await tx.execute("CREATE TABLE orders (id INTEGER)")
    return hf


async def orders(hf):
    async with hf.transaction() as tx:
        return [number for (number,) in await tx.fetch("SELECT id FROM orders ORDER BY id")]


async def death_of(hf, task, *args):
    """How its only run ended, without a word of Python's own."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        handle = await task.enqueue(*args)
        await drain(hf)
    record = await handle.record()
    assert record.state is State.DEAD, record
    return record.reason


FORGOTTEN = {
    "step": lambda job, done: job.step("pay", done.append, 1),
    "effect": lambda job, done: job.effect("pay", done.append, 1, policy="keyed"),
    "heartbeat": lambda job, _: job.heartbeat(0.5),
    "complete": lambda job, _: job.complete(tx=None),
    "commit": lambda job, _: job.commit(),
}


@pytest.mark.parametrize("verb", FORGOTTEN)
async def test_a_verb_of_the_job_that_is_never_awaited_fails_the_run(hf, done, verb):
    @hf.task(retry=ONCE)
    async def pay(job: Job) -> None:
        FORGOTTEN[verb](job, done)
        await asyncio.sleep(0)

    reason = await death_of(hf, pay)
    assert ("'pay'" if verb in ("step", "effect") else f"job.{verb}") in reason
    assert "was asked for and never " + ("entered" if verb == "commit" else "awaited") in reason
    assert done == []


async def test_a_forgotten_step_is_found_in_a_coroutine_that_the_task_has_called(hf, done):
    async def inner(job):
        job.step("pay", done.append, 1)

    async def outer(job):
        await asyncio.gather(inner(job), asyncio.sleep(0))

    @hf.task(retry=ONCE)
    async def pay(job: Job) -> None:
        await asyncio.create_task(outer(job))

    assert "'pay' was asked for and never awaited" in await death_of(hf, pay)


async def test_whoever_mends_the_task_gets_what_was_not_done(hf, done):
    @hf.task(retry=Backoff(attempts=5, first=0, ceiling=0))
    async def pay(job: Job) -> None:
        await job.step("look", done.append, 1)
        asked = job.step("pay", done.append, 2)
        if job.attempt == 2:
            await asked

    handle = await pay.enqueue()
    await drain(hf)
    await drain(hf)
    assert await handle.status() is State.SUCCEEDED
    assert done == [1, 2]


@pytest.mark.parametrize("verb", FORGOTTEN)
async def test_in_a_plain_function_the_call_itself_is_refused(hf, done, verb):
    @hf.task(retry=ONCE)
    def pay(job: Job) -> None:
        FORGOTTEN[verb](job, done)

    assert f"job.blocking.{verb}(" in await death_of(hf, pay)
    assert done == []


async def test_a_blocking_commit_that_is_never_entered_fails_the_run(hf):
    @hf.task(retry=ONCE)
    def pay(job: Job) -> None:
        job.blocking.commit()

    assert "job.blocking.commit was asked for and never entered: write `with" in await death_of(hf, pay)


async def test_what_is_awaited_in_any_way_is_no_fault(hf, done):
    @hf.task(retry=ONCE)
    async def pay(job: Job) -> None:
        late = job.step("first", done.append, 1)
        both = job.step("second", done.append, 2), job.step("third", done.append, 3)
        await late
        await asyncio.gather(*both)
        await asyncio.wait_for(job.step("fourth", done.append, 4), 5)
        await asyncio.create_task(job.step("fifth", done.append, 5))
        async with asyncio.TaskGroup() as group:
            group.create_task(job.step("sixth", done.append, 6))
        assert asyncio.iscoroutinefunction(job.step)

    handle = await pay.enqueue()
    await drain(hf)
    assert await handle.status() is State.SUCCEEDED
    assert sorted(done) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("begins", [False, True])
async def test_a_step_in_a_task_that_nobody_awaits_fails_the_run(hf, begins):
    left = []

    async def slow():
        await asyncio.sleep(30)

    @hf.task(retry=ONCE)
    async def pay(job: Job) -> None:
        left.append(asyncio.create_task(job.step("pay", slow)))
        if begins:
            await asyncio.sleep(0.05)

    reason = await death_of(hf, pay)
    assert "'pay'" in reason
    assert ("went on without knowing" if begins else "nobody awaited that") in reason
    for each in left:
        each.cancel()
        await asyncio.gather(each, return_exceptions=True)


async def test_a_forgotten_step_after_or_before_a_commit(shop):
    @shop.task(retry=ONCE)
    async def before(job: Job) -> None:
        job.step("pay", int)
        async with job.commit() as tx:
            await tx.execute("INSERT INTO orders (id) VALUES (1)")

    assert "'pay' was asked for and never awaited" in await death_of(shop, before)
    assert await orders(shop) == []


async def test_verbs_of_the_program_fail_the_run_too(hf):
    guard = hf.guard("stripe", limiter=Limiter(rate=100))

    @guard
    async def charge() -> None: ...

    @hf.task
    async def other(number: int) -> None: ...

    @hf.saga("battle")
    async def battle(saga) -> None: ...

    @hf.cached(fresh=5, stale=5)
    async def price(number: int) -> int:
        return number

    ways = {
        "enqueue": lambda: other.enqueue(1),
        "options": lambda: other.options(delay=5).enqueue(1),
        "enqueue_many": lambda: other.enqueue_many([other.bind(1)]),
        "emit": lambda: hf.emit("order.placed", 1),
        "start": lambda: battle.start(),
        "cancel": lambda: hf.jobs.cancel("x"),
        "pause": lambda: hf.queues.pause("mail"),
        "call": lambda: guard.call(asyncio.sleep, 0),
        "keyed": lambda: guard.keyed(cost=2).call(asyncio.sleep, 0),
        "guarded": charge,
        "retry": lambda: hf.sagas.retry("x", actor="ada"),
        "lock": lambda: hf.lock("report"),
        "blocking.lock": lambda: hf.blocking.lock("report"),
        "flag": lambda: hf.flag("new-prices"),  # as it stands, a coroutine: true, whatever the flag is
        "migrate": hf.migrate,
        "workers": hf.workers.list,
        "the task itself": lambda: other(1),
        "cached": lambda: price(1),
        "take": Limiter(rate=1, name="api").take,
        "acquire": Bulkhead(1, name="disk").acquire,
    }
    told = {
        "enqueue": "other' was asked", "options": "other' was asked", "enqueue_many": "task.enqueue_many",
        "emit": "'order.placed'", "start": "'battle'", "cancel": "hf.jobs.cancel", "pause": "hf.queues.pause", "call": "'stripe'",
        "keyed": "'stripe'", "guarded": "await charge(…)", "retry": "hf.sagas.retry", "lock": "`async with hf.lock(…) as lease:`",
        "blocking.lock": "`with hf.blocking.lock(…) as lease:`", "flag": "'new-prices'", "migrate": "hf.migrate", "workers": "hf.workers.list",
        "the task itself": "`await other(…)`", "cached": "'price'", "take": "'api'", "acquire": "'disk'",
    }  # fmt: skip

    @hf.task(retry=ONCE)
    async def pay(way: str) -> None:
        ways[way]()

    @hf.task(retry=ONCE)
    def pay_plainly(way: str) -> None:
        ways[way]()

    for way in ways:
        for task in (pay, pay_plainly):
            reason = await death_of(hf, task, way)
            assert told[way] in reason
            assert "was asked for and never " in reason
    assert await hf.store.jobs.find(task=other.name) == []


async def test_a_verb_that_is_forgotten_in_a_step_fails_the_step(hf, done):
    guard = hf.guard("stripe")

    async def charge() -> str:
        guard.call(asyncio.sleep, 0)
        return "paid"

    def charge_plainly() -> str:
        guard.call(asyncio.sleep, 0)
        return "paid"

    @hf.task(retry=ONCE)
    async def pay(job: Job, *, plainly: bool) -> None:
        done.append(await job.step("pay", charge_plainly if plainly else charge))

    @hf.task(retry=ONCE)
    def pay_in_thread(job: Job) -> None:
        done.append(job.blocking.step("pay", charge_plainly))

    for task, arguments in ((pay, {"plainly": True}), (pay, {"plainly": False}), (pay_in_thread, {})):
        handle = await task.enqueue(**arguments)
        await drain(hf)
        record = await handle.record()
        assert record.state is State.DEAD
        assert "'stripe' was asked for and never awaited" in record.reason
    assert done == []


async def test_a_step_awaits_what_a_plain_function_gives_back(hf, done):
    guard = hf.guard("stripe")

    async def fetch(number: int) -> int:
        done.append(number)
        return number

    @hf.task(retry=ONCE)
    async def pay(job: Job) -> int:
        first = await job.step("first", lambda: fetch(1))
        return first + await job.step("second", lambda: guard.call(fetch, 2))

    @hf.task(retry=ONCE)
    async def gives_it_back(job: Job) -> int:
        return job.step("pay", fetch, 3)

    handle, other = await pay.enqueue(), await gives_it_back.enqueue()
    await drain(hf)
    assert await handle.result(1) == 3
    assert await other.result(1) == 3
    assert done == [1, 2, 3]


# --- transactions ---


@pytest.mark.parametrize("verb", ["execute", "fetch", "enqueue", "emit", "start"])
async def test_a_transaction_with_a_forgotten_verb_is_rolled_back(shop, verb):
    @shop.task
    async def pay(number: int) -> None: ...

    @shop.saga("battle")
    async def battle(saga) -> None: ...

    def forget(tx):
        match verb:
            case "execute":
                return tx.execute("INSERT INTO orders (id) VALUES ($1)", 2)
            case "fetch":
                return tx.fetch("INSERT INTO orders (id) VALUES ($1) RETURNING id", 2)
            case "enqueue":
                return pay.options(tx=tx).enqueue(2)
            case "emit":
                return shop.emit("order.placed", 2, tx=tx)
            case "start":
                return battle.start(tx=tx)

    async def place():
        async with shop.transaction() as tx:
            await tx.execute("INSERT INTO orders (id) VALUES ($1)", 1)
            forget(tx)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(NeverAwaited, match="was asked for and never awaited"):
            await place()
    assert await orders(shop) == []
    async with shop.transaction() as tx:  # its connection is as good as before
        late = tx.execute("INSERT INTO orders (id) VALUES ($1)", 3)
        await asyncio.gather(late, pay.options(tx=tx).enqueue(3))
    assert await orders(shop) == [3]


async def test_a_transaction_of_sync_code_that_calls_an_async_verb_is_rolled_back(shop):
    @shop.task
    async def pay(number: int) -> None: ...

    def place():
        with shop.blocking.transaction() as tx:
            tx.execute("INSERT INTO orders (id) VALUES ($1)", 1)
            pay.options(tx=tx).enqueue(1)

    with pytest.raises(NeverAwaited, match="write `await task"):
        await asyncio.to_thread(place)
    assert await orders(shop) == []


async def test_the_error_of_a_block_comes_before_what_was_not_awaited(shop):
    with pytest.warns(RuntimeWarning, match="never awaited"), pytest.raises(KeyError):
        async with shop.transaction() as tx:
            tx.execute("INSERT INTO orders (id) VALUES ($1)", 1)
            raise KeyError


async def test_rows_that_a_job_forgets_to_write_fail_it(shop):
    @shop.task(retry=ONCE)
    async def pay(job: Job) -> None:
        async with job.commit() as tx:
            tx.execute("INSERT INTO orders (id) VALUES ($1)", 1)

    assert "'INSERT INTO orders (id) VALUES ($1)' was asked for" in await death_of(shop, pay)


# --- handlers ---


async def test_a_handler_of_events_that_forgets_is_not_done(shop):
    @shop.on("order.*", group="billing", retry=ONCE)
    async def bill(event: Event, tx: Tx) -> None:
        tx.execute("INSERT INTO orders (id) VALUES ($1)", 1)

    @shop.on("order.*", group="mail", retry=ONCE)
    async def mail(event: Event, job: Job, tx: Tx) -> None:
        job.step("mail", int)

    @shop.on("order.*", group="gift", retry=ONCE)
    async def gift(event: Event, tx: Tx) -> None:
        shop.emit("gift.sent", 1)

    await shop.emit("order.placed", 1)
    await drain(shop)
    dead = await shop.dead.find()
    assert {each.task for each in dead} == {"on:billing:bill", "on:mail:mail", "on:gift:gift"}
    assert all("never awaited" in each.reason for each in dead)


async def test_a_handler_of_deaths_that_forgets_writes_nothing(shop, notes):
    @shop.task(retry=ONCE)
    async def pay() -> None:
        raise KeyError

    @shop.on_dead(pay)
    async def tell(job: Job, tx: Tx) -> None:
        await tx.execute("INSERT INTO orders (id) VALUES ($1)", 1)
        shop.emit("job.died", 1)

    handle = await pay.enqueue()
    await drain(shop)
    assert await handle.status() is State.DEAD
    assert await orders(shop) == []
    [failed] = [fields for name, fields in notes if name == "on_dead.failed"]
    assert "'job.died' was asked for and never awaited" in failed["error"]


# --- what it costs, and what it is not ---


async def test_what_has_begun_is_not_kept(hf):
    @hf.task
    async def pay(job: Job) -> int:
        for _ in range(1_000):
            await job.heartbeat()
        return len(attempt_of(job).awaits._asked)

    handle = await pay.enqueue()
    await drain(hf)
    assert await handle.result(1) <= 200


async def test_outside_of_a_job_python_itself_warns(hf):
    @hf.task
    async def pay() -> None: ...

    with pytest.warns(RuntimeWarning, match="never awaited"):
        pay.enqueue()


async def test_a_step_is_a_function_and_not_a_coroutine(hf):
    async def fetch() -> None: ...

    @hf.task(retry=ONCE)
    async def pay(job: Job) -> None:
        await job.step("pay", fetch())

    assert "give the function itself" in await death_of(hf, pay)
    with pytest.raises(UsageError):
        raise NeverAwaited


async def test_a_guarded_function_is_still_an_async_one(hf, done):
    guard = hf.guard("stripe")

    @hf.task
    @guard
    async def charge(order: int) -> int:
        await asyncio.sleep(0)
        done.append(order)
        return order

    @hf.saga("battle")
    @guard
    async def battle(saga, order: int) -> int:
        return await saga.step("charge", charge, order)

    assert asyncio.iscoroutinefunction(charge.function)
    handle, run = await charge.enqueue(1), await battle.start(2)
    await drain(hf)
    assert (await handle.result(), await run.result(), done) == (1, 2, [1, 2])


async def test_a_lock_that_is_entered_is_no_fault(hf):
    @hf.task(retry=ONCE)
    async def report() -> None:
        async with hf.lock("report"):
            pass

    @hf.task(retry=ONCE)
    def report_plainly() -> None:
        with hf.blocking.lock("report"):
            pass

    for task in (report, report_plainly):
        handle = await task.enqueue()
        await drain(hf)
        assert await handle.status() == "succeeded"
