"""Choreography: handlers that answer each other's events, watched as one saga by the story that the events belong to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from holdfast.events.event import Event
from holdfast.events.patterns import check_type
from holdfast.kernel.codec import encode
from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_name, check_seconds
from holdfast.sagas.endings import Failed
from holdfast.sagas.running import RunningSaga
from holdfast.sagas.stuck import Stuck
from holdfast.store.ports import Store, Tx
from holdfast.store.saga_records import STUCK, NewSaga, SagaState

GROUP = "choreography:{}"  # the group of handlers that hears for it
_SIGNAL = "event"


class Heard(msgspec.Struct, frozen=True):
    """An event of the story, as the saga that watches it is told."""

    type: str
    id: str
    key: str | None = None


class Choreography:
    """`begins` starts a story, `ends` and `undone_by` end it; what does neither `within` so many seconds is stuck."""

    def __init__(
        self,
        name: str,
        *,
        begins: str,
        ends: Sequence[str],
        undone_by: Sequence[str],
        steps: Sequence[str],
        within: float,
    ) -> None:
        self.name = check_name("saga", name)
        for what, types in (("ends", ends), ("undone_by", undone_by), ("steps", steps)):
            if isinstance(types, str):
                raise UsageError(f"{what} is a list of event types, not one text: {what}=[{types!r}].")
        if not ends:
            raise UsageError(f'Say by which events {name!r} ends: ends=["battle.notified"].')
        self._begins = check_type(begins)
        self._ends = frozenset(map(check_type, ends))
        self._undone_by = frozenset(map(check_type, undone_by))
        self.hears = tuple(dict.fromkeys([self._begins, *map(check_type, steps), *ends, *undone_by]))
        self._within = check_seconds("within", within, minimum=0.001)

    async def watch(self, saga: RunningSaga) -> str:
        """The saga that stands for one story: it does nothing but hear how far that is."""
        last = None
        while True:
            late = self._late(last)
            told = await saga._signal_or(_SIGNAL, self._within, late)  # noqa: SLF001  no verb of programs
            heard = msgspec.convert(told, type=Heard)
            last = heard.type
            if heard.type in self._ends:
                return heard.type
            if heard.type in self._undone_by:
                raise Failed(f"The event {heard.type} ({heard.id}) says that it was undone.")

    def _late(self, last: str | None) -> Stuck:
        told = f"its last event was {last}" if last else "none of its events was heard"
        wanted = ", ".join(sorted(self._ends | self._undone_by))
        return Stuck(
            SagaState.NEEDS_OPERATOR,
            f"It has not gone on for {self._within:g} s: {told}. One of these would end it: {wanted}.",
        )

    def handler(
        self, store: Callable[[], Store], new: Callable[[str], NewSaga]
    ) -> Callable[[Event[Any], Tx], Awaitable[None]]:
        """Tells the saga of each event, in the transaction that handles it. Whichever event comes first, starts it."""

        async def hear(event: Event[Any], tx: Tx) -> None:
            sagas = store().sagas
            saga_id = f"{self.name}:{event.correlation_id or event.id}"
            await sagas.start([new(saga_id)], tx=tx)
            value = encode(Heard(event.type, event.id, event.key))
            answer = await sagas.signal(saga_id, _SIGNAL, value, tx=tx)
            if answer.state in STUCK:
                await sagas.retry(saga_id, actor=f"event:{event.id}", tx=tx)

        return hear
