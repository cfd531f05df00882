"""Ids are UUIDv7: unique, and in the order of the clock."""

from __future__ import annotations

from uuid import RFC_4122, UUID

from holdfast.kernel.ids import new_id


def test_form():
    found = UUID(new_id())
    assert (found.version, found.variant) == (7, RFC_4122)
    assert str(found) == new_id()[:0] + str(found)


def test_many_are_unique():
    assert len({new_id() for _ in range(20_000)}) == 20_000


def test_later_ids_sort_later(paper):
    ids = []
    for _ in range(1000):
        ids.append(new_id())
        paper.time += 0.001
    assert ids == sorted(ids)


def test_the_milliseconds_and_the_chance_are_those_of_the_world(paper):
    paper.time = 0x0123456789AB / 1000
    paper.random_bytes = lambda count: b"\xff" * count
    assert new_id() == "01234567-89ab-7fff-bfff-ffffffffffff"
    paper.random_bytes = lambda count: b"\x00" * count
    assert new_id() == "01234567-89ab-7000-8000-000000000000"


def test_many_ids_are_sorted_and_valid():
    from uuid import UUID

    from holdfast.kernel.ids import new_ids

    ids = [each for _ in range(20) for each in new_ids(500)]
    assert len(set(ids)) == 10_000
    assert all(UUID(each).version == 7 for each in ids[:50])
    batch = new_ids(1000)
    assert batch == sorted(batch)
    assert new_ids(0) == []
