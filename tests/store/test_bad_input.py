"""Bad input: a clear error at the call, the same words on every store, and nothing left behind."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast.kernel.codec import encode
from holdfast.kernel.errors import PayloadError, UsageError
from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Retry, Snooze
from holdfast.store.idempotency import KeyClaim, KeyScope
from holdfast.store.records import AuditEntry, Claim, Finish, Lease
from holdfast.store.states import Held
from holdfast.testing.conformance import SqliteHarness
from holdfast.testing.conformance.harness import event_loop
from holdfast.testing.conformance.kit import job, put, take, the, total

sys.path.insert(0, str(Path(__file__).parent / "postgres"))

LONG = "x" * 10_000
NAN, INF = float("nan"), float("inf")
SURROGATE = "half a fox \ud83e"
SCOPE = KeyScope("acme", "ada", "POST /orders")
CLAIM = Claim(
    job_id=new_id(),
    token=1,
    lease_until=0.0,
    task="t",
    queue="q",
    args="{}",
    attempt=1,
    interruptions=0,
    alone=False,
    enqueued_at=0.0,
    generation=0,
)
KEY = KeyClaim(SCOPE, "k", 1, 0.0)
LEASE = Lease("n", "w", 1, 0.0)

NAMES = ["", " ", " a", "a\n", "a\0b", SURROGATE, LONG, 5, None, b"a", True]
KEYS = [name for name in NAMES if name is not None]
SECONDS = [
    -1,
    -0.001,
    NAN,
    INF,
    -INF,
    1e300,
    10**400,
    "5",
    None,
    True,
    timedelta(seconds=5),
    datetime.now(UTC),
]
NUMBERS = [-1, 2**63, 10**400, 1.0, "1", None, True, NAN]
IDS = [
    "",
    "nope",
    "x" * 36,
    new_id().upper(),
    new_id()[:-1],
    f"{{{new_id()}}}",
    new_id().replace("-", ""),
    7,
    None,
]


def options():
    """One bad option for a job at a time."""
    bad = {
        "id": IDS,
        "task": [*NAMES, "t" * 201],
        "queue": [*NAMES, "q" * 201],
        "priority": [-101, 101, *NUMBERS[1:]],
        "generation": [1_000_001, *NUMBERS],
        "delay": [value for value in SECONDS if value is not None],
        "at": [value for value in SECONDS if value is not None],
        "expires": [value for value in SECONDS if value is not None],
        "deadline": [value for value in SECONDS if value is not None],
        "args": [{}, None, 5, b"{}", "x" * 10_000_000, "é" * 200_000, f'"{SURROGATE}"', '"\0"'],
        "unique": KEYS,
        "ordered": KEYS,
        "tenant": KEYS,
        "guard": KEYS,
        "correlation_id": KEYS,
        "causation_id": KEYS,
        "trace": KEYS,
        "max_waiting": [0, *[value for value in NUMBERS if value is not None]],
    }
    yield from (({name: value}, name) for name, values in bad.items() for value in values)
    for value in KEYS:
        yield {"concurrency": value, "concurrency_limit": 1}, "concurrency"
    for value in [0, 10_001, *NUMBERS]:
        yield {"concurrency": "c", "concurrency_limit": value}, "concurrency_limit"
    yield {"concurrency_limit": 1}, "concurrency"
    yield {"delay": 1.0, "at": 5.0}, "delay"


@pytest.mark.parametrize(("given", "name"), list(options()), ids=lambda value: None)
def test_a_job_checks_itself_when_it_is_built(given, name):
    with pytest.raises(UsageError) as caught:
        job(**given)
    told(caught.value, "id" if name == "id" else name)


@pytest.mark.parametrize("wrong", ["prioirty", "eta", "countdown", "queues"])
def test_an_unknown_option_is_named(wrong):
    with pytest.raises(TypeError, match=wrong):
        job(**{wrong: 1})


def told(error, name):
    """It names the option, in a message that a terminal can show."""
    message = str(error)
    assert name in message, message
    assert len(message) < 400, message
    assert message.isprintable(), message
    assert message.encode(), message
    assert message.rstrip().endswith("."), message


def deep():
    value = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        deep(),
        {"a": NAN},
        [INF],
        {"a": SURROGATE},
        {SURROGATE: 1},
        {1: 2},
        2**64,
        {"a": object()},
        {"a": {1, object()}},
        "x" * 10_000_000,
        ["x" * 1000] * 10_000,
        {"a": lambda: 1},
    ],
    ids=lambda value: type(value).__name__,
)
def test_arguments_that_json_cannot_keep_are_refused(value):
    with pytest.raises(PayloadError) as caught:
        encode(value, where="args")
    assert len(str(caught.value)) < 500


class Colour(StrEnum):
    RED = "red"


def calls(store):
    """Every verb with one bad argument: what is called, and a word that the message must have."""
    yield from ((f"get {value!r:.20}", lambda v=value: store.jobs.get(v), "id") for value in IDS)
    yield from ((f"cancel {value!r:.20}", lambda v=value: store.jobs.cancel(v, "why"), "id") for value in IDS)
    yield from ((f"settle {value!r:.20}", lambda v=value: store.claims.settle(v, 1), "id") for value in IDS)
    yield from (
        (f"replay {value!r:.20}", lambda v=value: store.dead.replay([v], actor="ada"), "id") for value in IDS
    )
    yield from (
        (
            f"discard {value!r:.20}",
            lambda v=value: store.dead.discard([new_id(), v], actor="a", reason="r"),
            "id",
        )
        for value in IDS
    )
    yield "one id", lambda: store.dead.replay(new_id(), actor="ada"), "list"
    yield "one id", lambda: store.dead.discard(new_id(), actor="ada", reason="why"), "list"
    yield "two edited", lambda: store.dead.replay([new_id(), new_id()], actor="ada", args="{}"), "args"
    yield "reason", lambda: store.dead.discard([new_id()], actor="ada", reason=5), "reason"
    for value in [{}, 5, b"{}", "é" * 200_000, f'"{SURROGATE}"', '"\0"']:
        yield "args", lambda v=value: store.dead.replay([new_id()], actor="ada", args=v), "args"
    yield from (
        (f"before {value!r:.20}", lambda v=value: store.jobs.find(before=v), "id")
        for value in IDS
        if value is not None
    )
    yield from (("tenant", lambda v=value: store.jobs.find(tenant=v), "tenant") for value in KEYS)
    yield "reason", lambda: store.jobs.cancel(new_id(), 5), "reason"
    yield "no NewJob", lambda: store.jobs.enqueue([{"task": "t"}]), "NewJob"
    yield "no Finish", lambda: store.claims.finish([CLAIM]), "Finish"
    yield "no Finish", lambda: store.claims.finish_and_claim([CLAIM], {}, lease=30, worker="w"), "Finish"
    yield "state", lambda: store.jobs.find(state="sleeping"), "sleeping"
    yield "held", lambda: store.jobs.find(held="sleeping"), "sleeping"
    for value in [-0.1, 1.1, 2, NAN, INF, 10**400, "0.5", True, Decimal("0.5")]:
        yield "progress", lambda v=value: store.claims.report(CLAIM, progress=v), "progress"
    for value in [5, b"half", ["half"]]:
        yield "note", lambda v=value: store.claims.report(CLAIM, note=v), "note"
    yield "no claim", lambda: store.claims.report(new_id(), progress=0.5), "claim"
    yield "wants", lambda: store.claims.claim(["q"], lease=30, worker="w"), "queue"
    yield "queues", lambda: store.wakeups.wait("default", 0), "default"
    yield "queues", lambda: store.claims.claim_suspect("default", lease=30, worker="w"), "default"
    yield "hold", lambda: store.holds.hold([], Held.TIME), "guard"
    yield "hold", lambda: store.holds.hold([], "whim"), "whim"
    yield "unhold", lambda: store.holds.unhold(Held.ARRIVED), "guard"
    yield "response", lambda: store.keys.finish(KEY, {"a": 1}, keep=5), "response"
    yield "response", lambda: store.keys.finish(KEY, f'"{SURROGATE}"', keep=5), "response"
    yield "response", lambda: store.keys.finish(KEY, '"\0"', keep=5), "response"
    for value in NAMES:
        yield "queue", lambda v=value: store.claims.claim({v: 1}, lease=30, worker="w"), "queue"
        yield "queue", lambda v=value: store.claims.claim_suspect([v], lease=30, worker="w"), "queue"
        yield "queue", lambda v=value: store.wakeups.wait([v], 0), "queue"
        yield "worker", lambda v=value: store.claims.claim({"q": 1}, lease=30, worker=v), "worker"
        yield "worker", lambda v=value: store.claims.claim_suspect(["q"], lease=30, worker=v), "worker"
        yield "worker", lambda v=value: store.claims.finish_and_claim([], {}, lease=30, worker=v), "worker"
        yield "worker", lambda v=value: store.claims.rescue_worker(v), "worker"
        yield "actor", lambda v=value: store.dead.replay([new_id()], actor=v), "actor"
        yield "actor", lambda v=value: store.dead.discard([new_id()], actor=v, reason="why"), "actor"
        yield "queue", lambda v=value: store.queues.pause(v, by="ada"), "queue"
        yield "by", lambda v=value: store.queues.pause("q", by=v), "by"
        yield "queue", lambda v=value: store.queues.resume(v, by="ada"), "queue"
        yield "lease", lambda v=value: store.leases.acquire(v, owner="w", ttl=30), "lease"
        yield "owner", lambda v=value: store.leases.acquire("n", owner=v, ttl=30), "owner"
        yield "lease", lambda v=value: store.leases.get(v), "lease"
        yield "lease", lambda v=value: store.leases.steal(v, actor="ada", reason="why"), "lease"
        yield "actor", lambda v=value: store.leases.steal("n", actor=v, reason="why"), "actor"
        yield "schedule", lambda v=value: store.schedules.tick(v, 5.0, job()), "schedule"
        yield "schedule", lambda v=value: store.schedules.begin(v), "schedule"
        yield "schedule", lambda v=value: store.schedules.last(v), "schedule"
        yield "schedule", lambda v=value: store.schedules.reset(v, actor="ada"), "schedule"
        yield "actor", lambda v=value: store.schedules.reset("s", actor=v), "actor"
        yield "key", lambda v=value: store.keys.begin(SCOPE, v, fingerprint="f", lease=30), "key"
        yield (
            "fingerprint",
            lambda v=value: store.keys.begin(SCOPE, "k", fingerprint=v, lease=30),
            "fingerprint",
        )
    for value in SECONDS:
        yield "lease", lambda v=value: store.claims.claim({"q": 1}, lease=v, worker="w"), "lease"
        yield "lease", lambda v=value: store.claims.claim_suspect(["q"], lease=v, worker="w"), "lease"
        yield "lease", lambda v=value: store.claims.renew([CLAIM], lease=v), "lease"
        yield "timeout", lambda v=value: store.wakeups.wait(["q"], v), "timeout"
        yield "ttl", lambda v=value: store.leases.acquire("n", owner="w", ttl=v), "ttl"
        yield "ttl", lambda v=value: store.leases.renew(LEASE, ttl=v), "ttl"
        yield "nominal", lambda v=value: store.schedules.tick("s", v, job()), "nominal"
        yield "lease", lambda v=value: store.keys.begin(SCOPE, "k", fingerprint="f", lease=v), "lease"
        yield "keep", lambda v=value: store.keys.finish(KEY, "{}", keep=v), "keep"
        yield "keep", lambda v=value: store.history.prune(keep=v), "keep"
    for value in NUMBERS:
        yield "wants", lambda v=value: store.claims.claim({"q": v}, lease=30, worker="w"), "'q'"
        yield "limit", lambda v=value: store.jobs.find(limit=v), "limit"
        yield "limit", lambda v=value: store.claims.rescue(limit=v), "limit"
        yield "limit", lambda v=value: store.leases.find(limit=v), "limit"
        yield "limit", lambda v=value: store.holds.promote(limit=v), "limit"
        yield "window", lambda v=value: store.holds.promote(window=v), "window"
        yield "limit", lambda v=value: store.holds.unhold(Held.GUARD, limit=v), "limit"
        yield "limit", lambda v=value: store.holds.expire(limit=v), "limit"
        yield "limit", lambda v=value: store.holds.repair(limit=v), "limit"
        yield "limit", lambda v=value: store.keys.prune(limit=v), "limit"
        yield "limit", lambda v=value: store.audit.find(limit=v), "limit"


def refuse(build, name, values):
    for value in values:
        try:
            build(**{name: value})
        except UsageError as error:
            told(error, name)
        else:
            raise AssertionError(f"{name}={value!r:.60} should be refused")


@pytest.mark.parametrize("outcome", [Retry, Snooze])
def test_an_outcome_checks_how_long_it_waits(outcome):
    refuse(outcome, "after", SECONDS)


@pytest.mark.parametrize("field", ["tenant", "principal", "route"])
def test_the_scope_of_a_key_checks_itself(field):
    """Empty means none: not every program has tenants."""
    refuse(partial(replace, SCOPE), field, [value for value in NAMES if value != ""])
    replace(SCOPE, **{field: ""})


@pytest.mark.parametrize("field", ["actor", "action", "subject"])
def test_an_audit_entry_checks_itself(field):
    entry = AuditEntry(actor="ada", action="seen", subject="job:1")
    refuse(partial(replace, entry), field, NAMES)


@pytest.mark.parametrize("field", ["before", "after", "request_id"])
def test_the_texts_of_an_audit_entry_are_checked(field):
    entry = AuditEntry(actor="ada", action="seen", subject="job:1")
    refuse(partial(replace, entry), field, [5, b"a", SURROGATE, "a\0b", {"a": 1}])


class BadInput:
    """For each store: the messages are compared with those of the checks, so they cannot differ between stores."""

    def test_every_verb_refuses_bad_input_and_leaves_nothing_behind(self, harness):
        with event_loop(harness) as loop:
            loop.run(self.refuse_all(harness))

    async def refuse_all(self, harness):
        store = await harness.open()
        try:
            await put(store)
            before = await self.everything(store)
            messages = []
            for what, call, word in calls(store):
                try:
                    answer = await call()
                except UsageError as error:
                    told(error, word)
                    messages.append(str(error))
                else:
                    raise AssertionError(f"{what} should be refused; the answer was {answer!r:.200}")
            assert await self.everything(store) == before
            assert len(messages) > 300
        finally:
            await harness.close()

    async def everything(self, store):
        return (
            await store.jobs.find(limit=1000),
            await store.queues.paused(),
            await store.audit.find(),
            await store.leases.get("n"),
            await store.schedules.last("s"),
        )

    def test_what_passes_the_checks_comes_back(self, harness):
        with event_loop(harness) as loop:
            loop.run(self.accept_all(harness))

    async def accept_all(self, harness):
        store = await harness.open()
        try:
            for good in (
                {"queue": Colour.RED, "unique": Colour.RED, "priority": 100},
                {"delay": 0.5, "expires": 7},
                {"delay": 0, "at": None, "deadline": 0},
                {"at": 3_000_000_000, "generation": 1_000_000},
                {"ordered": "o" * 500, "tenant": "\U0001f98a" * 125, "guard": "a b"},
                {"concurrency": "c", "concurrency_limit": 10_000, "max_waiting": 1_000_000_000},
                {"args": '"' + "é" * 131_071 + '"', "task": "t" * 200, "queue": "q" * 200},
            ):
                new = job(**good)
                await store.jobs.enqueue([new])
                record = await the(store, new.id)
                for name in (
                    "queue",
                    "unique",
                    "ordered",
                    "tenant",
                    "guard",
                    "concurrency",
                    "args",
                    "task",
                    "priority",
                ):
                    assert getattr(record, name) == getattr(new, name), name
                    assert type(getattr(record, name)) in (str, int, type(None))
            number = await total(store)
            assert len(await store.claims.claim({Colour.RED: 1}, lease=30, worker=Colour.RED)) == 1
            assert await total(store) == number
            assert await take(store, 0) == []
        finally:
            await harness.close()

    def test_a_call_with_one_bad_job_stores_none(self, harness):
        with event_loop(harness) as loop:
            loop.run(self.refuse_one_of_two(harness))

    async def refuse_one_of_two(self, harness):
        store = await harness.open()
        try:
            with pytest.raises(UsageError):
                await store.jobs.enqueue([job(), "nonsense"])
            with pytest.raises(UsageError):
                await store.claims.finish([Finish(CLAIM, Retry()), "nonsense"])
            assert await total(store) == 0
        finally:
            await harness.close()


class TestSqlite(BadInput):
    @pytest.fixture
    def harness(self, tmp_path):
        return SqliteHarness(tmp_path)


class TestPostgres(BadInput):
    @pytest.fixture
    def harness(self, databases):
        from harness import PostgresHarness

        return PostgresHarness(databases)


def test_a_decimal_is_no_number_of_seconds():
    with pytest.raises(UsageError, match="delay"):
        job(delay=Decimal("1.5"))
