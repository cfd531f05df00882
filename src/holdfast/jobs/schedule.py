"""A schedule: when a task is enqueued by itself. Nominal times are the same for whoever computes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Literal, Protocol

from holdfast.jobs.options import NONE
from holdfast.jobs.task import Task
from holdfast.kernel.clock import moment
from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_name, check_seconds
from holdfast.kernel.show import show

Missed = Literal["latest", "all", "skip"]
MISSED = ("latest", "all", "skip")
_FAR = timedelta(days=366 * 30)


class Times(Protocol):
    """The nominal times of a schedule."""

    def fires(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Those in (after, until], in order."""

    def told(self) -> str:
        """For people."""


class Interval:
    """Every so many seconds, counted from 1970, so that every scheduler counts alike."""

    def __init__(self, seconds: float) -> None:
        self.seconds = check_seconds("every", seconds, minimum=1.0)

    def fires(self, after: datetime, until: datetime) -> Iterator[datetime]:
        place = int(after.timestamp() // self.seconds) + 1
        while (moment := place * self.seconds) <= until.timestamp():
            yield datetime.fromtimestamp(moment, UTC)
            place += 1

    def told(self) -> str:
        return f"every {self.seconds:g} s"


class Schedule:
    """A task and its times. `missed` says what becomes of times that passed while nobody scheduled:

    `latest` runs only the newest of them, `all` each of them, `skip` none.
    """

    def __init__(
        self,
        task: Task[Any, Any],
        times: Times,
        *,
        name: str,
        missed: Missed = "latest",
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        if missed not in MISSED:
            raise UsageError(f"missed is one of {', '.join(MISSED)}; not {missed!r}.")
        self.task, self.times, self.name, self.missed = task, times, check_name("schedule", name), missed
        self._given = _given(arguments)
        self._check_arguments()
        self._check_job()

    def _check_arguments(self) -> None:
        """Now, and not at the first nominal time."""
        signature = self.task.signature
        needed = [
            each
            for each in signature.names
            if each not in signature.defaults and each not in self._given and each != "nominal"
        ]
        if needed:
            raise UsageError(
                f"The schedule {self.name!r} has no value for {', '.join(needed)} of {self.task.name!r}. "
                "Give arguments={…}, or defaults; `nominal: datetime` comes from the schedule, and a resource from "
                "the worker when it is declared before the task."
            )

    def _check_job(self) -> None:
        """Build one as the scheduler will, with its keys and the name of its lock."""
        task = self.task
        task.sender.build(task, task.signature.bind((), self.arguments(moment(0.0))), NONE)

    def has_times_of(self, other: Schedule) -> bool:
        mine, others = self.times, other.times
        return type(mine) is type(others) and vars(mine) == vars(others)

    def arguments(self, nominal: datetime) -> dict[str, Any]:
        by_itself = {"nominal": nominal} if "nominal" in self.task.signature.names else {}
        return {**by_itself, **self._given}

    def next(self, after: datetime, count: int = 10) -> list[datetime]:
        """The next nominal times."""
        return list(islice(self.times.fires(after, after + _FAR), count))


def _given(arguments: Any) -> dict[str, Any]:
    if arguments is None:
        return {}
    if not isinstance(arguments, Mapping):
        raise UsageError(
            f'arguments is a dict of values by name, such as {{"days": 7}}; not {show(arguments)}.'
        )
    return dict(arguments)
