"""Every verb with every kind of wrong value: a clear error or an answer, and on both stores the same one."""

from __future__ import annotations

import inspect

import pytest
from msgspec.structs import replace

from holdfast.kernel.errors import HoldfastError, UsageError
from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Done, Retry
from holdfast.store import ports
from holdfast.store.alert_records import AlertRecord
from holdfast.store.blob_records import BlobRow, BlobState, NewBlob
from holdfast.store.breakers import BreakerReport, BreakerState, Probe
from holdfast.store.cache_records import Load, Why
from holdfast.store.edge import RULES
from holdfast.store.event_records import Delivery, NewEvent, NewStray
from holdfast.store.idempotency import KeyClaim, KeyScope
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.quota import Grant, Return, Want
from holdfast.store.records import AuditEntry, Claim, Finish, Lease, NewJob
from holdfast.store.saga_records import Move, NewSaga, Rest, SagaState, Wait
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.states import Held
from holdfast.store.steps import Step
from holdfast.store.view_records import ViewBatch
from holdfast.store.visit_records import NewVisit
from holdfast.store.worker_records import NewWorker

VALUES = [
    None, 5, -1, 1.5, float("nan"), float("inf"), "", "x" * 10_000, "a\ud83e", "a\0b", b"a", [], {}, object(), True,
    2**70, [None], ["x"], ["a\ud83e"], {"q": float("nan")}, {"q": 2**70}, (1,), set(), print,
]  # fmt: skip
ID = new_id()
CLAIM = Claim(ID, 1, 0.0, "t", "q", "{}", 1, 0, False, 0.0, 0)
SCOPE = KeyScope("a", "b", "c")
KEY, LEASE = KeyClaim(SCOPE, "k", 1, 0.0), Lease("n", "w", 1, 0.0)
GRANT = Grant("g", "k", 1.0, 0.0, 1.0, 0.0, 0, 5.0, 0.0)
PROBE = Probe("g", "n", 1, 5.0)
WORKER = NewWorker(name="w", host="h", pid=1, version="1")
ALERT = AlertRecord(id="a", kind="k", cause="c", number=1, opened_at=1.0, told_at=1.0, told_number=1)
LOAD = Load("k", 1, 0.0, ("t",), (1,))
BLOB = NewBlob(name="a/b", object="kept/1", size=1, sha256="a" * 64, content_type="text/plain")
BLOB_ROW = BlobRow("a/b", "kept/1", BlobState.KEPT, True, 1, "a" * 64, "text/plain", None, 0.0, 0.0)
FINISHES = [Finish(CLAIM, Done())]
CLAIMING = {"lease": 30, "worker": "w"}
VERBS = {
    "jobs.enqueue": ([[NewJob(id=ID, task="t")]], {"again": False}),
    "jobs.get": ([ID], {}),
    "jobs.entries": ([ID], {}),
    "jobs.starting": ([ID[:13]], {"limit": 5}),
    "jobs.find": (
        [],
        {
            "state": None,
            "queue": None,
            "task": None,
            "held": None,
            "tenant": None,
            "correlation_id": None,
            "before": None,
            "limit": 10,
        },
    ),
    "jobs.cancel": ([ID, "why"], {"running": False}),
    "jobs.end": ([ID, "why"], {"running": False}),
    "jobs.move": ([ID], {"delay": 5.0, "priority": 3}),
    "claims.claim": ([{"other": 1}], CLAIMING),
    "claims.claim_suspect": ([["other"]], CLAIMING),
    "claims.renew": ([[CLAIM]], {"lease": 30}),
    "claims.finish": ([FINISHES], {}),
    "claims.finish_and_claim": ([FINISHES, {"other": 1}], CLAIMING),
    "claims.release": ([[CLAIM]], {}),
    "claims.report": ([CLAIM], {"progress": 0.5, "note": "half"}),
    "claims.settle": ([ID, 5], {}),
    "claims.held_by": (["w"], {}),
    "claims.rescue": ([], {"limit": 5}),
    "claims.rescue_worker": (["w"], {}),
    "dead.replay": ([[ID]], {"actor": "a", "args": "{}"}),
    "dead.discard": ([[ID]], {"actor": "a", "reason": "r"}),
    "steps.write": ([CLAIM, Step(name="s", number=0)], {}),
    "steps.load": ([ID, 0], {}),
    "steps.undecided": ([[ID]], {}),
    "steps.resolve": ([ID], {"actor": "a", "done": True, "effect": "e", "result": "1", "token": 1}),
    "steps.to_look": ([["t"], ["q"]], {"lease": 5.0, "limit": 5}),
    "steps.looked": ([ID, 1], {"after": 1.0, "counted": True}),
    "wakeups.wait": ([["q"], 0.01], {}),
    "holds.promote": ([], {"window": 5, "limit": 5}),
    "holds.explained": ([[]], {}),
    "holds.hold": ([[CLAIM], Held.GUARD], {}),
    "holds.unhold": ([Held.GUARD], {"queue": "q", "tasks": ["t"], "guard": "g", "limit": 5}),
    "holds.gated": ([], {"after": "g", "limit": 5}),
    "holds.gates": ([], {"after": "g", "limit": 5}),
    "holds.open_gates": ([{"g": 1}], {}),
    "holds.shut_gates": (
        [["q"]],
        {"keys": ["g/1"], "guards": ["g"], "tasks": ["t"], "window": 5, "limit": 5},
    ),
    "holds.expire": ([], {"limit": 5}),
    "holds.end_expired": ([], {"limit": 5}),
    "holds.repair": ([], {"limit": 5}),
    "queues.pause": (["paused"], {"by": "a"}),
    "queues.resume": (["paused"], {"by": "a"}),
    "queues.waits": ([], {"limit": 5}),
    "tenants.pause": (["t"], {"reason": "r", "by": "a"}),
    "tenants.resume": (["t"], {"by": "a"}),
    "jobs.of_unique": ([["u"]], {"each": 1}),
    "jobs.of_tenant": (["t"], {"states": ["queued"], "before": ID, "limit": 5}),
    "guards.look": (["g"], {"key": "k"}),
    "guards.calm": (["g", "k"], {"in_row": 1}),
    "history.prune": ([], {"keep": 1e6}),
    "leases.acquire": (["n"], {"owner": "w", "ttl": 5}),
    "leases.renew": ([LEASE], {"ttl": 5}),
    "leases.release": ([LEASE], {}),
    "leases.get": (["n"], {}),
    "leases.find": ([], {"limit": 5}),
    "leases.steal": (["n"], {"actor": "a", "reason": "r"}),
    "leases.prune": ([], {"limit": 5}),
    "sessions.end_stuck": ([], {"after": 60}),
    "alerts.say": (["k", "c"], {"due": 5.0, "expires": 6.0}),
    "alerts.unsay": (["k", "c"], {}),
    "alerts.look": ([], {"patience": 5.0}),
    "alerts.standing": ([], {"lease": LEASE}),
    "alerts.write": ([[ALERT]], {}),
    "alerts.find": ([], {"limit": 5}),
    "alerts.prune": ([], {"keep": 5.0, "limit": 5}),
    "flags.set": (["f", True], {"tenant": "t", "actor": "a", "reason": "r"}),
    "flags.unset": (["f"], {"tenant": "t", "actor": "a", "reason": "r"}),
    "visits.begin": ([NewVisit(id="a")], {"idle": 60, "last": 60, "replaces": "b"}),
    "visits.get": (["a"], {}),
    "visits.touch": (["a"], {"idle": 60}),
    "visits.write": (["a", "{}"], {"version": 1}),
    "visits.end": (["a"], {}),
    "visits.end_of": (["ada"], {"name": "n", "besides": "b"}),
    "visits.find": (["ada"], {"limit": 5}),
    "visits.secret": (["forms", "s"], {}),
    "visits.prune": ([], {"limit": 5}),
    "workers.register": ([WORKER], {"ttl": 5}),
    "workers.beat": (["w"], {"ttl": 5, "draining": True}),
    "workers.leave": (["w"], {}),
    "workers.bury": (["w"], {}),
    "workers.charge": ([{"w": 1}], {}),
    "workers.find": ([], {"limit": 5}),
    "workers.prune": ([], {"keep": 60, "limit": 5}),
    "schedules.tick": (["s", 5.0, NewJob(id=new_id(), task="t")], {}),
    "schedules.begin": (["begun"], {}),
    "schedules.last": (["s"], {}),
    "schedules.reset": (["s"], {"actor": "a"}),
    "keys.begin": ([SCOPE, "k"], {"fingerprint": "f", "lease": 5}),
    "keys.enter": ([5, SCOPE, "k"], {"fingerprint": "f", "lease": 5, "wait": 5}),
    "keys.finish": ([KEY, "{}"], {"keep": 5}),
    "keys.answer": ([KEY, "{}"], {"keep": 5}),
    "keys.abandon": ([KEY], {}),
    "keys.prune": ([], {"limit": 5}),
    "guards.ahead": (["g", ["k"]], {"seconds": 5.0}),
    "guards.take": ([[Want("g", "k", 1, 2, 1, 2)]], {}),
    "guards.give_back": ([[Return(GRANT, 1)]], {}),
    "guards.slow": (["g", "k"], {"rate": 1, "pause": 5, "version": 0}),
    "guards.sped": (["g", "k"], {"rate": 1, "version": 0}),
    "guards.report": (["n", [BreakerReport("g", BreakerState.OPEN)]], {"ttl": 5}),
    "guards.open_fleet": (["g"], {"generation": 0, "open_for": 5}),
    "guards.close_fleet": (["g"], {"generation": 0}),
    "guards.probe": (["g", "n"], {"permits": 1, "lease": 5}),
    "guards.probed": ([PROBE], {}),
    "guards.hold": (["g", BreakerState.OPEN], {"actor": "a"}),
    "guards.let_go": (["g"], {"actor": "a"}),
    "guards.reset": (["g"], {"actor": "a"}),
    "guards.find": ([], {"limit": 5}),
    "guards.prune": ([], {"limit": 5}),
    "outbox.emit": ([[NewEvent(id=ID, type="t", key="k")]], {"again": False}),
    "outbox.waiting": ([LEASE], {"limit": 5}),
    "outbox.stamp": ([LEASE, [ID]], {}),
    "outbox.failed": ([LEASE, ID, "why"], {"rest": 5, "blocks": True}),
    "outbox.log": ([], {"after": 0, "before": 5, "since": 5, "limit": 5}),
    "outbox.get": ([ID], {}),
    "outbox.find": (
        [],
        {"state": "waiting", "type": "t", "key": "k", "correlation_id": "c", "limit": 5},
    ),
    "outbox.version": (["k"], {}),
    "outbox.requeue": ([[ID]], {"actor": "a"}),
    "outbox.drop": ([[ID]], {"actor": "a", "reason": "r"}),
    "outbox.prune": ([], {"keep": 1e6, "limit": 5}),
    "inbox.subscribe": (["g"], {"from_start": False}),
    "inbox.read": (["g"], {"after": 0, "limit": 5}),
    "inbox.unsubscribe": (["g"], {"actor": "a"}),
    "inbox.deliver": (
        ["g", [Delivery("e", NewJob(id=new_id(), task="t"))]],
        {"upto": 5, "seen": ["e"], "lease": LEASE},
    ),
    "inbox.handled": (["g", "e"], {}),
    "inbox.job_of": (["e"], {}),
    "inbox.prune": ([], {"keep": 1e6, "limit": 5}),
    "groups.announce": (["g", "m", "[]"], {"ttl": 5}),
    "groups.announced": (["g"], {}),
    "groups.waiting": ([["t"]], {"limit": 5}),
    "groups.lag": (["g", ["t"]], {"limit": 5}),
    "blobs.add": ([BLOB], {}),
    "blobs.get": (["a/b"], {}),
    "blobs.find": ([], {"prefix": "a/", "after": "a/b", "state": "kept", "limit": 5}),
    "blobs.usage": ([], {"prefix": "a/"}),
    "blobs.change": (["a/b", "deleted"], {"of": ["kept"], "reason": "r"}),
    "blobs.move": (["a/b"], {"source": "kept/1", "target": "kept/2"}),
    "blobs.settle": ([BLOB_ROW], {}),
    "blobs.unsettled": ([], {"older": 5.0, "limit": 5}),
    "blobs.known": ([["kept/1"]], {}),
    "blobs.purge": ([], {"keep": 5.0, "limit": 5}),
    "blobs.forget": ([BLOB_ROW], {}),
    "strays.keep": (["redis", "g", [NewStray(b"raw", "why", "a.b")]], {}),
    "strays.find": ([], {"type": "a.b", "before": 7, "limit": 5}),
    "strays.get": ([5], {}),
    "strays.drop": ([[5]], {"actor": "a", "reason": "r"}),
    "versions.hold": (["k"], {}),
    "versions.advance": (["r", "k", 5], {}),
    "versions.seen": (["r", "k"], {}),
    "versions.prune": ([], {"keep": 1e6, "limit": 5}),
    "views.begin": (["begun"], {"start": 0, "history": False}),
    "views.checkpoints": ([], {"view": "v", "limit": 5}),
    "views.get": (["v", "k"], {}),
    "views.find": (["v"], {"prefix": "p", "after": "k", "limit": 5}),
    "views.load": (["v", 1, ["k"]], {}),
    "views.apply": ([LEASE, ViewBatch(view="v", generation=1, after=0, upto=1)], {}),
    "views.begin_rebuild": (["v"], {"start": 0, "actor": "a"}),
    "views.switch": ([LEASE, "v", 1], {}),
    "views.aside": (["v"], {"generation": 1, "key": "k", "after": 0, "limit": 5}),
    "views.count_aside": (["v"], {"generation": 1, "limit": 5}),
    "views.forget": (["v"], {"actor": "a"}),
    "views.prune": ([], {"limit": 5}),
    "cache.get": ([["k"]], {}),
    "cache.begin": (["k"], {"tags": ["t"], "lease": 5, "why": Why.MISSING}),
    "cache.renew": ([LOAD], {"lease": 5}),
    "cache.put": ([LOAD, "1"], {"fresh": 5, "stale": 5}),
    "cache.abandon": ([LOAD], {"rest": 5}),
    "cache.invalidate": ([["k"]], {}),
    "cache.invalidate_tags": ([["t"]], {}),
    "cache.find": ([], {"after": "k", "limit": 5}),
    "cache.prune": ([], {"limit": 5}),
    "sagas.start": ([[NewSaga(id="s", name="n", job=NewJob(id=new_id(), task="t"))]], {}),
    "sagas.get": (["none"], {}),
    "sagas.states": ([[ID]], {}),
    "sagas.of_job": ([ID], {}),
    "sagas.find": (
        [],
        {"state": None, "name": "n", "parent": "p", "correlation_id": "c", "before": "b", "limit": 5},
    ),
    "sagas.signal": (["none", "n", "1"], {}),
    "sagas.signals": (["none"], {}),
    "sagas.write": (
        [CLAIM],
        {
            "step": Step(name="s", number=0),
            "move": Move(state=SagaState.RUNNING),
            "rest": Rest(5),
        },
    ),
    "sagas.listen": ([CLAIM, Step(name="s", number=0), Wait(kind="signal", name="n")], {}),
    "sagas.hear": ([LEASE], {"limit": 5, "portion": 5}),
    "sagas.cancel": (["none"], {"actor": "a", "reason": "r", "done_too": False}),
    "sagas.retry": (["none"], {"actor": "a"}),
    "sagas.settle": (["none", "s"], {"done": True, "result": "1", "actor": "a"}),
    "sagas.park_lost": ([], {"limit": 5}),
    "sagas.prune": ([], {"keep": 1e6, "limit": 5}),
    "audit.write": ([AuditEntry(actor="a", action="b", subject="c")], {}),
    "audit.find": ([], {"subject": "c", "limit": 5}),
    "diagnosis.examine": ([], {"processes": 2}),
}


WRONG_NUMBERS = [None, "x", -1, 1.5, 2**70, True, float("nan")]
WRONG_NAMES = [5, b"a", "", "a\ud83e", "a\0b", "x" * 10_000]
WRONG_CLAIMS = [
    *(replace(CLAIM, job_id=value) for value in (None, 5, "", "x", "a\0b", b"a", "x" * 36, ID.upper())),
    *(replace(CLAIM, **{field: value}) for field in ("token", "row", "attempt") for value in WRONG_NUMBERS),
    *(replace(CLAIM, **{field: value}) for field in ("ordered", "concurrency") for value in WRONG_NAMES),
]
WRONG_LEASES = [
    *(replace(LEASE, name=value) for value in [None, *WRONG_NAMES]),
    *(replace(LEASE, token=value) for value in WRONG_NUMBERS),
]
WRONG_KEYS = [
    *(replace(KEY, scope=value) for value in (None, "x", ("a", "b", "c"))),
    *(replace(KEY, key=value) for value in [None, *WRONG_NAMES]),
    *(replace(KEY, token=value) for value in WRONG_NUMBERS),
]
WRONG_PROBES = [
    *(replace(PROBE, guard=value) for value in [None, *WRONG_NAMES]),
    *(replace(PROBE, token=value) for value in WRONG_NUMBERS),
]
WRONG_DELIVERIES = [
    *(Delivery(value, NewJob(id=ID, task="t")) for value in [None, *WRONG_NAMES]),
    *(Delivery("e", value) for value in (None, "x", CLAIM)),
    Delivery("e", NewJob(id=ID, task="t", unique="u")),
]
WRONG_LOADS = [
    *(replace(LOAD, key=value) for value in [None, *WRONG_NAMES]),
    *(replace(LOAD, token=value) for value in WRONG_NUMBERS),
    *(
        replace(LOAD, tags=value)
        for value in [None, "t", ("t", "t"), ["t"], (), *((name,) for name in WRONG_NAMES)]
    ),
    *(
        replace(LOAD, generations=value)
        for value in [None, 1, (), [1], (1, 2), *((each,) for each in WRONG_NUMBERS)]
    ),
]
WRONG_INSIDE = {
    "outbox.waiting": [([lease], {"limit": 5}) for lease in WRONG_LEASES],
    "outbox.stamp": [([lease, [ID]], {}) for lease in WRONG_LEASES],
    "outbox.failed": [([lease, ID, "why"], {"rest": None}) for lease in WRONG_LEASES],
    "inbox.deliver": [
        *((["g", []], {"lease": lease}) for lease in WRONG_LEASES),
        *((["g", [delivery]], {}) for delivery in WRONG_DELIVERIES),
    ],
    "cache.renew": [([load], {"lease": 5}) for load in WRONG_LOADS],
    "cache.put": [([load, "1"], {"fresh": 5, "stale": 5}) for load in WRONG_LOADS],
    "cache.abandon": [([load], {"rest": 5}) for load in WRONG_LOADS],
    "guards.probed": [([probe], {}) for probe in WRONG_PROBES],
    "claims.renew": [([[claim]], {"lease": 30}) for claim in WRONG_CLAIMS],
    "claims.release": [([[claim]], {}) for claim in WRONG_CLAIMS],
    "claims.report": [([claim], {"progress": 0.5}) for claim in WRONG_CLAIMS],
    "steps.write": [([claim, Step(name="s", number=0)], {}) for claim in WRONG_CLAIMS],
    "holds.hold": [([[claim], Held.GUARD], {}) for claim in WRONG_CLAIMS],
    "sagas.write": [([claim], {"move": Move(state=SagaState.RUNNING)}) for claim in WRONG_CLAIMS],
    "sagas.listen": [
        ([claim, Step(name="s", number=0), Wait(kind="signal", name="n")], {}) for claim in WRONG_CLAIMS
    ],
    "leases.renew": [([lease], {"ttl": 5}) for lease in WRONG_LEASES],
    "leases.release": [([lease], {}) for lease in WRONG_LEASES],
    "views.apply": [
        ([lease, ViewBatch(view="v", generation=1, after=0, upto=1)], {}) for lease in WRONG_LEASES
    ],
    "sagas.hear": [([lease], {}) for lease in WRONG_LEASES],
    "views.switch": [([lease, "v", 1], {}) for lease in WRONG_LEASES],
    "keys.finish": [([key, "{}"], {"keep": 5}) for key in WRONG_KEYS],
    "keys.answer": [([key, "{}"], {"keep": 5}) for key in WRONG_KEYS],
    "keys.abandon": [([key], {}) for key in WRONG_KEYS],
}


def calls(verb):
    """The verb's arguments with one of them wrong, each in turn."""
    given, named = VERBS[verb]
    for value in VALUES:
        for place in range(len(given)):
            yield [*given[:place], value, *given[place + 1 :]], named
        for name in named:
            yield given, named | {name: value}


async def answer(store, verb, given, named):
    """What came back, without what is the store's own: tokens and times."""
    subject, name = verb.split(".")
    store.wakeups.hint(["q"])  # so that nobody waits for as long as 5 seconds
    try:
        found = await getattr(getattr(store, subject), name)(*given, **named)
    except HoldfastError as error:
        return f"{type(error).__name__}: {error}"
    return len(found) if isinstance(found, list) else type(found).__name__


@pytest.fixture
async def stores(tmp_path, postgres_url):
    opened = [SqliteStore(str(tmp_path / "a.db")), PostgresStore(postgres_url)]
    for store in opened:
        await store.open()
    yield opened
    for store in opened:
        await store.close()


@pytest.mark.parametrize("verb", VERBS)
async def test_both_stores_answer_alike_whatever_they_are_given(stores, verb):
    for given, named in calls(verb):
        one, other = [await answer(store, verb, given, named) for store in stores]
        assert one == other, f"{verb} of {given} and {named}"


@pytest.mark.parametrize("verb", WRONG_INSIDE)
async def test_the_inside_of_what_a_verb_was_given_before_is_checked(stores, verb):
    for given, named in WRONG_INSIDE[verb]:
        one, other = [await answer(store, verb, given, named) for store in stores]
        assert one.startswith("UsageError"), f"{verb} of {given}: {one}"
        assert one == other, f"{verb} of {given}"


def test_a_finish_checks_its_claim():
    for claim in [None, "x", KEY, *WRONG_CLAIMS]:
        for outcome in (Done(), Retry(error="x")):
            with pytest.raises(UsageError):
                Finish(claim, outcome)


WRONG_AMOUNTS = [None, "x", 0, -1, 2e9, 2**70, True, float("nan"), float("inf")]


@pytest.mark.parametrize("field", ["least", "most", "rate", "burst"])
def test_a_want_checks_itself(field):
    for value in WRONG_AMOUNTS:
        with pytest.raises(UsageError, match=field):
            Want(**({"name": "g", "key": "k", "least": 1, "most": 2, "rate": 1, "burst": 2} | {field: value}))
    for name in [None, *WRONG_NAMES]:
        with pytest.raises(UsageError, match="guard"):
            Want(name, "k", 1, 1, 1, 1)
    for key in [None, 5, b"", *WRONG_NAMES[3:]]:
        with pytest.raises(UsageError, match="key"):
            Want("g", key, 1, 1, 1, 1)


@pytest.mark.parametrize("field", ["id", "type", "key", "data", "correlation_id", "causation_id", "trace"])
def test_an_event_checks_itself(field):
    for value in [5, b"a", "a\ud83e", "a\0b", "x" * 1_000_000, ["x"]]:
        with pytest.raises(UsageError):
            NewEvent(**({"id": ID, "type": "t"} | {field: value}))


def test_a_return_checks_its_grant():
    wrong = [
        *(replace(GRANT, name=value) for value in [None, *WRONG_NAMES]),
        *(replace(GRANT, key=value) for value in [None, 5, *WRONG_NAMES[3:]]),
        *(replace(GRANT, units=value) for value in WRONG_AMOUNTS if value != 0),
        *(replace(GRANT, rate=value) for value in WRONG_AMOUNTS),
        *(replace(GRANT, at=value) for value in [None, -1, "x", 1e300, float("nan"), True]),
        *(replace(GRANT, mark=value) for value in [None, -1.0, "x", 5, float("nan"), float("inf"), True]),
    ]
    for grant in [None, "x", 5, *wrong]:
        with pytest.raises(UsageError):
            Return(grant, 1)
    for amount in WRONG_AMOUNTS:
        with pytest.raises(UsageError):
            Return(GRANT, amount)


def test_a_report_of_a_breaker_checks_itself():
    for state in [None, 5, "ajar", b"open", ["open"]]:
        with pytest.raises(UsageError, match="state"):
            BreakerReport("g", state)
    for field in ("generation", "calls", "failures", "slow"):
        for value in WRONG_NUMBERS:
            with pytest.raises(UsageError, match=field):
                BreakerReport("g", "open", **{field: value})
    for value in [-1, 86_401, float("nan"), "x", None]:
        with pytest.raises(UsageError, match="open_for"):
            BreakerReport("g", "open", open_for=value)


@pytest.mark.parametrize("claims", [[CLAIM], [CLAIM, CLAIM]])
async def test_a_reason_and_a_state_may_be_plain_text(stores, claims):
    for store in stores:
        assert await store.holds.hold(claims, "guard") == [False] * len(claims)
        assert await store.holds.unhold("guard") == 0
        assert await store.jobs.find(state="queued", held="guard") == []


async def test_nothing_is_left_behind_by_what_is_refused(stores):
    good = [NewJob(id=new_id(), task="t")]
    for store in stores:
        for given, named in calls("jobs.enqueue"):
            if given[0] is not VERBS["jobs.enqueue"][0][0]:
                await answer(store, "jobs.enqueue", given, named)
        assert await store.jobs.count() == []
        await store.jobs.enqueue(good)
        assert len(await store.jobs.count()) == 1


@pytest.mark.parametrize("sql", [5, None, "", "  ", b"SELECT 1", ["SELECT 1"]])
async def test_sql_is_text(stores, sql):
    for store in stores:
        for verb in ("execute", "fetch"):
            with pytest.raises(HoldfastError, match="SQL is text"):
                async with store.transaction() as tx:
                    await getattr(tx, verb)(sql)


def verbs_of_the_ports():
    for port in RULES:
        # `hint` never raises, and is no coroutine.
        for verb, function in inspect.getmembers(getattr(ports, port), inspect.iscoroutinefunction):
            yield port, verb, set(inspect.signature(function).parameters) - {"self", "tx"}


def test_every_verb_of_the_ports_is_tried():
    takers = {f"{port.lower()}.{verb}" for port, verb, takes in verbs_of_the_ports() if takes}
    assert takers == set(VERBS)


def test_every_argument_of_every_verb_is_checked():
    for port, verb, takes in verbs_of_the_ports():
        assert set(RULES[port].get(verb, {})) == takes, f"{port}.{verb}"
