"""What the database says in the end, beside the ledgers of Stripe, the mail server and the scanner, and what applicants were told."""

from __future__ import annotations

from collections import Counter

from admissions.core import hf
from portal_world import World

from tools.proving.figures import Findings

MAILS = ("receipt", "pay_now", "paid")


async def states() -> Counter[str]:
    async with hf.transaction() as tx:
        return Counter(dict(await tx.fetch("SELECT state, count(*) FROM applications GROUP BY state")))


class Count:
    """`answers` are those to each key, in the order in which they came."""

    def __init__(self, world: World, answers: dict[str, list[bytes]]) -> None:
        self._world, self._answers = world, answers

    async def make(self, findings: Findings) -> None:
        told = {key: {self._id(each) for each in found} for key, found in self._answers.items()}
        findings.must("keys with two answers", [key for key, ids in told.items() if len(ids) != 1])
        accepted = {next(iter(ids)) for ids in told.values()}
        rows = await self._rows()
        findings.must("accepted, and not there (lost)", sorted(accepted - rows.keys()))
        findings.must("there, and nobody was told (doubled)", sorted(rows.keys() - accepted))
        stuck = [
            f"{found}: {state}" for found, (state, _) in rows.items() if state not in ("completed", "failed")
        ]
        findings.must("stuck", stuck)
        unsaid = [found for found, (state, reason) in rows.items() if state == "failed" and not reason]
        findings.must("failed without a reason", unsaid)
        failed = [found for found, (state, _) in rows.items() if state == "failed"]
        findings.must("failed", failed)
        findings.line |= {
            "applications": len(accepted),
            "lost": len(accepted - rows.keys()),
            "stuck": len(stuck),
        }
        await self._money(findings, accepted)
        await self._mails(findings)
        await self._files(findings)

    def _id(self, body: bytes) -> str:
        import msgspec

        return str(msgspec.json.decode(body)["applicationId"])

    async def _rows(self) -> dict[str, tuple[str, str]]:
        async with hf.transaction() as tx:
            rows = await tx.fetch("SELECT id, state, reason FROM applications WHERE state <> 'draft'")
        return {found: (state, reason) for found, state, reason in rows}

    async def _money(self, findings: Findings, accepted: set[str]) -> None:
        charged = Counter(
            each["metadata"].get("application", "")
            for each in await self._world.ask("stripe", "GET", "ledger?kind=charged")
        )
        charged = Counter({found: number for found, number in charged.items() if found in accepted})
        findings.add("charges in Stripe's ledger", charged.total(), f"of {len(accepted)} applications")
        findings.must("charged twice", [found for found, number in charged.items() if number > 1])
        findings.must("never charged", sorted(accepted - charged.keys()))
        async with hf.transaction() as tx:
            wrong = await tx.fetch(
                "SELECT a.id, coalesce(sum(e.amount), 0) FROM applications a LEFT JOIN entries e ON e.application_id = a.id "
                "WHERE a.state = 'completed' GROUP BY a.id, a.fee HAVING coalesce(sum(e.amount), 0) <> a.fee"
            )
            unmatched = await tx.fetch("SELECT reference FROM entries WHERE application_id IS NULL")
        findings.must("booked otherwise than the fee", [*wrong, *unmatched])
        findings.line |= {"charges": charged.total(), "twice": sum(number > 1 for number in charged.values())}

    async def _mails(self, findings: Findings) -> None:
        """By recipient and subject, which has the number of the application."""
        found: dict[tuple[str, str], set[str]] = {}
        sent = 0
        for each in await self._world.ask("smtp", "GET", "ledger?kind=mail"):
            found.setdefault((each["to"], each["subject"]), set()).add(each["message_id"])
            sent += 1
        async with hf.transaction() as tx:
            letters = await tx.fetch("SELECT cause, message_id, state FROM letters")
        ids = set().union(*found.values()) if found else set()
        findings.must("mails with two Message-IDs", [mail for mail, its in found.items() if len(its) > 1])
        findings.must(
            "letters that nobody got", [cause for cause, message_id, _ in letters if message_id not in ids]
        )
        findings.must(
            "mails that nobody decided on", sorted(ids - {message_id for _, message_id, _ in letters})
        )
        findings.add("mails, and sent again after a lost answer", f"{len(letters)}, {sent - len(letters)}")

    async def _files(self, findings: Findings) -> None:
        async with hf.transaction() as tx:
            rows = await tx.fetch(
                "SELECT id, state, scanner FROM documents WHERE state <> 'clean' OR scanner <> 'clamd'"
            )
        findings.must("documents that were not found clean by clamd", rows)
