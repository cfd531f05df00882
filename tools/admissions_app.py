"""The processes of tools.admissions_site: `seed 60` makes people and applications, `serve PORT` has the pages and a worker, `show PORT` the pages alone."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from admissions.core import MAIL, PAY, VERIFY
from admissions.program import hf
from admissions.seeding import seed as plant
from admissions.tables import Base
from admissions.web.app import make_app

SLOTS = {VERIFY: 2, PAY: 2, MAIL: 2, "default": 3}


async def seed(many: int) -> None:
    await hf.migrate()
    async with hf:
        async with hf.sqlalchemy().begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
        print(await plant(many))


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
