"""What tests of the SQLite store share."""

import asyncio

import pytest

from holdfast.kernel.errors import StoreError


@pytest.fixture
def end_thread(monkeypatch):
    """Let the thread that writes to a store's file die of a mistake, in the middle of a transaction."""

    def break_down():
        raise ZeroDivisionError

    def bad(db):
        db.run("INSERT INTO holdfast_counter VALUES ('junk', 1)")
        raise KeyError

    async def end(store) -> None:
        writer = store._writer
        monkeypatch.setattr(writer, "_rollback", break_down)
        with pytest.raises(StoreError, match="mistake of its own"):
            await asyncio.wait_for(store.write(bad), 5)
        await writer._thread.ended()  # else its exception may be told in the next test

    return end
