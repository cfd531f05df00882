"""Applying: a draft that is saved as one types, documents, and a submission in one commit. The time of arrival counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, date, datetime
from typing import Any

import msgspec

from admissions.core import Submitted, Uploaded, hf, key_of, settings
from admissions.desk.inside import inside
from admissions.desk.refusals import Changed, Closed, Invalid, NotHere, TooLate
from admissions.domain.deadlines import Door, Window
from admissions.domain.forms import FIELDS, FILES_MOST, KINDS, Answers, Wrong, wrong
from admissions.domain.states import State
from admissions.ids import new_id
from admissions.steps import happened, move
from admissions.work import letters
from admissions.work.adding import scan_added
from admissions.work.withdrawing import withdraw as withdraw_saga
from holdfast import Tx, within
from holdfast.blobs import Staged
from holdfast.errors import UniqueViolation

ENDINGS = {"application/pdf": "pdf", "image/jpeg": "jpg", "image/png": "png"}
_APART = 1e-6  # seconds between files of one form
FLAG = "new-submissions"  # closes the door with a message


@dataclass(frozen=True)
class Choice:
    """A term that one may apply for."""

    term_id: str
    programme: str
    programme_vi: str
    term: str
    opens_at: float
    closes_at: float
    fee: int
    currency: str
    door: Door


@dataclass(frozen=True)
class Draft:
    id: str
    term_id: str
    state: State
    answers: Answers
    version: int
    changed_at: float


@dataclass(frozen=True)
class DocumentRow:
    id: str
    kind: str
    name: str
    key: str
    type: str
    size: int
    sha256: str
    state: str
    found: str
    made_at: float


@dataclass(frozen=True)
class Receipt:
    """What is proof of a submission: number, time of arrival, and the files with their hashes."""

    application_id: str
    number: str
    arrived_at: float
    documents: tuple[DocumentRow, ...]


_DOCUMENT = ", ".join(each.name for each in fields(DocumentRow))


async def choices() -> list[Choice]:
    now = await hf.now()
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT t.id, p.name, p.name_vi, t.name, t.opens_at, t.closes_at, t.grace, t.fee, t.currency FROM terms t "
            "JOIN programmes p ON p.id = t.programme_id WHERE p.is_open ORDER BY p.position, p.name, t.closes_at"
        )
    return [
        Choice(
            term,
            programme,
            programme_vi,
            name,
            opens,
            closes,
            fee,
            currency,
            Window(opens, closes, grace).door(now),
        )
        for term, programme, programme_vi, name, opens, closes, grace, fee, currency in rows
    ]


# --- drafts ---


async def begin(person_id: str, term_id: str, *, tx: Tx | None = None) -> str:
    """A draft, or the one that is there already."""
    async with inside(tx) as own:
        await _check_door(term_id, await hf.now(), is_begun=False, tx=own)
        rows = await own.fetch(
            "SELECT id, state FROM applications WHERE person_id = $1 AND term_id = $2 AND state <> 'withdrawn' ORDER BY made_at LIMIT 1",
            person_id,
            term_id,
        )
        if rows:
            return str(rows[0][0])
        return await _new(own, person_id, term_id, Answers())


async def _new(tx: Tx, person_id: str, term_id: str, answers: Answers) -> str:
    found, now = new_id(), await hf.now()
    await tx.execute(
        "INSERT INTO applications (id, person_id, term_id, state, progress, answers, fee, currency, reason, failed_in, version, made_at, changed_at) "
        "VALUES ($1, $2, $3, 'draft', 0, $4, 0, 'usd', '', '', 1, $5, $5)",
        found,
        person_id,
        term_id,
        _packed(answers),
        now,
    )
    return found


async def draft_of(person_id: str, application_id: str, *, tx: Tx | None = None) -> Draft:
    """Raises NotHere when it is somebody else's."""
    async with inside(tx) as own:
        rows = await own.fetch(
            "SELECT id, term_id, state, answers, version, changed_at FROM applications WHERE id = $1 AND person_id = $2",
            application_id,
            person_id,
        )
    if not rows:
        raise NotHere
    found, term_id, state, answers, version, changed_at = rows[0]
    return Draft(
        found, term_id, State(state), msgspec.json.decode(answers, type=Answers), version, changed_at
    )


async def save(
    person_id: str,
    application_id: str,
    step: str,
    answers: Mapping[str, Any],
    *,
    version: int | None = None,
    tx: Tx | None = None,
) -> Draft:
    """What was typed in one step, right or not: it is kept. Only a submission asks for all of it to be right."""
    async with inside(tx) as own:
        draft = await draft_of(person_id, application_id, tx=own)
        if draft.state is not State.DRAFT:
            raise TooLate("already_submitted", draft.state)
        if version is not None and version != draft.version:
            raise Changed(draft.version)
        typed = {name: answers[name] for name in FIELDS[step] if name in answers}
        changed = await own.execute(
            "UPDATE applications SET answers = $1, version = version + 1, changed_at = $2 WHERE id = $3 AND version = $4 AND state = 'draft'",
            _packed(msgspec.convert({**asdict(draft.answers), **typed}, Answers)),
            await hf.now(),
            application_id,
            draft.version,
        )
        if not changed:
            raise Changed(draft.version)
        return await draft_of(person_id, application_id, tx=own)


# --- documents ---


async def documents_of(tx: Tx, application_id: str) -> list[DocumentRow]:
    rows = await tx.fetch(
        f"SELECT {_DOCUMENT} FROM documents WHERE application_id = $1 AND state <> 'replaced' ORDER BY made_at, id",  # noqa: S608
        application_id,
    )
    return [DocumentRow(*row) for row in rows]


async def add_document(
    person_id: str, application_id: str, kind: str, name: str, staged: Staged, *, tx: Tx | None = None
) -> str:
    """To a draft; or to an application for which a file was asked, and then it is scanned."""
    async with inside(tx) as own:
        draft = await _locked(person_id, application_id, own)
        if draft.state is State.DRAFT:
            if len(await documents_of(own, application_id)) >= FILES_MOST:
                raise Invalid([Wrong("files", "files_many", (FILES_MOST + 1, FILES_MOST))])
            return await _store(own, application_id, kind, name, staged)
        return await _add_later(own, draft, kind, name, staged)


async def _locked(person_id: str, application_id: str, tx: Tx) -> Draft:
    """Files that come, go and are sent at once come one after the other: none is added to what was just sent, or above the number."""
    await tx.execute("UPDATE applications SET changed_at = changed_at WHERE id = $1", application_id)
    return await draft_of(person_id, application_id, tx=tx)


async def _add_later(tx: Tx, draft: Draft, kind: str, name: str, staged: Staged) -> str:
    """A replacement for refused files, or what an officer has asked for."""
    refused = [each for each in await documents_of(tx, draft.id) if each.state == "infected"]
    asked = await tx.fetch(
        "SELECT id FROM requests WHERE application_id = $1 AND closed_at IS NULL ORDER BY made_at LIMIT 1",
        draft.id,
    )
    if draft.state is not State.NEEDS_FILES and not asked:
        raise TooLate("no_file_asked", draft.state)
    made = await _store(tx, draft.id, kind, name, staged)
    replaced = refused[:1]
    for each in replaced:
        await tx.execute(
            "UPDATE documents SET state = 'replaced', replaced_by = $1 WHERE id = $2", made, each.id
        )
    if asked and not replaced:
        await tx.execute(
            "UPDATE requests SET document_id = $1, closed_at = $2 WHERE id = $3",
            made,
            await hf.now(),
            asked[0][0],
        )
    await happened(tx, draft.id, "document_added", name=name)
    if draft.state is not State.NEEDS_FILES:
        await scan_added.options(tx=tx).enqueue(draft.id, made)  # type: ignore[call-arg]  # its worker gives it the scanner
    elif not refused[1:]:
        told = Uploaded(draft.id, [made], replaces=len(replaced))
        await hf.emit("document.uploaded", told, key=key_of(draft.id), tx=tx)
    return made


async def remove_document(
    person_id: str, application_id: str, document_id: str, *, tx: Tx | None = None
) -> None:
    async with inside(tx) as own:
        draft = await _locked(person_id, application_id, own)
        if draft.state is not State.DRAFT:
            raise TooLate("already_submitted", draft.state)
        rows = await own.fetch(
            "SELECT key FROM documents WHERE id = $1 AND application_id = $2", document_id, application_id
        )
        if not rows:
            raise NotHere
        await own.execute("DELETE FROM documents WHERE id = $1", document_id)
        with within(tenant=application_id):
            await hf.blobs.delete(rows[0][0], tx=own)


async def _store(tx: Tx, application_id: str, kind: str, name: str, staged: Staged, number: int = 0) -> str:  # noqa: PLR0917  as they stand in a form
    """`number`: of several that come at once, for their order."""
    if kind not in KINDS:
        raise Invalid([Wrong("kind", "kind_wrong", (kind,))])
    found = new_id()
    key = f"documents/{found}.{ENDINGS[staged.content_type]}"
    with within(tenant=application_id):
        await hf.blobs.commit(staged, key, tx=tx)
    await tx.execute(
        "INSERT INTO documents (id, application_id, kind, name, key, type, size, sha256, state, found, scanner, made_at) "
        "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'new', '', '', $9)",
        found, application_id, kind, name[:200], key, staged.content_type, staged.size, staged.sha256, await hf.now() + number * _APART,
    )  # fmt: skip
    return found


# --- submission ---


async def wrongs(person_id: str, application_id: str, step: str | None = None) -> list[Wrong]:
    async with hf.transaction() as tx:
        draft = await draft_of(person_id, application_id, tx=tx)
        return await _wrongs(tx, draft, step)


async def _wrongs(tx: Tx, draft: Draft, step: str | None = None) -> list[Wrong]:
    return wrong(draft.answers, files=len(await documents_of(tx, draft.id)), today=await _today(), step=step)


async def submit(person_id: str, application_id: str, *, arrived_at: float, tx: Tx | None = None) -> Receipt:
    """Application, receipt, mail and both events, in one commit. What arrived in time is in time, however long this takes."""
    async with inside(tx) as own:
        draft = await _locked(person_id, application_id, own)
        if draft.state is not State.DRAFT:
            raise TooLate("already_submitted", draft.state)
        await _check_door(draft.term_id, arrived_at, is_begun=True, tx=own)
        found = await _wrongs(own, draft)
        if found:
            raise Invalid(found)
        return await _submitted(own, draft, arrived_at)


async def submit_whole(
    person_id: str,
    term_id: str,
    answers: Answers,
    files: Sequence[tuple[str, str, Staged]],
    *,
    application_id: str,
    arrived_at: float,
    tx: Tx,
) -> Receipt:
    """The same by one request of a program: kind, name and staged bytes of each file, staged for `application_id` as tenant."""
    found = wrong(answers, files=len(files), today=await _today())
    if found:
        raise Invalid(found)
    await _check_door(term_id, arrived_at, is_begun=False, tx=tx)
    now = await hf.now()
    await tx.execute(
        "INSERT INTO applications (id, person_id, term_id, state, progress, answers, fee, currency, reason, failed_in, version, made_at, changed_at) "
        "VALUES ($1, $2, $3, 'draft', 0, $4, 0, 'usd', '', '', 1, $5, $5)",
        application_id,
        person_id,
        term_id,
        _packed(answers),
        now,
    )
    for number, (kind, name, staged) in enumerate(files):
        await _store(tx, application_id, kind, name, staged, number)
    return await _submitted(tx, await draft_of(person_id, application_id, tx=tx), arrived_at)


async def _submitted(tx: Tx, draft: Draft, arrived_at: float) -> Receipt:
    """The fee is that of this moment. One application stands for each person and term: the index says so."""
    [(fee, currency)] = await tx.fetch("SELECT fee, currency FROM terms WHERE id = $1", draft.term_id)
    number = f"{datetime.fromtimestamp(arrived_at, settings.its_zone).year}-{draft.id[:10].upper()}"
    try:
        async with tx.savepoint():
            await tx.execute(
                "UPDATE applications SET number = $1, submitted_at = $2, fee = $3, currency = $4 WHERE id = $5 AND state = 'draft'",
                number,
                arrived_at,
                fee,
                currency,
                draft.id,
            )
            if not await move(tx, draft.id, State.SUBMITTED):
                raise TooLate("already_submitted", State.SUBMITTED)
    except UniqueViolation:
        raise Closed("one_for_each_term") from None
    documents = await documents_of(tx, draft.id)
    await happened(tx, draft.id, "submitted", number=number, documents=len(documents))
    await letters.receipt(tx, draft.id, documents=[each.name for each in documents])
    told = Submitted(draft.id, draft.term_id, number, arrived_at, len(documents))
    await hf.emit("application.submitted", told, key=key_of(draft.id), tx=tx)
    uploaded = Uploaded(draft.id, [each.id for each in documents])
    await hf.emit("document.uploaded", uploaded, key=key_of(draft.id), tx=tx)
    return Receipt(draft.id, number, arrived_at, tuple(documents))


async def withdraw(person_id: str, application_id: str, reason: str, *, tx: Tx | None = None) -> None:
    """A saga: work stops, money goes back, files go, and a mail tells."""
    async with inside(tx) as own:
        draft = await draft_of(person_id, application_id, tx=own)
        if draft.state in (State.DRAFT, State.WITHDRAWN):
            raise TooLate("nothing_to_withdraw", draft.state)
        await withdraw_saga.start(application_id, reason[:500], id=f"withdraw:{application_id}", tx=own)


async def mine(person_id: str) -> list[tuple[Draft, str, str]]:
    """The applications of a person, the newest first, with programme and term."""
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT a.id, p.name, t.name FROM applications a JOIN terms t ON t.id = a.term_id JOIN programmes p ON p.id = t.programme_id "
            "WHERE a.person_id = $1 ORDER BY a.made_at DESC, a.id LIMIT 200",
            person_id,
        )
        return [(await draft_of(person_id, row[0], tx=tx), row[1], row[2]) for row in rows]


async def _check_door(term_id: str, arrived_at: float, *, is_begun: bool, tx: Tx | None = None) -> None:
    if not await hf.flag(FLAG, default=True):
        raise Closed("door_closed")
    async with inside(tx) as own:
        rows = await own.fetch("SELECT opens_at, closes_at, grace FROM terms WHERE id = $1", term_id)
    if not rows:
        raise NotHere
    door = Window(*rows[0]).door(arrived_at)
    if door is Door.OPEN or (door is Door.GRACE and is_begun):
        return
    raise Closed("term_not_yet" if door is Door.NOT_YET else "term_over", rows[0][0], rows[0][1])


async def _today() -> date:
    return datetime.fromtimestamp(await hf.now(), UTC).astimezone(settings.its_zone).date()


def _packed(answers: Answers) -> str:
    return msgspec.json.encode(asdict(answers)).decode()
