"""The processes of tools.publisher_site: `seed 20` makes two artists, `serve PORT` has the pages and a worker, `show PORT` the pages alone."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from publisher.core import CLEANING, DESK, PUBLISHING
from publisher.program import hf
from publisher.seeding import seed as plant
from publisher.tables import Base
from publisher.web.app import make_app

SLOTS = {PUBLISHING: 2, DESK: 2, CLEANING: 1, "default": 1}


async def seed(past: int) -> None:
    await hf.migrate()
    async with hf:
        async with hf.sqlalchemy().begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
        print(await plant(past))


def serve(port: int, *, works: bool) -> None:
    app = make_app(limited=False)
    opened = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(inner: Any) -> AsyncIterator[None]:
        async with opened(inner):
            if not works:
                yield
                return
            async with hf.worker(SLOTS, poll=0.1):
                yield

    app.router.lifespan_context = lifespan
    uvicorn.run(app, port=port, log_level="warning", proxy_headers=False)


def main(arguments: list[str]) -> int:
    verb, number = arguments
    if verb == "seed":
        asyncio.run(seed(int(number)))
    else:
        serve(int(number), works=verb == "serve")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
