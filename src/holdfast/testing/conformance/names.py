"""The longest names: whatever passes the checks can be stored, looked up and passed on, in every character set."""

from __future__ import annotations

import random

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import LONGEST, LONGEST_NAME
from holdfast.store.idempotency import KeyClaim, KeyDone, KeyScope
from holdfast.store.ports import Store
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import READY, end, job, put, raises, state_of, take_one


def longest(kind: str) -> str:
    """As many bytes as are allowed, four for each character, and nothing in it to compress."""
    drawn = random.Random(kind)
    size = LONGEST.get(kind, LONGEST_NAME)
    return "".join(chr(drawn.randrange(0x20000, 0x2A000)) for _ in range(size // 4))


class NamesConformance(Conformance):
    async def test_a_job_with_the_longest_names_is_promoted_and_ends(self, store: Store) -> None:
        names = {
            kind: longest(kind)
            for kind in ("queue", "task", "tenant", "ordered", "concurrency", "unique", "guard")
        }
        first = await put(store, **names, concurrency_limit=1, max_waiting=9)
        second = await put(store, **(names | {"unique": "another"}), concurrency_limit=1, max_waiting=9)
        assert await store.holds.promote(window=1) == 2
        claim = await take_one(store, names["queue"])
        assert claim.job_id == first
        assert await end(store, claim)
        assert await state_of(store, second) == READY

    async def test_jobs_of_one_tenant_with_the_longest_names_wait_for_its_window(self, store: Store) -> None:
        names = {"queue": longest("queue"), "tenant": longest("tenant")}
        _, second = await put(store, **names), await put(store, **names)
        await store.holds.promote(window=1)
        assert await end(store, await take_one(store, names["queue"]))
        assert await state_of(store, second) == READY

    async def test_an_idempotency_key_with_the_longest_names_is_kept(self, store: Store) -> None:
        scope = KeyScope(*(longest(kind) for kind in ("tenant", "principal", "route")))
        key = longest("key")
        claim = await store.keys.begin(scope, key, fingerprint=longest("fingerprint"), lease=5)
        assert isinstance(claim, KeyClaim)
        assert await store.keys.finish(claim, "1", keep=60)
        assert await store.keys.begin(scope, key, fingerprint=longest("fingerprint"), lease=5) == KeyDone("1")

    async def test_a_schedule_and_a_pause_with_the_longest_names(self, store: Store) -> None:
        schedule, queue = longest("schedule"), longest("queue")
        assert await store.schedules.tick(schedule, 5.0, job()) is not None
        await store.queues.pause(queue, by=longest("by"))
        (paused,) = await store.queues.paused()
        assert paused.queue == queue

    async def test_a_name_that_is_a_byte_too_long_is_refused(self, store: Store) -> None:
        for kind in ("queue", "task", "tenant", "ordered", "unique", "guard"):
            with raises(UsageError, f"at most {LONGEST.get(kind, LONGEST_NAME)} bytes"):
                job(**{kind: f"{longest(kind)}x"})
