"""What the database itself says happened, told as moves of jobs and other things. The checkers hold it against history."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.store.sqlite.schedules import NO_JOB
from holdfast.testing.simulation import triggers


class Entry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One committed change. `at` is the database's clock, `moment` the simulation's, `step` orders all.

    Of a job: `enqueued`, `moved`, `over`, `pruned`, `slot`, `slot_gone`.
    Of others: `row`, `register`, `lease`, `lease_gone`, `key`, `key_gone`, `begin`, `tick`, `queue_paused`,
    `queue_resumed`, `tenant_paused`, `tenant_resumed`, `audit`. Of a step of a job: `step`.
    """

    at: float
    moment: float
    step: int
    process: str
    commit: int  # all that was committed together has the same
    what: str
    id: str
    was_state: str | None = None
    state: str | None = None
    was_held: str | None = None
    held: str | None = None
    was_token: int | None = None
    token: int | None = None
    was_until: float | None = None
    until: float | None = None
    was_attempt: int | None = None
    attempt: int | None = None
    interruptions: int = 0
    was_strikes: int = 0
    strikes: int = 0
    suspect: int = 0
    alone: int = 0
    slot: int | None = None
    was_owner: str | None = None
    owner: str | None = None
    run_at: float | None = None  # of one that is over: when it was finished
    reason: str | None = None
    number: int | None = None
    rank: int | None = None
    fingerprint: str | None = None
    name: str | None = None
    kind: str | None = None
    progress: str | None = None
    result: str | None = None
    plan: str | None = None
    tries: int = 0

    @property
    def claimed(self) -> bool:
        return self.what == "moved" and self.was_state == "queued" and self.state == "running"

    @property
    def renewed(self) -> bool:
        return (
            self.what == "moved"
            and self.was_state == "running" == self.state
            and self.until != self.was_until
        )

    @property
    def rescued(self) -> bool:
        """Its token was taken away while it ran."""
        return self.what == "moved" and self.was_state == "running" and self.token != self.was_token

    @property
    def ended(self) -> bool:
        """It no longer runs."""
        return self.was_state == "running" != self.state and self.what in ("moved", "over")

    @property
    def left_to_person(self) -> bool:
        """It waited for too long, and nobody knows whether an effect of it was done."""
        return self.was_state == "queued" and self.state == "unknown"

    @property
    def settled(self) -> bool:
        """It is over or dead: the next of its keys may go."""
        return self.what == "over" or (self.what == "moved" and self.state == "dead")


class Made(msgspec.Struct, gc=False):
    """What a job was enqueued with."""

    seq: int
    id: str
    queue: str
    args: str
    expires_at: float | None
    unique: str | None
    ordered: str | None
    concurrency: str | None
    concurrency_limit: int | None
    tenant: str | None
    priority: int
    guard: str | None = None
    interruptions: int = 0
    strikes: int = 0
    task: str = ""
    correlation_id: str | None = None
    causation_id: str | None = None
    trace: str | None = None
    deadline: float | None = None
    generation: int = 0
    entry: Entry | None = None


class Fact(msgspec.Struct, frozen=True, gc=False):
    """One committed change of a row that is no job's: its values after it, or those that were deleted.

    Its time and step are those of the commit; `at` is when its transaction looked at the database's clock.
    """

    at: float
    moment: float
    step: int
    process: str
    commit: int
    change: str  # INSERT, UPDATE, DELETE
    row: dict[str, Any]

    def __getitem__(self, column: str) -> Any:
        return self.row[column]


class _Now(msgspec.Struct, gc=False):
    """Where a job is, as far as the log has been read."""

    state: str | None = None
    held: str | None = None
    token: int | None = None
    until: float | None = None
    attempt: int = 0
    interruptions: int = 0
    strikes: int = 0
    suspect: int = 0
    alone: int = 0
    slot: int | None = None
    owner: str | None = None
    run_at: float | None = None
    rank: int | None = None
    reason: str | None = None


class Ledger:
    """The log of one simulation, whole and by job."""

    def __init__(self, rows: list[tuple[Any, ...]], committed: Callable[[int], tuple[float, int]]) -> None:
        self._committed = committed
        self.entries: list[Entry] = []
        self.by_job: dict[str, list[Entry]] = defaultdict(list)
        self.made: dict[str, Made] = {}  # by id
        self.facts: dict[str, list[Fact]] = defaultdict(list)  # of tables whose rows are told as they are
        self._jobs: dict[int, Made] = {}  # by number
        self._now: dict[int, _Now] = {}
        for where, what, row in rows:
            _READ[what](self, where, row)

    def of(self, *whats: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.what in whats]

    # --- jobs ---

    def _job_insert(self, where: tuple[Any, ...], row: tuple[Any, ...]) -> None:
        made = Made(*row[:20])
        self._jobs[made.seq] = made
        self.made[made.id] = made
        self._now[made.seq] = _Now()

    def _job_update(self, where: tuple[Any, ...], row: tuple[Any, ...]) -> None:
        self._now[row[0]].interruptions, self._now[row[0]].strikes = row[12], row[13]

    def _queued(self, where: tuple[Any, ...], row: tuple[Any, ...]) -> None:
        seq, rank, held, attempt, suspect, token, run_at = row[:7]
        self._move(where, seq, _changed(self._now[seq], state="queued", rank=rank, held=held, attempt=attempt,
                                        suspect=suspect, token=token, run_at=run_at, until=None, owner=None,
                                        reason=None, alone=0))  # fmt: skip

    def _running(self, where: tuple[Any, ...], row: tuple[Any, ...]) -> None:
        seq, token, until, worker, alone, attempt, rank, stop = row[:8]
        self._move(where, seq, _changed(self._now[seq], state="running", rank=rank, held=None, attempt=attempt,
                                        token=token, until=until, owner=worker, alone=alone, reason=stop))  # fmt: skip

    def _parked(self, where: tuple[Any, ...], row: tuple[Any, ...]) -> None:
        seq, state, token, attempt, reason = row[:5]
        self._move(where, seq, _changed(self._now[seq], state=state, token=token, attempt=attempt, reason=reason,
                                        held=None, until=None))  # fmt: skip

    def _over(self, where: tuple[Any, ...], row: tuple[Any, ...]) -> None:
        seq, state, token, attempt, reason, finished_at = row[:6]
        self._move(where, seq, _changed(self._now[seq], state=state, token=token, attempt=attempt, reason=reason,
                                        held=None, until=None, run_at=finished_at), what="over")  # fmt: skip

    def _slot(self, where: tuple[Any, ...], row: tuple[Any, ...]) -> None:
        self._now[row[0]].slot = row[2]
        self._add(where, "slot", self._jobs[row[0]].id, reason=row[1], slot=row[2])

    def _slot_gone(self, where: tuple[Any, ...], row: tuple[Any, ...]) -> None:
        self._now[row[0]].slot = None
        self._add(where, "slot_gone", self._jobs[row[0]].id, reason=row[1], slot=row[2])

    def _move(self, where: tuple[Any, ...], seq: int, after: _Now, what: str = "moved") -> None:
        before, made = self._now[seq], self._jobs[seq]
        self._now[seq] = after
        entry = self._add(
            where,
            "enqueued" if before.state is None else what,
            made.id,
            was_state=before.state,
            state=after.state,
            was_held=before.held,
            held=after.held,
            was_token=before.token,
            token=after.token,
            was_until=before.until,
            until=after.until,
            was_attempt=before.attempt,
            attempt=after.attempt,
            interruptions=after.interruptions,
            was_strikes=before.strikes,
            strikes=after.strikes,
            suspect=after.suspect,
            alone=after.alone,
            slot=after.slot,
            was_owner=before.owner,
            owner=after.owner,
            run_at=after.run_at,
            reason=after.reason,
            rank=after.rank,
        )
        if made.entry is None:
            made.entry = entry

    def _pruned(self, where: tuple[Any, ...], row: tuple[Any, ...]) -> None:
        self._add(where, "pruned", self._jobs[row[0]].id, state=row[1])

    # --- other things ---

    def _other(self, where: tuple[Any, ...], what: str, row: tuple[Any, ...]) -> None:
        match what:
            case "lease INSERT" | "lease UPDATE":
                self._add(where, "lease", row[0], owner=row[1], token=row[2], until=row[3])
            case "lease DELETE":
                self._add(where, "lease_gone", row[0], owner=row[1], token=row[2], until=row[3])
            case "tick INSERT" | "tick UPDATE":
                kind = "begin" if row[2] == NO_JOB else "tick"
                self._add(where, kind, row[2], reason=row[0], run_at=row[1])
            case "key INSERT" | "key UPDATE":
                self._add(where, "key", row[0], token=row[1], until=row[2], reason=row[3], fingerprint=row[4])
            case "key DELETE":
                self._add(where, "key_gone", row[0], token=row[1])
            case "queue INSERT":
                self._add(where, "queue_paused", row[0])
            case "queue DELETE":
                self._add(where, "queue_resumed", row[0])
            case "tenant INSERT" | "tenant UPDATE":
                self._add(where, "tenant_paused" if row[1] is None else "tenant_resumed", row[0])
            case "audit INSERT":
                self._add(where, "audit", row[0], reason=row[1])
            case "step INSERT" | "step UPDATE":
                self._step(where, row)
            case "row INSERT":
                self._add(where, "row", row[2] or "", number=row[0], reason=row[1])
            case "register UPDATE":
                self._add(where, "register", row[0], token=row[1], owner=row[2])

    def _fact(self, where: tuple[Any, ...], what: str, row: tuple[Any, ...]) -> None:
        name, change = what.split()
        columns = triggers.TOLD[name][2].split()
        at, _, _, process, commit = where
        moment, step = self._committed(commit)
        self.facts[name].append(
            Fact(at, moment, step, process, commit, change, dict(zip(columns, row, strict=False)))
        )

    def _step(self, where: tuple[Any, ...], row: tuple[Any, ...]) -> None:
        seq, name, token, kind, progress, result, number, _, plan, tries = row[:10]
        self._add(where, "step", self._jobs[seq].id, name=name, token=token, kind=kind, progress=progress,
                  result=result, number=number, plan=plan, tries=tries)  # fmt: skip

    def _add(self, where: tuple[Any, ...], what: str, subject: str, **values: Any) -> Entry:
        at, moment, step, process, commit = where
        entry = Entry(
            at=at, moment=moment, step=step, process=process, commit=commit, what=what, id=subject, **values
        )
        self.entries.append(entry)
        if what in _OF_JOBS:
            self.by_job[subject].append(entry)
        return entry


_OF_JOBS = frozenset({"enqueued", "moved", "over", "pruned"})


def _changed(now: _Now, **changes: Any) -> _Now:
    return msgspec.structs.replace(now, **changes)


_Reader = Callable[[Ledger, tuple[Any, ...], tuple[Any, ...]], None]


def _tells(what: str) -> _Reader:
    return lambda ledger, where, row: ledger._other(where, what, row)  # noqa: SLF001


def _tells_all(what: str) -> _Reader:
    return lambda ledger, where, row: ledger._fact(where, what, row)  # noqa: SLF001


_READ: dict[str, _Reader] = {
    f"{name} {event}": reader(f"{name} {event}")
    for reader, tables in ((_tells, triggers.LOGGED), (_tells_all, triggers.TOLD))
    for name, (_, events, _) in tables.items()
    for event in events.split()
} | {
    "job INSERT": Ledger._job_insert,  # noqa: SLF001
    "job UPDATE": Ledger._job_update,  # noqa: SLF001
    "queued INSERT": Ledger._queued,  # noqa: SLF001
    "queued UPDATE": Ledger._queued,  # noqa: SLF001
    "running INSERT": Ledger._running,  # noqa: SLF001
    "running UPDATE": Ledger._running,  # noqa: SLF001
    "parked INSERT": Ledger._parked,  # noqa: SLF001
    "over INSERT": Ledger._over,  # noqa: SLF001
    "over DELETE": Ledger._pruned,  # noqa: SLF001
    "slot INSERT": Ledger._slot,  # noqa: SLF001
    "slot DELETE": Ledger._slot_gone,  # noqa: SLF001
}
