"""Functions that hear of alerts: `(alert)` or `(alert, tx)`, async or plain, each made a task."""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import Any

from holdfast.jobs.job import Job
from holdfast.kernel.awaits import is_async
from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show
from holdfast.observe.alerts.alert import Alert

_WITH_TX = 2


class Handler:
    """With `tx` its rows and the job's success are one commit; without, it may be called more than once."""

    def __init__(self, function: Any) -> None:
        if not isinstance(function, FunctionType):
            raise UsageError(
                f"An on_alert handler is a function (alert) or (alert, tx); not {show(function)}."
            )
        self.function = function
        self.name, self.where = function.__name__, f"{function.__module__}.{function.__qualname__}"
        parameters = list(inspect.signature(function).parameters.values())
        places = [
            each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        ]
        if (
            len(places) != len(parameters)
            or not 1 <= len(places) <= _WITH_TX
            or inspect.isgeneratorfunction(function)
        ):
            raise UsageError(f"{self.where} is to take (alert) or (alert, tx), and nothing else.")
        self._takes_tx = len(places) == _WITH_TX

    def is_same(self, other: Handler) -> bool:
        """The same function again: its module was run as a program and is imported as well."""
        mine, theirs = self.function.__code__, other.function.__code__
        return (mine.co_filename, mine.co_firstlineno) == (theirs.co_filename, theirs.co_firstlineno)

    def as_task(self) -> Any:
        return self._async() if is_async(self.function) else self._plain()

    def _async(self) -> Any:
        call = self.function
        if not self._takes_tx:

            async def told(job: Job, alert: Alert, order: str) -> None:  # noqa: ARG001  its order is a template's
                await call(alert)
        else:

            async def told(job: Job, alert: Alert, order: str) -> None:  # noqa: ARG001
                async with job.commit() as tx:
                    await call(alert, tx)

        return told

    def _plain(self) -> Any:
        call = self.function
        if not self._takes_tx:

            def told(job: Job, alert: Alert, order: str) -> None:  # noqa: ARG001
                call(alert)
        else:

            def told(job: Job, alert: Alert, order: str) -> None:  # noqa: ARG001
                with job.blocking.commit() as tx:
                    call(alert, tx)

        return told
