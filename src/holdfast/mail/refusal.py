"""What a program hears of a mail that a server has taken, or refused for good."""

from __future__ import annotations

import msgspec


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One recipient of one mail, for whom the server has said that it has it. `about` is what the sender said that the mail is about."""

    recipient: str
    message_id: str
    about: str | None


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """One recipient of one mail. `about` is what the sender said that the mail is about."""

    recipient: str
    code: int
    answer: str  # the server's words
    message_id: str
    about: str | None
