"""An SMTP server on a loopback port that can misbehave: dies after DATA, refuses, hangs, drops TLS. It keeps a ledger of what it took."""

from __future__ import annotations

import asyncio
import ssl
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any, Self

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session


@dataclass
class Taken:
    """One mail for which the server has answered 250, or would have."""

    recipient: str
    message: EmailMessage

    @property
    def message_id(self) -> str:
        return str(self.message["Message-ID"])


@dataclass
class Faults:
    """What it does instead of its work; each is asked before it answers."""

    die_after_data: Callable[[str], bool] = lambda _: False  # it has the mail, and hangs up without a word
    on_rcpt: dict[str, str] = field(
        default_factory=dict
    )  # recipient -> its answer, such as 550 5.1.1 no such user
    on_data: str | None = None
    hang: bool = False  # it takes the mail, and says nothing until it is stopped
    greeting: str | None = None


class _Handler:
    def __init__(self, server: MailServer) -> None:
        self._server = server

    async def handle_RCPT(  # noqa: N802  aiosmtpd calls it so
        self, _server: Any, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        if (answer := self._server.faults.on_rcpt.get(address)) is not None:
            return answer
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, smtp: Any, _session: Session, envelope: Envelope) -> str:  # noqa: N802
        faults = self._server.faults
        if faults.on_data is not None:
            return faults.on_data
        content = envelope.content if isinstance(envelope.content, bytes) else b""
        message = message_from_bytes(content, policy=policy.default)
        for recipient in envelope.rcpt_tos:
            self._server.taken.append(Taken(recipient, message))
        if faults.hang:
            await asyncio.Event().wait()
        if any(faults.die_after_data(recipient) for recipient in envelope.rcpt_tos):
            smtp.transport.abort()
            return "451 gone"
        return "250 OK"


class MailServer:
    """`with MailServer() as server:` runs in a thread; `stop` and `start` are a server that dies and comes back on its port."""

    def __init__(
        self,
        *,
        login: tuple[str, str] | None = None,
        certificate: Path | None = None,
        tls: str | None = None,  # smtps or starttls
    ) -> None:
        self.faults, self.taken = Faults(), list[Taken]()
        self.port = 0
        self._login, self._tls = login, tls
        self._context: ssl.SSLContext | None = None
        if certificate is not None:
            self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self._context.load_cert_chain(certificate)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}"

    def ids(self) -> list[str]:
        return [each.message_id for each in self.taken]

    def start(self) -> None:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True)
        self._thread.start()
        assert ready.wait(10)

    def stop(self) -> None:
        """Whoever is connected is cut off."""
        if self._thread is not None:
            self._loop.call_soon_threadsafe(self._over.set)
            self._thread.join(10)
            self._thread = None

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        self._lines: set[Any] = set()
        server = await self._loop.create_server(
            self._line, "127.0.0.1", self.port, ssl=self._context if self._tls == "smtps" else None
        )
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await self._over.wait()
        server.close()
        for _ in range(100):  # until all are gone: who was just accepted gets a transport a moment later
            await asyncio.sleep(0.02)
            connected = [line.transport for line in self._lines if line.transport is not None]
            if not connected and len(asyncio.all_tasks()) == 1:
                return
            for transport in connected:
                transport.abort()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    def _line(self) -> SMTP:
        with warnings.catch_warnings():  # it does not see that TLS was there first, and warns of passwords
            warnings.simplefilter("ignore")
            line = self._made()
        if self.faults.greeting is not None:
            line.__ident__ = self.faults.greeting
        self._lines.add(line)
        return line

    def _made(self) -> SMTP:
        return SMTP(
            _Handler(self),
            tls_context=self._context if self._tls == "starttls" else None,
            require_starttls=self._tls == "starttls",
            authenticator=self._authenticate if self._login else None,
            auth_required=self._login is not None,
            auth_require_tls=self._tls == "starttls",
            loop=self._loop,
        )

    def _authenticate(
        self, _server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any
    ) -> AuthResult:
        assert isinstance(data, LoginPassword)
        given = (data.login.decode(), data.password.decode())
        return AuthResult(success=given == self._login, handled=False)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
