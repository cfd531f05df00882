"""What all routes share: who asks and whether they may, strict models, and cursors."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

import msgspec
from fastapi import Depends, Path, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from admissions.desk.people import Person
from admissions.desk.refusals import Forbidden, Invalid
from admissions.domain.forms import Wrong
from admissions.web.allowed import ALLOWED, Who, is_allowed
from admissions.web.visitor import visitor_of
from holdfast.web import Problem, ProblemError


class Strict(BaseModel):
    """What a client sends: nothing is guessed, and what is not known is refused."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, alias_generator=to_camel)


class Out(BaseModel):
    """What a client gets: made of a record of the desk, with names as scripts write them."""

    model_config = ConfigDict(from_attributes=True, alias_generator=to_camel, populate_by_name=True)


def _storable(text: str) -> str:
    if "\x00" in text:
        raise ValueError("A text cannot have the character NUL.")
    return text


Text = Annotated[str, Field(max_length=20_000), AfterValidator(_storable)]
Line = Annotated[str, Field(max_length=300), AfterValidator(_storable)]
Id = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="The id of a row")]
RowId = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
Version = Annotated[int, Field(ge=1, le=2**53)]
Count = Annotated[int, Field(ge=0, le=2**53)]
Cursor = Annotated[str | None, Field(max_length=200)]


async def check(request: Request) -> None:
    """Before each handler: by the one table. Nobody: 401; somebody who may not: 403."""
    needs = ALLOWED[f"{request.method} {request.scope['route'].path}"]
    person = (await visitor_of(request)).person
    if is_allowed(person, needs):
        return
    if person is None:
        raise ProblemError(
            Problem(status=401, title="Nobody is logged in", code="LOGIN_WANTED", detail="Log in first.")
        )
    assert needs is not Who.ANYONE
    raise Forbidden


def _me(request: Request) -> Person:
    found: Person = request.state.visitor.person
    return found


Me = Annotated[Person, Depends(_me)]


def cursor_of(text: str | None) -> tuple[float, str] | None:
    """The last row that a client has seen: its time and its id."""
    if text is None:
        return None
    try:
        at, row = msgspec.json.decode(base64.urlsafe_b64decode(text.encode()), type=tuple[float, str])
    except (msgspec.DecodeError, binascii.Error, ValueError):
        raise Invalid([Wrong("cursor", "cursor_wrong")]) from None
    return at, row


def cursor_for(at: float, row: str) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode((at, row))).decode()
