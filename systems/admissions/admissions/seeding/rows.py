"""Rows of a planted application: answers, files, history, letters and payments, as the pipeline would have left them."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from admissions.core import hf, settings
from admissions.domain.forms import Answers
from admissions.domain.states import PROGRESS, State
from admissions.ids import new_id
from admissions.seeding import plan
from holdfast import Tx, within
from holdfast.blobs import Staged

_PDF = b"%PDF-1.7\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj\n2 0 obj << /Type /Pages /Kids [] /Count 0 >> endobj\n% {}\ntrailer << /Root 1 0 R >>\n%%EOF\n"
_FILES = (
    ("transcript", "transcript-2026.pdf"),
    ("identification", "passport.pdf"),
    ("other", "certificate-c1.pdf"),
)


@dataclass
class Planted:
    """One application, before it is stored."""

    person_id: str
    term_id: str
    kind: str  # of plan.SHARES
    number: int
    submitted_at: float
    fee: int
    now: float  # nothing of it is later
    id: str = field(default_factory=new_id)
    intent: str = ""
    entries: list[tuple[str, int]] = field(default_factory=list)  # reference and amount

    @property
    def chance(self) -> random.Random:
        return random.Random(f"application {self.number}")

    @property
    def state(self) -> State:
        return State({"declined": "awaiting_payment", "told": "completed"}.get(self.kind, self.kind))

    @property
    def receipt(self) -> str:
        year = datetime.fromtimestamp(self.submitted_at, settings.its_zone).year
        return f"{year}-{self.id[:10].upper()}"

    def answers(self, name: str) -> Answers:
        whole = Answers(
            name, f"{1996 + self.number % 9}-0{1 + self.number % 9}-{10 + self.number % 18}", "+84 91 234 56 78",
            "12 Hàng Bài, Hà Nội", plan.STATEMENTS[self.number % len(plan.STATEMENTS)], True,
        )  # fmt: skip
        return Answers(name=name, statement=whole.statement[:120]) if self.kind == "draft" else whole


async def stage(each: Planted) -> list[tuple[str, str, Staged]]:
    """Its files, before the transaction: one to three, and none of a draft that has just begun."""
    number = each.chance.choice((0, 1)) if each.kind == "draft" else each.chance.choice((1, 2, 2, 3))
    with within(tenant=each.id):
        return [
            (
                kind,
                name,
                await hf.blobs.stage(_PDF + f"% {each.id} {name}".encode(), content_type="application/pdf"),
            )
            for kind, name in _FILES[:number]
        ]


async def store(
    tx: Tx, each: Planted, name: str, files: list[tuple[str, str, Staged]], officer: str | None
) -> None:
    is_draft, is_failed = each.kind == "draft", each.kind == "failed"
    state = "verifying" if is_failed else str(each.state)
    await tx.execute(
        "INSERT INTO applications (id, number, person_id, term_id, state, progress, answers, fee, currency, officer_id, reason, failed_in, version, "
        "made_at, changed_at, submitted_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, '', '', 3, $11, $12, $13)",
        each.id, None if is_draft else each.receipt, each.person_id, each.term_id, state,
        100 if each.kind == "withdrawn" else PROGRESS[each.state], msgspec.json.encode(asdict(each.answers(name))).decode(), 0 if is_draft else each.fee,
        settings.currency, officer, each.submitted_at - 3_600, each.submitted_at + 900, None if is_draft else each.submitted_at,
    )  # fmt: skip
    for index, (kind, title, staged) in enumerate(files):
        await _document(tx, each, kind, title, staged, is_bad=each.kind == "needs_files" and index == 0)
    if not is_draft:
        await _history(tx, each, files)


async def _document(tx: Tx, each: Planted, kind: str, title: str, staged: Staged, *, is_bad: bool) -> None:
    found = new_id()
    key = f"documents/{found}.pdf"
    with within(tenant=each.id):
        await hf.blobs.commit(staged, key, tx=tx)
    state = "new" if each.kind in ("draft", "failed") else "infected" if is_bad else "replaced" if each.kind == "withdrawn" else "clean"  # fmt: skip
    await tx.execute(
        "INSERT INTO documents (id, application_id, kind, name, key, type, size, sha256, state, found, scanner, made_at, scanned_at) "
        "VALUES ($1, $2, $3, $4, $5, 'application/pdf', $6, $7, $8, $9, $10, $11, $12)",
        found, each.id, kind, title, key, staged.size, staged.sha256, state, "Eicar-Test-Signature" if is_bad else "",
        "" if state == "new" else "built-in", each.submitted_at - 600, None if state == "new" else each.submitted_at + 40,
    )  # fmt: skip


async def _history(tx: Tx, each: Planted, files: list[tuple[str, str, Staged]]) -> None:
    at, chance = each.submitted_at, each.chance
    paid_at = at + chance.uniform(0.1, 0.9) * min(40_000, each.now - at)
    ended_at = min(paid_at + 90_000, each.now - 60)
    lines: list[tuple[float, str, dict[str, Any]]] = [
        (at, "submitted", {"number": each.receipt, "documents": len(files)}), (at + 4, "verifying", {}),
    ]  # fmt: skip
    letters = [("receipt", at)]
    money = {"amount": each.fee, "currency": settings.currency}
    if each.kind == "needs_files":
        lines.append((at + 40, "files_refused", {"names": [files[0][1]]}))
        letters.append(("files_refused", at + 42))
    elif each.kind != "failed":
        lines += [(at + 40, "verified", {"documents": len(files)}), (at + 44, "payment_opened", money)]
        letters.append(("pay_now", at + 45))
    if each.kind == "declined":
        lines += [(at + 800, "confirming", {}), (at + 802, "payment_declined", {})]
    if each.entries:
        lines += [(paid_at, "confirming", {}), (paid_at + 2, "paid", money), (paid_at + 5, "mailed", {}), (paid_at + 5, "completed", {})]  # fmt: skip
        letters.append(("paid", paid_at + 5))
    if each.kind == "withdrawn":
        lines.append((ended_at, "withdrawn", {"reason": "I go elsewhere"}))
        letters.append(("withdrawn", ended_at + 4))
    for when, kind, values in lines:
        await tx.execute(
            "INSERT INTO steps (application_id, at, kind, words, is_inner) VALUES ($1, $2, $3, $4, $5)",
            each.id, when, kind, msgspec.json.encode(values).decode(), False,
        )  # fmt: skip
    for kind, when in letters:
        await tx.execute(
            "INSERT INTO letters (cause, application_id, kind, recipient, message_id, job_id, state, at) SELECT $1, $2, $3, p.mail, $4, '', 'sent', $5 "
            "FROM people p JOIN applications a ON a.person_id = p.id WHERE a.id = $2",
            f"{kind}:{each.id}", each.id, kind, f"<seed-{kind}-{each.id}@localhost>", when,
        )  # fmt: skip
    await _payment(tx, each, at, paid_at)


async def _payment(tx: Tx, each: Planted, at: float, paid_at: float) -> None:
    if not each.intent:
        return
    state = {"awaiting_payment": "open", "declined": "declined", "withdrawn": "refunded"}.get(
        each.kind, "paid"
    )
    words = "The bank says that there is not enough money." if state == "declined" else ""
    await tx.execute(
        "INSERT INTO payments (application_id, intent, state, amount, currency, words, asked_at, changed_at) VALUES ($1, $2, $3, $4, $5, $6, NULL, $7)",
        each.id, each.intent, state, each.fee, settings.currency, words, paid_at if each.entries else at + 44,
    )  # fmt: skip
    for reference, amount in each.entries:
        await tx.execute(
            "INSERT INTO entries (reference, application_id, intent, amount, currency, source, at) VALUES ($1, $2, $3, $4, $5, 'webhook', $6)",
            reference, each.id, each.intent, amount, settings.currency, paid_at if amount > 0 else min(paid_at + 90_002, each.now - 58),
        )  # fmt: skip
