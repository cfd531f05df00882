"""Does all reading of this process, each question in one snapshot, beside the writer."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from holdfast.kernel.spawn import deliver
from holdfast.kernel.world import Pause, Take
from holdfast.store.sqlite.served import Served, Stop, Work, explained


class Reader(Served):
    name = "holdfast-reader"

    def _body(self) -> Generator[Take[Any] | Pause, Any, Stop]:
        while True:
            for item in (yield Take(self._inbox)):
                if isinstance(item, Stop):
                    self._db.close()
                    return item
                deliver([(item.reply, self._read(item))])

    def _read(self, work: Work[Any]) -> Any:
        try:
            self._db.begin("DEFERRED")
            return work.call(self._db)
        except Exception as error:  # noqa: BLE001  it is the answer to whoever asked
            return explained(error)
        finally:
            self._db.rollback()
