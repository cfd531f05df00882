"""Why a person's wish is refused. The API makes problem documents of these, pages put them beside the field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class Refusal(Exception):
    """The base of all; `words` are for the person."""

    status = 400

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


class NotHere(Refusal):
    """There is none, or it is somebody else's: nobody is told which."""

    status = 404

    def __init__(self, what: str = "post") -> None:
        super().__init__(f"There is no such {what}.")


class TooLate(Refusal):
    """The state is not one in which this can be done; `state` is the present one."""

    status = 409

    def __init__(self, words: str, state: str) -> None:
        super().__init__(words)
        self.state = state


class Changed(Refusal):
    """Somebody has changed it since it was read."""

    status = 409


@dataclass(frozen=True)
class Fault:
    field: str
    words: str


class Invalid(Refusal):
    """Some fields cannot be as they are; each says what would be right."""

    status = 422

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("; ".join(each.words for each in faults))
        self.faults = tuple(faults)


class NoRoom(Refusal):
    """A limit is reached."""

    status = 413


class TooSoon(Refusal):
    """It may be asked again in `seconds`."""

    status = 429

    def __init__(self, words: str, seconds: float) -> None:
        super().__init__(words)
        self.seconds = seconds
