"""Handlers: once for each group and event, their rows with the inbox row and the success, and never half."""

from __future__ import annotations

import asyncio
import functools
import threading
from dataclasses import dataclass

import pytest
from running import QUICK
from waiting import until

from holdfast import Backoff, Event, Holdfast, Job, Reject, Retry, Secret, Tx
from holdfast.jobs.blocking import BlockingTx
from holdfast.kernel.errors import JobDead, UsageError
from holdfast.kernel.masking import masked
from holdfast.store.states import State
from holdfast.testing import drain, inline


@dataclass
class Order:
    id: int


@pytest.fixture
async def shop(hf):
    """With a table for what handlers write."""
    async with hf.transaction() as tx:
        await tx.execute("DROP TABLE IF EXISTS bills")  # databases are used again
        await tx.execute("CREATE TABLE bills (event TEXT, who TEXT)")
    return hf


async def bills(hf):
    async with hf.transaction() as tx:
        return await tx.fetch("SELECT event, who FROM bills ORDER BY who")


async def write(tx, event, who="bill"):
    await tx.execute("INSERT INTO bills (event, who) VALUES ($1, $2)", event.id, who)


async def test_each_group_handles_an_event_once(shop):
    @shop.on("order.*", group="billing")
    async def bill(event: Event, tx: Tx) -> None:
        await write(tx, event, "billing")

    @shop.on("order.placed", group="mail")
    def mail(event: Event, tx: BlockingTx) -> None:
        tx.execute("INSERT INTO bills (event, who) VALUES ($1, $2)", event.id, "mail")

    emitted = await shop.emit("order.placed", {"id": 1}, key="order:1")
    async with shop.worker():

        async def both():
            return len(found := await bills(shop)) == 2 and found

        assert await until(both) == [(emitted.id, "billing"), (emitted.id, "mail")]


async def test_rows_inbox_row_and_success_commit_together_or_not_at_all(shop):
    runs = []

    @shop.on("order.placed", group="billing", retry=QUICK)
    async def bill(event: Event, tx: Tx) -> None:
        await write(tx, event)
        runs.append(event)
        if len(runs) < 3:
            raise RuntimeError("after the write")

    emitted = await shop.emit("order.placed", {"id": 1})
    async with shop.worker():

        async def done():
            return await bills(shop)

        assert await until(done) == [(emitted.id, "bill")]
    assert len(runs) == 3
    assert runs[0] == runs[1] == runs[2]  # the same id and data each time


async def test_a_delivery_of_what_was_handled_changes_nothing(shop):
    """Such as after an operator's replay of a job whose twin has succeeded."""

    @shop.on("order.placed", group="billing")
    async def bill(event: Event, tx: Tx) -> None:
        await write(tx, event)

    emitted = await shop.emit("order.placed", {"id": 1})
    async with shop.transaction() as tx:
        assert await shop.store.inbox.handled("billing", emitted.id, tx=tx)
    task = shop._inside.registry.task("on:billing:bill")
    event = await shop.outbox.get(emitted.id)
    envelope = {
        "specversion": "1.0",
        "id": event.id,
        "source": "holdfast",
        "type": event.type,
        "time": "2026-01-01T00:00:00Z",
    }
    handle = await task.enqueue(event=envelope)
    await drain(shop, raise_dead=True)
    assert await handle.status() is State.SUCCEEDED
    assert await bills(shop) == []


async def test_data_comes_in_the_type_that_the_handler_asks_for(shop):
    seen = []
    shop.event("order.placed", Order)

    @shop.on("order.placed", group="typed")
    async def typed(event: Event[Order]) -> None:
        seen.append(event.data)

    @shop.on("order.placed", group="plain")
    async def plain(event) -> None:
        seen.append(event.data)

    await shop.emit("order.placed", Order(1))
    await drain(shop, raise_dead=True)
    assert sorted(map(str, seen)) == ["Order(id=1)", "{'id': 1}"]


async def test_data_that_does_not_fit_is_a_dead_letter_that_can_be_replayed(shop):
    """Nothing is acknowledged into nothing: once the code is right, the same id and key are handled."""
    seen = []

    @shop.on("order.placed", group="billing")
    async def bill(event: Event[Order]) -> None:
        seen.append(event)

    emitted = await shop.emit("order.placed", {"id": "one"}, key="order:1")
    [ran] = await drain(shop)
    assert ran.state is State.DEAD and "is not what" in ran.error and emitted.id in ran.error

    bus = Holdfast(
        shop._inside.location.address
        if shop._inside.location.kind != "sqlite"
        else f"sqlite:///{shop._inside.location.address}"
    )

    @bus.on("order.placed", group="billing", name="on:billing:bill")
    async def mended(event: Event) -> None:
        seen.append(event)

    async with bus:
        await bus.dead.replay([ran.id], actor="test")
        await drain(bus, raise_dead=True)
    assert [(event.id, event.key, event.version) for event in seen] == [(emitted.id, "order:1", 1)]


async def test_a_handler_says_how_its_run_ends(shop):
    ways = [Retry(after=0), Reject("never")]

    @shop.on("order.placed", group="billing")
    async def bill(event: Event, tx: Tx) -> None:
        await write(tx, event)
        raise ways.pop(0)

    await shop.emit("order.placed")
    ran = await drain(shop)
    assert [each.state for each in ran] == [State.QUEUED, State.DEAD]
    assert await bills(shop) == []


async def test_an_async_function_behind_a_plain_decorator_is_awaited(shop):
    """And not dropped, whether its tx is asked for on the loop or in a thread."""

    def wrapped(function):
        @functools.wraps(function)
        def around(*args, **kwargs):
            return function(*args, **kwargs)

        return around

    @shop.on("order.placed", group="with-tx")
    @wrapped
    async def bill(event: Event, tx: Tx) -> None:
        await asyncio.sleep(0)
        await write(tx, event, "with-tx")
        assert await tx.fetch("SELECT who FROM bills WHERE who = 'with-tx'")

    seen = []

    @shop.on("order.placed", group="without")
    @wrapped
    async def look(event: Event) -> None:
        await asyncio.sleep(0)
        seen.append(event.id)

    emitted = await shop.emit("order.placed")
    await drain(shop, raise_dead=True)
    assert await bills(shop) == [(emitted.id, "with-tx")]
    assert seen == [emitted.id]


async def test_plain_functions_run_in_threads(shop):
    names = []

    @shop.on("order.placed", group="g")
    def bill(event, tx) -> None:
        names.append(threading.current_thread() is threading.main_thread())
        tx.execute("INSERT INTO bills (event, who) VALUES ($1, $2)", event.id, "sync")
        shop.emit_sync("order.billed", {"for": event.id}, key="order:1", tx=tx)

    @shop.on("order.billed", group="g")
    async def told(event: Event, tx: Tx) -> None:
        await write(tx, event, "told")

    await shop.emit("order.placed")
    await drain(shop, raise_dead=True)
    assert names == [False]
    assert [who for _, who in await bills(shop)] == ["sync", "told"]


async def test_a_handler_may_take_the_job_and_its_steps(shop):
    """Without tx it may run again: what must not be repeated is a step."""
    called, runs = [], []

    @shop.on("order.placed", group="mail", retry=QUICK)
    async def mail(event: Event, job: Job) -> None:
        await job.step("send", lambda: called.append(event.id))
        runs.append(job.attempt)
        if job.attempt == 1:
            raise RuntimeError("once more")

    emitted = await shop.emit("order.placed")
    async with shop.worker():
        await until(lambda: runs == [1, 2])
    assert called == [emitted.id]


async def test_a_handler_may_complete_its_job_itself(shop):
    @shop.on("order.placed", group="billing")
    async def bill(event: Event, job: Job) -> None:
        async with job.commit() as tx:
            await write(tx, event)

    await shop.emit("order.placed")
    [ran] = await drain(shop, raise_dead=True)
    assert ran.state is State.SUCCEEDED
    assert len(await bills(shop)) == 1


async def test_handlers_get_resources_by_type(shop):
    class Mailer:
        sent: list[str] = []  # noqa: RUF012

    async def mailer():
        yield Mailer()

    mailer.__annotations__["return"] = __import__("collections.abc").abc.AsyncIterator[Mailer]

    async def mail(event, post) -> None:
        post.sent.append(event.id)

    mail.__annotations__.update(event=Event, post=Mailer)
    shop.on("order.placed", group="mail")(mail)
    with pytest.raises(UsageError, match="takes 'post', which is neither event, tx, job nor a resource"):
        async with shop.worker():
            pass
    shop.resource(mailer)
    emitted = await shop.emit("order.placed")
    await drain(shop, raise_dead=True)
    assert Mailer.sent == [emitted.id]


async def test_events_of_one_key_are_handled_in_order_and_others_beside_them(shop):
    began, gates = [], {}

    @shop.on("order.*", group="billing")
    async def bill(event: Event) -> None:
        began.append((event.key, event.version))
        await gates.setdefault(began[-1], asyncio.Event()).wait()

    for _ in range(3):
        await shop.emit("order.paid", key="a")
    await shop.emit("order.paid", key="b")
    async with shop.worker():
        await until(lambda: sorted(began) == [("a", 1), ("b", 1)])
        gates[("a", 1)].set()
        await until(lambda: ("a", 2) in began)
        assert ("a", 3) not in began
        for each in (("a", 2), ("a", 3), ("b", 1)):
            gates.setdefault(each, asyncio.Event()).set()
        await until(lambda: len(began) == 4)


async def test_parallel_when_asked_for(shop):
    began, gate = [], asyncio.Event()

    @shop.on("order.*", group="billing", ordered=False)
    async def bill(event: Event) -> None:
        began.append(event.version)
        await gate.wait()

    for _ in range(3):
        await shop.emit("order.paid", key="a")
    async with shop.worker():
        await until(lambda: len(began) == 3)
        gate.set()


async def test_at_most_so_many_of_a_group_at_a_time(shop):
    running, most, gate = [0], [0], asyncio.Event()

    @shop.on("order.*", group="billing", concurrency=2)
    async def bill(event: Event) -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        await gate.wait()
        running[0] -= 1

    emitted = [await shop.emit("order.paid", key=f"k{n}") for n in range(5)]
    async with shop.worker():
        await until(lambda: running[0] == 2)
        gate.set()

        async def all_done():
            jobs = await shop.store.jobs.find(task="on:billing:bill")
            return all(job.state is State.SUCCEEDED for job in jobs) and len(jobs) in (0, len(emitted))

        await until(all_done)
    assert most[0] == 2


async def test_a_limit_of_one_handler_is_that_of_its_group(shop):
    """Whichever of its handlers says it, and in whatever order they are declared."""
    running, most, done = set(), [0], []

    async def hear(event):
        running.add(event.id)
        most[0] = max(most[0], len(running))
        await asyncio.sleep(0.02)
        running.remove(event.id)
        done.append(event.id)

    @shop.on("order.paid", group="billing")
    async def paid(event: Event) -> None:
        await hear(event)

    @shop.on("order.placed", group="billing", concurrency=1)
    async def placed(event: Event) -> None:
        await hear(event)

    for number in range(6):
        await shop.emit("order.paid" if number % 2 else "order.placed", key=f"k{number}")
    async with shop.worker():
        await until(lambda: len(done) == 6)
    assert most[0] == 1


def test_a_group_has_one_limit():
    hf = Holdfast()

    @hf.on("order.placed", group="billing", concurrency=2)
    async def placed(event): ...

    with pytest.raises(UsageError, match=r"'billing' .*concurrency=2 .*placed.* concurrency=3 .*paid"):

        @hf.on("order.paid", group="billing", concurrency=3)
        async def paid(event): ...

    @hf.on("order.sent", group="billing", concurrency=2)
    async def sent(event): ...


async def test_a_death_lets_the_next_of_its_key_go(shop):
    seen = []

    @shop.on("order.*", group="billing", retry=Backoff(attempts=1))
    async def bill(event: Event, tx: Tx) -> None:
        if event.version == 1:
            raise RuntimeError("broken")
        seen.append(event.version)

    for _ in range(2):
        await shop.emit("order.paid", key="a")
    await drain(shop)
    assert seen == [2]
    [dead] = await shop.dead.find(task="on:billing:bill")
    assert dead.correlation_id is not None and dead.ordered == "on:billing:a"


@dataclass
class Card:
    number: Secret[str]


async def test_secret_data_is_masked_wherever_a_delivery_is_shown(shop):
    """Whether the handler or only the declaration says that it is."""
    shop.event("card.added", Card)

    @shop.on("card.added", group="typed", retry=Backoff(attempts=1))
    async def typed(event: Event[Card]) -> None:
        raise RuntimeError(f"refused: {event.data.number}")

    @shop.on("card.added", group="plain", retry=Backoff(attempts=1))
    async def plain(event: Event) -> None:
        raise RuntimeError(f"refused: {event.data}")

    await shop.emit("card.added", Card("4711-0815"))
    ran = await drain(shop)
    assert len(ran) == 2 and all("4711" not in each.error and "refused" in each.error for each in ran)
    for each in ran:
        assert masked((await shop.jobs.get(each.id)).args) == {"event": "***"}


# --- choreography ---


async def test_what_follows_is_linked_by_cause_and_story(shop):
    events = []

    @shop.on("order.placed", group="billing")
    async def bill(event: Event, tx: Tx, job: Job) -> None:
        events.append((event, job))
        await shop.emit("order.billed", key=event.key, tx=tx)

    @shop.on("order.billed", group="shipping")
    async def ship(event: Event, job: Job) -> None:
        events.append((event, job))

    first = await shop.emit("order.placed", key="order:1")
    await drain(shop, raise_dead=True)
    (placed, billing), (billed, shipping) = events
    assert placed.id == first.id
    assert billed.causation_id == billing.id
    assert billed.correlation_id == placed.correlation_id == placed.id
    record = await shop.jobs.get(shipping.id)
    assert (record.causation_id, record.correlation_id) == (billed.id, placed.id)


async def test_inline_runs_handlers_and_those_of_what_they_emit(shop):
    seen = []

    @shop.on("order.placed", group="billing")
    async def bill(event: Event, tx: Tx) -> None:
        seen.append(event.type)
        await shop.emit("order.billed", tx=tx)

    @shop.on("order.billed", group="shipping")
    async def ship(event: Event) -> None:
        seen.append(event.type)

    with inline(shop, raise_dead=True) as ran:
        await shop.emit("order.placed")
        assert seen == ["order.placed", "order.billed"]
    assert [each.task for each in ran] == ["on:billing:bill", "on:shipping:ship"]

    @shop.on("order.lost", group="billing")
    async def lose(event: Event) -> None:
        raise Reject("lost")

    with inline(shop, raise_dead=True), pytest.raises(JobDead, match="lost"):
        await shop.emit("order.lost")


# --- declaring ---


@pytest.mark.parametrize("in_tx", [True, False])
async def test_inline_says_when_events_cause_each_other_in_a_circle(shop, in_tx):
    @shop.on("order.*", group="billing")
    async def bill(event: Event, job: Job) -> None:
        if not in_tx:
            await shop.emit("order.placed")
            return
        async with job.commit() as tx:
            await shop.emit("order.placed", tx=tx)

    told = r"inline has run 5 jobs.*on:billing:bill.*in a circle"
    with inline(shop, most=5) as ran, pytest.raises(AssertionError, match=told):
        await shop.emit("order.placed")
    assert len(ran) == 5


async def test_inline_runs_what_had_to_wait_for_its_key(shop):
    """A handler that emits for its own key, and not in a transaction: the next is stored while it has the turn."""
    seen = []

    @shop.on("order.*", group="billing")
    async def bill(event: Event) -> None:
        seen.append(event.version)
        if event.version < 3:
            await shop.emit("order.changed", key=event.key)

    with inline(shop, raise_dead=True, most=3):
        await shop.emit("order.placed", key="order:1")
        assert seen == [1, 2, 3]


def test_a_group_hears_each_event_by_one_handler():
    hf = Holdfast()

    @hf.on("order.placed", "order.paid", group="billing")
    async def bill(event): ...

    @hf.on("order.*", group="mail")
    async def mail(event): ...

    with pytest.raises(
        UsageError, match=r"In the group 'billing' both .*bill \(order.placed\) and .*other \(order.\*\)"
    ):

        @hf.on("order.*", group="billing")
        async def other(event): ...


async def twin_of_another_name(event): ...


def test_two_handlers_of_one_name_in_a_group_are_told_apart():
    hf = Holdfast()

    @hf.on("order.placed", group="billing", name="on:billing:twin")
    async def handle(event): ...

    with pytest.raises(UsageError, match="Give one of them another name="):

        @hf.on("order.paid", group="billing")
        async def twin(event): ...

    hf.on("order.lost", group="billing", name="billing.lost")(twin_of_another_name)

    assert "billing.lost" in hf._inside.registry.names


@pytest.mark.parametrize(
    ("handler", "told"),
    [
        (lambda: None, "0 parameters that are the event"),
        (lambda event, *more: None, "nobody can tell"),
        (lambda **all: None, "functools.wraps"),
        (functools.partial(print), "stands on a function"),
        ("text", "stands on a function"),
    ],
)
def test_what_is_no_handler_is_refused(handler, told):
    with pytest.raises(UsageError, match=told):
        Holdfast().on("order.*", group="g")(handler)


def test_wrong_options_are_refused():
    hf = Holdfast()

    def hear(event): ...

    with pytest.raises(UsageError, match="no pattern"):
        hf.on("order.*x", group="g")(hear)
    with pytest.raises(UsageError, match="Say what it hears"):
        hf.on(group="g")(hear)
    with pytest.raises(UsageError, match="at most 100 bytes"):
        hf.on("order.*", group="g" * 101)(hear)
    with pytest.raises(UsageError, match="keeps names that begin with"):
        hf.on("order.*", group="holdfast:relay")(hear)
    with pytest.raises(UsageError, match="concurrency"):
        hf.on("order.*", group="g", concurrency=0)(hear)
    with pytest.raises(UsageError, match="aliases is a list"):
        hf.on("order.*", group="g", aliases="old")(hear)
    with pytest.raises(UsageError, match="retry is a Backoff"):
        hf.on("order.*", group="g", retry=3)(hear)
