"""What it does with a mail: takes it, refuses it, or takes it and does not say so."""

from __future__ import annotations

import asyncio
from email import message_from_bytes, policy
from typing import Any

from aiosmtpd.smtp import SMTP, Envelope, Session

from simulators.common.clock import Clock
from simulators.common.faults import Faults
from simulators.common.ledger import Ledger
from simulators.smtp.settings import Settings

# At `rcpt`: refused for now or for good. At `data`: the same, or it is taken and the answer is lost.
KINDS = frozenset({"451", "550", "refused", "lost", "silent"})
SILENCE = 3600.0


class Taking:
    """aiosmtpd calls these."""

    def __init__(self, faults: Faults, ledger: Ledger, clock: Clock, settings: Settings) -> None:
        self._faults, self._ledger, self._clock, self._settings = faults, ledger, clock, settings

    async def handle_RCPT(  # noqa: N802  aiosmtpd calls it so
        self, smtp: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        fault = self._faults.next("rcpt", address)
        if fault is not None and fault.kind in ("451", "550"):
            return f"{fault.kind} {'5.1.1 no such mailbox' if fault.kind == '550' else '4.2.1 try later'}"
        if fault is not None:
            return _cut(smtp)
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, smtp: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802
        with self._ledger.call("data"):
            await asyncio.sleep(self._settings.answers_in)
            fault = self._faults.next("data", envelope.rcpt_tos[0])
            match None if fault is None else fault.kind:
                case "451":
                    return "451 4.3.0 try later"
                case "550":
                    return "550 5.7.1 not wanted"
                case "refused":
                    return _cut(smtp)
            self._take(envelope)
            match None if fault is None else fault.kind:
                case "lost":
                    return _cut(smtp)
                case "silent":
                    await asyncio.sleep(SILENCE)
        return "250 OK"

    def _take(self, envelope: Envelope) -> None:
        content = envelope.content if isinstance(envelope.content, bytes) else b""
        message = message_from_bytes(content, policy=policy.default)
        text = message.get_body(("plain",))
        for recipient in envelope.rcpt_tos:
            self._ledger.add(
                "mail",
                to=recipient,
                message_id=str(message["Message-ID"]),
                subject=str(message["Subject"]),
                text="" if text is None else text.get_content(),
                at=self._clock.now(),
            )


def _cut(smtp: Any) -> str:
    smtp.transport.abort()
    return "451 gone"
