"""Keep the examples in docs/cli.md true: run each documented command in a small world, and compare or rewrite its output.

    python -m tools.cli_examples            # rewrites them

The world is a folder with the page's own program, a SQLite file with a few jobs, and a clock that stands still.
"""

from __future__ import annotations

import asyncio
import io
import os
import re
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import msgspec

from holdfast.kernel.outcomes import Dead, Done, Outcome, Retry, Unknown
from holdfast.kernel.world import inhabit
from holdfast.runtime.cli import main as holdfast
from holdfast.store.breakers import BreakerReport, BreakerState
from holdfast.store.cache_records import Load
from holdfast.store.event_records import Delivery, NewEvent, NewStray
from holdfast.store.ports import Store
from holdfast.store.records import Claim, Finish, NewJob
from holdfast.store.saga_records import Move, NewSaga, Rest, SagaState
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.steps import Kind, Progress, Step
from holdfast.store.view_records import NewRow, SetAside, ViewBatch
from holdfast.store.worker_records import NewWorker
from holdfast.testing.clock import ManualClock

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
BLOCK = re.compile(r"(?<=```console\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)
PROGRAM = re.compile(r"(?<=```python\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)
COLUMNS = "118"  # of the terminal that the page shows
MORNING = 1_794_729_600.0  # 2026-11-15 08:00 UTC
# What differs from machine to machine, and what the page shows instead.
VARIES = [
    (re.compile(r"SQLite \d+\.\d+\.\d+"), "SQLite 3.54.1"),
    (re.compile(r"[\d,]+ MiB are free"), "77,922 MiB are free"),
]
_SECRET = '{"user_id":%d,"password":"geheim","$secret":["password"]}'


# --- the page ---


def rendered(page: str) -> str:
    """The page with the output that its commands have now."""
    [program, *_] = PROGRAM.findall(page)
    with world(program) as folder:
        return BLOCK.sub(lambda block: _replayed(block[0], folder), page)


def _replayed(block: str, folder: str) -> str:
    """Lines that begin with `$ ` are commands, the others what they printed."""
    commands = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    code, told = 0, ""
    for command in commands:
        told += f"$ {command}\n"
        if command == "echo $?":
            told += f"{code}\n"
            continue
        code, printed = run(command)
        told += steadied(printed, folder)
    return told


def run(command: str) -> tuple[int, str]:
    """As on a terminal: what is printed and what is complained of, in one."""
    name, *arguments = shlex.split(command)
    assert name == "holdfast", f"the page runs only holdfast, not {command!r}"
    screen = _Terminal()
    with redirect_stdout(screen), redirect_stderr(screen.beside):
        code = holdfast(arguments)
    return code, screen.getvalue()


class _Terminal(io.StringIO):
    """Listings see a terminal; bars do not, since they would be drawn over."""

    def __init__(self) -> None:
        super().__init__()
        self.beside = _Beside(self)

    def isatty(self) -> bool:
        return True


class _Beside(io.StringIO):
    def __init__(self, screen: io.StringIO) -> None:
        super().__init__()
        self._screen = screen

    def write(self, text: str) -> int:
        return self._screen.write(text)


def steadied(text: str, folder: str) -> str:
    for pattern, instead in VARIES:
        text = pattern.sub(instead, text)
    return text.replace(folder, "/srv/shop")


# --- the world ---


@contextmanager
def world(program: str) -> Iterator[str]:
    clock = ManualClock(MORNING - 2)  # events come first, and take so long
    with ExitStack() as stack:
        folder = os.path.realpath(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(_moved(folder))
        stack.enter_context(_environment())
        stack.enter_context(inhabit(clock))
        Path("shop.py").write_text(program)
        Path(folder).chmod(0o755)
        asyncio.run(_filled(clock))
        yield folder
    sys.modules.pop("shop", None)


@contextmanager
def _moved(folder: str) -> Iterator[None]:
    before, path, mask = Path.cwd(), [*sys.path], os.umask(0o022)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        os.umask(mask)
        sys.path[:] = path


@contextmanager
def _environment() -> Iterator[None]:
    before = dict(os.environ)
    for name in [name for name in os.environ if name.startswith(("HOLDFAST", "DATABASE_URL"))]:
        del os.environ[name]
    os.environ |= {
        "HOLDFAST_APP": "shop:hf",
        "HOLDFAST_ACTOR": "ada@shop",
        "TZ": "UTC",
        "COLUMNS": COLUMNS,
        "NO_COLOR": "1",
    }
    time.tzset()
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        time.tzset()


async def _filled(clock: ManualClock) -> None:
    store = SqliteStore("shop.db")
    await store.open()
    await _events(store, clock)
    await store.schedules.tick("report.nightly", MORNING - 23_400, _job(1, "report.nightly", "default"))
    await _end(store, "default", Done('"42 pages"'))
    await store.jobs.enqueue(
        [_job(2, "mail.send", "mail", _SECRET % 41), _job(3, "mail.send", "mail", _SECRET % 42)]
    )
    await _end(store, "mail", Retry(error="ConnectionError: smtp.example.org is not reachable"))
    clock.advance(60)
    await _end(store, "mail", Dead("ValueError: user 41 has no address"))
    await store.jobs.enqueue([_job(4, "report.build", "default"), _job(8, "report.build", "default")])
    await _end(store, "default", Dead("KeyError: 'total'"))
    await _publish(store)
    clock.advance(600)
    await store.jobs.enqueue([_job(5, "mail.send", "mail", _SECRET % 43)])
    [claim] = await _claim(store, "mail")
    await store.claims.report(claim, progress=0.4, note="12 of 30")
    await store.jobs.enqueue([_job(6, "mail.send", "mail", _SECRET % 44)])
    await store.jobs.enqueue([_job(7, "mail.send", "mail", _SECRET % 45, delay=3_600.0)])
    await store.leases.acquire("report:2026-11", owner="worker-7", ttl=300)
    await _workers(store)
    await _guard(store)
    await _view(store)
    await _values(store)
    await _saga(store, clock)
    clock.advance(20)
    await store.close()


async def _events(store: Store, clock: ManualClock) -> None:
    """A request placed an order; it was billed at the second try. Another event was too large for the broker."""
    relay = await store.leases.acquire("holdfast:relay", owner="worker-7", ttl=5)
    assert relay is not None
    for group in ("billing", "shipping"):
        await store.inbox.subscribe(group)
    placed = _event(1, "order.placed", "order:7", cause=None)
    large = _event(2, "order.exported", "order:6", cause=None, story="request-2c41")
    await store.outbox.emit([placed, large])
    await store.outbox.stamp(relay, [placed.id])
    reason = "it has 262,144 bytes, and this Redis takes at most 65,536."
    await store.outbox.failed(relay, large.id, reason, rest=None)
    bill = _delivery(11, "on:billing:bill", placed)
    await store.inbox.deliver("billing", [Delivery(placed.id, bill)], upto=1)
    await _end(store, "events", Retry(error="ConnectionError: bank.example.org is not reachable"))
    clock.advance(2)
    billed = _event(3, "order.billed", "order:7", cause=bill.id)
    await store.outbox.emit([billed])
    await _end(store, "events", Done())
    await store.outbox.stamp(relay, [billed.id])
    await store.inbox.deliver("billing", [], upto=2)
    ship = _delivery(12, "on:shipping:ship", billed)
    await store.inbox.deliver("shipping", [Delivery(billed.id, ship)], upto=2)
    await _end(store, "events", Done())
    broken = NewStray(b'{"id": 7, "total"', "This is not JSON: Expecting value.")
    body = b'{"specversion":"1.0","id":"8","source":"/shop","type":"order.returned"}'
    unknown = NewStray(body, "Nobody here hears or declares order.returned.", "order.returned")
    await store.strays.keep("redis", "billing", [broken, unknown])
    await store.leases.release(relay)


def _event(
    number: int, type_: str, key: str, *, cause: str | None, story: str | None = "request-7f3a"
) -> NewEvent:
    event_id = f"01a1de3c-4a80-7c45-8e7e-{number:012d}"
    data = '{"order":7,"total":"12.50"}'
    return NewEvent(id=event_id, type=type_, key=key, data=data, correlation_id=story, causation_id=cause)


def _delivery(number: int, task: str, event: NewEvent) -> NewJob:
    job = _job(number, task, "events", '{"event":{}}')
    return msgspec.structs.replace(job, correlation_id=event.correlation_id, causation_id=event.id)


async def _guard(store: Store) -> None:
    """Two of three nodes found that their calls fail, so it is open for all; a key of another guard was slowed."""
    for node, state, failures in (
        ("web-1", BreakerState.OPEN, 17),
        ("web-2", BreakerState.OPEN, 20),
        ("web-3", BreakerState.CLOSED, 1),
    ):
        said = BreakerReport("stripe", state, generation=1, open_for=25.0, calls=24, failures=failures)
        mailer = BreakerReport("mailer", BreakerState.CLOSED, calls=310)
        await store.guards.report(node, [said, mailer], ttl=60)
    await store.guards.open_fleet("stripe", generation=0, open_for=25.0)
    await store.guards.slow("mailer", "user:42", rate=0.5, pause=60.0)


async def _workers(store: Store) -> None:
    """One that runs a job, one that is leaving, a relay, and one that died."""
    tasks = ("mail.send", "report.nightly", "report.build", "cache.warm")
    for name, host, queues in (
        ("worker-7", "shop-1", {"mail": 10, "default": 4}),
        ("worker-01a1de3c-7c45", "shop-2", {"orders": 2, "events": 10}),
        ("worker-01a1de3c-6b12", "shop-2", {"mail": 10}),
    ):
        new = NewWorker(name=name, host=host, pid=4711, version="0.1.0", queues=queues, tasks=tasks)
        await store.workers.register(new, ttl=30)
    await store.workers.register(
        NewWorker(name="relay-01a1de3c-7f01", role="relay", host="shop-1", pid=4720, version="0.1.0"), ttl=600
    )
    await store.workers.charge({"worker-01a1de3c-6b12": 3})
    await store.workers.bury("worker-01a1de3c-6b12")
    await store.workers.beat("worker-7", ttl=600)
    await store.workers.beat("worker-01a1de3c-7c45", ttl=600, draining=True)


async def _view(store: Store) -> None:
    """It has read three of four events; one of them it could not take."""
    events = [
        NewEvent(id=f"01a1de3c-4a80-7c45-bf6d-{number:012d}", type="order.changed", key=f"order:{number % 2}")
        for number in range(21, 25)
    ]
    await store.outbox.emit(events)
    lease = await store.leases.acquire("holdfast:relay", owner="worker-7", ttl=30)
    assert lease is not None
    await store.outbox.stamp(lease, [event.id for event in events])
    await store.views.begin("orders", start=0)
    error = "KeyError: 'total'"
    poison = SetAside(position=2, event_id=events[1].id, event="{}", key="order:0", error=error)
    rows = tuple(NewRow(key=f"order:{place}", data="{}", position=place) for place in (1, 3))
    batch = ViewBatch(view="orders", generation=1, after=0, upto=3, rows=rows, aside=(poison,))
    await store.views.apply(lease, batch)
    await store.leases.release(lease)


async def _values(store: Store) -> None:
    """One that is fresh, one that is stale, and one that is loaded for the first time."""
    for key, value, fresh, tag in (
        ("gallery:42", "[1,2,3]", 300.0, "user:42"),
        ("gallery:7", "[]", 15.0, "user:7"),
    ):
        load = await store.cache.begin(key, tags=[tag], lease=10)
        assert isinstance(load, Load)
        await store.cache.put(load, value, fresh=fresh, stale=7200)
    await store.cache.begin("browse:popular", tags=[], lease=60)


async def _saga(store: Store, clock: ManualClock) -> None:
    """An order was charged and could not be shipped, and the charge cannot be given back."""
    carrier = _job(10, "saga:order.ship", "orders", '{"order":17}')
    await store.sagas.start([NewSaga(id="order:17", name="order.ship", job=carrier)])
    [claim] = await _claim(store, "orders")
    plan = '{"undo":"shop:refund","args":"[17]"}'
    charge = Step(name="charge", number=0, kind=Kind.AT_LEAST_ONCE, progress=Progress.BEGUN, plan=plan)
    await store.sagas.write(claim, step=charge)
    clock.advance(1)
    await store.sagas.write(
        claim, step=msgspec.structs.replace(charge, progress=Progress.DONE, result='{"payment":"p-4"}')
    )
    clock.advance(2)
    told = "OutOfStock: no such book"
    failed = Step(name="ship", number=1, progress=Progress.FAILED, tries=1, error=told)
    await store.sagas.write(
        claim, step=failed, move=Move(state=SagaState.COMPENSATING, undoing=True, error=told)
    )
    undo = Step(name="undo/charge", number=2, kind=Kind.AT_LEAST_ONCE, progress=Progress.BEGUN)
    await store.sagas.write(claim, step=undo)
    clock.advance(30)
    refused = "ConnectionError: the bank does not answer"
    stuck = Move(
        state=SagaState.NEEDS_OPERATOR, undoing=True, error=f"'undo/charge' failed, after 6 tries: {refused}"
    )
    undo = msgspec.structs.replace(undo, progress=Progress.FAILED, tries=6, error=refused)
    await store.sagas.write(claim, step=undo, move=stuck, rest=Rest())


async def _publish(store: Store) -> None:
    """Its file is uploaded, and the call that publishes it got no answer."""
    await store.jobs.enqueue([_job(9, "post.publish", "default", '{"title":"harbour"}')])
    [claim] = await _claim(store, "default")
    publish = Step(name="publish", number=1, kind=Kind.AT_MOST_ONCE, progress=Progress.UNKNOWN)
    for step in (Step(name="upload", number=0, result='{"file":17}'), publish):
        await store.steps.write(claim, step)
    reason = "Nobody knows whether effect 'publish' was done: no answer within 30 s."
    await store.claims.finish([Finish(claim, Unknown(reason))])


def _job(number: int, task: str, queue: str, args: str = "{}", delay: float | None = None) -> NewJob:
    job_id = f"01a1de3c-4a80-7c45-bf6d-{number:012d}"
    return NewJob(id=job_id, task=task, queue=queue, args=args, delay=delay)


async def _claim(store: Store, queue: str) -> list[Claim]:
    return await store.claims.claim({queue: 10}, lease=30, worker="worker-7")


async def _end(store: Store, queue: str, outcome: Outcome) -> None:
    await store.claims.finish([Finish(claim, outcome) for claim in await _claim(store, queue)])


def main() -> int:
    page = PAGE.read_text()
    new = rendered(page)
    if new != page:
        PAGE.write_text(new)
    print(f"{PAGE.name}: {'rewritten' if new != page else 'its examples are true'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
