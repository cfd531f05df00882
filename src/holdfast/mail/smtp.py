"""Hand a mail to an SMTP server, and say of every failure whether the mail may have been taken."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from holdfast.kernel.here import host
from holdfast.kernel.show import one_line
from holdfast.mail.addresses import mask
from holdfast.mail.errors import MailNotSent, MailRefused, MailUncertain
from holdfast.mail.letter import Letter
from holdfast.mail.settings import Server

if TYPE_CHECKING:
    from aiosmtplib import SMTP

_LONGEST = 300  # characters of a server's answer
_BYE = 2.0  # seconds for a polite end
_FINAL = range(500, 600)


class SmtpCarrier:
    """One connection for each mail: nothing is left open that could break in the middle of the next."""

    def __init__(self, server: Server, *, timeout: float) -> None:
        self._server, self._timeout = server, timeout

    async def carry(self, letter: Letter, recipient: str) -> None:
        async with self._line() as line:
            await self._envelope(line, letter, recipient)
            await self._hand_over(line, letter.render(), recipient)

    async def check(self) -> None:
        """Connect and log in."""
        async with self._line():
            return

    @asynccontextmanager
    async def _line(self) -> AsyncIterator[SMTP]:
        line = self._made()
        try:
            await self._connect(line)
            yield line
            await _leave(line)
        finally:
            line.close()

    def _made(self) -> SMTP:
        from aiosmtplib import SMTP  # noqa: PLC0415  it is an extra, and takes a while

        server = self._server
        return SMTP(
            hostname=server.host, port=server.port, username=server.user, password=server.password,
            use_tls=server.scheme == "smtps", start_tls=server.scheme == "smtp+starttls",
            tls_context=server.tls(), timeout=self._timeout,
            local_hostname=re.sub(r"[^A-Za-z0-9.-]", "-", host()) or "localhost",
        )  # fmt: skip

    async def _connect(self, line: SMTP) -> None:
        """Whatever goes wrong here is no fault of the mail: also a wrong password, which somebody will set right."""
        from aiosmtplib import SMTPException, SMTPResponseException  # noqa: PLC0415

        try:
            await line.connect()
        except SMTPResponseException as error:
            raise MailNotSent(f"{self._server!r} does not let us in: {_said(error)}") from None
        except (SMTPException, OSError) as error:
            raise MailNotSent(f"{self._server!r} cannot be reached: {_told(error)}") from None

    async def _envelope(self, line: SMTP, letter: Letter, recipient: str) -> None:
        """Before the mail itself nothing can have been taken."""
        from aiosmtplib import SMTPException, SMTPResponseException  # noqa: PLC0415

        try:
            await line.mail(letter.sender.spec)
            await line.rcpt(recipient)
        except SMTPResponseException as error:
            raise self._answered(error, recipient) from None
        except (SMTPException, OSError) as error:
            raise MailNotSent(f"{self._server!r} hung up before the mail: {_told(error)}") from None

    async def _hand_over(self, line: SMTP, content: bytes, recipient: str) -> None:
        from aiosmtplib import SMTPException, SMTPResponseException  # noqa: PLC0415

        try:
            await line.data(content)
        except SMTPResponseException as error:
            raise self._answered(error, recipient) from None
        except (SMTPException, OSError) as error:
            raise MailUncertain(
                f"{self._server!r} was given the mail to {mask(recipient)}, and did not answer: {_told(error)}"
            ) from None

    def _answered(self, error: object, recipient: str) -> MailRefused | MailNotSent:
        code = int(getattr(error, "code", 0))
        told = f"the mail to {mask(recipient)}: {hidden(_said(error), recipient)}"
        if code in _FINAL:
            return MailRefused(f"{self._server!r} refuses {told}", code)
        return MailNotSent(f"{self._server!r} does not take {told}", code)

    def __repr__(self) -> str:
        return repr(self._server)


async def _leave(line: SMTP) -> None:
    """The mail is taken: how the connection ends changes nothing."""
    from aiosmtplib import SMTPException  # noqa: PLC0415

    with suppress(SMTPException, OSError):
        await line.quit(timeout=_BYE)


def hidden(text: str, recipient: str) -> str:
    """A server's words, without the address: they stand in logs."""
    return re.sub(re.escape(recipient), lambda _: mask(recipient), text, flags=re.IGNORECASE)


def _said(error: object) -> str:
    text = f"{getattr(error, 'code', '')} {getattr(error, 'message', '')}".strip()
    return _short(text)


def _told(error: Exception) -> str:
    return _short(f"{type(error).__name__}: {error}")


def _short(text: str) -> str:
    text = one_line(" ".join(text.split()))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
