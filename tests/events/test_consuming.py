"""Consumers of groups: capacity first, nothing lost in a deploy, and what nobody understands kept as it came."""

from __future__ import annotations

import asyncio

import pytest
from waiting import heard, until

from holdfast import Backoff, Event, EventSettings, Holdfast, Tx
from holdfast.events import consumer as consuming
from holdfast.events import quarantine
from holdfast.events.members import Members
from holdfast.events.routes import ordering
from holdfast.kernel.clock import monotonic
from holdfast.kernel.crashpoints import Crash, armed
from holdfast.kernel.errors import LeaseLost, StoreUnavailable
from holdfast.store.states import Held, State
from holdfast.testing import drain
from holdfast.testing.memory import MemoryBroker, MemoryTransport
from holdfast.testing.relaying import move_events
from holdfast.transport.port import Message


def same_place(hf, **options):
    """Another process on the same database, such as one of the next version."""
    location = hf._inside.location
    url = f"sqlite:///{location.address}" if location.kind == "sqlite" else location.address
    return Holdfast(url, **options)


async def published(hf, *types, key=None):
    """Emitted and published, and not delivered."""
    ids = [(await hf.emit(each, key=key)).id for each in types]
    lease = await hf.store.leases.acquire("holdfast:relay", owner="t", ttl=60)
    while await hf._inside.bus.relay("t").turn(lease):
        pass
    await hf.store.leases.release(lease)
    return ids


async def group_lease(hf, group="billing", owner="t"):
    return await hf.store.leases.acquire(f"holdfast:group:{group}", owner=owner, ttl=60)


async def queued(hf):
    return await hf.store.jobs.find(state=State.QUEUED)


def hears(hf, *patterns, group="billing", name=None, seen=None, **options):
    async def handle(event: Event) -> None:
        if seen is not None:
            seen.append(event.id)

    handle.__qualname__ = handle.__name__ = name or "handle"
    hf.on(*patterns, group=group, **options)(handle)


# --- the store as the transport ---


async def test_a_new_group_hears_from_now_on_or_from_the_start(hf):
    hf.event("order.placed", unheard=True)
    before = await published(hf, "order.placed", "order.placed")
    late, early = [], []
    hears(hf, "order.*", group="late", seen=late)
    hears(hf, "order.*", group="early", seen=early, from_start=True)
    await move_events(hf)
    after = await published(hf, "order.placed")
    await drain(hf)
    assert (late, early) == (after, before + after)


async def test_what_was_emitted_before_the_first_worker_is_heard(hf):
    seen = []
    hears(hf, "order.*", seen=seen)
    emitted = await hf.emit("order.placed")
    async with hf.worker():
        await until(lambda: seen == [emitted.id])


async def test_a_group_goes_on_where_it_was(hf):
    seen = []
    hears(hf, "order.*", seen=seen)
    async with hf.worker():
        first = await hf.emit("order.placed")
        await until(lambda: seen == [first.id])
    missed = await published(hf, "order.placed")
    async with hf.worker():
        await until(lambda: seen == [first.id, *missed])


async def test_the_cursor_moves_past_what_the_group_does_not_hear(hf):
    hears(hf, "order.*")
    hf.event("user.added", unheard=True)
    await move_events(hf)
    await published(hf, "user.added", "user.added")
    await move_events(hf)
    [cursor] = await hf.outbox.groups()
    assert cursor.position == 2
    assert await queued(hf) == []


async def test_a_row_that_somebody_has_made_too_large_does_not_stop_its_group(hf, url):
    heard_of = []

    @hf.on("order.*", group="billing")
    async def bill(event: Event) -> None:
        heard_of.append(event.data)

    await hf._inside.bus.make_known("t")
    broken = await hf.emit("order.placed", 1, key="a")
    table = "holdfast.outbox" if url.startswith("postgres") else "holdfast_outbox"
    async with hf.transaction() as tx:
        await tx.execute(f"UPDATE {table} SET data = $1", f'"{"x" * 300_000}"')
    await hf.emit("order.placed", 2, key="a")
    await drain(hf)
    assert heard_of == [2]
    [stray] = await hf.outbox.strays()
    assert (stray.transport, stray.group) == ("store", "billing")
    assert "262,144" in stray.reason and broken.id.encode() in stray.raw


def test_no_two_groups_share_an_order():
    pairs = [
        ("shop", "eu:7"),
        ("shop:eu", "7"),
        ("8", "shop:eu:7"),
        ("shop:eu", "7" * 500),
        ("shop", "7" * 500),
    ]
    orders = {ordering(group, key) for group, key in pairs}
    assert len(orders) == len(pairs) and all(len(order.encode()) <= 500 for order in orders)
    assert ordering("shop", "order:7") == "on:shop:order:7"


async def test_an_event_that_was_read_twice_is_delivered_once(hf):
    """Two consumers, or one whose answer was lost: the cursor is put back by hand here."""
    hears(hf, "order.*")
    await move_events(hf)
    await published(hf, "order.placed", "order.paid")
    lease = await group_lease(hf)
    consumer = hf._inside.bus.consumer(hf._inside.bus.groups[0], "t")
    await consumer.subscribe()
    position = consumer._position
    assert await consumer.turn(lease)
    consumer._position = position
    with heard("group.delivered") as notes:
        assert await consumer.turn(lease)
    assert [(note["count"], note["again"]) for note in notes] == [(0, 2)]
    assert len(await queued(hf)) == 2


async def test_who_lost_the_lease_of_a_group_delivers_nothing(hf):
    hears(hf, "order.*")
    await move_events(hf)
    await published(hf, "order.placed")
    old = await group_lease(hf, owner="old")
    await hf.store.leases.steal("holdfast:group:billing", actor="test", reason="paused")
    await group_lease(hf, owner="new")
    consumer = hf._inside.bus.consumer(hf._inside.bus.groups[0], "old")
    await consumer.subscribe()
    with pytest.raises(LeaseLost):
        await consumer.turn(old)
    assert await queued(hf) == []


async def test_no_more_is_read_while_enough_waits(url, monkeypatch):
    monkeypatch.setattr(consuming, "BATCH", 2)
    async with Holdfast(url, events=EventSettings(waiting=3)) as hf:
        hears(hf, "order.*", queue="slow")
        for _ in range(10):
            await hf.emit("order.placed")
        async with hf.worker(queues={"other": 1}):

            async def full():
                return len(await queued(hf)) >= 3

            await until(full)
            [cursor] = await hf.outbox.groups()
            assert cursor.position == 4  # two reads of two: at the next look there is no room
        await drain(hf)
        assert len(await hf.outbox.find(state="published")) == 10
        assert (await hf.outbox.groups())[0].position == 10


async def test_a_key_that_fails_does_not_keep_the_others_of_its_group_out(url):
    seen = []
    async with Holdfast(url, events=EventSettings(waiting=20)) as hf:

        @hf.on("order.*", group="billing", retry=Backoff(attempts=50, first=60.0))
        async def handle(event: Event) -> None:
            if event.key == "bad":
                raise OSError("not today")
            seen.append(event.id)

        for _ in range(100):
            await hf.emit("order.placed", key="bad")
        well = await hf.emit("order.placed", key="well")
        async with hf.worker():
            await until(lambda: seen == [well.id])


# --- two versions of a program ---


async def test_what_only_the_new_version_hears_is_not_lost_when_the_old_one_reads_it(hf):
    seen = []
    hears(hf, "order.placed", name="placed", seen=seen)
    await move_events(hf)
    async with same_place(hf) as new:
        hears(new, "order.placed", name="placed", seen=seen)
        hears(new, "order.cancelled", name="cancelled", seen=seen)
        members = Members(new.store, new._inside.bus.groups, member="new-1")
        await members.start()
        ids = await published(new, "order.cancelled", "order.placed")
        await move_events(hf)  # the old one reads, and is the leader
        jobs = await queued(hf)
        assert sorted(job.task for job in jobs) == ["on:billing:cancelled", "on:billing:placed"]
        await drain(hf)
        [held] = await queued(hf)
        assert held.held is Held.UNKNOWN_TASK
        await drain(new)
        assert sorted(seen) == sorted(ids)
        await members.stop()


async def test_what_nobody_hears_any_more_is_not_delivered(hf):
    """The old version has left, and has said so; or it was killed, and its time is over."""
    hears(hf, "order.placed", name="placed")
    hf.event("order.cancelled", unheard=True)
    await move_events(hf)
    async with same_place(hf) as old:
        hears(old, "order.cancelled", name="cancelled")
        members = Members(old.store, old._inside.bus.groups, member="old-1")
        await members.start()
        await members.stop()
        await hf.store.groups.announce(
            "billing", "killed", '[{"patterns":["order.*"],"task":"t","queue":"q"}]', ttl=0.01
        )
        await asyncio.sleep(0.02)
        await published(hf, "order.cancelled")
    await move_events(hf)
    assert await queued(hf) == []


async def test_words_of_a_version_from_the_future_do_not_stop_a_consumer(hf):
    hears(hf, "order.placed")
    await move_events(hf)
    strange = '{"patterns":["order.#"],"task":"s","queue":"q"}'
    for number, text in enumerate(
        (
            "[]",
            "{}",
            '[{"strange": true}]',
            f'[{strange},{{"patterns":["order.paid"],"task":"t","queue":"q","more":1}}]',
            '[{"patterns":["order.paid"],"task":"p","queue":"q","priority":1000}]',
        )
    ):
        await hf.store.groups.announce("billing", f"m{number}", text, ttl=60)
    hf.event("order.paid", unheard=True)
    await published(hf, "order.paid", "order.placed")
    await move_events(hf)
    assert sorted(job.task for job in await queued(hf)) == ["on:billing:handle", "t"]


async def test_a_worker_says_what_it_hears_before_it_reads(hf):
    hears(hf, "order.placed")
    async with hf.worker():
        assert len(await hf.store.groups.announced("billing")) == 1
    assert await hf.store.groups.announced("billing") == []


# --- a broker as the transport ---


@pytest.fixture
def broker():
    return MemoryBroker()


@pytest.fixture
async def far(url, broker):
    async with Holdfast(
        url, transport=MemoryTransport(broker), events=EventSettings(redeliver_after=1)
    ) as hf:
        async with hf.transaction() as tx:
            await tx.execute("DROP TABLE IF EXISTS effects")  # databases are used again
            await tx.execute("CREATE TABLE effects (event TEXT)")
        yield hf


async def effects(hf):
    async with hf.transaction() as tx:
        return [event for (event,) in await tx.fetch("SELECT event FROM effects")]


def counts(hf, **options):
    @hf.on("order.*", group="billing", **options)
    async def handle(event: Event, tx: Tx) -> None:
        await tx.execute("INSERT INTO effects (event) VALUES ($1)", event.id)


async def test_over_a_broker_each_event_has_its_effect_once(far, broker):
    counts(far)
    broker.faults.duplicate = broker.faults.redelivery = broker.faults.lost_ack = (
        broker.faults.lost_answer
    ) = 0.3
    broker.faults.reordering = 0.5
    async with far.worker():
        ids = [(await far.emit("order.placed", key=f"k{n % 5}")).id for n in range(50)]

        async def all_there():
            return len(await effects(far)) >= len(ids)

        await until(all_there, seconds=60)
    assert sorted(await effects(far)) == sorted(ids)


async def test_what_a_killed_consumer_had_not_acknowledged_comes_again(far, broker):
    counts(far)
    await move_events(far)
    await published(far, "order.placed")
    lease = await group_lease(far)

    def die(_):
        raise Crash

    with armed("consumer.after_deliver", die), pytest.raises(Crash):
        await far._inside.bus.consumer(far._inside.bus.groups[0], "t").catch_up(lease)
    assert broker.backlog("billing") == 1
    async with far.worker():

        async def acknowledged():
            return broker.backlog("billing") == 0

        await far.store.leases.release(lease)
        await until(acknowledged)
        await until(lambda: effects(far))
    assert len(await effects(far)) == 1


async def test_what_nobody_understands_is_kept_as_it_came_and_stops_nobody(far, broker):
    counts(far)
    await move_events(far)
    broker.store([Message("x", "y", None, b"\xff broken"), Message("x", "y", None, b'{"specversion":"1.0"}')])
    [event_id] = await published(far, "order.placed")
    with heard("group.stray") as notes:
        await drain(far)
    assert await effects(far) == [event_id]
    strays = await far.outbox.strays()
    assert sorted(stray.raw for stray in strays) == [b'{"specversion":"1.0"}', b"\xff broken"]
    assert {(stray.transport, stray.group) for stray in strays} == {("memory", "billing")}
    assert len(notes) == 2 and broker.backlog("billing") == 0


def foreign(number, type_):
    return Message(
        "7",
        "t",
        None,
        b'{"specversion":"1.0","id":"%d","source":"/s","type":"%s"}' % (number, type_.encode()),
    )


async def test_an_unknown_type_is_kept_as_it_came_and_told_once(far, broker, monkeypatch):
    """A pattern may be mistyped, or this version too old. Others may make up types without end."""
    monkeypatch.setattr(quarantine, "_TOLD", 3)
    counts(far)
    await move_events(far)
    consumer = far._inside.bus.consumer(far._inside.bus.groups[0], "t")
    lease = await group_lease(far)
    sent = [foreign(number, f"a.{each}") for number, each in enumerate(["x", "x", "y", "x", "z", "more"])]
    with heard("group.unknown_type") as notes:
        for part in (sent[:3], sent[3:]):
            broker.store(part)
            assert await consumer.catch_up(lease)
    assert [(note["group"], note["type"]) for note in notes] == [
        ("billing", each) for each in ("a.x", "a.y", "a.z")
    ]
    assert broker.backlog("billing") == 0
    kept = await far.outbox.strays()
    assert [each.raw for each in kept] == [message.body for message in sent[::-1]]
    assert (kept[0].type, kept[0].reason) == ("a.more", "Nobody here hears or declares a.more.")


async def test_what_is_declared_or_heard_by_others_of_the_program_is_passed_over(far, broker):
    counts(far)
    far.event("note.taken", unheard=True)

    @far.on("mail.*", group="mail")
    async def mail(event: Event) -> None: ...

    await move_events(far)
    broker.store([foreign(1, "note.taken"), foreign(2, "mail.sent"), foreign(3, "note.lost")])
    await drain(far)
    assert {(each.group, each.type) for each in await far.outbox.strays()} == {
        ("billing", "note.lost"),
        ("mail", "note.lost"),
    }


async def test_types_of_other_programs_are_passed_over(url, broker):
    settings = EventSettings(others=["stock.**", "note.taken"])
    async with Holdfast(url, transport=MemoryTransport(broker), events=settings) as hf:

        @hf.on("order.*", group="billing")
        async def bill(event: Event) -> None: ...

        await move_events(hf)
        types = ["stock.shelf.filled", "note.taken", "note.lost"]
        broker.store([foreign(number, each) for number, each in enumerate(types)])
        await drain(hf)
        assert [each.type for each in await hf.outbox.strays()] == ["note.lost"]
        assert broker.backlog("billing") == 0


async def test_an_unknown_type_is_not_acknowledged_when_it_cannot_be_kept(far, broker, monkeypatch):
    counts(far)
    await move_events(far)
    broker.store([foreign(1, "a.x")])

    async def fail(*_):
        raise StoreUnavailable("the disk is full")

    consumer, lease = far._inside.bus.consumer(far._inside.bus.groups[0], "t"), await group_lease(far)
    with monkeypatch.context() as patch, pytest.raises(StoreUnavailable):
        patch.setattr(type(far.store.strays), "keep", fail)
        await consumer.catch_up(lease)
    assert broker.backlog("billing") == 1
    assert await consumer.catch_up(lease)
    assert len(await far.outbox.strays()) == 1 and broker.backlog("billing") == 0


async def test_events_that_others_have_made_are_heard(far, broker):
    seen = []

    @far.on("shop.**", group="billing")
    async def handle(event: Event) -> None:
        seen.append((event.source, event.id, event.data))

    await move_events(far)
    body = b'{"specversion":"1.0","id":"7","source":"/shop","type":"shop.order.paid","time":"2026-01-01T00:00:00Z","data":[1]}'
    other = body.replace(b'"/shop"', b'"/other"')
    broker.store([Message("7", "t", None, each) for each in (body, body, other)])
    await drain(far, raise_dead=True)
    assert seen == [("/shop", "7", [1]), ("/other", "7", [1])]


async def test_a_broker_that_is_away_at_the_start_is_waited_for(far, broker, monkeypatch):
    monkeypatch.setattr(consuming, "_AWAY", consuming.Backoff(first=0.01, ceiling=0.05))
    counts(far)
    broker.stop()
    emitted = await far.emit("order.placed")
    async with far.worker() as worker:
        await until(lambda: "consumer billing" in (worker.trouble() or ""))
        broker.start()

        async def there():
            return await effects(far) == [emitted.id]

        await until(there, seconds=60)
        await until(lambda: worker.trouble() is None)


async def test_what_is_published_before_the_first_consumer_reached_the_broker_is_heard(far):
    counts(far)
    ids = await published(far, "order.placed")  # by a relay that was quicker
    await drain(far)
    assert await effects(far) == ids


async def test_a_broker_that_came_back_empty_gives_the_group_all_that_it_has(far, broker):
    counts(far)
    await move_events(far)
    broker.forget_everything()
    body = (
        b'{"specversion":"1.0","id":"7","source":"/shop","type":"order.paid","time":"2026-01-01T00:00:00Z"}'
    )
    broker.store([Message("7", "order.paid", None, body)])
    await drain(far)
    assert await effects(far) == ["7"]


async def test_a_broker_that_forgets_while_nobody_runs_gives_the_group_all_that_it_has(far, broker):
    """What another program published meanwhile was not heard: the group was taken for a new one."""
    counts(far)
    await move_events(far)
    broker.forget_everything()
    body = b'{"specversion":"1.0","id":"7","source":"/shop","type":"order.paid"}'
    broker.store([Message("7", "order.paid", None, body)])
    async with same_place(far, transport=MemoryTransport(broker)) as later:
        counts(later)
        await drain(later)
    assert await effects(far) == ["7"]


async def test_a_group_that_was_forgotten_is_new_when_it_comes_back(far, broker):
    counts(far)
    await published(far, "order.placed")
    assert await far.outbox.unsubscribe("billing")
    async with same_place(far, transport=MemoryTransport(broker)) as later:
        counts(later)
        await drain(later)
        assert await effects(far) == []
        ids = await published(later, "order.placed")
        await drain(later)
    assert await effects(far) == ids


async def test_the_relay_makes_groups_known_again_after_the_broker_was_away(far, broker):
    counts(far)
    lease = await group_lease(far)  # its own worker reads nothing
    async with same_place(far, transport=MemoryTransport(broker)) as other:
        counts(other)
        async with far.worker() as worker:
            await far.emit("order.placed")
            await until(lambda: len(broker.messages) == 1)
            broker.stop()
            broker.forget_everything()
            emitted = await far.emit("order.placed")
            await until(lambda: "relay" in (worker.trouble() or ""))
            broker.start()
            await until(lambda: len(broker.messages) == 1)
        await far.store.leases.release(lease)
        await drain(other)
    assert await effects(far) == [emitted.id]


async def test_what_is_published_again_is_heard_by_groups_that_the_broker_has_lost(far, broker):
    counts(far)
    ids = await published(far, "order.placed")
    broker.forget_everything()
    async with same_place(far, transport=MemoryTransport(broker)) as other:
        counts(other)
        assert await other.outbox.redrive() == 1
    async with same_place(far, transport=MemoryTransport(broker)) as other:
        counts(other)
        await drain(other)
    assert await effects(far) == ids


async def test_a_group_of_the_broker_that_nobody_runs_any_more_is_forgotten(far, broker):
    counts(far)
    await published(far, "order.placed", "order.placed")
    assert await far.outbox.backlogs() == {"billing": 2}
    assert await far.outbox.unsubscribe("billing", by="ada")
    assert broker.groups() == []
    assert not await far.outbox.unsubscribe("billing")
    [entry] = await far.store.audit.find(subject="group:billing")
    assert (entry.actor, entry.action) == ("ada", "group.unsubscribe")
    assert entry.before == '{"transport":"memory","backlog":2}'


@pytest.mark.parametrize(
    ("lease", "redeliver_after", "ttl"), [(1, 3, 5), (1, 1, 5 / 3), (30, 1, 5), (1, 9, 5)]
)
async def test_the_lease_of_a_reader_outlives_what_it_held_at_its_death(
    url, broker, lease, redeliver_after, ttl
):
    settings = EventSettings(redeliver_after=redeliver_after)
    hf = Holdfast(url, transport=MemoryTransport(broker), events=settings)
    counts(hf)
    async with hf:
        [made] = [
            each
            for each in hf._inside.bus.services("w1", lease)
            if isinstance(each, consuming.BrokerConsumer)
        ]
        assert made._ttl == pytest.approx(ttl)


async def test_who_stood_still_past_its_lease_fetches_nothing(far, broker):
    """It would hold what its successor should have, and hand it back later than newer events of the same keys are read."""
    counts(far)
    await move_events(far)
    await published(far, "order.placed")
    reader = far._inside.bus.consumer(far._inside.bus.groups[0], "t")
    reader._until = monotonic()  # as it finds out when it goes on
    transport = await far._inside.bus.wire.ready()
    source, other = [await transport.consumer("billing", name, redeliver_after=60) for name in ("t", "other")]
    with pytest.raises(LeaseLost):
        await reader.turn(await group_lease(far), source)
    assert len(await other.fetch(10, wait=0)) == 1


async def test_a_store_in_trouble_gives_the_messages_back(far, broker, monkeypatch):
    counts(far)
    await move_events(far)
    await published(far, "order.placed")

    async def fail(*args, **kwargs):
        raise RuntimeError("no store")

    lease = await group_lease(far)
    with monkeypatch.context() as patched, pytest.raises(RuntimeError):
        patched.setattr(far.store.inbox, "deliver", fail)
        await far._inside.bus.consumer(far._inside.bus.groups[0], "t").catch_up(lease)
    assert broker.backlog("billing") == 1
    await far.store.leases.release(lease)
    await drain(far)
    assert len(await effects(far)) == 1


async def test_no_more_is_fetched_while_enough_waits(url, broker, monkeypatch):
    monkeypatch.setattr(consuming, "BATCH", 2)
    settings = EventSettings(waiting=3)
    async with Holdfast(url, transport=MemoryTransport(broker), events=settings) as hf:
        hears(hf, "order.*", queue="slow")
        await move_events(hf)
        await published(hf, *["order.placed"] * 10)
        async with hf.worker(queues={"other": 1}):

            async def full():
                return len(await queued(hf)) >= 3

            await until(full)
            assert broker.backlog("billing") == 6
