"""The Holdfast object: no I/O until it is entered, and one transaction for the caller's rows and jobs."""

import pytest

from holdfast import Holdfast
from holdfast.kernel.errors import NotOpen, UsageError
from holdfast.kernel.ids import new_id
from holdfast.store.records import NewJob


async def test_no_file_is_made_before_it_is_entered(tmp_path):
    hf = Holdfast(f"sqlite:///{tmp_path / 'jobs.db'}")
    assert not list(tmp_path.iterdir())
    with pytest.raises(NotOpen):
        await hf.jobs.get(new_id())
    async with hf:
        assert await hf.jobs.get(new_id()) is None
        with pytest.raises(UsageError, match="open already"):
            await hf.__aenter__()
    async with hf:  # it may be entered again after it was left
        assert await hf.migrate() == []


async def test_rows_and_jobs_commit_together_or_not_at_all(tmp_path):
    async with Holdfast(f"sqlite:///{tmp_path / 'jobs.db'}") as hf:
        async with hf.transaction() as tx:
            assert await tx.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT)") == 0
        kept, gone = NewJob(id=new_id(), task="t"), NewJob(id=new_id(), task="t")
        async with hf.transaction() as tx:
            assert await tx.execute("INSERT INTO orders (name, id) VALUES ($2, $1), ('b', 2)", 1, "a") == 2
            await hf.store.jobs.enqueue([kept], tx=tx)
        with pytest.raises(ZeroDivisionError):
            async with hf.transaction() as tx:
                await tx.execute("INSERT INTO orders (id) VALUES ($1)", 3)
                await hf.store.jobs.enqueue([gone], tx=tx)
                raise ZeroDivisionError
        async with hf.transaction() as tx:
            assert await tx.fetch("SELECT id, name FROM orders WHERE id <> $1 ORDER BY id", 9) == [
                (1, "a"),
                (2, "b"),
            ]
        assert await hf.jobs.get(kept.id) is not None
        assert await hf.jobs.get(gone.id) is None


def test_it_shows_where_it_is_without_a_password():
    assert repr(Holdfast("postgresql://ada:s3cret@h/d")) == "Holdfast(postgresql://ada:***@h/d)"
