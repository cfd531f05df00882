"""Arguments without a type are stored as they are, or refused: none changes its type in silence."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest

from holdfast import Holdfast, Job
from holdfast.kernel.errors import PayloadError


class Colour(Enum):
    """Its value would come back."""

    RED = "red"


CHANGED = {
    "set": {1}, "frozenset": frozenset({1}), "tuple": (1, 2), "bytes": b"x", "datetime": datetime(2026, 1, 1, tzinfo=UTC), "date": date(2026, 1, 1),
    "Decimal": Decimal("1.5"), "UUID": UUID(int=1), "Colour": Colour.RED,
}  # fmt: skip


@pytest.fixture
def hf(tmp_path):
    """Never opened."""
    return Holdfast(f"sqlite:///{tmp_path / 'jobs.db'}")


@pytest.fixture
def task(hf):
    @hf.task
    async def keep(job: Job, value, held: list = [], named: dict[str, Any] = {}, whole: Any = None): ...  # noqa: B006

    return keep


@pytest.mark.parametrize("kind", CHANGED)
def test_what_would_come_back_as_something_else_is_refused(task, kind):
    value = CHANGED[kind]
    for given in (
        {"value": value},
        {"value": [{"a": [value]}]},
        {"value": 1, "held": [value]},
        {"value": 1, "named": {"a": value}},
        {"value": 1, "whole": value},
    ):
        with pytest.raises(PayloadError, match=f"of type {kind}.*Annotate the parameter"):
            task.signature.encode(task.signature.bind((), given))


def test_what_json_has_comes_back_as_it_is(task):
    for value in (None, 1, 1.5, 10**15, True, "x", [], {}, [1, ["a", {"b": None}]], {"a": {"b": [1.0]}}):
        given = {"value": value, "held": [value], "named": {"a": value}}
        found = task.signature.decode(task.signature.encode(given))
        assert found == given


def test_what_has_a_type_comes_back_in_it(hf):
    @hf.task
    async def keep(
        value: set[int], pair: tuple[int, str], at: datetime, parts: list[tuple[int, ...]], raw: bytes
    ): ...

    given = {"value": {1}, "pair": (1, "a"), "at": CHANGED["datetime"], "parts": [(1, 2)], "raw": b"x"}
    assert keep.signature.decode(keep.signature.encode(given)) == given


def test_a_schedule_says_so_where_it_is_declared(hf):
    with pytest.raises(PayloadError, match="`nominal: datetime`"):

        @hf.cron("@daily")
        async def tidy(nominal): ...


def test_a_saga_takes_the_same(hf):
    @hf.saga("battle")
    async def battle(saga, request): ...

    with pytest.raises(PayloadError, match="of type tuple"):
        battle.new(((1, 2),), id="x")
