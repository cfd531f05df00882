"""What carries a mail away: SMTP, a folder, or a list in a test."""

from __future__ import annotations

from typing import Protocol

from holdfast.mail.letter import Letter


class Carrier(Protocol):
    async def carry(self, letter: Letter, recipient: str) -> None:
        """Hand it over for this recipient. Raises MailNotSent, MailRefused or MailUncertain."""

    async def check(self) -> None:
        """Whether it could: nothing is sent. Raises MailNotSent."""
