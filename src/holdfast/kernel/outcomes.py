"""How one run of a job ended. The holder writes it with `finish`, and the store accepts it once."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_name, check_seconds, check_text
from holdfast.kernel.show import show, storable

RESULT_LIMIT = 256 * 1024  # bytes of JSON text kept with the job


class Done(msgspec.Struct, frozen=True, gc=False):
    """It succeeded; `result` is JSON text."""

    result: str | None = None

    def __post_init__(self) -> None:
        if self.result is not None:
            check_text("result", self.result, RESULT_LIMIT)


class _Told(msgspec.Struct, frozen=True):
    """Outcomes tell why in words that may come from anywhere; from here on every store can keep them."""

    def __post_init__(self) -> None:
        for name in ("error", "reason"):
            if (text := getattr(self, name, None)) is None and isinstance(self, Retry | Snooze):
                continue  # they need not say why
            if text is not None or name in self.__struct_fields__:
                if not isinstance(text, str):
                    raise UsageError(f"{name} is text, not {show(text)} ({type(text).__name__}).")
                msgspec.structs.force_setattr(self, name, storable(text))
        if hasattr(self, "after"):
            msgspec.structs.force_setattr(self, "after", check_seconds("after", self.after))


class Retry(_Told, frozen=True, kw_only=True):
    """It failed and may run again in `after` seconds; the attempt stays charged."""

    after: float = 0.0
    error: str | None = None


class Snooze(_Told, frozen=True, kw_only=True):
    """Not now: again in `after` seconds; no attempt is charged."""

    after: float = 0.0
    reason: str | None = None
    lock: str | None = None  # the name of the lock for which it waits
    guard: str | None = None  # the key under which it is held until that guard lets go: then no time counts
    counted: bool = (
        False  # a failure of the call behind its guard: a job is put off for that so many times only
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.guard is not None:
            check_name("guard", self.guard)


class Cancel(_Told, frozen=True):
    """It need not run any more."""

    reason: str


class Dead(_Told, frozen=True):
    """It will not run again unless a person says so."""

    error: str


class Unknown(_Told, frozen=True):
    """A bare effect was begun and nobody can vouch for its end; it waits for reconcile or a person."""

    reason: str
    look: float | None = None  # in so many seconds it shall be looked up again; None: only a person decides

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.look is not None:
            msgspec.structs.force_setattr(self, "look", check_seconds("look", self.look))


Outcome: TypeAlias = Done | Retry | Snooze | Cancel | Dead | Unknown
OUTCOMES = frozenset({Done, Retry, Snooze, Cancel, Dead, Unknown})
