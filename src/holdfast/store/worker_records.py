"""Workers as the store knows them: for people who ask who is alive, what it serves, and what it runs."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_int, check_name

SHOWN = 20  # running jobs that are listed of each worker; all are counted
KEPT = 86_400.0  # seconds for which it is known that a worker has died
Role = Literal["worker", "relay"]


class WorkerState(StrEnum):
    RUNNING = "running"
    DRAINING = "draining"  # it claims nothing more, and leaves when its jobs have ended
    DEAD = "dead"  # it has given no sign of life for too long, or its supervisor has seen it die


class NewWorker(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker says of itself when it starts. Its name is never used again: each start makes another."""

    name: str
    role: Role = "worker"
    host: str
    pid: int
    version: str  # of Holdfast
    queues: dict[str, int] = {}  # slots of each queue that it serves
    tasks: tuple[str, ...] = ()  # that its program knows, with their aliases

    def __post_init__(self) -> None:
        check_name("worker", self.name)
        check_name("host", self.host)
        check_name("version", self.version)
        check_int("pid", self.pid, 0, 2**31 - 1)
        if self.role not in ("worker", "relay"):
            raise UsageError(f"role is worker or relay, not {self.role!r}.")
        for queue, slots in self.queues.items():
            check_name("queue", queue)
            check_int("slots", slots, 0, 1_000_000)
        for task in self.tasks:
            check_name("task", task)


class RunningJob(msgspec.Struct, frozen=True):
    """A job that a worker has claimed, and since when."""

    id: str
    task: str
    queue: str
    since: float


class WorkerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One start of a worker. Times are seconds since 1970 on the database's clock."""

    name: str
    role: str
    host: str
    pid: int
    version: str
    state: WorkerState
    queues: dict[str, int]
    tasks: tuple[str, ...]
    started_at: float
    seen_at: float  # its last sign of life
    until: float  # when it is taken for dead without another; of a dead one: when that was
    rescued: int  # jobs that were put back because it gave no sign of life
    running: tuple[RunningJob, ...]  # those that run longest, at most SHOWN
    running_count: int
