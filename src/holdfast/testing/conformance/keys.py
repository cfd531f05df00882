"""Idempotency keys: one does it, the others are told."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from holdfast.store.idempotency import KeyBusy, KeyClaim, KeyDone, KeyLost, KeyMismatch, KeyScope
from holdfast.store.ports import Store, Tx
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import Rollback, raises

SCOPE = KeyScope("acme", "ada", "POST /orders")


async def begin(
    store: Store, *, scope: KeyScope = SCOPE, key: str = "k", fingerprint: str = "f"
) -> KeyClaim | KeyDone | KeyBusy | KeyMismatch:
    return await store.keys.begin(scope, key, fingerprint=fingerprint, lease=30)


async def claim(store: Store, **which: str) -> KeyClaim:
    answer = await begin(store, **which)  # type: ignore[arg-type]
    assert isinstance(answer, KeyClaim), f"the key should be free: {answer}"
    return answer


async def enter(
    store: Store, tx: Tx, *, fingerprint: str = "f", wait: float = 30
) -> KeyClaim | KeyDone | KeyBusy | KeyMismatch:
    return await store.keys.enter(tx, SCOPE, "k", fingerprint=fingerprint, lease=30, wait=wait)


async def answered_in_one(store: Store, response: str) -> KeyClaim | KeyDone | KeyBusy | KeyMismatch:
    """Claim the key and answer for it in one transaction, unless it is somebody else's."""
    tx: Any = store.transaction()
    found = await enter(store, tx)
    if isinstance(found, KeyClaim):
        await store.keys.answer(found, response, keep=600, tx=tx)
    await tx.__aexit__(None, None, None)
    return found


class KeysConformance(Conformance):
    async def test_a_new_key_is_taken(self, store: Store) -> None:
        taken = await claim(store)
        assert (taken.scope, taken.key, taken.until) == (SCOPE, "k", await store.now() + 30)

    async def test_a_key_is_busy_while_its_holder_works(self, store: Store) -> None:
        taken = await claim(store)
        other = await self.second(store)
        assert await begin(other) == KeyBusy(taken.until)

    async def test_an_answer_is_kept_and_given_again(self, store: Store) -> None:
        taken = await claim(store)
        response = '{"status": 201, "body": "Zoë \\u0000"}'
        assert await store.keys.finish(taken, response, keep=600)
        await self.advance(store, 599)
        assert await begin(store) == KeyDone(response)

    async def test_another_fingerprint_is_a_mismatch_while_busy_and_when_done(self, store: Store) -> None:
        taken = await claim(store)
        assert await begin(store, fingerprint="other") == KeyMismatch()
        await store.keys.finish(taken, "{}", keep=600)
        assert await begin(store, fingerprint="other") == KeyMismatch()

    async def test_another_fingerprint_is_a_mismatch_also_after_the_holder_was_lost(
        self, store: Store
    ) -> None:
        await claim(store)
        await self.advance(store, 30)
        assert await begin(store, fingerprint="other") == KeyMismatch()
        await claim(store)

    async def test_the_same_key_in_another_scope_is_another_key(self, store: Store) -> None:
        await claim(store)
        for scope in (
            KeyScope("other", "ada", "POST /orders"),
            KeyScope("acme", "bob", "POST /orders"),
            KeyScope("acme", "ada", "POST /refunds"),
        ):
            assert isinstance(await begin(store, scope=scope, fingerprint="other"), KeyClaim)
        assert isinstance(await begin(store, key="l"), KeyClaim)

    async def test_a_lost_holder_is_replaced_with_a_higher_token(self, store: Store) -> None:
        lost = await claim(store)
        await self.advance(store, 30)
        taken = await claim(store)
        assert taken.token > lost.token
        assert not await store.keys.finish(lost, '"late"', keep=600)
        assert not await store.keys.abandon(lost)
        assert await store.keys.finish(taken, '"mine"', keep=600)
        assert await begin(store) == KeyDone('"mine"')

    async def test_an_answer_is_accepted_once(self, store: Store) -> None:
        taken = await claim(store)
        assert await store.keys.finish(taken, "1", keep=600)
        assert not await store.keys.finish(taken, "2", keep=600)
        assert not await store.keys.abandon(taken)
        assert await begin(store) == KeyDone("1")

    async def test_a_late_answer_is_accepted_while_nobody_has_taken_the_key(self, store: Store) -> None:
        taken = await claim(store)
        await self.advance(store, 31)
        assert await store.keys.finish(taken, "1", keep=600)
        assert await begin(store) == KeyDone("1")

    async def test_an_abandoned_key_is_free(self, store: Store) -> None:
        taken = await claim(store)
        assert await store.keys.abandon(taken)
        assert not await store.keys.abandon(taken)
        again = await claim(store, fingerprint="other")
        assert again.token > taken.token

    async def test_a_key_is_new_again_when_its_answer_was_kept_long_enough(self, store: Store) -> None:
        taken = await claim(store)
        await store.keys.finish(taken, "1", keep=600)
        await self.advance(store, 600)
        again = await claim(store, fingerprint="other")
        assert again.token > taken.token
        assert isinstance(await begin(store, fingerprint="other"), KeyBusy)

    async def test_prune_forgets_answers_whose_time_is_over(self, store: Store) -> None:
        for key in ("a", "b", "c"):
            await store.keys.finish(await claim(store, key=key), "1", keep=600)
        busy = await claim(store, key="busy")
        await store.keys.finish(await claim(store, key="longer"), "1", keep=601)
        await self.advance(store, 599)
        assert await store.keys.prune() == 0
        await self.advance(store, 1)
        assert await store.keys.prune(limit=2) == 2
        assert await store.keys.prune() == 1
        assert await begin(store, key="longer") == KeyDone("1")
        assert await store.keys.finish(busy, "1", keep=600), "what is in progress is not pruned"

    async def test_of_many_at_once_one_gets_the_key(self, store: Store) -> None:
        clients = [store, await self.second(store), await self.second(store)]
        answers = await asyncio.gather(*(begin(clients[n % 3]) for n in range(20)))
        assert Counter(type(answer) for answer in answers) == {KeyClaim: 1, KeyBusy: 19}

    async def test_a_key_taken_in_a_transaction_is_free_after_its_rollback(self, store: Store) -> None:
        with raises(Rollback):
            async with store.transaction() as tx:
                taken = await store.keys.begin(SCOPE, "k", fingerprint="f", lease=30, tx=tx)
                assert isinstance(taken, KeyClaim)
                raise Rollback
        assert isinstance(await begin(store), KeyClaim)

    async def test_an_answer_commits_with_its_transaction_or_not_at_all(self, store: Store) -> None:
        taken = await claim(store)
        with raises(Rollback):
            async with store.transaction() as tx:
                assert await store.keys.finish(taken, "1", keep=600, tx=tx)
                raise Rollback
        assert isinstance(await begin(store), KeyBusy)
        async with store.transaction() as tx:
            assert await store.keys.finish(taken, "2", keep=600, tx=tx)
        assert await begin(store) == KeyDone("2")

    async def test_a_key_that_is_claimed_in_a_transaction_commits_with_its_answer(self, store: Store) -> None:
        assert isinstance(await answered_in_one(store, "1"), KeyClaim)
        assert await answered_in_one(store, "2") == KeyDone("1")
        assert await begin(store, fingerprint="other") == KeyMismatch()

    async def test_a_claim_in_a_transaction_that_rolls_back_was_never_there(self, store: Store) -> None:
        tx: Any = store.transaction()
        assert isinstance(await enter(store, tx), KeyClaim)
        await tx.__aexit__(Rollback, Rollback(), None)
        assert isinstance(await answered_in_one(store, "1"), KeyClaim)

    async def test_of_many_transactions_at_once_one_has_the_key_and_the_others_its_answer(
        self, store: Store
    ) -> None:
        clients = [store, await self.second(store), await self.second(store)]
        answers = await asyncio.gather(*(answered_in_one(clients[n % 3], str(n)) for n in range(9)))
        done = [answer for answer in answers if not isinstance(answer, KeyClaim)]
        assert len(done) == 8
        assert len(set(done)) == 1
        assert await begin(store) == done[0]

    async def test_a_key_that_another_holds_is_busy_in_a_transaction_too(self, store: Store) -> None:
        taken = await claim(store)
        assert await answered_in_one(store, "1") == KeyBusy(taken.until)

    async def test_a_lost_claim_takes_its_transaction_with_it(self, store: Store) -> None:
        lost = await claim(store)
        await self.advance(store, 30)
        taken = await claim(store)
        with raises(KeyLost):
            async with store.transaction() as tx:
                inner = await store.keys.begin(SCOPE, "inner", fingerprint="f", lease=30, tx=tx)
                assert isinstance(inner, KeyClaim)
                await store.keys.answer(lost, "late", keep=600, tx=tx)
        assert isinstance(await begin(store, key="inner"), KeyClaim)
        assert await store.keys.finish(taken, "mine", keep=600)

    async def test_an_answer_without_a_transaction_is_a_finish(self, store: Store) -> None:
        taken = await claim(store)
        await store.keys.answer(taken, "1", keep=600)
        with raises(KeyLost):
            await store.keys.answer(taken, "2", keep=600)
        assert await begin(store) == KeyDone("1")
