"""What DeviantArt's answers mean: done, to be mended by the artist, to be tried again, to be waited out, or known to nobody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    DONE = "done"  # it was published before: look it up
    FINAL = "final"  # trying again brings the same; the artist can do something
    LOGIN = "login"  # the access token is over
    USER_LIMIT = "user_limit"
    APP_LIMIT = "app_limit"
    PASSING = "passing"  # nothing was done, and another try may go well
    NOBODY_KNOWS = "nobody_knows"  # it may have been done


class Call(StrEnum):
    READ = "read"
    SUBMIT = "submit"  # an item that was stored can be looked up, and hurts nobody
    PUBLISH = "publish"  # must not be made twice


@dataclass(frozen=True)
class Verdict:
    kind: Kind
    reason: str  # for the artist
    advice: str = ""


@dataclass(frozen=True)
class Answer:
    """What came back. `body` is None when it was no JSON object: a page of the edge, or nothing."""

    status: int
    body: Mapping[str, Any] | None
    retry_after: str | None = None  # DeviantArt tells none usually

    @property
    def is_success(self) -> bool:
        return (
            self.status == 200 and self.body is not None and self.body.get("status", "success") == "success"
        )

    @property
    def error(self) -> str:
        return str((self.body or {}).get("error", ""))

    @property
    def code(self) -> int | None:
        found = (self.body or {}).get("error_code")
        return found if isinstance(found, int) else None


_ALREADY = 9
_CODES = {
    0: ("The submission policy was not accepted.", "Agree to it on the post, and try again."),
    1: ("The terms of service were not accepted.", "Agree to them on the post, and try again."),
    2: ("The category is unknown.", "Take the category away, and try again."),
    3: ("The category does not fit.", "Take the category away, and try again."),
    4: ("The licence is not one that DeviantArt knows.", "Choose another licence."),
    5: ("The display size is not one that DeviantArt knows.", "Choose another display size."),
    6: ("DeviantArt could not publish it.", "Look at the file and its details, and try again."),
    7: ("The upload is not there any more.", "Try again: the file is uploaded anew."),
    8: ("DeviantArt wants a preview of this file.", "Upload an image of it."),
}


def verdict(call: Call, answer: Answer | None) -> Verdict | None:
    """What this answer means; None: it went well. No answer at all is None for `answer`: cut off, or too late."""
    if answer is None:
        return _without_answer(call)
    if answer.is_success:
        return None
    return _told(answer) or _untold(call, answer)


def _told(answer: Answer) -> Verdict | None:
    """What the answer itself says."""
    if answer.code == _ALREADY:
        return Verdict(Kind.DONE, "It was published already.")
    if answer.code in _CODES:
        return Verdict(Kind.FINAL, *_CODES[answer.code])
    if answer.error in _ERRORS:
        return _ERRORS[answer.error]
    if answer.status in _STATUSES:
        return _STATUSES[answer.status]
    return _refused(answer.body) if answer.status == 400 and answer.body is not None else None


_LIMITED = Verdict(Kind.USER_LIMIT, "DeviantArt limits your account at the moment.")
_LOGIN = Verdict(Kind.LOGIN, "The login at DeviantArt has to be renewed.")
_ERRORS = {
    "application_api_threshold": Verdict(Kind.APP_LIMIT, "DeviantArt limits this application at the moment."),
    "user_api_threshold": _LIMITED,
    "invalid_token": _LOGIN,
    "insufficient_scope": Verdict(
        Kind.FINAL, "DeviantArt was not allowed to do this.", "Log in again, and allow publishing."
    ),
}
_STATUSES = {401: _LOGIN, 429: _LIMITED}


def _refused(body: Mapping[str, Any]) -> Verdict:
    details = body.get("error_details")
    told = "; ".join(map(str, details.values())) if isinstance(details, Mapping) else ""
    told = (told or str(body.get("error_description") or "without a reason")).rstrip(".")
    return Verdict(Kind.FINAL, f"DeviantArt refused it: {told}.", "Change what it names, and try again.")


def _untold(call: Call, answer: Answer) -> Verdict:
    """Pages of the edge, blank bodies, failures of the server."""
    if answer.status == 403 and answer.body is None:
        return Verdict(Kind.USER_LIMIT, "DeviantArt answers nothing to us at the moment.")
    if answer.status == 403:
        return Verdict(Kind.FINAL, "DeviantArt does not allow this.", "Look at your account there.")
    if call is Call.PUBLISH:
        return Verdict(Kind.NOBODY_KNOWS, f"DeviantArt gave no clear answer ({answer.status}).")
    return Verdict(Kind.PASSING, f"DeviantArt gave no clear answer ({answer.status}).")


def _without_answer(call: Call) -> Verdict:
    if call is Call.PUBLISH:
        return Verdict(Kind.NOBODY_KNOWS, "DeviantArt did not answer.")
    return Verdict(Kind.PASSING, "DeviantArt did not answer.")
