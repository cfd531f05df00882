"""The store's verbs in the caller's own transaction, with every driver: a job exists if and only if it committed."""

import pytest

from holdfast.kernel.errors import LeaseLost, TooManyWaiting
from holdfast.kernel.outcomes import Dead, Done, Retry, Unknown
from holdfast.store.idempotency import KeyClaim, KeyScope
from holdfast.store.records import AuditEntry, Finish
from holdfast.store.states import Held, State
from holdfast.testing.conformance.kit import job, put, take_one, the

pytestmark = pytest.mark.usefixtures("orders")


async def order(caller, number: int = 1) -> None:
    await caller.sql(f"INSERT INTO orders VALUES ({number})")


async def orders_of(caller) -> list[int]:
    return [row[0] for row in await caller.sql("SELECT id FROM orders ORDER BY id")]


async def begin_again(caller) -> None:
    await caller.begin()


async def test_commit_brings_both(caller, store):
    await order(caller)
    new = job(args='{"text": "it\'s 100% \\\\ $1"}')
    [answer] = await store.jobs.enqueue([new], tx=caller.tx)
    assert (answer.id, answer.created) == (new.id, True)
    assert await store.jobs.get(new.id) is None  # nobody sees it before
    await caller.commit()
    await begin_again(caller)
    assert await orders_of(caller) == [1]
    assert (await the(store, new.id)).args == new.args
    assert (await take_one(store)).job_id == new.id


async def test_rollback_brings_neither(caller, store):
    await order(caller)
    [answer] = await store.jobs.enqueue([job()], tx=caller.tx)
    await caller.rollback()
    await begin_again(caller)
    assert await orders_of(caller) == []
    assert await store.jobs.get(answer.id) is None


async def test_enqueue_as_the_first_statement(caller, store):
    """Where a driver begins with the first statement, ours may be the first."""
    [answer] = await store.jobs.enqueue([job()], tx=caller.tx)
    await caller.rollback()
    await begin_again(caller)
    assert await store.jobs.get(answer.id) is None
    [answer] = await store.jobs.enqueue([job()], tx=caller.tx)
    await caller.commit()
    await begin_again(caller)
    assert await store.jobs.get(answer.id) is not None


async def test_a_savepoint_takes_back_only_what_is_inside(caller, store):
    await order(caller, 1)
    [outer] = await store.jobs.enqueue([job()], tx=caller.tx)
    await caller.sql("SAVEPOINT inner_part")
    await order(caller, 2)
    [inner] = await store.jobs.enqueue([job()], tx=caller.tx)
    await caller.sql("ROLLBACK TO SAVEPOINT inner_part")
    [after] = await store.jobs.enqueue([job()], tx=caller.tx)
    await caller.commit()
    await begin_again(caller)
    assert await orders_of(caller) == [1]
    assert await store.jobs.get(outer.id) is not None
    assert await store.jobs.get(inner.id) is None
    assert await store.jobs.get(after.id) is not None


async def test_unique_keys(caller, store):
    taken = await put(store, unique="welcome:1")
    answers = await store.jobs.enqueue(
        [job(unique="welcome:1"), job(unique="welcome:2"), job(unique="welcome:2")], tx=caller.tx
    )
    assert answers[0].id == taken
    assert answers[1].id == answers[2].id
    assert [answer.created for answer in answers] == [False, True, False]
    await caller.commit()
    await begin_again(caller)
    assert (await the(store, answers[1].id)).unique == "welcome:2"


async def test_every_option(caller, store):
    new = job(
        queue="mail", priority=7, delay=60, expires=600, deadline=3_000_000_000.5, ordered="user:1", tenant="acme",
        concurrency="host:a", concurrency_limit=2, guard="stripe", max_waiting=5, correlation_id="c", causation_id="d",
        trace="t", generation=3,
    )  # fmt: skip
    await store.jobs.enqueue([new, job(at=3_000_000_000)], tx=caller.tx)
    await caller.commit()
    await begin_again(caller)
    record = await the(store, new.id)
    assert (record.queue, record.priority, record.ordered, record.tenant) == ("mail", 7, "user:1", "acme")
    assert (record.held, record.deadline, record.generation) == (Held.ARRIVED, 3_000_000_000.5, 3)
    assert record.run_at == pytest.approx(record.enqueued_at + 60)


async def test_many_at_once(caller, store):
    new = [job(args=f'{{"n": {number}}}') for number in range(300)]
    answers = await store.jobs.enqueue(new, tx=caller.tx)
    assert [answer.id for answer in answers] == [item.id for item in new]
    await caller.commit()
    await begin_again(caller)
    [count] = await store.jobs.count()
    assert count.number == 300


async def test_too_many_waiting_does_not_harm_the_transaction(caller, store):
    await order(caller)
    with pytest.raises(TooManyWaiting):
        await store.jobs.enqueue([job(max_waiting=1), job(max_waiting=1)], tx=caller.tx)
    await caller.commit()
    await begin_again(caller)
    assert await orders_of(caller) == [1]
    assert await store.jobs.count() == []


async def test_finish_commits_with_the_callers_rows(caller, store):
    await put(store)
    claim = await take_one(store)
    await order(caller)
    assert await store.claims.finish([Finish(claim, Done('{"ok": true}'))], tx=caller.tx) == [True]
    assert (await the(store, claim.job_id)).state is State.RUNNING
    await caller.commit()
    await begin_again(caller)
    record = await the(store, claim.job_id)
    assert (record.state, record.result) == (State.SUCCEEDED, '{"ok": true}')
    assert await store.claims.settle(claim.job_id, claim.token)


async def test_finish_rolls_back_with_them(caller, store):
    await put(store)
    claim = await take_one(store)
    await store.claims.finish([Finish(claim, Done())], tx=caller.tx)
    await caller.rollback()
    await begin_again(caller)
    assert (await the(store, claim.job_id)).state is State.RUNNING
    assert not await store.claims.settle(claim.job_id, claim.token)


async def test_a_lost_lease_raises_in_the_callers_transaction(caller, store):
    await put(store)
    claim = await take_one(store, worker="dead")
    await store.claims.rescue_worker("dead")
    await order(caller)
    with pytest.raises(LeaseLost):
        await store.claims.finish([Finish(claim, Done())], tx=caller.tx)
    await caller.rollback()
    await begin_again(caller)
    assert await orders_of(caller) == []
    assert (await the(store, claim.job_id)).state is State.QUEUED


@pytest.mark.parametrize("outcome", [Retry(after=5, error='100% of $1\'s {a,"b"}'), Dead(error="no\\way")])
async def test_outcomes_with_errors(caller, store, outcome):
    await put(store, ordered="user:1")
    await store.holds.promote()
    claim = await take_one(store)
    await store.claims.finish([Finish(claim, outcome)], tx=caller.tx)
    await caller.commit()
    await begin_again(caller)
    [error] = (await the(store, claim.job_id)).errors
    assert error.error == outcome.error


async def test_keys_and_audit(caller, store):
    scope = KeyScope("acme", "ada", "/orders")
    claim = await store.keys.begin(scope, "k1", fingerprint="f", lease=30, tx=caller.tx)
    assert isinstance(claim, KeyClaim)
    assert await store.keys.finish(claim, '{"status": 201}', keep=60, tx=caller.tx)
    entry = AuditEntry(actor="ada", action="order.place", subject="order:1", after="100%")
    await store.audit.write(entry, tx=caller.tx)
    await caller.rollback()
    await begin_again(caller)
    assert await store.audit.find(subject="order:1") == []
    assert isinstance(await store.keys.begin(scope, "k1", fingerprint="f", lease=30), KeyClaim)


async def test_cancel_and_move(caller, store):
    gone, later = await put(store), await put(store)
    await order(caller)
    assert await store.jobs.cancel(gone, "not needed", running=False, tx=caller.tx) is State.CANCELLED
    assert await store.jobs.move(later, delay=60.0, priority=3, tx=caller.tx) is State.QUEUED
    assert (await the(store, gone)).state is State.QUEUED  # for others, until the commit
    await caller.commit()
    await begin_again(caller)
    assert (await the(store, gone)).state is State.CANCELLED
    assert ((await the(store, later)).held, (await the(store, later)).priority) == (Held.TIME, 3)


async def test_what_a_person_decides(caller, store):
    dead, given_up, unknown = [await put(store) for _ in range(3)]
    for outcome in (Dead("no"), Dead("no"), Unknown("?")):
        await store.claims.finish([Finish(await take_one(store), outcome)])
    [answer] = await store.dead.replay([dead], actor="ada", tx=caller.tx)
    assert answer.outcome == "queued"
    assert await store.dead.discard([given_up], actor="ada", reason="no use", tx=caller.tx) == [True]
    assert (await store.steps.resolve(unknown, actor="ada", done=False, tx=caller.tx)).outcome == "queued"
    await caller.rollback()
    await begin_again(caller)
    states = [(await the(store, each)).state for each in (dead, given_up, unknown)]
    assert states == [State.DEAD, State.DEAD, State.UNKNOWN]
