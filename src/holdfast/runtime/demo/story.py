"""The story: orders come in, a worker is killed, another is frozen past its lease and woken; then the database is asked."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from holdfast.kernel.clock import monotonic, sleep, timeout
from holdfast.kernel.processes import Child, start_child
from holdfast.kernel.randomness import random
from holdfast.kernel.spawn import spawn
from holdfast.runtime.app import Holdfast
from holdfast.runtime.demo.audit import TABLES, Audit, count
from holdfast.runtime.demo.board import Board
from holdfast.runtime.demo.shop import ship as shop_ship
from holdfast.store.states import State

LEASE = 3.0  # seconds; 30 by default
ORDERS = 400
DECLINED = 0.2  # of the orders are rolled back
SLOTS = 4
PATIENCE = 60.0  # seconds after which the demo has failed


class Shop:
    """The demo's processes and its view of the database."""

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder / 'shop.db'}"
        self.hf = Holdfast(self.url)
        self.ship = self.hf.task(name="ship", queue="orders")(shop_ship.function)
        self.refused = folder / "refused"
        self.log = folder / "workers.log"
        self.board = Board()
        self.workers: dict[str, Child] = {}
        self.declined = 0

    async def start_worker(self, name: str) -> None:
        command = [
            sys.executable,
            "-m",
            "holdfast",
            "worker",
            "holdfast.runtime.demo.shop:hf",
            "--name",
            name,
        ]
        command += ["-q", f"orders:{SLOTS}", "--lease", str(LEASE), "--shutdown-timeout", "10"]
        environment = {"HOLDFAST_URL": self.url, "HOLDFAST_DEMO_REFUSED": str(self.refused)}
        self.workers[name] = await start_child(command, environment, log=self.log)

    async def held_by(self, name: str) -> int:
        running = await self.hf.store.jobs.find(state=State.RUNNING, limit=1000)
        return sum(record.worker == name for record in running)

    async def running(self) -> int:
        return sum(each.number for each in await self.hf.queues.count() if each.state is State.RUNNING)

    async def left(self) -> int:
        return sum(each.number for each in await self.hf.queues.count())


async def tell(folder: Path) -> bool:
    """Returns whether every promise was kept."""
    shop = Shop(folder)
    print("A shop on one SQLite file, with three workers. Two of them will have a bad day.\n", flush=True)  # noqa: T201
    async with shop.hf:
        async with shop.hf.transaction() as tx:
            for table in TABLES:
                await tx.execute(table)
        for name in ("anna", "ben", "cleo"):
            await shop.start_worker(name)
        board = spawn(_watch(shop), name="board")
        try:
            orders = spawn(_take_orders(shop), name="orders")
            await _kill(shop, "anna")
            await _freeze(shop, "ben")
            await orders
            await _until(shop, shop.left, 0)
        finally:
            board.cancel()
            await _close(shop)
        return await _verdict(shop)


async def _take_orders(shop: Shop) -> None:
    """An order and its job commit together; one that is declined leaves neither."""
    for number in range(ORDERS):
        try:
            async with shop.hf.transaction() as tx:
                await tx.execute("INSERT INTO orders (id) VALUES ($1)", number)
                await shop.ship.options(tx=tx).enqueue(order=number)
                if random() < DECLINED:
                    raise ConnectionAbortedError("the card was declined")  # noqa: TRY301
        except ConnectionAbortedError:
            shop.declined += 1
        await sleep(0.02)


async def _kill(shop: Shop, name: str) -> None:
    await sleep(3)
    await _until(shop, lambda: shop.held_by(name), 1)
    child = shop.workers.pop(name)
    child.signal(signal.SIGKILL)
    await child.ended()
    shop.board.say(f"✗ {name} is killed (SIGKILL) with {await shop.held_by(name)} jobs in hand")
    await _until(shop, lambda: shop.held_by(name), 0)
    shop.board.say(f"✓ {name}'s leases have ended: her jobs are with the others")
    await shop.start_worker("dora")
    shop.board.say("  dora starts in her place")


async def _freeze(shop: Shop, name: str) -> None:
    await _until(shop, lambda: shop.held_by(name), 1)
    shop.workers[name].signal(signal.SIGSTOP)
    while not await _can_write(shop):  # it has the file's only write lock: that is for another day
        shop.workers[name].signal(signal.SIGCONT)
        await sleep(0.1)
        await _until(shop, lambda: shop.held_by(name), 1)
        shop.workers[name].signal(signal.SIGSTOP)
    shop.board.say(f"✗ {name} is frozen (SIGSTOP) with {await shop.held_by(name)} jobs in hand")
    await _until(shop, lambda: shop.held_by(name), 0)
    await sleep(1)
    shop.workers[name].signal(signal.SIGCONT)
    shop.board.say(f"✓ {name} wakes up (SIGCONT) and goes on as if nothing had happened")
    await _until(shop, lambda: _lines(shop.refused), 1)
    shop.board.say(f"✓ {name}'s late writes are refused: {await _lines(shop.refused)}, each by its token")


async def _can_write(shop: Shop) -> bool:
    try:
        async with timeout(1.0), shop.hf.transaction():
            return True
    except TimeoutError:
        return False


async def _lines(file: Path) -> int:
    return file.read_text().count("\n") if file.exists() else 0  # noqa: ASYNC240


async def _until(shop: Shop, ask: Callable[[], Awaitable[int]], wanted: int) -> None:
    """Wait until the answer is at least `wanted`, or exactly none when that is wanted."""
    end = monotonic() + PATIENCE
    while True:
        found = await ask()
        if (found == 0) if wanted == 0 else (found >= wanted):
            return
        if monotonic() > end:
            raise TimeoutError(f"The shop stands still. What its workers said:\n{shop.log.read_text()}")
        await sleep(0.02)


async def _watch(shop: Shop) -> None:
    while True:
        shop.board.show(await count(shop.hf), await shop.running(), len(shop.workers))
        await sleep(0.2)


async def _close(shop: Shop) -> None:
    for child in shop.workers.values():
        child.signal(signal.SIGCONT)
        child.signal(signal.SIGTERM)
    await asyncio.gather(*(child.ended() for child in shop.workers.values()))


async def _verdict(shop: Shop) -> bool:
    audit: Audit = await count(shop.hf)
    refused = await _lines(shop.refused)
    kept = audit.clean and audit.parcels == ORDERS - shop.declined and refused > 0
    lines = [
        "",
        "Counted in the database:",
        f"  orders    {audit.orders:4d}   committed; {shop.declined} declined orders were rolled back with their jobs",
        f"  parcels   {audit.parcels:4d}   one for each order",
        f"  refused   {refused:4d}   writes of the worker that was thought dead",
        "",
        f"  lost {audit.lost}   doubled {audit.doubled}   ghosts {audit.ghosts}",
        "",
        "Every promise was kept." if kept else "A promise was broken.",
    ]
    print("\n".join(lines), flush=True)  # noqa: T201
    return kept
