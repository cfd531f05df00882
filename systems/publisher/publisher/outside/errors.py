"""DeviantArt's refusals as exceptions, one type for each thing that a caller does differently."""

from __future__ import annotations

from publisher.domain.failures import Kind, Verdict


class DeviantArtError(Exception):
    """What DeviantArt answered; `reason` and `advice` are for the artist."""

    kind = Kind.PASSING

    def __init__(self, reason: str = "", advice: str = "", retry_after: str | None = None) -> None:
        """`retry_after` is as the answer has it, seconds or a date; the guard reads it, and takes no longer pause than is allowed."""
        super().__init__(reason)
        self.reason, self.advice, self.retry_after = reason, advice, retry_after


class AlreadyDone(DeviantArtError):
    kind = Kind.DONE


class Refused(DeviantArtError):
    """Trying again brings the same answer: the artist can do something."""

    kind = Kind.FINAL


class AccessOver(DeviantArtError):
    """The access token is over; nothing was done."""

    kind = Kind.LOGIN


class UserLimited(DeviantArtError):
    kind = Kind.USER_LIMIT


class AppLimited(DeviantArtError):
    kind = Kind.APP_LIMIT


class Passing(DeviantArtError):
    """Nothing was done, and another try may go well."""

    kind = Kind.PASSING


class NobodyKnows(DeviantArtError):
    """It may have been done."""

    kind = Kind.NOBODY_KNOWS


_TYPES: dict[Kind, type[DeviantArtError]] = {
    each.kind: each
    for each in (AlreadyDone, Refused, AccessOver, UserLimited, AppLimited, Passing, NobodyKnows)
}
# After these it is certain that the call did nothing.
NOT_DONE = (Refused, AccessOver, UserLimited, AppLimited, Passing)


def error_of(verdict: Verdict, retry_after: str | None = None) -> DeviantArtError:
    return _TYPES[verdict.kind](verdict.reason, verdict.advice, retry_after)
