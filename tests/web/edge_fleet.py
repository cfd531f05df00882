"""API processes of a small shop under uvicorn: started, killed and started again on their ports."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from tools.local_server import free_port

PROGRAM = '''
import os, signal
from contextlib import ExitStack
from pathlib import Path
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
from holdfast import Holdfast
from holdfast.kernel.crashpoints import armed
from holdfast.web import BodyLimits, Correlation, IdempotencyKeys, Problems, request_tx

FOLDER = Path(os.environ["EDGE_FOLDER"])
hf = Holdfast()
hf.event("order.placed", dict, unheard=True)

@hf.task(name="shop.ship")
async def ship(order: str) -> None: ...

async def place(request):
    body = {"id": "none", **await request.json()}
    async with request_tx(request) as tx:
        await tx.execute("INSERT INTO orders (id, pid) VALUES ($1, $2)", body["id"], os.getpid())
        await ship.options(tx=tx).enqueue(body["id"])
        await hf.emit("order.placed", {"id": body["id"]}, key=f"order:{body['id']}", tx=tx)
    if body.get("die") == "handler":
        die("handler")
    return JSONResponse({"id": body["id"], "pid": os.getpid()}, 202, {"Location": f"/orders/{body['id']}"})

async def size(request):
    return JSONResponse({"bytes": len(await request.body())})

def die(name):
    """The first who comes here is killed; those who take its place walk past."""
    try:
        os.close(os.open(FOLDER / f"crashed-{name}", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)

kept = ExitStack()
if (name := os.environ.get("EDGE_CRASH")) is not None:
    kept.enter_context(armed(name, die))

shop = Starlette(routes=[
    Route("/orders", place, methods=["POST"]),
    Route("/orders/{id}", place, methods=["POST"]),
    Route("/size", size, methods=["POST"]),
])
whole = Correlation(Problems(BodyLimits(IdempotencyKeys(shop, hf, lease=3, wait=5, one_commit=os.environ.get("EDGE_COMMITS") == "1"),
    total=2_000_000, time=float(os.environ.get("EDGE_TIME", "60")))))

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        async with hf:
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})
    else:
        await whole(scope, receive, send)
'''


class Api:
    """One process on one port."""

    def __init__(self, url, folder, port=None, **environment):
        self.port = port or free_port()
        self._environment = {**os.environ, "HOLDFAST_URL": url, "EDGE_FOLDER": str(folder), **environment}
        self._folder = folder
        (folder / "edge_app.py").write_text(PROGRAM)
        self.process = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    async def start(self, **environment):
        arguments = ["-m", "uvicorn", "edge_app:app", "--port", str(self.port), "--log-level", "critical"]
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, cwd=self._folder, env={**self._environment, **environment}
        )
        async with asyncio.timeout(60):
            while True:
                if self.process.returncode is not None:
                    raise RuntimeError(f"the API ended at once, with {self.process.returncode}")
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                except OSError:
                    await asyncio.sleep(0.05)
                else:
                    writer.close()
                    return self

    async def kill(self):
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGKILL)
        await self.process.wait()

    async def stop(self):
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(self.process.wait(), 10)
            except TimeoutError:
                await self.kill()
