"""The simulated clamd: its protocol on one port, and on another what it saw, and what drives it."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

from starlette.applications import Starlette

from simulators.clamd.scanning import KINDS, answer
from simulators.clamd.settings import Settings
from simulators.common.clock import Clock
from simulators.common.control import Control
from simulators.common.faults import Faults
from simulators.common.ledger import Ledger

_PATIENCE = 10.0


class Simulator:
    """`with Simulator() as clamd:` scans at `clamd.address`; `clamd.app` is what drives it."""

    def __init__(self, seed: int = 0, *, port: int = 0) -> None:
        self.ledger, self.clock, self.settings = Ledger(), Clock(), Settings()
        self.faults = Faults(KINDS, seed)
        self.port = port
        control = Control(self.faults, self.ledger, self.clock, self.settings.shown, self.settings.change)
        self.app = Starlette(routes=[control.mount()])

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True)
        self._thread.start()
        if not ready.wait(_PATIENCE):
            raise RuntimeError("the simulated clamd did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(_PATIENCE)

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._line, "127.0.0.1", self.port)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await self._over.wait()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _line(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Whoever hangs up in the middle has only themselves to ask."""
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await answer(reader, writer, self.faults, self.ledger, self.settings)
        finally:
            writer.close()
