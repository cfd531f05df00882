"""How a mail was not sent: not yet, never, or nobody knows."""

from __future__ import annotations

from holdfast.kernel.errors import HoldfastError


class MailError(HoldfastError):
    """The root of them. `code` is what the server answered to the mail, when it did."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class MailNotSent(MailError):
    """It was not sent, and may be later: the server was not reached, or answered with 4xx, or did not let us in."""


class MailRefused(MailError):
    """The server will never take it: 5xx for its recipient, its sender or its content."""


class MailUncertain(MailError):
    """The connection was lost after the mail had been handed over: nobody knows whether it was taken."""
