"""The model's rows, and how those that wait become ready: promote, keys that are passed on, tenants' windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, count, zip_longest

from holdfast.store.fairness import first_rank
from holdfast.store.records import NewJob
from holdfast.store.states import Held
from holdfast.testing.conformance.model_row import Row

WINDOW = 100  # a tenant's, where the verb does not say
ONE = 1  # where no claim has said how many it wants: the next one does


class Waiting:
    def __init__(self, now: float) -> None:
        self.now = now
        self.rows: dict[str, Row] = {}
        self.paused: set[str] = set()
        self.stopped: dict[str, bool] = {}  # tenants: paused, or (False) resumed and not all let go
        self._rank, self._token = count(1), count(1)
        self._after = ("", "")  # the queue and tenant that had the last turn in a crowd

    # From held to ready.

    def promote(self, *, window: int, limit: int) -> int:
        arrived = sorted(self._where(lambda row: row.held is Held.ARRIVED), key=lambda row: row.rank)
        due = self._where(lambda row: row.held is Held.TIME and self._due(row))
        due.sort(key=lambda row: (row.run_at or 0, row.rank))
        due = self._with_released(due, limit)
        room = limit - min(len(due), limit // 2)  # neither kind keeps the other out
        early = self._some_of_each(arrived, room // 2) if len(arrived[:limit]) >= room > 1 else []
        chosen = [*early, *(row for row in arrived if row not in early)][:room]
        looked_at = [*sorted(chosen, key=lambda row: row.rank), *due][:limit]
        for row in looked_at:
            self._climb(row, window, behind=True)
        for queue, tenant in sorted({_place(row) for row in looked_at if row.job.tenant is not None}):
            self._fill_window(queue, tenant, window)
        return len(looked_at)

    def _with_released(self, due: Sequence[Row], limit: int) -> list[Row]:
        """Those that are due take turns with some of each tenant that was resumed; one that has none left is forgotten."""
        released: list[Row] = []
        resumed = sorted(tenant for tenant, is_paused in self.stopped.items() if not is_paused)
        for tenant in resumed:
            rows = self._where(lambda row: row.held is Held.PAUSED and row.job.tenant == tenant)  # noqa: B023
            released += sorted(rows, key=lambda row: row.by_priority)[: max(1, limit // len(resumed))]
            if not rows:
                del self.stopped[tenant]
        pairs = zip_longest(due, released)
        return [row for pair in pairs for row in pair if row is not None]

    def pause_tenant(self, tenant: str) -> None:
        if not self.stopped.get(tenant, False):
            self.stopped[tenant] = True
            self._hold_ready(tenant)

    def resume_tenant(self, tenant: str) -> None:
        if tenant in self.stopped:
            self.stopped[tenant] = False

    def _hold_ready(self, tenant: str) -> None:
        ready = self._where(lambda row: row.ready and row.job.tenant == tenant)
        with_slot = self._where(
            lambda row: row.held is Held.TENANT and row.slot is not None and row.job.tenant == tenant
        )
        rows = sorted(ready, key=lambda row: row.rank) + sorted(with_slot, key=lambda row: row.by_priority)
        first = first_rank(next(self._rank)) if rows else 0
        for place, row in enumerate(rows):
            row.held, row.slot, row.rank = Held.PAUSED, None, first + place
        self._pass_on([row for row in rows if row.job.concurrency is not None], slots_only=True)

    def _some_of_each(self, arrived: Sequence[Row], most: int) -> list[Row]:
        """In a crowd, the oldest of each queue and tenant, in turns; none whose order has an earlier job elsewhere."""
        places: dict[tuple[str, str], list[Row]] = {}
        for row in arrived:
            places.setdefault(_place(row), [])
            earlier = (other for other in arrived if other.rank < row.rank and other.job.ordered is not None)
            if all(other.job.ordered != row.job.ordered or _place(other) == _place(row) for other in earlier):
                places[_place(row)].append(row)
        turn = [place for place in sorted(places) if place > self._after][:most]
        self._after = turn[-1] if len(turn) >= most > 0 else ("", "")
        return [row for place in turn for row in places[place][: most // len(turn)]]

    def unhold(self, reason: Held, *, queue: str | None, guard: str | None, limit: int) -> int:
        freed = self._where(
            lambda row: (
                row.held is reason and queue in (None, row.job.queue) and guard in (None, row.job.guard)
            )
        )
        freed = sorted(freed, key=lambda row: row.rank)[:limit]
        for row in freed:
            row.held = self._looked_at_again(row)
            if row.held is None:
                row.rank = next(self._rank)
        return len(freed)

    def open_gates(self, numbers: Mapping[str, int]) -> dict[str, int]:
        rows = self._where(lambda row: row.held is Held.GUARD)
        oldest = sorted(rows, key=lambda row: row.rank)
        freed = {
            key: [row for row in oldest if row.job.guard == key][:number] for key, number in numbers.items()
        }
        for row in sorted(chain(*freed.values()), key=lambda row: row.rank):
            row.held = self._looked_at_again(row)
            if row.held is None:
                row.rank = next(self._rank)
        return {key: len(rows) for key, rows in freed.items()}

    def shut_gates(self, queues: Sequence[str], *, keys: Sequence[str], window: int, limit: int) -> int:
        held = 0
        for queue in queues:
            ready = self._where(lambda row: row.ready and not row.suspect and row.job.queue == queue)  # noqa: B023
            head = sorted(ready, key=lambda row: row.by_priority)[:limit]
            shut = [row for row in head if row.job.guard in keys and row.job.concurrency is None]
            for row in shut:
                row.held = Held.GUARD
            held += len(shut)
            for tenant in sorted({row.job.tenant for row in shut if row.job.tenant is not None}):
                self._fill_window(queue, tenant, window)
        return held

    def repair(self) -> int:
        before = len(self._where(lambda row: row.ready))
        self._pass_on(list(self.rows.values()))
        waiting = self._where(lambda row: row.held is Held.TENANT)
        for queue, tenant in sorted({_place(row) for row in waiting}):
            self._fill_window(queue, tenant, ONE)
        return len(self._where(lambda row: row.ready)) - before

    def _climb(self, row: Row, window: int, *, behind: bool = False) -> None:
        """Turn, time, pause, slot, window: the first that is missing is the reason; none missing is ready.

        Who becomes ready, or whose time has come just now, is served after what was there before.
        """
        was = row.held
        self._step(row, window, behind=behind)
        late = was is Held.TIME and row.held is not Held.TIME
        if row.held is None or (late and (row.held is not Held.ORDERING or row.job.by_time)):
            row.rank = next(self._rank)

    def _step(self, row: Row, window: int, *, behind: bool) -> None:
        key = row.job.ordered
        if row.job.by_time and not row.has_turn and not self._due(row):
            row.held = Held.TIME
            return
        if key is not None and not row.has_turn and not self._turn_is_free(key, row):
            row.held = Held.ORDERING
            return
        row.has_turn = key is not None
        if not self._due(row):
            row.held = Held.TIME
            return
        is_paused = self.stopped.get(row.job.tenant or "")
        if is_paused or (is_paused is False and row.held in (Held.ARRIVED, Held.TIME, Held.ORDERING)):
            row.held = Held.PAUSED
            return
        if row.job.concurrency is not None and row.slot is None:
            row.slot = min(self._free_slots(row.job), default=None)
            if row.slot is None:
                row.held = Held.CONCURRENCY
                return
        if row.job.tenant is not None and self._is_full(row, window, behind=behind):
            row.held = Held.TENANT
            return
        row.held = None

    def _is_full(self, row: Row, window: int, *, behind: bool) -> bool:
        if len(self._ready_of(row.job.queue, row.job.tenant)) >= window:
            return True
        return behind and bool(
            self._where(lambda other: other.held is Held.TENANT and _place(other) == _place(row))
        )

    def _pass_on(self, freed: Sequence[Row], *, slots_only: bool = False) -> None:
        """The next of each key that these rows have let go of: first the turns, then the slots."""
        candidates: list[Row] = []
        orders = set() if slots_only else {row.job.ordered for row in freed if row.job.ordered is not None}
        for key in sorted(orders):
            family = [row for row in self.rows.values() if row.job.ordered == key]
            if not any(row.has_turn for row in family):
                candidates += sorted(
                    (row for row in family if row.held is Held.ORDERING), key=lambda row: row.rank
                )[:1]
        for key in sorted({row.job.concurrency for row in freed if row.job.concurrency is not None}):
            family = [row for row in self.rows.values() if row.job.concurrency == key]
            waiting = sorted(
                (row for row in family if row.held is Held.CONCURRENCY), key=lambda row: row.by_priority
            )
            candidates += waiting[: len(self._free_slots(waiting[0].job)) if waiting else 0]
        for row in candidates:
            self._climb(row, WINDOW)

    def _fill_window(self, queue: str, tenant: str | None, window: int) -> None:
        if self.stopped.get(tenant or "", False):
            return
        room = window - len(self._ready_of(queue, tenant))
        here = self._where(
            lambda row: row.held is Held.TENANT and (row.job.queue, row.job.tenant) == (queue, tenant)
        )
        here.sort(key=lambda row: row.by_priority)
        for row in here[: max(0, room)]:
            self._climb(row, window)

    # Small questions.

    def _where(self, test: Callable[[Row], bool]) -> list[Row]:
        return [row for row in self.rows.values() if test(row)]

    def _due(self, row: Row) -> bool:
        return row.run_at is None or row.run_at <= self.now

    def _looked_at_again(self, row: Row) -> Held | None:
        return Held.ARRIVED if row.job.concurrency is not None or row.job.tenant is not None else None

    def _turn_is_free(self, key: str, row: Row) -> bool:
        return not self._where(
            lambda other: (
                other is not row
                and other.job.ordered == key
                and (other.has_turn or (other.held is Held.ORDERING and other.rank < row.rank))
            )
        )

    def _free_slots(self, job: NewJob) -> list[int]:
        limit = job.concurrency_limit or 0
        taken = {
            row.slot for row in self.rows.values() if row.slot and row.job.concurrency == job.concurrency
        }
        return [slot for slot in range(1, limit + 1) if slot not in taken][: max(0, limit - len(taken))]

    def _ready_of(self, queue: str, tenant: str | None) -> list[Row]:
        return self._where(lambda row: row.ready and (row.job.queue, row.job.tenant) == (queue, tenant))


def _place(row: Row) -> tuple[str, str]:
    return row.job.queue, row.job.tenant or ""
