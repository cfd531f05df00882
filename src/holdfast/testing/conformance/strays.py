"""Strays: messages that nobody understands are kept as they came, once, until a person gives them up."""

from __future__ import annotations

from holdfast.store.event_records import RAW_LIMIT, RAW_SHOWN, Stray
from holdfast.store.ports import Store
from holdfast.testing.conformance.harness import Conformance

BYTES = bytes(range(256))


class StraysConformance(Conformance):
    async def test_a_message_is_kept_as_it_came(self, store: Store) -> None:
        stray_id = await store.strays.keep("redis", "billing", BYTES, "no JSON \0")
        expected = Stray(
            id=stray_id,
            transport="redis",
            group="billing",
            raw=BYTES,
            reason="no JSON \\u0000",
            at=await store.now(),
        )
        assert await store.strays.get(stray_id) == expected
        assert await store.strays.find() == [expected]
        assert await store.strays.get(stray_id + 1) is None

    async def test_the_same_message_is_kept_once(self, store: Store) -> None:
        first = await store.strays.keep("redis", "billing", BYTES, "no JSON")
        await self.advance(store, 5)
        assert await store.strays.keep("redis", "billing", BYTES, "another reason") == first
        others = [
            await store.strays.keep(*place, "no JSON")
            for place in (
                ("redis", "mail", BYTES),
                ("nats", "billing", BYTES),
                ("redis", "billing", BYTES + b"!"),
                ("redisb", "illing", BYTES),
            )
        ]
        assert [stray.id for stray in await store.strays.find()] == [*reversed(others), first]
        assert [stray.id for stray in await store.strays.find(limit=2)] == [*reversed(others[-2:])]

    async def test_a_long_message_is_cut_and_says_so(self, store: Store) -> None:
        raw = b"x" * RAW_LIMIT
        whole = await store.strays.keep("redis", "billing", raw, "no JSON")
        cut = await store.strays.keep("redis", "billing", raw + b"y", "no JSON")
        other = await store.strays.keep("redis", "billing", raw + b"z", "no JSON")
        assert len({whole, cut, other}) == 3
        kept = await store.strays.get(cut)
        assert kept is not None
        assert kept.raw == raw
        assert "1,048,577 bytes" in kept.reason
        complete = await store.strays.get(whole)
        assert complete is not None
        assert (complete.raw, complete.reason) == (raw, "no JSON")
        assert [len(stray.raw) for stray in await store.strays.find()] == [RAW_SHOWN] * 3

    async def test_a_person_gives_them_up(self, store: Store) -> None:
        one = await store.strays.keep("redis", "billing", b"1", "no JSON")
        two = await store.strays.keep("redis", "billing", b"2", "no JSON")
        assert await store.strays.drop([one, one, 999_999], actor="ada", reason="spam") == [
            True,
            False,
            False,
        ]
        assert [stray.id for stray in await store.strays.find()] == [two]
        [entry] = await store.audit.find(subject=f"stray:{one}")
        assert (entry.actor, entry.action) == ("ada", "stray.drop")
        assert await store.strays.keep("redis", "billing", b"1", "no JSON") > two, "it may come again"

    async def test_an_empty_message_is_one_too(self, store: Store) -> None:
        stray_id = await store.strays.keep("redis", "billing", b"", "empty")
        kept = await store.strays.get(stray_id)
        assert kept is not None
        assert kept.raw == b""
