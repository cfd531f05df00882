"""Payloads that are poison, corrupt, huge, deep or odd, and tasks that a worker does not know. Rows 47 to 53 and 62."""

from __future__ import annotations

import pytest
from waiting import until

from holdfast import Backoff
from holdfast.kernel.errors import PayloadError
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.states import Held, State

TASKS = """
@hf.task(name="poison", retry=Backoff(attempts=3, first=0.05, ceiling=0.1))
async def poison() -> None:
    raise ValueError("poison")

@hf.task(name="fine")
async def fine(n: int = 0) -> int:
    return n

@hf.task(name="echo")
async def echo(value: object) -> object:
    return value
"""


async def test_a_poison_payload(fleet):
    """Row 47: what always fails is tried with pauses, then dead with its errors; the others do not notice."""
    fleet.program(TASKS)
    await fleet.started("-c", "2")
    poison = await fleet.put_many("poison", 5)
    fine = await fleet.put_many("fine", 20)
    for record in await fleet.all_become(fine):
        assert record.attempt == 1
    for record in await fleet.all_become(poison, State.DEAD):
        assert [each.attempt for each in record.errors] == [1, 2, 3][: len(record.errors)]
        assert record.attempt == 3
        assert "poison" in record.reason


@pytest.mark.parametrize(
    "args", ['{"n": 1', '{"n": "x"}', "7", '{"n": ' + "[" * 100_000 + "]" * 100_000 + "}"]
)
async def test_corrupted_arguments(fleet, args):
    """Rows 48 and 50: arguments that were damaged in the database are dead at once, with the raw text kept."""
    fleet.program(TASKS)
    job = await fleet.put("fine", n=1)
    await _edit(fleet, job, args)
    await fleet.started()
    dead = await fleet.becomes(job, State.DEAD)
    assert dead.args == args
    assert "cannot be read" in dead.reason
    assert (await fleet.becomes(await fleet.put("fine", n=2))).result == "2"


async def _edit(fleet, job, args):
    table = "holdfast_job" if isinstance(fleet.hf.store, SqliteStore) else "holdfast.job"
    async with fleet.hf.transaction() as tx:
        assert await tx.execute(f"UPDATE {table} SET args = $1 WHERE id = $2", args, job) == 1


async def test_payloads_that_are_refused(fleet):
    """Rows 49 to 52: what cannot be kept is refused at the edge, before anything is stored."""

    @fleet.hf.task(name="echo", retry=Backoff(attempts=1))
    async def echo(value: object) -> object: ...

    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    for value in ("x" * 300_000, deep, "\ud800", float("nan"), float("inf"), 10**5000):
        with pytest.raises(PayloadError):
            await echo.enqueue(value)
    assert await fleet.hf.queues.count() == []


ODD = [
    "a\0b",
    "é",
    "e\u0301",
    "\u202eabc",
    "\U0001d518\U0001f600",
    "\x01\x7f",
    " ",
    "",
    -0.0,
    2**53 - 1,
    1e-300,
    True,
    None,
    [[]],
    {"": {}},
]


async def test_odd_texts_and_numbers_come_back(fleet):
    """Rows 51 and 52: what is accepted comes back as it was, through a real worker, on both stores alike."""
    fleet.program(TASKS)
    await fleet.started()

    @fleet.hf.task(name="echo")
    async def echo(value: object) -> object: ...

    for handle, value in [(await echo.enqueue(value), value) for value in ODD]:
        answer = await handle.result(20)
        assert (answer, repr(answer)) == (value, repr(value))


KNOWN = "from holdfast.jobs import service\nservice._KNOWN_EVERY = 0.3  # seconds; 5 in production\n"
OLD = f"""{KNOWN}
@hf.task(name="greet")
async def greet(name: str) -> str:
    mark("ran", version=1, name=name)
    return f"hello {{name}}"
"""
NEW = f"""{KNOWN}
@hf.task(name="greet")
async def greet(name: str, mood: str = "gladly") -> str:
    mark("ran", version=2, name=name)
    return f"hello {{name}}, {{mood}}"

@hf.task(name="part")
async def part() -> str:
    return "goodbye"
"""


async def test_a_task_that_this_worker_does_not_know(fleet):
    """Row 53: an old worker leaves new tasks and newer arguments queued, says so, and a new worker runs them."""
    fleet.program(OLD, "old")
    fleet.program(NEW, "new")
    old = await fleet.started(program="old")
    unknown, newer = await fleet.put("part"), await fleet.put("greet", name="ada", mood="sadly")

    async def held():
        return [(await fleet.record(job)).held for job in (unknown, newer)] == [Held.UNKNOWN_TASK] * 2

    await until(held, 20)
    assert (await fleet.record(newer)).attempt == 0
    assert old.log.count("waits for a worker that knows it") == 2
    assert (await fleet.becomes(await fleet.put("greet", name="bob"))).result == '"hello bob"'
    await fleet.started(program="new")
    assert (await fleet.becomes(unknown)).result == '"goodbye"'
    assert (await fleet.becomes(newer)).result == '"hello ada, sadly"'


async def test_a_rolling_deploy_and_back(fleet):
    """Row 62: two versions at once lose and double nothing; after a rollback the new jobs wait for the new code."""
    fleet.program(OLD, "old")
    fleet.program(NEW, "new")
    first = await fleet.started(program="old")
    second = await fleet.started(program="new")
    plain = [await fleet.put("greet", name=f"plain{n}") for n in range(20)]
    newer = [await fleet.put("greet", name=f"newer{n}", mood="well") for n in range(5)]
    await fleet.all_become(plain + newer)
    names = [each["name"] for each in fleet.marks("ran")]
    assert len(names) == len(set(names)) == 25
    assert {each["version"] for each in fleet.marks("ran") if each["name"].startswith("newer")} == {2}

    second.destroy()  # the rollback
    late = await fleet.put("greet", name="late", mood="well")
    plain = await fleet.put("greet", name="plain")
    await fleet.becomes(plain)

    async def held():
        return (await fleet.record(late)).held is Held.UNKNOWN_TASK

    await until(held, 20)
    first.destroy()
    await fleet.started(program="new")
    done = await fleet.becomes(late)
    assert (done.attempt, done.interruptions) == (1, 0)
