"""What has ended for good in the pipeline, in words: which stage, of which application, since when; and how it goes on."""

from __future__ import annotations

import re
from dataclasses import dataclass

from admissions.core import hf
from admissions.desk import cases
from admissions.desk.audit import looked
from admissions.desk.refusals import NotHere
from admissions.domain.states import State
from holdfast import Tx

MOST = 200
_ID = re.compile(r"[0-9a-f]{32}")
# A part of a task's name, and what the stage is called.
_STAGES = (
    ("open_payment", "payment"), ("confirm_by_mail", "mailing"), ("verify", "verify"), ("complete", "complete"), ("admissions.confirm", "confirm"),
    ("admissions.ask", "ask"), ("admissions.refund", "refund"), ("admissions.hear", "webhook"), ("mail", "mailing"),
)  # fmt: skip


@dataclass(frozen=True)
class Stopped:
    """`kind` is that of the error; its text is for operators, and may name what is nobody's business here."""

    job_id: str
    stage: str
    kind: str
    at: float
    tries: int
    application_id: str | None
    number: str | None
    name: str | None


async def listing() -> list[Stopped]:
    """The newest first."""
    found = await hf.dead.find(limit=MOST)
    known = await _known({each.id: _ID.findall(each.args) for each in found})
    return [
        Stopped(
            each.id, _stage(each.task), _kind(each.errors[-1].error if each.errors else each.reason or ""),
            each.finished_at or each.enqueued_at, max(1, each.attempt), *known.get(each.id, (None, None, None)),
        )
        for each in found
    ]  # fmt: skip


async def _known(ids: dict[str, list[str]]) -> dict[str, tuple[str, str, str]]:
    """By job: the application that its arguments name."""
    wanted = sorted({each for several in ids.values() for each in several})
    if not wanted:
        return {}
    places = ", ".join(f"${number}" for number in range(1, len(wanted) + 1))
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            f"SELECT a.id, a.number, p.name FROM applications a JOIN people p ON p.id = a.person_id WHERE a.id IN ({places})",  # noqa: S608
            *wanted,
        )
    there = {found: (str(found), str(number or ""), str(name)) for found, number, name in rows}
    return {
        job: next(there[each] for each in several if each in there)
        for job, several in ids.items()
        if any(each in there for each in several)
    }


def _stage(task: str) -> str:
    return next((stage for part, stage in _STAGES if part in task), "other")


def _kind(error: str) -> str:
    """Its first word, such as BlobMissing."""
    found = re.match(r"[\w.]+", error.strip())
    return found[0].rpartition(".")[2] if found else ""


async def go_on(officer_id: str, job_id: str) -> None:
    """An application that has failed leaves that state with it. Raises NotHere when it is not dead any more."""
    found = next((each for each in await listing() if each.job_id == job_id), None)
    if found is None:
        raise NotHere
    async with hf.transaction() as tx:
        rows = await tx.fetch("SELECT state FROM applications WHERE id = $1", found.application_id or "")
        if rows and rows[0][0] == State.FAILED and await _has_failed_it(tx, found):
            await cases.resume(officer_id, str(found.application_id), tx=tx)
            return
        await hf.dead.replay([job_id], actor=officer_id, tx=tx)
        await looked(tx, officer_id, "job.replayed", job_id, found.stage)


async def _has_failed_it(tx: Tx, found: Stopped) -> bool:
    """Whether it is this job for which its application has failed."""
    rows = await tx.fetch(
        "SELECT words FROM steps WHERE application_id = $1 AND kind = 'failed_inside' ORDER BY id DESC LIMIT 1",
        found.application_id,
    )
    return bool(rows) and found.job_id in rows[0][0]
