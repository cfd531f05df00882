"""A missing `await` on `hf.session()` is no success: not its own verbs, and not what was to be stored with it."""

from __future__ import annotations

import gc
import warnings

import pytest
import sqlalchemy as sa
from models import Order

from holdfast import Backoff
from holdfast.errors import NeverAwaited
from holdfast.testing import drain

FORGOTTEN = {
    "enqueue": (lambda hf, session: hf.greet.options(tx=session).enqueue("ada"), "task.enqueue(…)"),
    "emit": (lambda hf, session: hf.emit("order.placed", {}, tx=session), "hf.emit(…)"),
    "execute": (lambda _, session: session.execute(sa.text("SELECT 1")), "session.execute(…)"),
    "flush": (lambda _, session: session.flush(), "session.flush(…)"),
}


@pytest.fixture
def silent():
    """Without a word of Python's own."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
        gc.collect()


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("verb", FORGOTTEN)
async def test_nothing_is_committed_when_something_was_not_awaited(shop, names, queued, verb):
    forget, told = FORGOTTEN[verb]
    with pytest.raises(NeverAwaited, match="was asked for and never awaited") as raised:
        async with shop.session() as session, session.begin():
            session.add(Order(name="tea"))
            forget(shop, session)
    assert told in str(raised.value)

    async with shop.session() as session:
        session.add(Order(name="tea"))
        forget(shop, session)
        with pytest.raises(NeverAwaited):
            await session.commit()
    assert (await names(shop), await queued(shop)) == ([], 0)


@pytest.mark.usefixtures("silent")
async def test_a_commit_that_nobody_awaits_fails_the_block(shop, names):
    with pytest.raises(NeverAwaited, match="asked for and never awaited"):
        async with shop.session() as session:
            session.add(Order(name="tea"))
            session.commit()
    assert await names(shop) == []


@pytest.mark.usefixtures("silent")
async def test_and_a_run_that_closes_the_session_by_itself(shop, names):
    @shop.task(retry=Backoff(attempts=1))
    async def order() -> None:
        session = shop.session()
        session.add(Order(name="tea"))
        session.commit()
        await session.close()

    handle = await order.enqueue()
    await drain(shop)
    record = await handle.record()
    assert record.state == "dead"
    assert "session.commit was asked for and never awaited" in record.reason
    assert await names(shop) == []


async def test_the_error_of_a_block_comes_first(shop):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(KeyError):
            async with shop.session() as session:
                session.flush()
                raise KeyError("mine")


async def test_a_savepoint_that_forgets_is_taken_back(shop, names):
    async with shop.session() as session, session.begin():
        session.add(Order(name="tea"))
        await session.flush()
        with pytest.raises(NeverAwaited):
            async with session.begin_nested():
                session.add(Order(name="milk"))
                session.flush()
    assert await names(shop) == ["tea"]


async def test_a_session_leaves_no_circle_of_objects(shop):
    async with shop.session() as session:
        await session.execute(sa.text("SELECT 1"))
    del session
    gc.collect()
    gc.disable()
    try:
        async with shop.session() as session:
            await session.execute(sa.text("SELECT 1"))
        sync = session.sync_session
        del session
        assert not [each for each in gc.get_referrers(sync) if type(each).__name__ == "OwnSession"]
    finally:
        gc.enable()
