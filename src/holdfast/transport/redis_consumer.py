"""One member of a group on a Redis stream: new messages, and those that others have held too long."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import NotOpen, TransportUnavailable, UsageError
from holdfast.kernel.names import check_int, check_seconds
from holdfast.kernel.portions import PORTION
from holdfast.kernel.show import show
from holdfast.kernel.telemetry import note
from holdfast.transport.port import Received
from holdfast.transport.redis_link import GroupMissing, Link

_LOOK_EVERY = 1.0  # seconds between two looks for what others hold too long, or have given back
_FOR_EVER = 2**40  # milliseconds: held longer than any group allows
_MOST = 10_000
_STEP = 10  # messages taken before their bytes are looked at
_AT_ONCE = 1_000
_START = b"0-0"
_MARK = re.compile(r"\d{1,20}-\d{1,20}", re.ASCII)


class RedisConsumer:
    def __init__(self, link: Link, topic: str, group: str, member: str, *, redeliver_after: float) -> None:
        self._link, self._topic, self._group, self._member = link, topic, group, member
        self._redeliver_after = redeliver_after
        self._next_look = 0.0
        self._look_from = _START
        self._held: dict[str, float] = {}  # marks that were handed out, and until when each is ours
        # Behind which of our messages there may be some that we never got; None: there are none. One of our name may have been here before.
        self._doubt: bytes | None = _START

    async def join(self, *, from_start: bool) -> None:
        await self._link.run("join", self._topic, self._group, int(from_start))

    async def fetch(self, limit: int, *, wait: float) -> list[Received]:
        check_int("limit", limit, 1, _MOST)
        end = monotonic() + check_seconds("wait", wait)
        while True:
            try:
                found = await self._look(limit, end)
            except GroupMissing as error:
                await self._join_again(error)
                continue
            if found or monotonic() >= end:
                return self._hold(found)

    async def _look(self, limit: int, end: float) -> list[Received]:
        if self._doubt is not None and (found := await self._unheard(limit)):
            return found  # and nothing newer: it would overtake what is still to be looked through
        self._doubt = _START  # until the answer is here: the server may have given what we never get
        found = await self._overdue(limit)
        if len(found) < limit:
            rest = 0.0 if found else min(end, self._next_look) - monotonic()
            found += await self._new(limit - len(found), PORTION - _bytes(found), rest)
        self._doubt = None
        return found

    def _hold(self, found: list[Received]) -> list[Received]:
        now = monotonic()
        if len(self._held) > _MOST:
            self._held = {mark: until for mark, until in self._held.items() if until > now}
        self._held.update((each.mark, now + self._redeliver_after) for each in found)
        return found

    async def _unheard(self, limit: int) -> list[Received]:
        """What the server has given us in an answer that was lost, or that nobody waited for any more."""
        found: list[Received] = []
        place, now = self._doubt, monotonic()
        while place is not None and len(found) < limit and _bytes(found) < PORTION:
            answer = await self._link.call(
                "XREADGROUP", "GROUP", self._group, self._member, "COUNT", min(_STEP, limit - len(found)),
                "STREAMS", self._topic, place,
            )  # fmt: skip
            entries = answer[0][1]
            given = _received(entries, redelivered=True)
            found += [each for each in given if self._held.get(each.mark, now) <= now]
            place = entries[-1][0] if entries else None
        self._doubt = place
        return found

    async def _join_again(self, error: GroupMissing) -> None:
        """From the start: nobody knows what of the messages that came since then the group has had."""
        await self.join(from_start=True)
        self._look_from = _START
        note(
            "transport.group_lost", transport="redis", topic=self._topic, group=self._group, error=str(error)
        )

    async def _overdue(self, limit: int) -> list[Received]:
        """What somebody has held for too long, or has given back: in parts, from where the last look ended."""
        found: list[Received] = []
        while monotonic() >= self._next_look and len(found) < limit and _bytes(found) < PORTION:
            self._look_from, entries, *_ = await self._link.call(
                "XAUTOCLAIM", self._topic, self._group, self._member, max(1, int(self._redeliver_after * 1000)),
                self._look_from, "COUNT", min(_STEP, limit - len(found)),
            )  # fmt: skip
            found += _received(entries, redelivered=True)
            if self._look_from == _START:
                self._next_look = monotonic() + min(_LOOK_EVERY, self._redeliver_after)
            if not entries:
                break
        return found

    async def _new(self, limit: int, room: int, wait: float) -> list[Received]:
        """What is there; else the first few that come within the time."""
        entries = await self._link.run("read", self._topic, self._group, self._member, limit, room, _STEP)
        if entries:
            return _received((mark, _fields(flat)) for mark, flat in entries)
        milliseconds = int(wait * 1000)
        if milliseconds <= 0:  # 0 would be without end
            return []
        answer = await self._link.call(
            "XREADGROUP", "GROUP", self._group, self._member, "COUNT", min(_STEP, limit), "BLOCK", milliseconds,
            "STREAMS", self._topic, ">", longer=wait,
        )  # fmt: skip
        return _received(answer[0][1]) if answer else []

    async def ack(self, marks: Sequence[str]) -> None:
        _check(marks)
        for place in range(0, len(marks), _AT_ONCE):
            part = marks[place : place + _AT_ONCE]
            await self._link.call("XACK", self._topic, self._group, *part)
            self._drop(part)

    async def give_back(self, marks: Sequence[str]) -> None:
        _check(marks)
        for place in range(0, len(marks), _AT_ONCE):
            part = marks[place : place + _AT_ONCE]
            await self._set_free(part)
            self._drop(part)
        self._next_look, self._look_from = 0.0, _START  # it may be this one who takes them again, and first

    def _drop(self, marks: Iterable[str]) -> None:
        for mark in marks:
            self._held.pop(mark, None)

    async def close(self) -> None:
        with suppress(TransportUnavailable, NotOpen):
            await self._set_free([], leaves=True)

    async def _set_free(self, marks: Iterable[str], *, leaves: bool = False) -> None:
        args = (self._group, self._member, _FOR_EVER, int(leaves), *marks)
        await self._link.run("give_back", self._topic, *args)


def _bytes(found: Sequence[Received]) -> int:
    return sum(len(each.body) for each in found)


def _fields(flat: Sequence[bytes]) -> dict[bytes, bytes]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _received(entries: Any, *, redelivered: bool = False) -> list[Received]:
    """An entry without fields was deleted by hand."""
    return [Received(_body(fields), mark.decode(), redelivered) for mark, fields in entries if fields]


def _body(fields: dict[bytes, bytes]) -> bytes:
    """One that is not ours has no body: its fields are given, in pairs, which are no event but can be kept for a person."""
    found = fields.get(b"body")
    return (
        msgspec.json.encode([(_text(name), _text(value)) for name, value in fields.items()])
        if found is None
        else found
    )


def _text(value: bytes) -> str:
    return value.decode(errors="backslashreplace")


def _check(marks: Sequence[Any]) -> None:
    for mark in marks:
        if not isinstance(mark, str) or _MARK.fullmatch(mark) is None:
            raise UsageError(
                f"{show(mark)} is not the mark of a message of Redis, such as '1700000000000-0'."
            )
