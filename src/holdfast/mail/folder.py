"""Write mails into a folder, for development: each is a file that a mail program opens."""

from __future__ import annotations

import hashlib
import os
import re
from functools import partial
from pathlib import Path

from holdfast.kernel.ids import new_id
from holdfast.kernel.loops import call_in_thread
from holdfast.mail.addresses import mask
from holdfast.mail.errors import MailNotSent
from holdfast.mail.letter import Letter


class FolderCarrier:
    """A mail that is sent again is the same file."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    async def carry(self, letter: Letter, recipient: str) -> None:
        content = f"X-Envelope-To: {recipient}\r\n".encode() + letter.render()
        try:
            await call_in_thread(partial(self._write, self._path / _name(letter, recipient), content))
        except OSError as error:
            raise MailNotSent(
                f"The mail to {mask(recipient)} could not be written to {self._path}: {error}"
            ) from error

    async def check(self) -> None:
        try:
            await call_in_thread(partial(self._path.mkdir, parents=True, exist_ok=True))
        except OSError as error:
            raise MailNotSent(f"The folder {self._path} cannot be made: {error}") from error
        if not os.access(self._path, os.W_OK | os.X_OK):
            raise MailNotSent(f"Nothing can be written to {self._path}.")

    def _write(self, file: Path, content: bytes) -> None:
        """Whole or not at all."""
        self._path.mkdir(parents=True, exist_ok=True)
        beside = file.with_name(f".{new_id()}.part")
        with beside.open("wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        beside.replace(file)


def _name(letter: Letter, recipient: str) -> str:
    """The same for the same mail, and another for each recipient: `a+b@…` and `a_b@…` have the same letters in it."""
    whole = f"{letter.message_id.strip('<>')}-{recipient}"
    mark = hashlib.sha256(whole.encode()).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9.@-]', '_', whole)[:200]}-{mark}.eml"
