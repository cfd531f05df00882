"""`mailbox`: mails of a program under test come here, and a test says which of them are refused."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import msgspec

from holdfast.mail.errors import MailNotSent, MailRefused, MailUncertain
from holdfast.mail.letter import Letter
from holdfast.runtime.app import Holdfast
from holdfast.runtime.mailing import carry_by


class Received(msgspec.Struct, frozen=True):
    """One mail as one recipient has it."""

    to: str
    message_id: str
    sender: str
    subject: str
    text: str | None
    html: str | None
    raw: bytes  # as it would have gone over the wire


class Mailbox:
    """What was sent so far, in `received`; the same mail twice when it was sent twice."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self._refused: dict[str, int] = {}
        self._doubtful: set[str] = set()

    def of(self, recipient: str) -> list[Received]:
        """What this address has got."""
        return [each for each in self.received if each.to == recipient]

    def refuse(self, recipient: str, code: int = 550) -> None:
        """From now on mails to this address are refused: for now with 4xx, for good with 5xx."""
        self._refused[recipient] = code

    def accept(self, recipient: str) -> None:
        """From now on they are taken again."""
        self._refused.pop(recipient, None)

    def lose_answer(self, recipient: str) -> None:
        """The next mail to this address arrives, and the sender does not hear of it."""
        self._doubtful.add(recipient)

    async def carry(self, letter: Letter, recipient: str) -> None:
        if (code := self._refused.get(recipient)) is not None:
            kind = MailRefused if code >= 500 else MailNotSent
            raise kind(f"the mailbox of this test refuses the mail: {code}", code)
        self.received.append(_received(letter, recipient))
        if recipient in self._doubtful:
            self._doubtful.discard(recipient)
            raise MailUncertain("the mailbox of this test has lost the answer")

    async def check(self) -> None:
        """It can."""


def _received(letter: Letter, recipient: str) -> Received:
    return Received(
        recipient, letter.message_id, letter.sender.spec, letter.subject, letter.text, letter.html, letter.render()
    )  # fmt: skip


@contextmanager
def mailbox(hf: Holdfast) -> Generator[Mailbox, None, None]:
    """`with mailbox(hf) as box:` has the program's mails come into `box.received`, also when it is not told where mail goes."""
    box = Mailbox()
    end = carry_by(hf.mail, box)
    try:
        yield box
    finally:
        end()
