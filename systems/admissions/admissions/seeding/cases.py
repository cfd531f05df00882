"""What officers have done: cases taken, notes, a wish for a document, decisions drafted, checked and told."""

from __future__ import annotations

from admissions.core import hf
from admissions.desk import cases
from admissions.seeding import plan
from admissions.seeding.rows import Planted
from holdfast import Tx

_OUTCOMES = ("accept", "accept", "wait_list", "reject", "accept")
_WORDS = {
    "accept": "We look forward to your work on ferries.",
    "wait_list": "There are more good applications than places.",
    "reject": "",
}


async def decide(planted: list[Planted], staff: list[str], now: float) -> None:
    ada, binh = staff[:2]
    complete = [each for each in planted if each.kind == "completed"]
    async with hf.transaction() as tx:
        for index, each in enumerate(each for each in planted if each.kind == "told"):
            await _decision(
                tx, each, _OUTCOMES[index % 5], ada, binh, at=now - 31 * plan.DAY, told_at=now - 30 * plan.DAY
            )
        for index, each in enumerate(complete[: len(complete) // 3]):
            await _decision(
                tx,
                each,
                _OUTCOMES[index % 5],
                *((ada, binh) if index % 2 else (binh, ada)),
                at=now - 2 * plan.DAY,
                told_at=None,
            )
        for index, each in enumerate(complete[len(complete) // 3 : len(complete) // 2]):
            await _decision(
                tx,
                each,
                _OUTCOMES[index % 5],
                binh if index % 2 else ada,
                None,
                at=now - plan.DAY,
                told_at=None,
            )
    for each in complete[-4:]:
        await cases.note(ada, each.id, "Strong project. The transcript of the last year is not in it yet.")
    for each in complete[-2:]:
        await cases.ask_for(
            ada, each.id, "transcript", "Send the transcript of your last year, with the stamp of the school."
        )


async def _decision(
    tx: Tx, each: Planted, outcome: str, by: str, checked: str | None, *, at: float, told_at: float | None
) -> None:
    stage = "released" if told_at else "checked" if checked else "drafted"
    await tx.execute(
        "INSERT INTO decisions (application_id, outcome, stage, words, drafted_by, drafted_at, checked_by, checked_at, released_at, version) "
        "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 2)",
        each.id, outcome, stage, _WORDS[outcome], by, at, checked, at + 7_200 if checked else None, told_at,
    )  # fmt: skip
    if told_at:
        await tx.execute(
            "INSERT INTO steps (application_id, at, kind, words, is_inner) VALUES ($1, $2, 'decided', $3, $4)",
            each.id, told_at, f'{{"outcome":"{outcome}"}}', False,
        )  # fmt: skip
