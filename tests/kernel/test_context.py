"""The context travels with the work and ends with the block."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.kernel.context import Context, context, within
from holdfast.kernel.errors import UsageError


def test_empty_at_first():
    assert context() == Context()


def test_a_block_changes_some_of_it():
    with within(correlation_id="c", deadline=5.0) as outer:
        assert context() is outer
        with within(job_id="j"):
            assert context() == Context(correlation_id="c", deadline=5.0, job_id="j")
        assert context() is outer
    assert context() == Context()


def test_an_error_ends_it_too():
    with pytest.raises(KeyError), within(job_id="j"):
        raise KeyError
    assert context().job_id is None


def test_an_unknown_field_is_an_error():
    with pytest.raises(UsageError, match="colour"), within(colour="red"):
        pass


async def test_tasks_take_it_along_and_keep_it_apart():
    async def who() -> str | None:
        await asyncio.sleep(0)
        return context().job_id

    async def run(name: str) -> str | None:
        with within(job_id=name):
            return await asyncio.create_task(who())

    assert await asyncio.gather(run("a"), run("b"), who()) == ["a", "b", None]
