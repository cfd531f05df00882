"""One application as its owner sees it: all that its pages show, read at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from admissions.core import hf
from admissions.desk.applying import Choice, DocumentRow, Draft, documents_of, draft_of
from admissions.desk.refusals import NotHere
from admissions.domain.deadlines import Window
from admissions.domain.states import State
from holdfast import Tx


@dataclass(frozen=True)
class Line:
    """Of the history. `kind` names its sentence, `values` stand in it."""

    at: float
    kind: str
    values: dict[str, Any]


@dataclass(frozen=True)
class Payment:
    """`state`: none, open, confirming, declined, paid, refunded, odd."""

    state: str = "none"
    words: str = ""
    changed_at: float = 0.0
    booked: int = 0


@dataclass(frozen=True)
class Wish:
    """A document that an officer has asked for."""

    kind: str
    words: str


@dataclass(frozen=True)
class Story:
    draft: Draft
    choice: Choice
    number: str
    progress: int
    submitted_at: float
    fee: int
    currency: str
    documents: tuple[DocumentRow, ...]
    lines: tuple[Line, ...]  # the newest first
    payment: Payment
    wishes: tuple[Wish, ...]
    decision: tuple[str, str] | None  # its outcome and words, once it is released

    @property
    def id(self) -> str:
        return self.draft.id

    @property
    def state(self) -> State:
        return self.draft.state

    @property
    def refused(self) -> list[DocumentRow]:
        return [each for each in self.documents if each.state == "infected"]

    @property
    def takes_files(self) -> bool:
        return self.state in (State.DRAFT, State.NEEDS_FILES) or bool(self.wishes)

    def at(self, *kinds: str) -> float | None:
        """When the last of these has happened."""
        return next((each.at for each in self.lines if each.kind in kinds), None)


async def of(person_id: str, application_id: str) -> Story:
    """Raises NotHere when it is somebody else's."""
    now = await hf.now()
    async with hf.transaction() as tx:
        draft = await draft_of(person_id, application_id, tx=tx)
        [(number, progress, submitted_at, fee, currency)] = await tx.fetch(
            "SELECT coalesce(number, ''), progress, coalesce(submitted_at, 0), fee, currency FROM applications WHERE id = $1",
            application_id,
        )
        return Story(
            draft=draft, choice=await _choice(tx, draft.term_id, now), number=number, progress=progress,
            submitted_at=submitted_at, fee=fee, currency=currency, documents=tuple(await documents_of(tx, application_id)),
            lines=tuple(await _lines(tx, application_id)), payment=await _payment(tx, application_id),
            wishes=tuple(await _wishes(tx, application_id)), decision=await _decision(tx, application_id),
        )  # fmt: skip


async def all_of(person_id: str) -> list[Story]:
    """The newest first."""
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT id FROM applications WHERE person_id = $1 ORDER BY made_at DESC, id LIMIT 100", person_id
        )
    return [await of(person_id, found) for (found,) in rows]


async def document(person_id: str, application_id: str, document_id: str) -> DocumentRow:
    """One of its files, to be looked at. What the scanner has refused is not given back."""
    story = await of(person_id, application_id)
    found = next((each for each in story.documents if each.id == document_id), None)
    if found is None or found.state == "infected" or story.state is State.WITHDRAWN:
        raise NotHere
    return found


async def _choice(tx: Tx, term_id: str, now: float) -> Choice:
    [(programme, programme_vi, name, opens, closes, grace, fee, currency)] = await tx.fetch(
        "SELECT p.name, p.name_vi, t.name, t.opens_at, t.closes_at, t.grace, t.fee, t.currency FROM terms t "
        "JOIN programmes p ON p.id = t.programme_id WHERE t.id = $1",
        term_id,
    )
    door = Window(opens, closes, grace).door(now)
    return Choice(term_id, programme, programme_vi, name, opens, closes, fee, currency, door)


async def _lines(tx: Tx, application_id: str) -> list[Line]:
    rows: Sequence[Any] = await tx.fetch(
        "SELECT at, kind, words FROM steps WHERE application_id = $1 AND NOT is_inner ORDER BY id DESC LIMIT 100",
        application_id,
    )
    return [Line(at, kind, msgspec.json.decode(words or "{}")) for at, kind, words in rows]


async def _payment(tx: Tx, application_id: str) -> Payment:
    rows = await tx.fetch(
        "SELECT state, words, changed_at, coalesce((SELECT sum(amount) FROM entries WHERE application_id = $1), 0) "
        "FROM payments WHERE application_id = $1",
        application_id,
    )
    return Payment(rows[0][0], rows[0][1], rows[0][2], int(rows[0][3])) if rows else Payment()


async def _wishes(tx: Tx, application_id: str) -> list[Wish]:
    rows = await tx.fetch(
        "SELECT kind, words FROM requests WHERE application_id = $1 AND closed_at IS NULL ORDER BY made_at",
        application_id,
    )
    return [Wish(*row) for row in rows]


async def _decision(tx: Tx, application_id: str) -> tuple[str, str] | None:
    rows = await tx.fetch(
        "SELECT outcome, words FROM decisions WHERE application_id = $1 AND released_at IS NOT NULL",
        application_id,
    )
    return (rows[0][0], rows[0][1]) if rows else None
