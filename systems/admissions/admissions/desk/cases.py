"""The officers' queue and one case: filters, search and keyset pages; notes, requests for documents, and assignment by version."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import Any

import msgspec

from admissions.core import hf
from admissions.desk.applying import DocumentRow, documents_of
from admissions.desk.audit import looked
from admissions.desk.inside import inside
from admissions.desk.refusals import Changed, Invalid, NotHere, TooLate
from admissions.domain.forms import KINDS, Answers, Wrong
from admissions.domain.roles import STAFF, Role
from admissions.domain.states import State
from admissions.ids import new_id
from admissions.steps import happened, move
from admissions.work import letters
from holdfast import Tx, within
from holdfast.blobs import BlobMissing, Reading

_ROW = "a.id, a.number, a.state, a.progress, a.submitted_at, a.officer_id, o.name, p.name, p.mail, a.term_id, g.name, t.name, a.version, a.reason, d.outcome, d.stage"
_FROM = (
    "FROM applications a JOIN people p ON p.id = a.person_id JOIN terms t ON t.id = a.term_id JOIN programmes g ON g.id = t.programme_id "
    "LEFT JOIN people o ON o.id = a.officer_id LEFT JOIN decisions d ON d.application_id = a.id"
)
_FOUND = "(lower(p.name) LIKE ? ESCAPE '!' OR p.mail LIKE ? ESCAPE '!' OR lower(a.number) LIKE ? ESCAPE '!')"


@dataclass(frozen=True)
class CaseRow:
    id: str
    number: str
    state: State
    progress: int
    submitted_at: float
    officer_id: str | None
    officer: str | None
    name: str
    mail: str
    term_id: str
    programme: str
    term: str
    version: int
    reason: str
    outcome: str | None
    stage: str | None


@dataclass(frozen=True)
class NoteRow:
    officer: str
    text: str
    at: float


@dataclass(frozen=True)
class Line:
    """Of the history. `kind` names its sentence, `values` stand in it."""

    at: float
    kind: str
    values: dict[str, Any]
    is_inner: bool


@dataclass(frozen=True)
class LetterRow:
    kind: str
    recipient: str
    state: str
    at: float
    message_id: str


@dataclass(frozen=True)
class Case:
    row: CaseRow
    answers: Answers
    documents: tuple[DocumentRow, ...]
    notes: tuple[NoteRow, ...]
    history: tuple[Line, ...]
    letters: tuple[LetterRow, ...]


def _case_row(values: Sequence[Any]) -> CaseRow:
    names = (each.name for each in fields(CaseRow))
    found = dict(zip(names, values, strict=True))
    return CaseRow(**{**found, "state": State(found["state"])})


async def queue(
    *,
    states: Collection[State] = (),
    term_id: str | None = None,
    officer_id: str | None = None,
    decision: str | None = None,
    search: str = "",
    after: tuple[float, str] | None = None,
    before: tuple[float, str] | None = None,
    limit: int = 50,
) -> list[CaseRow]:
    """The oldest first, after the last one of the page before; or those before a row, the next one first. `officer_id` of "nobody": not assigned; `decision` of "none": not drafted."""
    asked = _Asked()
    if states:
        asked.where(f"a.state IN ({', '.join('?' for _ in states)})", *map(str, states))
    if term_id:
        asked.where("a.term_id = ?", term_id)
    if search.strip():
        like = f"%{_escaped(search.strip().lower())}%"
        asked.where(_FOUND, like, like, like)
    if after is not None:
        asked.where("(a.submitted_at, a.id) > (?, ?)", *after)
    if before is not None:
        asked.where("(a.submitted_at, a.id) < (?, ?)", *before)
    asked.one("a.officer_id", officer_id, missing="nobody")
    asked.one("d.stage", decision, missing="none")
    order = "a.submitted_at DESC, a.id DESC" if before is not None else "a.submitted_at, a.id"
    sql = f"SELECT {_ROW} {_FROM} WHERE {asked.sql} ORDER BY {order} LIMIT {asked.value(limit)}"
    async with hf.transaction() as tx:
        return [_case_row(row) for row in await tx.fetch(sql, *asked.values)]


class _Asked:
    """What a list is asked for, as SQL with its values."""

    def __init__(self) -> None:
        self._wheres, self.values = ["a.submitted_at IS NOT NULL"], list[object]()

    @property
    def sql(self) -> str:
        return " AND ".join(self._wheres)

    def value(self, given: object) -> str:
        self.values.append(given)
        return f"${len(self.values)}"

    def where(self, sql: str, *given: object) -> None:
        """Each `?` is one of the values."""
        for each in given:
            sql = sql.replace("?", self.value(each), 1)
        self._wheres.append(sql)

    def one(self, column: str, given: str | None, *, missing: str) -> None:
        """A filter with a word for what has none."""
        if given == missing:
            self.where(f"{column} IS NULL")
        elif given:
            self.where(f"{column} = ?", given)


async def mark(application_id: str) -> tuple[object, ...]:
    """It differs when something of the case has changed; nothing personal is in it, so that it is no look."""
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT a.version, a.state, coalesce(d.version, 0), (SELECT count(*) FROM notes n WHERE n.application_id = a.id), "
            "(SELECT count(*) FROM steps s WHERE s.application_id = a.id), (SELECT count(*) FROM documents f WHERE f.application_id = a.id AND f.state = 'clean') "
            "FROM applications a LEFT JOIN decisions d ON d.application_id = a.id WHERE a.id = $1",
            application_id,
        )
    if not rows:
        raise NotHere
    return tuple(rows[0])


async def case(officer_id: str, application_id: str) -> Case:
    """With the look in the audit log, in the same transaction."""
    async with hf.transaction() as tx:
        row = await _row(tx, application_id)
        [(answers,)] = await tx.fetch("SELECT answers FROM applications WHERE id = $1", application_id)
        notes = await tx.fetch(
            "SELECT coalesce(p.name, ''), n.text, n.at FROM notes n LEFT JOIN people p ON p.id = n.officer_id WHERE n.application_id = $1 ORDER BY n.at DESC",
            application_id,
        )
        lines = await tx.fetch(
            "SELECT at, kind, words, is_inner FROM steps WHERE application_id = $1 ORDER BY id DESC LIMIT 200",
            application_id,
        )
        mails = await tx.fetch(
            "SELECT kind, recipient, state, at, message_id FROM letters WHERE application_id = $1 ORDER BY at DESC",
            application_id,
        )
        documents = await documents_of(tx, application_id)
        await looked(tx, officer_id, "case.read", application_id)
    return Case(
        row=row,
        answers=msgspec.json.decode(answers, type=Answers),
        documents=tuple(documents),
        notes=tuple(NoteRow(*each) for each in notes),
        history=tuple(
            Line(at, kind, msgspec.json.decode(words or "{}"), bool(inner))
            for at, kind, words, inner in lines
        ),
        letters=tuple(LetterRow(*each) for each in mails),
    )


async def _row(tx: Tx, application_id: str) -> CaseRow:
    rows = await tx.fetch(
        f"SELECT {_ROW} {_FROM} WHERE a.id = $1 AND a.submitted_at IS NOT NULL",
        application_id,
    )
    if not rows:
        raise NotHere
    return _case_row(rows[0])


async def assign(
    officer_id: str, application_id: str, to: str | None, *, version: int, tx: Tx | None = None
) -> None:
    """Two officers on one case: the second is told, not overwritten."""
    async with inside(tx) as own:
        row = await _row(own, application_id)
        if to is not None:
            await _check_officer(own, to)
        changed = await own.execute(
            "UPDATE applications SET officer_id = $1, version = version + 1, changed_at = $2 WHERE id = $3 AND version = $4",
            to,
            await hf.now(),
            application_id,
            version,
        )
        if not changed:
            raise Changed(row.version)
        await happened(own, application_id, "assigned", inner=True, to=to or "")
        await looked(own, officer_id, "case.assigned", application_id, to or "nobody")


async def _check_officer(tx: Tx, person_id: str) -> None:
    rows = await tx.fetch("SELECT role FROM people WHERE id = $1 AND blocked_at IS NULL", person_id)
    if not rows or Role(rows[0][0]) not in STAFF:
        raise Invalid([Wrong("officerId", "officer_wrong")])


async def note(officer_id: str, application_id: str, text: str, *, tx: Tx | None = None) -> None:
    if not 0 < len(text.strip()) <= 5_000:
        raise Invalid([Wrong("text", "note_empty")])
    async with inside(tx) as own:
        await _row(own, application_id)
        await own.execute(
            "INSERT INTO notes (id, application_id, officer_id, text, at) VALUES ($1, $2, $3, $4, $5)",
            new_id(),
            application_id,
            officer_id,
            text.strip(),
            await hf.now(),
        )
        await looked(own, officer_id, "case.noted", application_id)


async def ask_for(
    officer_id: str, application_id: str, kind: str, words: str, *, tx: Tx | None = None
) -> str:
    """A document is asked for, by mail and on the page of its owner."""
    if kind not in KINDS or not 0 < len(words.strip()) <= 1_000:
        raise Invalid([Wrong("words", "request_empty")])
    async with inside(tx) as own:
        row = await _row(own, application_id)
        if row.state in (State.WITHDRAWN, State.DRAFT):
            raise TooLate("case_over", row.state)
        found = new_id()
        await own.execute(
            "INSERT INTO requests (id, application_id, officer_id, kind, words, made_at) VALUES ($1, $2, $3, $4, $5, $6)",
            found,
            application_id,
            officer_id,
            kind,
            words.strip(),
            await hf.now(),
        )
        await happened(own, application_id, "requested", words=words.strip())
        await letters.requested(own, application_id, found, words=words.strip())
        await looked(own, officer_id, "case.requested", application_id, kind)
        return found


async def open_file(officer_id: str, application_id: str, document_id: str) -> DocumentRow:
    """A file that was scanned may be downloaded; who looks is logged."""
    async with hf.transaction() as tx:
        await _row(tx, application_id)
        found = [each for each in await documents_of(tx, application_id) if each.id == document_id]
        if not found:
            raise NotHere
        if found[0].state != "clean":
            raise TooLate("file_not_clean", found[0].state)
        await looked(tx, officer_id, "file.read", document_id, application_id)
        return found[0]


async def read_file(officer_id: str, application_id: str, document_id: str) -> tuple[DocumentRow, Reading]:
    """What it is, and its bytes."""
    found = await open_file(officer_id, application_id, document_id)
    with within(tenant=application_id):
        try:
            return found, await hf.blobs.open(found.key)
        except BlobMissing:
            raise NotHere from None


async def resume(officer_id: str, application_id: str, *, tx: Tx | None = None) -> None:
    """What has failed goes on where it was, once its cause is mended: its dead delivery is played again."""
    async with inside(tx) as own:
        rows = await own.fetch("SELECT state, failed_in FROM applications WHERE id = $1", application_id)
        if not rows:
            raise NotHere
        if rows[0][0] != State.FAILED:
            raise TooLate("not_failed", rows[0][0])
        jobs = await own.fetch(
            "SELECT words FROM steps WHERE application_id = $1 AND kind = 'failed_inside' ORDER BY id DESC LIMIT 1",
            application_id,
        )
        told = msgspec.json.decode(jobs[0][0])
        before = State(rows[0][1])
        await move(own, application_id, before)
        await happened(own, application_id, "resumed")
        await hf.dead.replay([told["job"]], actor=officer_id, tx=own)
        await looked(own, officer_id, "case.resumed", application_id)


def _escaped(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
