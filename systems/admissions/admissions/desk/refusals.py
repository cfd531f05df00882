"""Why a person's wish is refused. `key` names the sentence, which is written in each language; the API makes problem documents of these."""

from __future__ import annotations

from collections.abc import Sequence

from admissions.domain.forms import Wrong


class Refusal(Exception):
    """The base of all."""

    status = 400

    def __init__(self, key: str, *values: object) -> None:
        super().__init__(key)
        self.key, self.values = key, values


class NotHere(Refusal):
    """There is none, or it is somebody else's: nobody is told which."""

    status = 404

    def __init__(self) -> None:
        super().__init__("not_here")


class Forbidden(Refusal):
    """The role may not do this."""

    status = 403

    def __init__(self) -> None:
        super().__init__("forbidden")


class TooLate(Refusal):
    """The state is not one in which this can be done."""

    status = 409

    def __init__(self, key: str, state: str) -> None:
        super().__init__(key, state)
        self.state = state


class Changed(Refusal):
    """Somebody has changed it since it was read; `version` is the present one."""

    status = 409

    def __init__(self, version: int) -> None:
        super().__init__("changed", version)
        self.version = version


class Closed(Refusal):
    """The term is not open, or nothing is taken at the moment."""

    status = 409


class Invalid(Refusal):
    """Some fields cannot be as they are."""

    status = 422

    def __init__(self, wrong: Sequence[Wrong]) -> None:
        super().__init__("invalid")
        self.wrong = tuple(wrong)


class TooSoon(Refusal):
    """It may be asked again in `seconds`."""

    status = 429

    def __init__(self, key: str, seconds: float) -> None:
        super().__init__(key, seconds)
        self.seconds = seconds
