"""`holdfast outbox`, `trace` and `doctor` on both stores: what is on its way, what was set aside, and the whole story."""

from __future__ import annotations

import asyncio
import signal
import sys

import pytest
from cli_kit import audit, put, run_process, write_program
from waiting import until

from holdfast.events import redriving
from holdfast.events.publishing import Failure, Published
from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Done, Retry
from holdfast.runtime.cli import outbox as commands
from holdfast.store.event_records import Delivery, NewEvent, NewStray
from holdfast.store.records import Finish, NewJob
from holdfast.transport.url import open_transport
from tools.local_server import free_port
from tools.processes import Process, environment

STORY = "request-7f3a"


async def emit(store, *types, key="order:1", **options):
    events = [NewEvent(id=new_id(), type=each, key=key, **options) for each in types]
    await store.outbox.emit(events)
    return [event.id for event in events]


async def set_aside(store, *types):
    ids = await emit(store, *types)
    lease = await store.leases.acquire("holdfast:relay", owner="w1", ttl=5)
    for each in ids:
        assert await store.outbox.failed(lease, each, "it has too many bytes", rest=None, blocks=False)
    await store.leases.release(lease)
    return ids


async def ran(store):
    """A request placed an order: billed at the second try, and then shipped, which is still to be done."""
    lease = await store.leases.acquire("holdfast:relay", owner="w1", ttl=60)
    [placed] = await emit(store, "order.placed", correlation_id=STORY)
    await store.outbox.stamp(lease, [placed])
    bill = await delivered(store, "billing", placed)
    await finish(store, Retry(error="ConnectionError: the bank is closed\n  shop.py:8 in bill"))
    [billed] = await emit(store, "order.billed", correlation_id=STORY, causation_id=bill)
    await finish(store, Done())
    ship = await delivered(store, "shipping", billed)
    await store.leases.release(lease)
    return placed, bill, billed, ship


async def delivered(store, group, event_id):
    job = NewJob(id=new_id(), task=f"on:{group}", queue="events", correlation_id=STORY, causation_id=event_id)
    await store.inbox.deliver(group, [Delivery(event_id, job)])
    return job.id


async def finish(store, outcome):
    [claim] = await store.claims.claim({"events": 1}, lease=30, worker="w1")
    await store.claims.finish([Finish(claim, outcome)])


def test_events_on_their_way(shop, on_store):
    assert shop("outbox") == 0
    assert shop.out == "No event is kept.\n"
    [first, second] = on_store(emit, "order.placed", "order.paid", data='{"total":1}')
    assert shop("outbox", "list") == 0
    assert [line.split()[:5] for line in shop.out.splitlines()[1:]] == [
        [second, "order.paid", "order:1", "2", "waiting"],
        [first, "order.placed", "order:1", "1", "waiting"],
    ]
    found = shop.json("outbox", "--type", "order.paid")["events"]
    assert [(event["id"], event["version"]) for event in found] == [(second, 2)]
    assert shop.json("outbox", "--key", "other")["events"] == []
    assert "data" not in found[0]
    assert shop.json("outbox", "show", second)["data"] == {"total": 1}
    assert shop("outbox", "show", second) == 0 and 'data          {"total":1}' in shop.out
    assert shop("outbox", "show", new_id()) == 1
    lag = shop.json("outbox", "lag")
    assert (lag["waiting"], lag["quarantined"], lag["position"]) == (2, 0, 0)
    assert shop("outbox", "lag") == 0 and "waiting       2" in shop.out


def test_what_is_set_aside_is_requeued_or_dropped(shop, on_store):
    [one, two, three] = on_store(set_aside, "a.b", "a.c", "a.d")
    assert shop("outbox", "--state", "quarantined") == 0
    assert shop.out.count("too many bytes") == 3
    assert shop("outbox", "requeue", one) == 0
    assert shop.out == "1 of 1 requeued.\n"
    assert shop("outbox", "requeue", one) == 1
    assert f"Event {one} is not quarantined" in shop.err
    assert shop("outbox", "drop", two, "--reason", "by hand") == 0
    assert shop.json("outbox", "requeue", "--all") == {"requeued": [{"id": three, "done": True}]}
    assert [action for _, action in on_store(audit, two)] == ["outbox.drop"]
    assert shop("outbox", "requeue") == 2
    assert shop("outbox", "requeue", one, "--all") == 2
    assert shop("outbox", "drop", "7", "--reason", "x") == 2
    assert "an event's id" in shop.err


def test_all_that_is_quarantined_is_requeued_however_much_it_is(shop, on_store, monkeypatch):
    monkeypatch.setattr(commands, "_PAGE", 2)
    on_store(set_aside, *("order.placed",) * 9)
    assert shop("outbox", "requeue", "--all") == 0
    assert shop.out == "9 of 9 requeued.\n"
    assert shop.json("outbox", "list", "--state", "quarantined") == {"events": []}


def test_redriving_needs_a_place_to_begin_and_a_broker(shop, on_store, valkey, monkeypatch):
    on_store(ran)
    assert shop("outbox", "redrive") == 2
    assert shop("outbox", "redrive", "--since", "yesterday") == 2
    assert "such as 90s, 30min, 2h or 7d" in shop.err
    assert shop("outbox", "redrive", "--since", "2h") == 2
    assert "There is no broker" in shop.err
    monkeypatch.setenv("HOLDFAST_TRANSPORT_URL", f"{valkey.url}?topic={new_id()}")
    sys.modules.pop("shop")  # it is imported once more, with that
    assert shop("outbox", "redrive", "--since", "2020-01-01T10:00") == 0
    assert shop.out == "1 published again; groups that had them ignore them.\n"
    for position in ("1", "1500000", str(2**63 - 1)):
        assert shop.json("outbox", "redrive", "--after", position) == {"published": 0, "failed": 0}
    assert shop.json("outbox", "redrive", "--after", "0") == {"published": 1, "failed": 0}
    for position in ("-1", "x", str(2**63), "9" * 5000):
        assert shop("outbox", "redrive", "--after", position) == 2


def test_a_broker_is_forgotten(shop, on_store):
    async def known(store):
        await store.groups.announce("holdfast:relay", "redis", "redis", ttl=60)

    on_store(known)
    assert shop("outbox", "forget-broker", "nats") == 1
    assert "known: redis" in shop.err
    assert shop("outbox", "forget-broker", "redis") == 0
    assert shop.json("outbox", "forget-broker", "redis") == {"broker": "redis", "done": False}


def test_redriving_tells_what_the_broker_did_not_take(shop, on_store, valkey, monkeypatch):
    placed, _, _, _ = on_store(ran)

    async def publish(_transport, events):
        found = Published()
        found.failures = [Failure(event, "it has too many bytes", is_final=True) for event in events]
        return found

    monkeypatch.setattr(redriving, "publish", publish)
    monkeypatch.setenv("HOLDFAST_TRANSPORT_URL", f"{valkey.url}?topic={new_id()}")
    sys.modules.pop("shop", None)
    assert shop("outbox", "redrive", "--since", "2h") == 1
    assert f"Event {placed} was not published again: it has too many bytes" in shop.err
    assert shop.out.startswith("0 published again")


def test_groups_are_listed_and_forgotten(shop, on_store):
    async def subscribed(store):
        await store.inbox.subscribe("billing")

    on_store(subscribed)
    assert shop("outbox", "groups") == 0
    assert shop.out.splitlines()[1].split()[:3] == ["billing", "0", "0"]
    assert [each["behind"] for each in shop.json("outbox", "groups")["groups"]] == [0]
    assert shop("outbox", "unsubscribe", "billing") == 0
    assert shop("outbox", "unsubscribe", "billing") == 1
    assert shop("outbox", "groups") == 0 and "No group" in shop.out


def test_groups_of_a_broker_are_listed_and_forgotten(shop, valkey, monkeypatch):
    url = f"{valkey.url}?topic={new_id()}"

    async def join():
        transport = open_transport(url)
        await transport.open()
        await transport.consumer("billing", "w1", redeliver_after=1)
        await transport.close()

    asyncio.run(join())
    monkeypatch.setenv("HOLDFAST_TRANSPORT_URL", url)
    assert shop.json("outbox", "groups") == {"groups": [], "broker": [{"group": "billing", "behind": 0}]}
    assert shop("outbox", "groups") == 0 and "billing" in shop.out
    assert shop("outbox", "unsubscribe", "billing") == 0
    assert shop("outbox", "unsubscribe", "billing") == 1
    assert shop("outbox", "groups") == 0 and "No group" in shop.out


def test_strays_are_shown_as_they_came(shop, on_store):
    async def stray(store):
        found = NewStray(b"\xff\x1b[31mred", "This is not UTF-8")
        return await store.strays.keep("redis", "billing", [found])

    [number] = map(str, on_store(stray))
    assert shop("outbox", "strays") == 0 and "not UTF-8" in shop.out
    assert shop("outbox", "strays", "show", number) == 0
    assert r"\xff\x1b[31mred" in shop.out  # it cannot command the terminal
    assert shop.json("outbox", "strays", "show", number)["raw"] == "\\xff\x1b[31mred"
    assert shop("outbox", "strays", "drop", number, "--reason", "a probe") == 0
    assert shop("outbox", "strays", "show", number) == 1
    assert shop("outbox", "strays", "drop", number, "--reason", "a probe") == 1
    assert shop("outbox", "strays", "show", "2000000") == 1


def test_strays_are_replayed(shop, on_store):
    async def stray(store):
        hears = '[{"patterns":["order.*"],"task":"on:billing","queue":"events"}]'
        await store.groups.announce("billing", "m", hears, ttl=60)
        return await store.strays.keep("redis", "billing", [NewStray(raw, "why") for raw in (b"1", b"2")])

    async def left(store):
        return [each.id for each in await store.strays.find()], [
            job.args for job in await store.jobs.find(task="on:billing")
        ]

    one, two = map(str, on_store(stray))
    message = '{"specversion":"1.0","id":"7","source":"/s","type":"order.paid","time":"2026-01-01T00:00:00Z"}'
    assert shop("outbox", "strays", "replay", one, two) == 1
    assert f"Stray {one}: " in shop.err and "0 of 2 replayed." in shop.out
    assert shop("outbox", "strays", "replay", one, two, "--message", message) == 2
    assert shop("outbox", "strays", "replay", one, "--message", message) == 0
    assert "1 of 1 replayed." in shop.out
    assert on_store(left) == ([int(two)], [f'{{"event":{message}}}'])
    [answer] = shop.json("outbox", "strays", "replay", "999")["replayed"]
    assert answer["id"] == 999 and "no such stray" in answer["error"]


def test_strays_of_a_type_are_listed_replayed_and_dropped(shop, on_store):
    """Oldest first: events of one key come to their group in order."""

    def body(number, type_):
        return (
            f'{{"specversion":"1.0","id":"{number}","source":"/s","type":"{type_}","partitionkey":"k",'
            '"time":"2026-01-01T00:00:00Z"}'
        ).encode()

    async def stray(store):
        hears = '[{"patterns":["order.*"],"task":"on:billing","queue":"events"}]'
        await store.groups.announce("billing", "m", hears, ttl=60)
        types = ["order.paid", "note.taken", "order.paid"] * 2
        new = [NewStray(body(number, each), "why", each) for number, each in enumerate(types)]
        await store.strays.keep("redis", "billing", new)

    async def left(store):
        jobs = await store.jobs.find(task="on:billing")
        return [each.type for each in await store.strays.find()], [job.causation_id for job in jobs]

    on_store(stray)
    assert [each["type"] for each in shop.json("outbox", "strays", "--type", "note.taken")["strays"]] == [
        "note.taken"
    ] * 2
    assert shop("outbox", "strays") == 0 and "order.paid" in shop.out
    assert shop("outbox", "strays", "replay") == 2 and "--type" in shop.err
    assert shop("outbox", "strays", "replay", "1", "--type", "order.paid") == 2
    assert shop("outbox", "strays", "replay", "--type", "note.taken") == 1
    assert "Nobody in the group 'billing' hears 'note.taken'" in shop.err
    assert shop("outbox", "strays", "replay", "--type", "order.paid") == 0
    assert "4 of 4 replayed." in shop.out
    types, causes = on_store(left)
    assert types == ["note.taken"] * 2
    assert causes[::-1] == ["/s 0", "/s 2", "/s 3", "/s 5"], "jobs are listed newest first"
    assert shop("outbox", "strays", "drop", "--type", "note.taken", "--reason", "not ours") == 0
    assert "2 of 2 dropped." in shop.out
    assert shop("outbox", "strays", "drop", "--type", "note.taken", "--reason", "not ours") == 0


def test_the_whole_story(shop, on_store):
    placed, bill, billed, ship = on_store(ran)
    told = {}
    for wanted in (STORY, placed, bill, billed, ship):
        assert shop("trace", wanted) == 0
        told[wanted] = shop.out
    assert len(set(told.values())) == 1
    lines = told[STORY].splitlines()
    assert lines[0] == f"story {STORY}"
    assert lines[1].startswith("└─ event order.placed order:1 v1, published") and lines[1].endswith(placed)
    assert lines[2].startswith("   └─ job on:billing, succeeded, attempt 2") and lines[2].endswith(bill)
    assert "attempt 1 failed" in lines[3] and lines[3].endswith("ConnectionError: the bank is closed")
    assert lines[4].startswith("      └─ event order.billed order:1 v2, waiting")
    assert lines[5].startswith("         └─ job on:shipping, queued") and lines[5].endswith(ship)
    document = shop.json("trace", STORY)
    [event] = document["begins"]
    [job] = event["caused"]
    assert (event["kind"], event["id"], job["kind"], job["id"]) == ("event", placed, "job", bill)
    assert "data" not in event and "args" not in job
    assert [each["attempt"] for each in job["errors"]] == [1]


async def long_row(store, length):
    """Each event is the cause of the next."""
    cause = None
    for number in range(length):
        [cause] = await emit(store, f"step.n{number}", correlation_id=STORY, causation_id=cause)


def test_a_long_row_of_causes_is_told_to_its_end(shop, on_store):
    on_store(lambda store: long_row(store, 990))
    assert shop("trace", STORY) == 0
    lines = shop.out.splitlines()
    assert len(lines) == 991 and all(f"step.n{number} " in shop.out for number in range(990))
    assert max(map(len, lines)) < 400
    assert "caused by" in shop.out and "caused by" not in lines[50]
    document = shop.json("trace", STORY)
    assert len(document["begins"]) == 20
    assert document["begins"][1]["causation_id"] is not None


def test_a_cause_that_is_not_kept_is_told(shop, on_store):
    """It was pruned, or it is an event of another program."""
    gone = new_id()

    async def without_cause(store):
        await put(store, correlation_id=STORY, causation_id=gone)
        await put(store, correlation_id=STORY)

    on_store(without_cause)
    assert shop("trace", STORY) == 0
    [first, second] = shop.out.splitlines()[1:]
    assert first.endswith(f"caused by {gone}, which is not kept here") and "caused by" not in second


@pytest.mark.parametrize("heard", ["01a1ee0f-6f53-7806-b4d3-894175950ebf", "/stock 7"])
def test_a_story_is_found_by_an_event_of_another_program(shop, on_store, heard):
    """Or by one that was pruned: whoever handled it knows its id."""
    handler = on_store(lambda store: delivered(store, "billing", heard))
    assert shop("trace", heard) == 0
    assert shop.out.splitlines()[0] == f"story {STORY}" and handler in shop.out
    assert shop.json("trace", heard)["begins"][0]["id"] == handler
    assert shop("trace", new_id()) == 1


def test_causes_that_go_round_in_a_circle_are_told(shop, on_store):
    """Nothing of ours makes such; rows that somebody has put right by hand may be."""
    first, second = new_id(), new_id()

    async def circle(store):
        await put(store, id=first, correlation_id=STORY, causation_id=second)
        await put(store, id=second, correlation_id=STORY, causation_id=first)

    on_store(circle)
    assert shop("trace", STORY) == 0
    lines = shop.out.splitlines()
    assert len(lines) == 3
    assert lines[1].endswith(f"{first}  caused by {second}") and lines[2].endswith(second)


def test_a_story_is_cut_only_when_it_has_more(shop, on_store):
    on_store(lambda store: put(store, 1_000, correlation_id=STORY))
    assert shop("trace", STORY) == 0
    assert len(shop.out.splitlines()) == 1_001 and "more than" not in shop.out
    on_store(lambda store: put(store, correlation_id=STORY, causation_id=new_id()))
    assert shop("trace", STORY) == 0
    assert "caused by" in shop.out and "not kept" not in shop.out
    assert "more than 1,000" in shop.out and shop.json("trace", STORY)["cut"]


def test_a_story_without_a_request_begins_with_its_first_job(shop, on_store):
    async def alone(store):
        [job_id] = await put(store)
        await put(store, correlation_id=job_id, causation_id=job_id)
        return job_id

    job_id = on_store(alone)
    assert shop("trace", job_id) == 0
    assert [line.count("job mail.send") for line in shop.out.splitlines()] == [0, 1, 1]
    assert shop("trace", "nobody") == 1
    assert "Nothing is known of 'nobody'" in shop.err


def test_the_doctor_looks_at_events(shop, on_store):
    checks = {each["check"]: each for each in shop.json("doctor")["checks"]}
    assert [checks[name]["level"] for name in ("relay", "quarantine", "groups")] == ["ok", "ok", "ok"]
    on_store(set_aside, "a.b")
    checks = {each["check"]: each for each in shop.json("doctor")["checks"]}
    assert checks["quarantine"]["level"] == "warn"
    assert "could not be published: 1" in checks["quarantine"]["found"]


@pytest.mark.parametrize("holder", [None, "w1"])
def test_the_doctor_sees_a_relay_that_stands_still(shop, on_store, monkeypatch, holder):
    monkeypatch.setattr("holdfast.events.findings.LATE", 0.0)

    async def stuck(store):
        await emit(store, "order.placed")
        if holder is not None:
            await store.leases.acquire("holdfast:relay", owner=holder, ttl=600)

    on_store(stuck)
    code = shop("doctor")
    [line] = [line for line in shop.out.splitlines() if " relay " in line]
    assert line.startswith("BAD" if holder is None else "WARN")
    assert code == (1 if holder is None else code)
    assert ("nobody publishes them" if holder is None else "though w1 is there") in line


@pytest.mark.parametrize("server", ["valkey", "nats"])
def test_the_doctor_looks_at_the_broker(shop, request, monkeypatch, server):
    monkeypatch.setenv("HOLDFAST_TRANSPORT_URL", f"{request.getfixturevalue(server).url}?topic=doctor")
    checks = {each["check"]: each for each in shop.json("doctor")["checks"]}
    assert (checks["broker"]["level"], checks["retention"]["level"]) == ("ok", "ok")
    assert "answers. What it may lose: " in checks["broker"]["found"]


def test_the_doctor_sees_a_broker_that_keeps_messages_for_longer_than_groups_remember(
    shop, valkey, monkeypatch
):
    topic = new_id()
    monkeypatch.setenv("HOLDFAST_TRANSPORT_URL", f"{valkey.url}?topic={topic}")

    async def put_old():
        transport = open_transport(f"{valkey.url}?topic={topic}")
        await transport.open()
        await transport._link.call("XADD", topic, "1-1", "body", "{}")
        await transport.close()

    asyncio.run(put_old())
    checks = {each["check"]: each for each in shop.json("doctor")["checks"]}
    assert checks["retention"]["level"] == "warn"
    assert "groups remember what they had for 14.0 days" in checks["retention"]["found"]


def test_the_doctor_sees_a_broker_that_is_away(shop, monkeypatch):
    monkeypatch.setenv("HOLDFAST_TRANSPORT_URL", f"redis://127.0.0.1:{free_port()}?timeout=0.5")
    checks = {each["check"]: each for each in shop.json("doctor")["checks"]}
    assert checks["broker"]["level"] == "warn" and "retention" not in checks
    assert "cannot be reached" in checks["broker"]["found"]


RELAY = '''
"""A shop that hears events elsewhere."""
from holdfast import Event, Holdfast

hf = Holdfast()
hf.event("order.placed", unheard=True)


@hf.on("order.*", group="billing")
async def bill(event: Event) -> None: ...
'''


def test_a_relay_of_its_own_publishes_until_it_is_asked_to_leave(line, kept, on_store, tmp_path):
    """It makes the program's groups known first, so that their first worker hears what it publishes."""
    write_program(tmp_path, RELAY)
    command = [sys.executable, "-m", "holdfast", "relay", "shop:hf"]
    relay = Process(command, tmp_path, environment([], HOLDFAST_URL=kept), tmp_path / "log")
    try:
        on_store(emit, "order.placed")

        async def published(store):
            async def there():
                return (await store.outbox.lag()).position == 1

            await until(there, 30)
            return await store.inbox.cursors()

        [cursor] = on_store(published)
        assert (cursor.group, cursor.position) == ("billing", 0)
        relay.signal(signal.SIGTERM)
        assert asyncio.run(relay.ended()) == 0
        assert "SIGTERM: the relay leaves" in relay.log
    finally:
        relay.destroy()


def test_a_relay_does_not_start_when_nobody_hears_what_it_would_publish(tmp_path, kept):
    write_program(tmp_path, RELAY + 'hf.event("stock.counted")\n')
    done = run_process("relay", "shop:hf", folder=tmp_path, environment={"HOLDFAST_URL": kept})
    assert done.returncode == 2
    assert "No subscriber in this program hears stock.counted" in done.stderr


def test_a_relay_needs_a_program(line, tmp_path):
    assert line("relay") == 2
    assert "Say whose events to publish: holdfast relay shop.tasks:hf" in line.err
    done = run_process("outbox", "--json", "--url", "sqlite:///none.db", folder=tmp_path)
    assert done.returncode == 3 and not done.stdout
