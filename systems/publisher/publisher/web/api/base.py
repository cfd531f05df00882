"""What all routes share: who asks, strict models, ids, cursors, and the transaction that commits with the answer."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any

import msgspec
from fastapi import Depends, Path, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from holdfast.web import Problem, ProblemError
from publisher.desk import keys
from publisher.desk.refusals import Fault, Invalid

_FURTHEST = 4_102_444_800  # the year 2100


class Strict(BaseModel):
    """What a client sends: nothing is guessed, and what is not known is refused."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


def _storable(text: str) -> str:
    if "\x00" in text:
        raise ValueError("A text cannot have the character NUL.")
    return text


Text = Annotated[str, AfterValidator(_storable)]
Line = Annotated[str, Field(max_length=300), AfterValidator(_storable)]
Id = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="The id of a row")]
RowId = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
RowIds = Annotated[list[RowId], Field(min_length=1, max_length=500)]
Moment = Annotated[float, Field(ge=0, le=_FURTHEST, description="Seconds since 1970")]


# --- who asks ---


def _stranger() -> ProblemError:
    return ProblemError(
        Problem(
            status=401,
            title="Nobody is logged in",
            code="LOGIN_WANTED",
            detail="Log in, or send a valid API key.",
        )
    )


async def logged_in(request: Request) -> str:
    """The artist of the session."""
    found = getattr(request.state, "principal", None)
    if found is None:
        raise _stranger()
    return str(found)


async def by_key_or_session(request: Request) -> str:
    """The artist of an API key; a key that is told counts, and only without one the session does."""
    told = request.headers.get("authorization")
    if told is None:
        return await logged_in(request)
    kind, _, secret = told.partition(" ")
    found = await keys.who(secret.strip()) if kind.lower() == "bearer" else None
    if found is None:
        raise _stranger()
    return found


Artist = Annotated[str, Depends(logged_in)]
KeyArtist = Annotated[str, Depends(by_key_or_session)]


# --- pages by key ---


def cursor_of(text: str | None) -> tuple[float, str] | None:
    """The last row that a client has seen: its time and its id."""
    if text is None:
        return None
    try:
        at, row = msgspec.json.decode(base64.urlsafe_b64decode(text.encode()), type=tuple[float, str])
    except (msgspec.DecodeError, binascii.Error, ValueError):
        raise Invalid([Fault("cursor", "This cursor was not made here. Begin without one.")]) from None
    return at, row


def cursor_for(at: float, row: str) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode((at, row))).decode()


Cursor = Annotated[str | None, Field(max_length=200)]
Search = Annotated[str, Field(max_length=200), AfterValidator(_storable)]


def changed(model: BaseModel) -> dict[str, Any]:
    """What was said, and nothing of what was left out."""
    return model.model_dump(exclude_unset=True, exclude={"version"})
