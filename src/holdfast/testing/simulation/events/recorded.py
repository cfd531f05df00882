"""A store that writes down what relays, consumers and views ask it, too."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from holdfast.store.event_records import Delivery, OutboxEvent
from holdfast.store.records import Lease
from holdfast.store.sqlite.inbox import Inbox
from holdfast.store.sqlite.outbox import Outbox
from holdfast.store.sqlite.subject import File
from holdfast.store.sqlite.views import Views
from holdfast.store.view_records import ViewBatch
from holdfast.testing.simulation.history import History
from holdfast.testing.simulation.service.recorded import RecordedStore


class EventfulStore(RecordedStore):
    def __init__(self, path: str, history: History) -> None:
        super().__init__(path, history)
        self.outbox = RecordedOutbox(self, history)
        self.inbox = RecordedInbox(self, history)
        self.views = RecordedViews(self, history)


class RecordedOutbox(Outbox):
    def __init__(self, file: File, history: History) -> None:
        super().__init__(file)
        self._history = history

    async def waiting(self, lease: Lease, *, limit: int) -> list[OutboxEvent]:
        work = partial(super().waiting, lease, limit=limit)
        call = self._history.ask("waiting", lease.token)
        try:
            answer = await work()
        except Exception as error:
            self._history.fail(call, error)
            raise
        self._history.answer(call, len(answer))
        return answer

    async def stamp(self, lease: Lease, ids: Sequence[str]) -> list[int] | None:
        work = partial(super().stamp, lease, ids)
        return await self._history.call("stamp", (lease.token, list(ids)), work)


class RecordedViews(Views):
    def __init__(self, file: File, history: History) -> None:
        super().__init__(file)
        self._history = history

    async def apply(self, lease: Lease, batch: ViewBatch) -> bool:
        asked = (batch.view, batch.generation, batch.after, batch.upto)
        return await self._history.call("apply view", asked, partial(super().apply, lease, batch))


class RecordedInbox(Inbox):
    def __init__(self, file: File, history: History) -> None:
        super().__init__(file)
        self._history = history

    async def deliver(
        self,
        group: str,
        deliveries: Sequence[Delivery],
        *,
        upto: int | None = None,
        seen: Sequence[str] = (),
        lease: Lease | None = None,
    ) -> list[bool] | None:
        work = partial(super().deliver, group, deliveries, upto=upto, seen=seen, lease=lease)
        asked = (group, [each.event_id for each in deliveries], upto)
        return await self._history.call("deliver", asked, work)
