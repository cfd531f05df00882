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


@asynccontextmanager
async def fresh(hf: Holdfast, url: str | None = None) -> AsyncGenerator[Holdfast, None]:
    """`async with fresh(hf):` opens it on a new, empty SQLite file; its schedules begin now. Afterwards it is as before.

    Its guards begin anew: no test meets the open breaker of another.
    `url`: a database of yours, for tests alone. One on PostgreSQL goes by the manual clock that rules here, all of it.
    """
    before = inside(hf).location
    with TemporaryDirectory(prefix="holdfast-test-", ignore_cleanup_errors=True) as folder:
        point_at(hf, url or f"sqlite:///{Path(folder) / 'holdfast.db'}")
        inside(hf).fleet.anew()
        try:
            await hf.migrate()
            with database_clock(hf):
                async with hf:
                    await tick(hf)
                    yield hf
        finally:
            point_at(hf, before)
