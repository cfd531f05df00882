"""PostgreSQL goes by a test's clock while a test lasts, and by its own before and after."""

from __future__ import annotations

import pytest

from holdfast import Holdfast
from holdfast.kernel.errors import UsageError
from holdfast.testing import ManualClock, drain, fresh
from holdfast.testing.clock import START


@pytest.fixture
def program():
    return Holdfast("sqlite:///never-made.db")


async def test_it_is_moved_with_the_clock_and_is_its_own_again(program, postgres_url):
    with ManualClock() as clock:
        async with fresh(program, postgres_url) as hf:
            assert await hf.store.now() == START
            clock.advance(90.5)
            assert await hf.store.now() == START + 90.5
            async with hf.transaction() as tx:
                clock.advance(1)
                [(now,)] = await tx.fetch("SELECT date_part('epoch', holdfast.now()) FROM holdfast.store")
            assert now == START + 91.5
        clock.advance(1)  # nobody follows any more
    async with fresh(program, postgres_url) as hf:
        assert await hf.store.now() < START


async def test_a_job_is_due_when_the_clock_says_so(program, postgres_url):
    @program.task
    async def work() -> None: ...

    with ManualClock() as clock:
        async with fresh(program, postgres_url) as hf:
            await work.options(delay=3600).enqueue()
            assert await drain(hf) == []
            clock.advance(3600)
            assert len(await drain(hf)) == 1


async def test_what_a_killed_test_has_left_is_mended(program, postgres_url):
    async with Holdfast(postgres_url) as hf, hf.transaction() as tx:
        await tx.execute(
            "CREATE OR REPLACE FUNCTION holdfast.now() RETURNS timestamptz LANGUAGE sql AS 'SELECT to_timestamp(2e9)'"
        )
    async with fresh(program, postgres_url) as hf:
        assert await hf.store.now() < START


async def test_a_database_in_which_others_work_is_refused(program, postgres_url):
    async with Holdfast(postgres_url) as other, other.lock("report", lease=30):
        with ManualClock(), pytest.raises(UsageError, match=r"is in use: .* holds the lease 'report'"):
            async with fresh(program, postgres_url):
                pass
        assert await other.store.now() < START
