"""What is theirs: a new password, a copy of all that is kept, and the end of the account."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

import msgspec

from admissions.core import hf
from admissions.desk import people
from admissions.desk.applying import documents_of
from admissions.desk.audit import looked
from admissions.desk.inside import inside
from admissions.desk.refusals import Invalid, TooLate
from admissions.domain.forms import Wrong, is_name
from admissions.domain.states import STANDING
from holdfast import Tx, within

_STANDING = ", ".join(f"'{each}'" for each in sorted(STANDING))


async def set_name(person_id: str, name: str, *, tx: Tx | None = None) -> None:
    if not is_name(name):
        raise Invalid([Wrong("name", "name_missing")])
    async with inside(tx) as own:
        await own.execute("UPDATE people SET name = $1 WHERE id = $2", name.strip(), person_id)
        await looked(own, person_id, "person.name", person_id)


async def change_password(
    person_id: str,
    old: str,
    new: str,
    *,
    end_others: Callable[..., Awaitable[object]] | None = None,
    tx: Tx | None = None,
) -> None:
    """`end_others`, of the session, ends the other logins in the same commit; a caller with a transaction does it there."""
    await _check_password(person_id, old, "old_password", tx=tx)
    hashed = await people.hashed(new, "new_password")
    async with inside(tx) as own:
        await own.execute("UPDATE people SET password = $1 WHERE id = $2", hashed, person_id)
        if end_others is not None:
            await end_others(tx=own)
        await looked(own, person_id, "person.password", person_id)


async def _check_password(person_id: str, password: str, field: str, *, tx: Tx | None = None) -> None:
    async with inside(tx) as own:
        [(hashed,)] = await own.fetch("SELECT password FROM people WHERE id = $1", person_id)
    if not await asyncio.to_thread(people.fits, hashed, password):
        raise Invalid([Wrong(field, "password_wrong")])


async def copy_of_data(person_id: str) -> dict[str, Any]:
    """All that is kept of a person, for the person."""
    person = asdict(await people.get(person_id))
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT id, number, term_id, state, answers, fee, currency, made_at, submitted_at FROM applications "
            "WHERE person_id = $1 ORDER BY made_at",
            person_id,
        )
        applications = [await _application(tx, row) for row in rows]
        looks = await tx.fetch(
            "SELECT at, what, subject FROM looks WHERE person_id = $1 ORDER BY id DESC LIMIT 1000", person_id
        )
        await looked(tx, person_id, "person.data", person_id)
    done = [{"at": at, "what": what, "subject": subject} for at, what, subject in looks]
    return {"person": person, "applications": applications, "log": done}


async def _application(tx: Tx, row: tuple[Any, ...]) -> dict[str, Any]:
    found, number, term_id, state, answers, fee, currency, made_at, submitted_at = row
    lines = await tx.fetch(
        "SELECT at, kind, words FROM steps WHERE application_id = $1 AND NOT is_inner ORDER BY id", found
    )
    entries = await tx.fetch(
        "SELECT amount, currency, at FROM entries WHERE application_id = $1 ORDER BY at", found
    )
    letters = await tx.fetch(
        "SELECT kind, recipient, state, at FROM letters WHERE application_id = $1 ORDER BY at", found
    )
    documents = [asdict(each) for each in await documents_of(tx, found)]
    return {
        "id": found, "number": number, "term_id": term_id, "state": state, "fee": fee, "currency": currency,
        "made_at": made_at, "submitted_at": submitted_at, "answers": msgspec.json.decode(answers),
        "documents": [{name: each[name] for name in ("name", "kind", "type", "size", "sha256", "state")} for each in documents],
        "history": [{"at": at, "kind": kind, "values": msgspec.json.decode(words or "{}")} for at, kind, words in lines],
        "payments": [{"amount": amount, "currency": its, "at": at} for amount, its, at in entries],
        "letters": [{"kind": kind, "to": to, "state": its, "at": at} for kind, to, its, at in letters],
    }  # fmt: skip


async def delete(person_id: str, password: str) -> None:
    """Drafts and names go. What was paid and given back stays in the books, without a name."""
    await _check_password(person_id, password, "password")
    async with hf.transaction() as tx:
        [(standing,)] = await tx.fetch(
            f"SELECT count(*) FROM applications WHERE person_id = $1 AND state IN ({_STANDING})",  # noqa: S608
            person_id,
        )
        if standing:
            raise TooLate("applications_stand", str(standing))
        drafts = await tx.fetch(
            "SELECT id FROM applications WHERE person_id = $1 AND state = 'draft'", person_id
        )
        for (draft,) in drafts:
            await _remove_draft(tx, draft)
        await _forget(tx, person_id)
        await hf.logins.end(person_id, tx=tx)
        await looked(tx, person_id, "person.deleted", person_id)


async def _remove_draft(tx: Tx, draft: str) -> None:
    keys = [each.key for each in await documents_of(tx, draft)]
    if keys:
        with within(tenant=draft):
            await hf.blobs.delete(*keys, tx=tx)
    await tx.execute("DELETE FROM applications WHERE id = $1", draft)


async def _forget(tx: Tx, person_id: str) -> None:
    gone = f"deleted-{person_id}@invalid"
    await tx.execute("UPDATE applications SET answers = '{}', reason = '' WHERE person_id = $1", person_id)
    await tx.execute(
        "UPDATE letters SET recipient = $1 WHERE application_id IN (SELECT id FROM applications WHERE person_id = $2)",
        gone,
        person_id,
    )
    await tx.execute("DELETE FROM tickets WHERE person_id = $1", person_id)
    await tx.execute(
        "UPDATE people SET mail = $1, new_mail = NULL, password = '', name = '', blocked_at = $2 WHERE id = $3",
        gone,
        await hf.now(),
        person_id,
    )
