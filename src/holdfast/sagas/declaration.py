"""What `@hf.saga(…)` says about a saga, checked once, when the module is imported."""

from __future__ import annotations

import msgspec

from holdfast.events.patterns import check_type
from holdfast.guards.backoff import Backoff
from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_name, check_seconds
from holdfast.kernel.options import NamedStruct
from holdfast.kernel.show import show

UNDO_RETRY = Backoff(attempts=6, first=1.0, ceiling=300.0)
_set = msgspec.structs.force_setattr


class SagaOptions(NamedStruct, frozen=True, kw_only=True):
    queue: str = "default"
    priority: int = 0
    aliases: tuple[str, ...] = ()  # names that it had before: sagas that were started under them go on
    hears: tuple[str, ...] = ()  # event types that it waits for, beside those that its own code names
    timeout: float | None = None  # seconds from its start, after which it is undone
    undo_retry: Backoff = UNDO_RETRY  # how often an undo is tried before a person is asked
    undo_timeout: float | None = 300.0  # seconds for one try of an undo

    def __post_init__(self) -> None:
        for name in ("aliases", "hears"):
            if isinstance(value := getattr(self, name), str):
                raise UsageError(f"{name} is a list of names, not one text: {name}=[{value!r}].")
        _set(self, "hears", tuple(check_type(each) for each in self.hears))
        _set(self, "aliases", tuple(check_name("saga", each) for each in self.aliases))
        for name in ("timeout", "undo_timeout"):
            if (value := getattr(self, name)) is not None:
                _set(self, name, check_seconds(name, value, minimum=0.001))
        if not isinstance(self.undo_retry, Backoff):
            raise UsageError(
                f"undo_retry is a Backoff, such as Backoff(attempts=5); not {show(self.undo_retry)}."
            )
