"""Strays: messages that nobody understands are kept as they came, once, until a person gives them up."""

from __future__ import annotations

from holdfast.store.event_records import RAW_LIMIT, RAW_SHOWN, NewStray, Stray
from holdfast.store.ports import Store
from holdfast.testing.conformance.harness import Conformance

BYTES = bytes(range(256))


async def kept(store: Store, transport: str, group: str, raw: bytes, reason: str) -> int:
    [stray_id] = await store.strays.keep(transport, group, [NewStray(raw, reason)])
    return stray_id


class StraysConformance(Conformance):
    async def test_a_message_is_kept_as_it_came(self, store: Store) -> None:
        stray_id = await kept(store, "redis", "billing", BYTES, "no JSON \0")
        expected = Stray(
            id=stray_id,
            transport="redis",
            group="billing",
            type=None,
            raw=BYTES,
            reason="no JSON \\u0000",
            at=await store.now(),
        )
        assert await store.strays.get(stray_id) == expected
        assert await store.strays.find() == [expected]
        assert await store.strays.get(stray_id + 1) is None

    async def test_the_same_message_is_kept_once(self, store: Store) -> None:
        first = await kept(store, "redis", "billing", BYTES, "no JSON")
        await self.advance(store, 5)
        assert await kept(store, "redis", "billing", BYTES, "another reason") == first
        others = [
            await kept(store, *place, "no JSON")
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
        whole = await kept(store, "redis", "billing", raw, "no JSON")
        cut = await kept(store, "redis", "billing", raw + b"y", "no JSON")
        other = await kept(store, "redis", "billing", raw + b"z", "no JSON")
        assert len({whole, cut, other}) == 3
        part = await store.strays.get(cut)
        assert part is not None
        assert part.raw == raw
        assert "1,048,577 bytes" in part.reason
        complete = await store.strays.get(whole)
        assert complete is not None
        assert (complete.raw, complete.reason) == (raw, "no JSON")
        assert [len(stray.raw) for stray in await store.strays.find()] == [RAW_SHOWN] * 3

    async def test_a_person_gives_them_up(self, store: Store) -> None:
        one = await kept(store, "redis", "billing", b"1", "no JSON")
        two = await kept(store, "redis", "billing", b"2", "no JSON")
        assert await store.strays.drop([one, one, 999_999], actor="ada", reason="spam") == [
            True,
            False,
            False,
        ]
        assert [stray.id for stray in await store.strays.find()] == [two]
        [entry] = await store.audit.find(subject=f"stray:{one}")
        assert (entry.actor, entry.action) == ("ada", "stray.drop")
        assert await kept(store, "redis", "billing", b"1", "no JSON") > two, "it may come again"

    async def test_an_empty_message_is_one_too(self, store: Store) -> None:
        stray_id = await kept(store, "redis", "billing", b"", "empty")
        found = await store.strays.get(stray_id)
        assert found is not None
        assert found.raw == b""

    async def test_many_are_kept_at_once(self, store: Store) -> None:
        """Each once, in the order in which they came; also more than fit into one transaction."""
        first = await kept(store, "redis", "billing", b"3", "an earlier reason")
        new = [NewStray(b"%d" % (number % 600), "why", "a.b") for number in range(1_200)]
        ids = await store.strays.keep("redis", "billing", new)
        assert ids[:600] == ids[600:]
        assert ids[3] == first
        others = [stray_id for stray_id in ids[:600] if stray_id != first]
        assert others == sorted(others)
        assert len(await store.strays.find(limit=2_000)) == 600
        assert await store.strays.keep("redis", "billing", []) == []

    async def test_they_are_found_by_type_page_by_page(self, store: Store) -> None:
        types = ["a.b", None, "a.c", "a.b", "a.b"]
        new = [NewStray(b"%d" % number, "why", type_) for number, type_ in enumerate(types)]
        ids = await store.strays.keep("redis", "billing", new)
        assert [stray.type for stray in await store.strays.find()] == types[::-1]
        wanted = [ids[4], ids[3], ids[0]]
        assert [stray.id for stray in await store.strays.find(type="a.b")] == wanted
        assert [stray.id for stray in await store.strays.find(type="a.b", before=ids[4])] == wanted[1:]
        assert [stray.id for stray in await store.strays.find(before=ids[2], limit=1)] == [ids[1]]
        assert await store.strays.find(type="a") == []
