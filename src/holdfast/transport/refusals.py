"""Say which messages a broker will not take, before any is sent: those behind them of the same key are not sent either."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.transport.port import Message, Refused


def judged(messages: Sequence[Message], objection: Callable[[Message], str | None]) -> list[Refused | None]:
    """`objection` gives the reason why a message is refused, or None. Messages without a key wait for nobody."""
    stopped: set[str] = set()
    answers: list[Refused | None] = []
    for message in messages:
        if message.key is not None and message.key in stopped:
            answers.append(Refused(f"one of its key {message.key!r} ahead of it was refused", behind=True))
        elif (reason := objection(message)) is not None:
            answers.append(Refused(reason))
            if message.key is not None:
                stopped.add(message.key)
        else:
            answers.append(None)
    return answers


def too_large(size: int, limit: int, where: str) -> str | None:
    if size <= limit:
        return None
    return (
        f"it has {size:,} bytes, and {where} takes at most {limit:,}. "
        "Store large data elsewhere and send its name, or raise the limit."
    )
