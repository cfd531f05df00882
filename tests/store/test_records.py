"""Records: what a job is when nothing is said, what drivers can bind, and that building one is cheap."""

from __future__ import annotations

import timeit
from enum import IntEnum, StrEnum

import msgspec
import pytest

from holdfast.kernel.ids import new_id
from holdfast.store.records import ARGS_LIMIT, Claim, NewJob


class Queue(StrEnum):
    MAIL = "mail"


class Priority(IntEnum):
    HIGH = 9


class Name(str):
    __slots__ = ()


def test_a_plain_job_is_ready_at_once_in_the_default_queue():
    new = NewJob(id=new_id(), task="mail.send")
    assert (new.args, new.queue, new.priority, new.generation) == ("{}", "default", 0, 0)
    assert not new.keyed
    rest = set(new.__struct_fields__) - {"id", "task", "args", "queue", "priority", "generation"}
    assert {getattr(new, name) for name in rest} <= {None, False}


@pytest.mark.parametrize(
    "keys", [{"ordered": "o"}, {"tenant": "t"}, {"concurrency": "c", "concurrency_limit": 1}]
)
def test_a_job_with_keys_must_be_looked_at(keys):
    assert NewJob(id=new_id(), task="t", **keys).keyed


def test_another_job_waits_for_one_with_a_turn_or_a_slot():
    plain = Claim("i", 1, 0.0, "t", "q", "{}", 1, 0, False, 0.0, 0)
    assert not plain.keyed
    assert not msgspec.structs.replace(plain, tenant="t").keyed
    assert msgspec.structs.replace(plain, ordered="o").keyed
    assert msgspec.structs.replace(plain, concurrency="c").keyed


def test_what_a_driver_cannot_bind_is_replaced_by_what_it_can():
    new = NewJob(
        id=new_id(),
        task=Name("t"),
        queue=Queue.MAIL,
        unique=Name("u"),
        ordered=Queue.MAIL,
        concurrency=Queue.MAIL,
        concurrency_limit=Priority.HIGH,
        priority=Priority.HIGH,
        delay=5,
        expires=True + 1,
        max_waiting=Priority.HIGH,
    )
    for name in ("task", "queue", "unique", "ordered", "concurrency"):
        assert type(getattr(new, name)) is str, name
    for name in ("priority", "concurrency_limit", "max_waiting"):
        assert type(getattr(new, name)) is int, name
    assert (type(new.delay), new.delay, type(new.expires), new.expires) == (float, 5.0, float, 2.0)


def test_a_record_is_frozen():
    new = NewJob(id=new_id(), task="t")
    with pytest.raises(AttributeError):
        new.task = "other"


def test_arguments_may_be_as_long_as_the_limit_and_no_longer():
    for text in ("x" * (ARGS_LIMIT - 2), "é" * ((ARGS_LIMIT - 2) // 2)):
        NewJob(id=new_id(), task="t", args=f'"{text}"')
        with pytest.raises(ValueError, match="limit"):
            NewJob(id=new_id(), task="t", args=f'"{text}x"')


def test_building_a_job_costs_little():
    """About 1.2 µs, when the machine does nothing else; the bound is for one that does."""
    job_id = new_id()
    best = min(
        timeit.repeat(lambda: NewJob(id=job_id, task="mail.send", args='{"a": 1}'), number=2000, repeat=20)
    )
    assert best / 2000 < 10e-6
