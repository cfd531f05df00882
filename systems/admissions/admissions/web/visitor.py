"""Who asks: the person of the session, and the language to answer in."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request

from admissions.desk import people
from admissions.desk.people import Person
from admissions.desk.refusals import NotHere
from admissions.domain.roles import STAFF
from admissions.web.arrival import arrived_at
from admissions.words import LANGUAGES
from holdfast.web import session_of

CHOSEN = "language"  # in the session of a stranger


@dataclass(frozen=True)
class Visitor:
    """`now` is when the request arrived."""

    person: Person | None
    language: str
    now: float

    @property
    def id(self) -> str:
        """Of somebody who has logged in."""
        assert self.person is not None
        return self.person.id

    @property
    def is_staff(self) -> bool:
        return self.person is not None and self.person.role in STAFF


async def visitor_of(request: Request) -> Visitor:
    """Asked once in a request. Who is blocked is nobody."""
    found: Visitor | None = getattr(request.state, "visitor", None)
    if found is None:
        person = await _person_of(request)
        language = person.language if person else _language_of(request)
        found = Visitor(person, language, await arrived_at(request))
        request.state.visitor = found
        getattr(request.state, "seen", {})["visitor"] = found  # for a page of trouble, which is drawn outside
    return found


def seen_visitor(request: Request) -> Visitor | None:
    """Who was asked for already, if anybody."""
    found: Visitor | None = getattr(request.state, "visitor", None) or getattr(request.state, "seen", {}).get(
        "visitor"
    )
    return found


async def _person_of(request: Request) -> Person | None:
    principal = session_of(request).principal
    if principal is None:
        return None
    try:
        found = await people.get(principal)
    except NotHere:
        return None
    return None if found.is_blocked else found


def _language_of(request: Request) -> str:
    chosen = session_of(request).get(CHOSEN)
    return chosen if chosen in LANGUAGES else preferred(request.headers.get("accept-language", ""))


def preferred(header: str) -> str:
    """The language of ours that a browser likes most; English when it likes none."""
    liked: list[tuple[float, str]] = []
    for part in header[:500].split(","):
        name, _, quality = part.strip().partition(";q=")
        try:
            liked.append((-float(quality or 1), name.lower().partition("-")[0]))
        except ValueError:
            continue
    return next((name for _, name in sorted(liked, key=lambda each: each[0]) if name in LANGUAGES), "en")
