"""Events in the caller's own transaction, with every driver: emitted and handled if and only if it committed."""

from __future__ import annotations

import pytest

from holdfast.store.event_records import Delivery, Emitted
from holdfast.testing.conformance.kit import job
from holdfast.testing.conformance.outbox import event, the_event

pytestmark = pytest.mark.usefixtures("orders")


async def test_an_event_commits_with_the_callers_rows(caller, store):
    await caller.sql("INSERT INTO orders VALUES (1)")
    new = event(
        "order:Zoë",
        data='{"text": "it\'s 100% \\\\ $1"}',
        correlation_id="c",
        causation_id="d",
        trace="t",
    )
    assert await store.outbox.emit([new], tx=caller.tx) == [Emitted(new.id, 1)]
    assert await store.outbox.version("order:Zoë", tx=caller.tx) == 1
    assert await store.outbox.get(new.id) is None, "nobody sees it before"
    await caller.commit()
    await caller.begin()
    found = await the_event(store, new.id)
    assert (found.key, found.version, found.data) == (new.key, 1, new.data)
    assert (found.correlation_id, found.causation_id, found.trace) == ("c", "d", "t")


async def test_a_rollback_takes_event_and_version_back(caller, store):
    new = event("a")
    await store.outbox.emit([new], tx=caller.tx)
    await caller.rollback()
    await caller.begin()
    assert await store.outbox.get(new.id) is None
    assert await store.outbox.emit([new], tx=caller.tx) == [Emitted(new.id, 1)]
    await caller.commit()
    await caller.begin()
    assert await store.outbox.version("a") == 1


async def test_several_events_of_several_keys(caller, store):
    new = [event(key) for key in ("b", "a", None, "b", "Ä", "a", "b")]
    answers = await store.outbox.emit(new, tx=caller.tx)
    assert [answer.version for answer in answers] == [1, 1, None, 2, 1, 2, 3]
    await caller.commit()
    await caller.begin()
    found = await store.outbox.find()
    assert [each.id for each in reversed(found)] == [each.id for each in new]
    assert [each.version for each in reversed(found)] == [answer.version for answer in answers]


async def test_one_without_a_key_and_one_that_is_known(caller, store):
    free, known = event(None), event("a")
    await store.outbox.emit([known])
    assert await store.outbox.emit([free], tx=caller.tx) == [Emitted(free.id, None)]
    assert await store.outbox.emit([free], tx=caller.tx) == [Emitted(free.id, None)]
    for again in (False, True):
        answers = await store.outbox.emit([known], tx=caller.tx, again=again)
        assert answers == [Emitted(known.id, 1)]
        answers = await store.outbox.emit([known, free], tx=caller.tx, again=again)
        assert answers == [Emitted(known.id, 1), Emitted(free.id, None)]
    await caller.commit()
    await caller.begin()
    assert len(await store.outbox.find()) == 2
    assert await store.outbox.version("a") == 1


async def test_many_events_at_once(caller, store):
    new = [event(f"k{n % 40}") for n in range(300)]
    answers = await store.outbox.emit(new, tx=caller.tx)
    assert [answer.version for answer in answers] == [1 + n // 40 for n in range(300)]
    await caller.commit()
    await caller.begin()


async def test_an_event_is_handled_with_the_callers_rows(caller, store):
    await store.inbox.deliver("billing", [Delivery("e", job())])
    await caller.sql("INSERT INTO orders VALUES (1)")
    assert await store.inbox.handled("billing", "e", tx=caller.tx)
    await caller.rollback()
    await caller.begin()
    assert await store.inbox.handled("billing", "e", tx=caller.tx)
    assert not await store.inbox.handled("billing", "e", tx=caller.tx)
    await caller.commit()
    await caller.begin()
    assert not await store.inbox.handled("billing", "e")
