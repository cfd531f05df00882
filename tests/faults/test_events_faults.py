"""Relays and consumers that die, freeze and are cut off; brokers that forget. Rows 5, 6, 12, 35 and 41 to 45.

Each test counts, at its end, what was lost and what was done twice: none and none.
"""

from __future__ import annotations

import shutil
import signal
from contextlib import suppress

import nats
import pytest
import redis.asyncio as redis
from faultkit import on_postgres, on_sqlite
from waiting import until

from holdfast import Holdfast
from tools.nats_server import NatsServer
from tools.valkey import ValkeyServer

HANDLER = """
hf.event("order.placed")

@hf.on("order.*", group="billing", retry=QUICK)
async def bill(event: Event, tx: Tx) -> None:
    mark("handled", event=event.id, key=event.key, version=event.version)
    sql = "INSERT INTO effects (job, token, kind) VALUES ($1, $2, $3)"
    await tx.execute(sql, event.id, event.version or 0, event.key or "")
"""


STUCK = "from holdfast.jobs import upkeep\nupkeep._STUCK = 1.0  # seconds; 30 in production\n"
KNOWN = "from holdfast.jobs import service\nservice._KNOWN_EVERY = 0.3  # seconds; 5 in production\n"


class Shop:
    """A fleet whose program hears events, and a broker."""

    def __init__(self, fleet, server) -> None:
        self.fleet, self.server = fleet, server
        self.transport = {} if server is None else {"HOLDFAST_TRANSPORT_URL": server.url}
        fleet.program(HANDLER)
        fleet.hf.event("order.placed", unheard=True)
        self.emitted: list[str] = []

    def start(self, *options, **given):
        return self.fleet.start(*options, **self.transport, **given)

    async def started(self, **given):
        return await self.fleet.started(**self.transport, **given)

    async def relay(self):
        process = self.start(verb="relay")
        await process.says("publishes events")
        return process

    async def emit(self, count: int, keys: int = 5) -> list[str]:
        ids = [
            (await self.fleet.hf.emit("order.placed", {"n": n}, key=f"k{n % keys}")).id for n in range(count)
        ]
        self.emitted += ids
        return ids

    async def all_handled(self, seconds: float = 60.0) -> None:
        """Every event has had its effect, and none has had it twice; of each key in the order of versions."""
        wanted = set(self.emitted)

        async def there():
            return wanted <= {event for event, _ in await self.fleet.effects()}

        try:
            await until(there, seconds)
        except AssertionError:
            logs = "\n".join(f"--- {process.pid}:\n{process.log}" for process in self.fleet.processes)
            missing = wanted - {event for event, _ in await self.fleet.effects()}
            raise AssertionError(
                f"{len(missing)} of {len(wanted)} events are lost: {missing}\n{logs}"
            ) from None
        effects = [event for event, _ in await self.fleet.effects()]
        assert sorted(effects) == sorted(set(effects)), "some were done twice"

    def versions_in_order(self) -> bool:
        found: dict[str, list[int]] = {}
        for mark in self.fleet.marks("handled"):
            found.setdefault(mark["key"], []).append(mark["version"])
        return all(versions == sorted(versions) for versions in found.values())

    def broker(self) -> Holdfast:
        """The test's own way to the broker."""
        return Holdfast(self.fleet.url, transport=self.server.url)


@pytest.fixture
def shop(fleet):
    """The database itself carries the events."""
    return Shop(fleet, None)


@pytest.fixture(params=["redis", "nats"])
def far(fleet, request):
    """A broker does: a server of its own for each test."""
    server = ValkeyServer() if request.param == "redis" else NatsServer()
    yield Shop(fleet, server)
    server.stop()


on_redis = pytest.mark.parametrize("far", ["redis"], indirect=True)


async def stream(server, command, *args):
    async with redis.from_url(server.url) as client:
        return await client.execute_command(command, *args)


async def flush(server):
    """All that it has, while it runs."""
    if server.name == "valkey":
        await stream(server, "FLUSHALL")
    else:
        client = await nats.connect(server.url)
        with suppress(nats.js.errors.NotFoundError):  # it was not made again yet
            await client.jetstream().delete_stream("holdfast_2eevents")
        await client.close()


async def test_a_relay_is_killed_before_it_publishes(shop):
    """Row 5: another publishes, after the lease."""
    first = shop.start(HOLDFAST_CRASH="relay.before_publish")
    await shop.emit(10)
    assert await first.ended() == -signal.SIGKILL
    await shop.started()
    await shop.all_handled()
    assert shop.versions_in_order()


@on_sqlite
async def test_a_relay_is_killed_after_it_published(far):
    """Row 6: published a second time, and handled once."""
    first = far.start(HOLDFAST_CRASH="relay.after_publish")
    await first.says("takes jobs from")
    await far.emit(10)
    assert await first.ended() == -signal.SIGKILL
    await far.started()
    await far.all_handled()

    async def published_again():  # by who has the relay's lease next: readers may be earlier
        return await stream(far.server, "XLEN", "holdfast:events") > 10

    if far.server.name == "valkey":  # NATS knows by their ids that it has them
        await until(published_again, 30)
        await far.all_handled()


@on_postgres
async def test_a_consumer_is_killed_before_it_acknowledges(far):
    """The message is stored as a job, and comes again: no second job."""
    first = far.start(HOLDFAST_CRASH="consumer.after_deliver")
    await first.says("takes jobs from")
    await far.emit(10)
    assert await first.ended() == -signal.SIGKILL
    second = await far.started()
    await far.all_handled()
    assert second.alive


@on_sqlite
async def test_a_consumer_is_killed_with_messages_in_its_hands(far):
    """They come first to the next reader, so events of one key stay in order."""
    first = far.start(HOLDFAST_CRASH="consumer.fetched", lease=5)
    await first.says("takes jobs from")
    await far.emit(1)
    assert await first.ended() == -signal.SIGKILL
    await far.relay()
    await far.emit(10, keys=1)
    await far.started(lease=5)
    await far.all_handled()
    assert far.versions_in_order()


@on_sqlite
async def test_workers_are_killed_again_and_again_while_events_stream(far):
    await far.started()
    for _ in range(3):
        worker = await far.started()
        await far.emit(15)
        worker.signal(signal.SIGKILL)
        await worker.ended()
        await far.emit(5)
    await far.all_handled()


@on_postgres
async def test_a_relay_is_frozen_past_its_lease(far):
    """Row 12: it has published, and is woken when another leads: its marks are refused by token."""
    far.fleet.program(STUCK + HANDLER)  # a reader in the same process may be in the middle of a statement
    frozen = far.start(HOLDFAST_FREEZE="relay.after_publish")
    await frozen.says("takes jobs from")
    first = await far.emit(3)
    await far.fleet.marked("frozen", point="relay.after_publish")
    assert (await far.fleet.hf.outbox.get(first[0])).state == "waiting"
    await far.started()
    await far.emit(3)
    await far.all_handled()
    stamped = await far.fleet.hf.store.outbox.log()
    frozen.signal(signal.SIGCONT)
    await far.emit(3)
    await far.all_handled()

    async def all_marked():  # after they were published: a handler may be quicker
        return len(await far.fleet.hf.store.outbox.log()) >= 9

    await until(all_marked, 30)
    log = await far.fleet.hf.store.outbox.log()
    assert log[: len(stamped)] == stamped  # no position was given twice, and none has changed
    assert [event.position for event in log] == list(range(1, 10))


HALF_SENT = """
import signal
from asyncpg.connection import Connection

async def stopping(self, query, *args, **options):
    statement = await prepare(self, query, *args, **options)
    if "holdfast.inbox" in query and self.is_in_transaction():
        mark("stopped")
        os.kill(os.getpid(), signal.SIGSTOP)
    return statement

if "HALF_SENT" in os.environ:
    prepare, Connection._get_statement = Connection._get_statement, stopping
"""


@on_postgres
async def test_a_reader_is_frozen_in_the_middle_of_a_statement(shop):
    """Row 12: the server waits for the rest, and keeps the row of the group's lease locked; another worker ends that session."""
    shop.fleet.program(STUCK + HALF_SENT + HANDLER)
    frozen = await shop.started(HALF_SENT="1")
    await shop.emit(3)
    await shop.fleet.marked("stopped")
    await shop.started()
    await shop.emit(3)
    await shop.all_handled(30)
    frozen.signal(signal.SIGCONT)
    await shop.emit(3)
    await shop.all_handled()


@on_postgres
async def test_a_broker_that_is_cut_off_for_a_while(far):
    """Row 41: the program goes on emitting; the backlog is published in order when the broker is back."""
    worker = await far.started()
    await far.emit(5)
    await far.all_handled()
    far.server.freeze()
    await far.emit(40)
    await worker.says("events are not published")
    assert (await far.fleet.hf.outbox.lag()).waiting > 0
    far.server.thaw()
    await far.all_handled()
    assert {event.tries for event in await far.fleet.hf.outbox.find()} == {0}


@on_sqlite
async def test_a_broker_that_lost_its_newest_messages_is_given_them_again(far):
    """Row 42: killed with what was not on its disk; the outbox has it, with the same ids."""
    relay = await far.relay()
    await far.emit(20)

    async def published():
        return (await far.fleet.hf.outbox.lag()).position == 20

    await until(published, 30)
    relay.signal(signal.SIGTERM)
    assert await relay.ended() == 0
    far.server.kill()
    shutil.rmtree(far.server.folder / "jetstream", ignore_errors=True)  # Valkey had nothing on its disk
    far.server.start()
    await far.started()
    async with far.broker() as hf:
        assert await hf.outbox.redrive() == 20
    await far.all_handled()
    assert far.versions_in_order()


async def test_a_broker_that_is_flushed_again_and_again(far):
    """Row 43: no loss and no second effect; what the flush took is published again."""
    await far.started()
    for _ in range(3):
        await far.emit(15)
        await flush(far.server)
        await far.emit(5)

    async def published():
        return (await far.fleet.hf.outbox.lag()).position == 60

    await until(published, 30)
    async with far.broker() as hf:
        assert await hf.outbox.redrive() == 60
    await far.all_handled()


@on_sqlite
@on_redis
async def test_every_message_comes_a_hundred_times(far):
    """Row 44: one effect each."""
    await far.started()
    await far.emit(5)
    await far.all_handled()
    entries = await stream(far.server, "XRANGE", "holdfast:events", "-", "+")
    async with redis.from_url(far.server.url) as client:
        for _ in range(100):
            for _, fields in entries:
                await client.xadd("holdfast:events", fields)
    await far.emit(1)  # behind all of them
    await far.all_handled()
    assert len(far.fleet.marks("handled")) == 6


@on_sqlite
@on_redis
async def test_one_message_comes_late(far):
    """Row 45: it has its effect all the same, once, and its version says that it is an old one."""
    relay = await far.relay()
    ids = await far.emit(6, keys=1)

    async def published():
        return (await far.fleet.hf.outbox.lag()).position == 6

    await until(published, 30)
    relay.signal(signal.SIGTERM)
    await relay.ended()
    mark, fields = (await stream(far.server, "XRANGE", "holdfast:events", "-", "+"))[2]
    await stream(far.server, "XDEL", "holdfast:events", mark)
    async with redis.from_url(far.server.url) as client:
        await client.xadd("holdfast:events", fields)
    await far.started()
    await far.all_handled()
    handled = [(each["event"], each["version"]) for each in far.fleet.marks("handled")]
    assert [version for _, version in handled] == [1, 2, 4, 5, 6, 3]
    assert handled[-1][0] == ids[2]


async def test_a_number_of_an_event_is_not_given_twice(fleet):
    """Row 35: a late relay marks by the event's own id; a row that took the place of another has another."""
    fleet.hf.event("order.placed", unheard=True)
    lease = await fleet.hf.store.leases.acquire("holdfast:relay", owner="late", ttl=60)
    gone = await fleet.hf.emit("order.placed", key="a")
    [row] = await fleet.hf.store.outbox.waiting(lease, limit=5)
    assert await fleet.hf.store.outbox.failed(lease, gone.id, "poison", rest=None)
    await fleet.hf.outbox.drop([gone.id], reason="test")
    kept = await fleet.hf.emit("order.placed", key="b")
    await fleet.hf.store.outbox.stamp(lease, [row.id])
    event = await fleet.hf.outbox.get(kept.id)
    assert event.seq > row.seq and event.state == "waiting"


async def test_an_event_that_only_the_new_version_hears(shop):
    """A rolling deploy: whichever version reads for the group, nothing is lost."""
    shop.fleet.program(
        KNOWN
        + HANDLER
        + """
@hf.on("user.added", group="billing", retry=QUICK)
async def welcome(event: Event, tx: Tx) -> None:
    await tx.execute("INSERT INTO effects (job, token, kind) VALUES ($1, 0, 'new')", event.id)
""",
        name="newer",
    )
    shop.fleet.hf.event("user.added", unheard=True)
    await shop.started()
    await shop.emit(1)
    await shop.all_handled()  # so it leads
    await shop.started(program="newer")
    for _ in range(5):
        shop.emitted.append((await shop.fleet.hf.emit("user.added", {})).id)
    await shop.emit(5)
    await shop.all_handled()
    assert len(await shop.fleet.effects("new")) == 5
