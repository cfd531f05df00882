"""The simulated mail server: SMTP on one port, and on another what it took, and what drives it."""

from __future__ import annotations

import asyncio
import html
import threading
import warnings
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from aiosmtpd.smtp import SMTP
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from simulators.common.clock import Clock
from simulators.common.control import Control
from simulators.common.faults import Faults
from simulators.common.ledger import Ledger
from simulators.smtp.settings import Settings
from simulators.smtp.taking import KINDS, Taking

_PATIENCE = 10.0
_NEWEST = 200
_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
details { border-top: 1px solid color-mix(in srgb, currentColor 18%, transparent); padding: .5rem 0; }
pre { white-space: pre-wrap; }
"""


class Simulator:
    """`with Simulator() as smtp:` takes mails at `smtp.url`; `smtp.app` is the page of what it took."""

    def __init__(self, seed: int = 0, *, port: int = 0) -> None:
        self.ledger, self.clock, self.settings = Ledger(), Clock(), Settings()
        self.faults = Faults(KINDS, seed)
        self.port = port
        control = Control(self.faults, self.ledger, self.clock, self.settings.shown, self.settings.change)
        self.app = Starlette(routes=[Route("/", self._page), control.mount()])

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True)
        self._thread.start()
        if not ready.wait(_PATIENCE):
            raise RuntimeError("the simulated mail server did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(_PATIENCE)

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        server = await self._loop.create_server(self._line, "127.0.0.1", self.port)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await self._over.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    def _line(self) -> SMTP:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            taking: Any = Taking(self.faults, self.ledger, self.clock, self.settings)
            return SMTP(taking, loop=self._loop)

    async def _page(self, _: Request) -> Response:
        mails = self.ledger.find("mail")[-_NEWEST:][::-1]
        shown = "".join(_drawn(each) for each in mails) or "<p>No mail yet.</p>"
        return HTMLResponse(
            f'<!doctype html><html lang="en"><title>Mails</title><style>{_STYLE}</style><h1>Mails</h1>{shown}</html>'
        )


def _drawn(mail: dict[str, Any]) -> str:
    at = datetime.fromtimestamp(mail["at"], UTC).strftime("%d %b, %H:%M:%S UTC")
    to, subject, text = (html.escape(str(mail[name])) for name in ("to", "subject", "text"))
    return f"<details><summary>{at} to {to}: <b>{subject}</b></summary><pre>{text}</pre></details>"
