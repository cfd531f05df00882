"""`@hf.on_alert`: functions that are told what a person should know of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from holdfast.runtime.alerting import ProgramAlerts

H = TypeVar("H", bound=Callable[..., Any])


class DeclaringAlerts:
    """The part of `Holdfast` that is about alerts."""

    alerts: ProgramAlerts

    @overload
    def on_alert(self, function: H, /) -> H: ...
    @overload
    def on_alert(self, /, *, name: str | None = None) -> Callable[[H], H]: ...
    def on_alert(self, function: Any = None, /, *, name: str | None = None) -> Any:
        """Call this, `(alert)` or `(alert, tx)`, async or plain, when an alert opens, has grown after an hour, or is over.

        It is a job: what fails is tried again. With `tx` its rows are committed with the job's success, so they are written once. Its name
        is the function's; stored jobs are found by it.
        """

        def declared(handler: H) -> H:
            self.alerts.add(handler, name)
            return handler

        return declared if function is None else declared(function)
