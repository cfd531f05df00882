"""Write mails into a folder, for development: each is a file that a mail program opens."""

from __future__ import annotations

import os
import re
from pathlib import Path

from holdfast.mail.addresses import mask
from holdfast.mail.errors import MailNotSent
from holdfast.mail.letter import Letter


class FolderCarrier:
    """A mail that is sent again is the same file."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    async def carry(self, letter: Letter, recipient: str) -> None:
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            name = re.sub(r"[^A-Za-z0-9.@-]", "_", f"{letter.message_id.strip('<>')}-{recipient}")[:200]
            self._write(
                self._path / f"{name}.eml", f"X-Envelope-To: {recipient}\r\n".encode() + letter.render()
            )
        except OSError as error:
            raise MailNotSent(
                f"The mail to {mask(recipient)} could not be written to {self._path}: {error}"
            ) from error

    def _write(self, file: Path, content: bytes) -> None:
        """Whole or not at all."""
        beside = file.with_suffix(".part")
        with beside.open("wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        beside.replace(file)
