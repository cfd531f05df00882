"""A program on a database of its own for one test: a new SQLite file, or what a URL names."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from holdfast.runtime.app import Holdfast, point_at
from holdfast.runtime.inside import inside
from holdfast.testing.database_clock import database_clock
from holdfast.testing.draining import tick

_GUARD_TABLES = ("probe", "breaker", "bucket", "guard")


@asynccontextmanager
async def fresh(hf: Holdfast, url: str | None = None) -> AsyncGenerator[Holdfast, None]:
    """`async with fresh(hf):` opens it on a new, empty SQLite file; its schedules begin now. Afterwards it is as before.

    Its guards begin anew, also what a database of yours has of them: no test meets the open breaker of another.
    `url`: a database of yours, for tests alone. One on PostgreSQL goes by the manual clock that rules here, all of it.
    """
    before = inside(hf).location
    with TemporaryDirectory(prefix="holdfast-test-", ignore_cleanup_errors=True) as folder:
        point_at(hf, url or f"sqlite:///{Path(folder) / 'holdfast.db'}")
        inside(hf).fleet.anew()
        try:
            await hf.migrate()
            with database_clock(hf):
                if url is not None:
                    await _forget_guards(hf)
                async with hf:
                    await tick(hf)
                    yield hf
        finally:
            point_at(hf, before)


async def _forget_guards(hf: Holdfast) -> None:
    """What an earlier test has left in the database: its clock may have been ahead, and nobody gives back what it took."""
    prefix = "holdfast_" if inside(hf).location.kind == "sqlite" else "holdfast."
    store = hf.store.twin()
    await store.open()
    try:
        async with store.transaction() as tx:
            for table in _GUARD_TABLES:
                await tx.execute(f"DELETE FROM {prefix}{table}")  # noqa: S608  its name is one of ours
    finally:
        await store.close()
