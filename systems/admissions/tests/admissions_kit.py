"""What tests of the portal make: people, a term, and applications that were submitted."""

from __future__ import annotations

from dataclasses import asdict

import msgspec
from admissions.core import Submitted, Uploaded, hf, key_of
from admissions.domain.forms import Answers
from admissions.ids import new_id
from admissions.work import letters

from holdfast import within

PDF = b"%PDF-1.7\n1 0 obj\nendobj\ntrailer\n%%EOF\n"
EICAR = b"X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR" + b"-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"
ANSWERS = Answers(
    "Nguyễn Thị Ánh", "2004-02-29", "+84 91 234 56 78", "12 Hàng Bài, Hà Nội", "I want to study here.", True
)


async def person(mail: str = "anh@example.org", *, role: str = "applicant", language: str = "en") -> str:
    found = new_id()
    async with hf.transaction() as tx:
        await tx.execute(
            "INSERT INTO people (id, mail, password, name, role, language, confirmed_at, made_at) VALUES ($1, $2, '', 'Ánh', $3, $4, $5, $5)",
            found, mail, role, language, await hf.now(),
        )  # fmt: skip
    return found


async def term(*, fee: int = 7500) -> str:
    programme, found = new_id(), new_id()
    now = await hf.now()
    async with hf.transaction() as tx:
        await tx.execute(
            "INSERT INTO programmes (id, name, name_vi, is_open, position) VALUES ($1, 'Informatics', '', $2, 0)",
            programme,
            True,
        )
        await tx.execute(
            "INSERT INTO terms (id, programme_id, name, opens_at, closes_at, grace, fee, currency, places) "
            "VALUES ($1, $2, 'Autumn', $3, $4, 0, $5, 'usd', 10)",
            found, programme, now - 86_400, now + 86_400, fee,
        )  # fmt: skip
    return found


async def submitted(
    *, fee: int = 7500, files: tuple[bytes, ...] = (PDF,), mail: str = "anh@example.org", language: str = "en"
) -> str:
    """As the request leaves it: rows and events in one commit. Its id."""
    owner, its_term, found = await person(mail, language=language), await term(fee=fee), new_id()
    with within(tenant=found):
        staged = [await hf.blobs.stage(content, content_type="application/pdf") for content in files]
        now = await hf.now()
        async with hf.transaction() as tx:
            number = f"2026-{found[:6]}"
            await tx.execute(
                "INSERT INTO applications (id, number, person_id, term_id, state, progress, answers, fee, currency, reason, failed_in, version, "
                "made_at, changed_at, submitted_at) VALUES ($1, $2, $3, $4, 'submitted', 0, $5, $6, 'usd', '', '', 1, $7, $7, $7)",
                found, number, owner, its_term, msgspec.json.encode(asdict(ANSWERS)).decode(), fee, now,
            )  # fmt: skip
            ids = [await _document(tx, found, each, index) for index, each in enumerate(staged)]
            await letters.receipt(tx, found, documents=[f"{index}.pdf" for index in range(len(staged))])
            told = Submitted(found, its_term, number, now, len(ids))
            await hf.emit("application.submitted", told, key=key_of(found), tx=tx)
            await hf.emit("document.uploaded", Uploaded(found, ids), key=key_of(found), tx=tx)
    return found


async def _document(tx, application, staged, index):
    found = new_id()
    key = f"documents/{found}.pdf"
    await hf.blobs.commit(staged, key, tx=tx)
    await tx.execute(
        "INSERT INTO documents (id, application_id, kind, name, key, type, size, sha256, state, found, scanner, made_at) "
        "VALUES ($1, $2, 'transcript', $3, $4, 'application/pdf', $5, $6, 'new', '', '', $7)",
        found, application, f"{index}.pdf", key, staged.size, staged.sha256, await hf.now(),
    )  # fmt: skip
    return found


async def row(application: str) -> dict[str, object]:
    async with hf.transaction() as tx:
        [found] = await tx.fetch(
            "SELECT state, progress, reason, failed_in, fee FROM applications WHERE id = $1", application
        )
    return dict(zip(("state", "progress", "reason", "failed_in", "fee"), found, strict=True))


async def payment(application: str) -> dict[str, object]:
    async with hf.transaction() as tx:
        [found] = await tx.fetch(
            "SELECT intent, state, words FROM payments WHERE application_id = $1", application
        )
    return dict(zip(("intent", "state", "words"), found, strict=True))


async def pay(application: str, method: str = "pm_card_visa") -> None:
    """As the pay page does it."""
    from admissions.work.paying import confirm

    async with hf.transaction() as tx:
        changed = await tx.execute(
            "UPDATE payments SET state = 'confirming', changed_at = $1 WHERE application_id = $2 AND state IN ('open', 'declined')",
            await hf.now(), application,
        )  # fmt: skip
        assert changed == 1
        await confirm.options(tx=tx).enqueue(application, method)
