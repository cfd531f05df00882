"""A small shop behind the edge, and clients for it."""

from __future__ import annotations

import asyncio

import httpx
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from holdfast.web import IdempotencyKeys, request_session, request_tx

KEY = {"Idempotency-Key": '"first"'}


async def tables(hf):
    async with hf.transaction() as tx:
        await tx.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER, note TEXT)")
        await tx.execute("DELETE FROM orders")


async def orders(hf):
    async with hf.transaction() as tx:
        return [row[0] for row in await tx.fetch("SELECT id FROM orders ORDER BY id")]


class Shop:
    """Counts how often its handlers run; `fail` makes the next one end otherwise."""

    def __init__(self, hf):
        self.hf, self.runs, self.fail, self.gate = hf, 0, [], None
        self.one_commit = False
        self.entered = asyncio.Event()

        @hf.task(name="shop.ship")
        async def ship(order: int) -> None: ...

        hf.event("order.placed", dict, unheard=True)
        self.ship = ship

    async def place(self, request):
        self.runs += 1
        self.entered.set()
        body = await request.json()
        if self.gate is not None:
            await self.gate.wait()
        async with request_tx(request) as tx:
            await tx.execute("INSERT INTO orders (id) VALUES ($1)", body["id"])
            await self.ship.options(tx=tx).enqueue(body["id"])
            await self.hf.emit("order.placed", {"id": body["id"]}, key=f"order:{body['id']}", tx=tx)
        if self.fail:
            failure = self.fail.pop()
            if isinstance(failure, BaseException):
                raise failure
            return JSONResponse({"failed": failure}, failure)
        return JSONResponse(
            {"id": body["id"], "run": self.runs}, 202, {"Location": f"/orders/{body['id']}", "X-Once": "1"}
        )

    def place_plainly(self, request):
        self.runs += 1
        with request_tx(request) as tx:
            tx.execute("INSERT INTO orders (id) VALUES ($1)", self.runs)
            self.ship.options(tx=tx).enqueue_sync(self.runs)
        return PlainTextResponse(f"run {self.runs}")

    async def place_by_session(self, request):
        import sqlalchemy as sa

        self.runs += 1
        async with request_session(request) as session:
            await session.execute(sa.text("INSERT INTO orders (id) VALUES (:id)"), {"id": self.runs})
            await self.ship.options(tx=session).enqueue(self.runs)
        if self.fail:
            raise self.fail.pop()
        return PlainTextResponse(f"run {self.runs}")

    async def touch(self, request):
        self.runs += 1
        return Response(b"\x00\xff" * 3 + str(self.runs).encode(), media_type="application/octet-stream")

    async def large(self, request):
        self.runs += 1
        async with request_tx(request) as tx:
            await tx.execute("INSERT INTO orders (id) VALUES ($1)", self.runs)
        return PlainTextResponse("x" * 2_000_000)

    async def upload(self, request):
        self.runs += 1
        async with request.form() as form:
            return PlainTextResponse(f"{len(await form['file'].read())} bytes, run {self.runs}")

    def app(self, **options):
        routes = [
            Route("/orders", self.place, methods=["POST", "GET"]),
            Route("/plain", self.place_plainly, methods=["POST"]),
            Route("/session", self.place_by_session, methods=["POST"]),
            Route("/touch", self.touch, methods=["POST"]),
            Route("/large", self.large, methods=["POST"]),
            Route("/upload", self.upload, methods=["POST"]),
        ]
        return IdempotencyKeys(
            Starlette(routes=routes), self.hf, **{"one_commit": self.one_commit, **options}
        )


def client(app):
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://shop.test")
