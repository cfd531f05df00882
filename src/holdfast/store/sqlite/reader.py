"""Does all reading of this process, each question in one snapshot, beside the writer."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from holdfast.kernel.spawn import Reply, deliver
from holdfast.kernel.world import Body, Pause, Take
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.served import Served, Stop, Work, explained


class Reader(Served):
    name = "holdfast-reader"

    def __init__(self, opened: Callable[[], Db]) -> None:
        super().__init__(opened)
        self._works: list[Work[Any]] = []

    def _body(self) -> Body:
        while not self._stops:
            items = yield Take(self._inbox)
            self._stops += [item for item in items if isinstance(item, Stop)]
            self._works += [item for item in items if isinstance(item, Work)]
            while self._works:
                work = self._works[0]
                deliver([(work.reply, (yield from self._read(work)))])
                del self._works[0]

    def _unanswered(self) -> list[Reply[Any]]:
        return [work.reply for work in self._works]

    def _read(self, work: Work[Any]) -> Generator[Take[Any] | Pause, Any, Any]:
        try:
            yield from self._awake()
            self._db.begin("DEFERRED")
            return work.call(self._db)
        except Exception as error:  # noqa: BLE001  it is the answer to whoever asked
            return explained(error)
        finally:
            self._db.rollback()
