"""Every mail of the portal: decided on once for its cause, in the transaction of that cause, and noted for its application."""

from __future__ import annotations

from typing import Any

from admissions.core import hf, settings
from admissions.flags import ACKNOWLEDGEMENT
from admissions.words import mail_of
from holdfast import Tx

LOGIN, STAGE, LETTER = 50, 10, -10  # priorities: links to log in, the pipeline, rounds of letters


async def receipt(tx: Tx, application_id: str, *, documents: list[str]) -> None:
    """Unless its flag is off: the receipt is on its page, too."""
    if not await hf.flag(ACKNOWLEDGEMENT, default=True):
        return
    await _of_application(tx, application_id, "receipt", f"receipt:{application_id}", documents=documents)


async def pay_now(tx: Tx, application_id: str) -> None:
    await _of_application(tx, application_id, "pay_now", f"pay:{application_id}")


async def files_refused(tx: Tx, application_id: str, names: list[str], *, cause: str) -> None:
    await _of_application(
        tx, application_id, "files_refused", f"refused:{application_id}:{cause}"[:200], names=names
    )


async def paid(tx: Tx, application_id: str) -> None:
    await _of_application(tx, application_id, "paid", f"paid:{application_id}")


async def withdrawn(tx: Tx, application_id: str, *, refunded: int) -> None:
    await _of_application(tx, application_id, "withdrawn", f"withdrawn:{application_id}", refunded=refunded)


async def decided(tx: Tx, application_id: str, *, outcome: str, words: str) -> None:
    """On a lane that is behind everything else: ten thousand of them delay no login."""
    cause = f"decision:{application_id}"
    await _of_application(tx, application_id, f"decision_{outcome}", cause, priority=LETTER, words=words)


async def requested(tx: Tx, application_id: str, request_id: str, *, words: str) -> None:
    await _of_application(tx, application_id, "requested", f"request:{request_id}", words=words)


async def link(tx: Tx, person_id: str, kind: str, url: str, *, recipient: str | None = None) -> None:
    """To confirm an address or to choose a new password."""
    [(mail, language, name)] = await tx.fetch(
        "SELECT mail, language, name FROM people WHERE id = $1", person_id
    )
    values = {"url": url, "name": name, "university": settings.university}
    subject, text = mail_of(language, kind, values)
    await hf.mail.send(to=recipient or mail, subject=subject, text=text, priority=LOGIN, tx=tx)


async def note_end(tx: Tx, about: str | None, state: str) -> None:
    if about is not None:
        await tx.execute("UPDATE letters SET state = $1 WHERE cause = $2 AND state = 'stored'", state, about)


async def _of_application(
    tx: Tx, application_id: str, kind: str, cause: str, *, priority: int = STAGE, **values: Any
) -> None:
    rows = await tx.fetch(
        "SELECT p.mail, p.language, p.name, a.number, a.fee, a.currency FROM applications a JOIN people p ON p.id = a.person_id "
        "WHERE a.id = $1",
        application_id,
    )
    mail, language, name, number, fee, currency = rows[0]
    stored = await tx.execute(
        "INSERT INTO letters (cause, application_id, kind, recipient, message_id, job_id, state, at) "
        "VALUES ($1, $2, $3, $4, '', '', 'stored', $5) ON CONFLICT (cause) DO NOTHING",
        cause,
        application_id,
        kind,
        mail,
        await hf.now(),
    )
    if not stored:
        return
    base = settings.public_url.rstrip("/")
    told = {
        "name": name,
        "number": number,
        "amount": f"{currency.upper()} {fee / 100:.2f}",
        "university": settings.university,
        "status_url": f"{base}/applications/{application_id}/status",
        "pay_url": f"{base}/applications/{application_id}/pay",
        **values,
    }
    subject, text = mail_of(language, kind, told)
    sent = await hf.mail.send(to=mail, subject=subject, text=text, about=cause, priority=priority, tx=tx)
    await tx.execute(
        "UPDATE letters SET message_id = $1, job_id = $2 WHERE cause = $3",
        sent.message_id,
        sent.handles[0].id,
        cause,
    )
