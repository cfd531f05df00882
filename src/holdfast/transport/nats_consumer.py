"""One member of a group on JetStream: it asks for as many messages as it has room for, and acknowledges each."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from holdfast.kernel.clock import monotonic, patience
from holdfast.kernel.errors import NotOpen, TransportUnavailable, UsageError
from holdfast.kernel.names import check_int, check_seconds
from holdfast.kernel.portions import PORTION
from holdfast.kernel.show import show
from holdfast.kernel.telemetry import note
from holdfast.transport.nats_api import GROUP_FIELD, SECOND, Api, Exists, Missing, status_of
from holdfast.transport.nats_link import FAILURES, Connection, Link
from holdfast.transport.nats_names import one_word
from holdfast.transport.port import Received

_SLICE = 5.0  # seconds for which the server waits on our behalf: a frozen one is noticed after it
_MOST = 10_000
_UNACKNOWLEDGED = 10_000  # of all members together; the server gives no more
_NOTHING = ("404", "408")  # no messages; none came in time
_TOO_LARGE = "409"
_STEP = 10  # messages that come again, taken before their bytes are looked at
_AT_ONCE = 1_000
_MARK = re.compile(r"\$JS\.ACK\.[^\s*>]+")


class NatsConsumer:
    def __init__(
        self,
        link: Link,
        api: Api,
        stream_again: Callable[[], Awaitable[None]],
        group: str,
        *,
        redeliver_after: float,
    ) -> None:
        self._link, self._api, self._stream_again, self._group = link, api, stream_again, group
        self._redeliver_after = redeliver_after
        self._word = one_word(group)
        self._inbox: _Inbox | None = None
        self._held: dict[str, float] = {}  # marks, and until when each is ours

    async def join(self, *, from_start: bool) -> None:
        try:
            found = await self._api.group(self._word)
        except Missing:
            with suppress(Exists):  # another member was quicker
                await self._api.make_group(self._config(from_start=from_start), "create")
            return
        wait = int(self._redeliver_after * SECOND)
        if found.config.get("ack_wait") != wait:
            await self._api.make_group({**found.config, "ack_wait": wait}, "update")

    def _config(self, *, from_start: bool) -> dict[str, Any]:
        return {
            "durable_name": self._word,
            "name": self._word,
            "deliver_policy": "all" if from_start else "new",
            "ack_policy": "explicit",
            "ack_wait": int(self._redeliver_after * SECOND),
            "max_ack_pending": _UNACKNOWLEDGED,
            "metadata": {GROUP_FIELD: self._group},
        }

    async def fetch(self, limit: int, *, wait: float) -> list[Received]:
        check_int("limit", limit, 1, _MOST)
        end = monotonic() + check_seconds("wait", wait)
        while True:
            try:
                found = await self._look(limit, end)
            except Missing as error:
                await self._join_again(error)
                continue
            if found or monotonic() >= end:
                return self._hold(found)

    async def _look(self, limit: int, end: float) -> list[Received]:
        inbox = await self._listen()
        if inbox.arrived:  # for a call that was given up
            return inbox.taken(limit)
        found = await self._pull(inbox, 1, 0.0)
        rest = min(end - monotonic(), _SLICE)
        if not found and rest > 0:
            # One only: a request stays with the server after the first message, and would get more than there is room for.
            found = await self._pull(inbox, 1, rest)
            if monotonic() >= end:  # long ago, maybe: who stood still may not be the one who reads any more
                return found
        while found and len(found) < limit and (room := PORTION - _bytes(found)) > 0:
            # Of what comes again the server puts one that has no room behind all the others: so it is not told how much there is.
            again = found[-1].redelivered
            asked = min(_STEP, limit - len(found)) if again else limit - len(found)
            more = await self._pull(inbox, asked, 0.0, room=None if again else room)
            found += more
            if not (again and more):
                break
        return found

    async def _listen(self) -> _Inbox:
        connection = await self._link.connection()
        if self._inbox is None or self._inbox.connection is not connection:
            self._inbox = _Inbox(connection)
            await self._link.in_time(self._inbox.begin())
        return self._inbox

    async def _pull(self, inbox: _Inbox, limit: int, wait: float, room: int | None = None) -> list[Received]:
        """`room`: bytes that all of them may have together. When the next one has more, none comes."""
        asked: dict[str, Any] = {"batch": limit} if room is None else {"batch": limit, "max_bytes": room}
        asked |= {"expires": int(max(wait, 0.001) * SECOND)} if wait else {"no_wait": True}
        try:
            async with patience(wait + self._link.patience):
                status = await inbox.pull(self._api.next_of(self._word), msgspec.json.encode(asked), limit)
        except FAILURES as error:
            raise await self._link.broke(inbox.connection, error) from error
        is_full = room is not None and status is not None and status[0] == _TOO_LARGE
        if status is not None and status[0] not in _NOTHING and not is_full and not inbox.arrived:
            await self._understand(*status)
        return inbox.taken(limit)

    async def _understand(self, status: str, text: str) -> None:
        """Raises Missing when the group is gone, and TransportUnavailable when the server only cannot do it now."""
        await self._api.group(self._word)
        raise TransportUnavailable(f"NATS at {self._link.shown} could not do it ({status} {text}).")

    async def _join_again(self, error: Missing) -> None:
        """From the start: nobody knows what of the messages that came since then the group has had."""
        await self._stream_again()
        await self.join(from_start=True)
        note("transport.group_lost", transport="nats", group=self._group, error=str(error))

    def _hold(self, found: list[Received]) -> list[Received]:
        now = monotonic()
        if len(self._held) > _UNACKNOWLEDGED:
            self._held = {mark: until for mark, until in self._held.items() if until > now}
        self._held.update((each.mark, now + self._redeliver_after) for each in found)
        return found

    async def ack(self, marks: Sequence[str]) -> None:
        _check(marks)
        await self._tell(marks, b"+ACK")

    async def give_back(self, marks: Sequence[str]) -> None:
        """What is not ours any more is left with whoever has it."""
        _check(marks)
        now = monotonic()
        await self._tell([mark for mark in marks if self._held.get(mark, 0.0) > now], b"-NAK")

    async def _tell(self, marks: Sequence[str], word: bytes) -> None:
        for place in range(0, len(marks), _AT_ONCE):
            part = marks[place : place + _AT_ONCE]
            connection = await self._link.connection()
            answers = await self._link.answers(connection, ((mark, word, None) for mark in part))
            if any(status_of(answer) for answer in answers):  # nobody listens
                with suppress(Missing):  # a group that is gone has nothing to be told
                    await self._understand("503", "no answer to an acknowledgement")
            for mark in part:
                self._held.pop(mark, None)

    async def close(self) -> None:
        inbox, self._inbox = self._inbox, None
        if inbox is not None:
            self._hold(inbox.taken(_MOST))
        with suppress(TransportUnavailable, NotOpen):
            await self.give_back(list(self._held))
        if inbox is not None:
            with suppress(*FAILURES):
                await inbox.end()


class _Inbox:
    """Where the server sends messages, on one connection. What comes for a call that was given up is for the next."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arrived: deque[Any] = deque()
        self._subject: str = connection.client.new_inbox()
        self._subscription: Any = None
        self._number = 0
        self._status: tuple[str, str] | None = None
        self._changed = asyncio.Event()

    async def begin(self) -> None:
        self._subscription = await self.connection.client.subscribe(
            f"{self._subject}.*", cb=self._came, pending_bytes_limit=0
        )
        self.connection.on_loss(self._changed.set)

    async def end(self) -> None:
        await self._subscription.unsubscribe()

    async def _came(self, message: Any) -> None:
        status = status_of(message)
        if status is None:
            self.arrived.append(message)
        elif (
            message.subject == f"{self._subject}.{self._number}"
        ):  # else it is about a call that was given up
            self._status = status, message.headers.get("Description", "")
        self._changed.set()

    async def pull(self, asked_of: str, asked: bytes, limit: int) -> tuple[str, str] | None:
        """Return when so many have arrived, or when the server says that there are no more: its status."""
        self._number += 1
        self._status = None
        await self.connection.client.publish(asked_of, asked, reply=f"{self._subject}.{self._number}")
        while len(self.arrived) < limit and self._status is None:
            if not self.connection.alive:
                raise ConnectionResetError("the connection was cut")
            self._changed.clear()
            await self._changed.wait()
        return self._status

    def taken(self, limit: int) -> list[Received]:
        found = [self.arrived.popleft() for _ in range(min(limit, len(self.arrived)))]
        return [
            Received(message.data, message.reply, _times(message.reply) > 1, message.headers or {})
            for message in found
        ]


def _bytes(found: Sequence[Received]) -> int:
    return sum(len(each.body) for each in found)


def _times(mark: str) -> int:
    """How often it was delivered: $JS.ACK.stream.group.times.…, or with the domain and the account before the stream."""
    words = mark.split(".")
    return int(words[4] if len(words) == 9 else words[6])


def _check(marks: Sequence[Any]) -> None:
    for mark in marks:
        if not isinstance(mark, str) or _MARK.fullmatch(mark) is None:
            raise UsageError(f"{show(mark)} is not the mark of a message of NATS, such as '$JS.ACK.…'.")
