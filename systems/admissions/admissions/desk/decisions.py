"""Decisions: drafted by one officer, checked by another, released for a whole round at one time."""

from __future__ import annotations

from admissions.core import hf
from admissions.desk.audit import looked
from admissions.desk.inside import inside
from admissions.desk.refusals import Changed, Invalid, NotHere, Refusal, TooLate
from admissions.domain.decisions import Outcome, Stage, may_check
from admissions.domain.forms import Wrong
from admissions.domain.states import State
from admissions.steps import happened
from admissions.work.releasing import release as release_saga
from holdfast import Tx

_WORDS_MOST = 5_000


async def draft(
    officer_id: str,
    application_id: str,
    outcome: Outcome,
    words: str,
    *,
    version: int = 0,
    tx: Tx | None = None,
) -> int:
    """Drafted, or drafted again, which needs another check. `version` is that of the decision that was read; 0: there was none."""
    if len(words) > _WORDS_MOST:
        raise Invalid([Wrong("words", "too_long", (len(words), _WORDS_MOST))])
    async with inside(tx) as own:
        await _check_case(own, application_id)
        now = await hf.now()
        if version == 0:
            made = await own.execute(
                "INSERT INTO decisions (application_id, outcome, stage, words, drafted_by, drafted_at, version) "
                "VALUES ($1, $2, 'drafted', $3, $4, $5, 1) ON CONFLICT (application_id) DO NOTHING",
                application_id,
                str(outcome),
                words,
                officer_id,
                now,
            )
        else:
            made = await own.execute(
                "UPDATE decisions SET outcome = $1, stage = 'drafted', words = $2, drafted_by = $3, drafted_at = $4, checked_by = NULL, "
                "checked_at = NULL, version = version + 1 WHERE application_id = $5 AND version = $6 AND stage <> 'released'",
                str(outcome),
                words,
                officer_id,
                now,
                application_id,
                version,
            )
        if not made:
            raise await _changed(own, application_id)
        await happened(own, application_id, "decision_drafted", inner=True, outcome=str(outcome))
        await looked(own, officer_id, "decision.drafted", application_id, str(outcome))
        return version + 1


async def check(officer_id: str, application_id: str, *, version: int, tx: Tx | None = None) -> None:
    """By somebody else than who drafted it."""
    async with inside(tx) as own:
        rows = await own.fetch("SELECT drafted_by FROM decisions WHERE application_id = $1", application_id)
        if not rows:
            raise NotHere
        if not may_check(rows[0][0], officer_id):
            raise Refusal("check_own")
        changed = await own.execute(
            "UPDATE decisions SET stage = 'checked', checked_by = $1, checked_at = $2, version = version + 1 "
            "WHERE application_id = $3 AND version = $4 AND stage = 'drafted'",
            officer_id,
            await hf.now(),
            application_id,
            version,
        )
        if not changed:
            raise await _changed(own, application_id)
        await happened(own, application_id, "decision_checked", inner=True)
        await looked(own, officer_id, "decision.checked", application_id)


async def ready(term_id: str) -> dict[str, int]:
    """How many decisions of a round are drafted, checked and released, and how many cases have none."""
    async with hf.transaction() as tx:
        await _check_term(tx, term_id)
        rows = await tx.fetch(
            "SELECT coalesce(d.stage, 'none'), count(*) FROM applications a LEFT JOIN decisions d ON d.application_id = a.id "
            "WHERE a.term_id = $1 AND a.state = 'completed' GROUP BY coalesce(d.stage, 'none')",
            term_id,
        )
    return {"none": 0, "drafted": 0, "checked": 0, "released": 0} | {
        stage: int(number) for stage, number in rows
    }


async def release(officer_id: str, term_id: str, *, tx: Tx | None = None) -> str:
    """A saga tells all that are checked; those that are not stay as they are. Its id."""
    async with inside(tx) as own:
        await _check_term(own, term_id)
        now = await hf.now()
        run = await release_saga.start(term_id, id=f"release:{term_id}:{now:.3f}", tx=own)
        await looked(own, officer_id, "round.released", term_id)
        return run.id


async def _check_term(tx: Tx, term_id: str) -> None:
    if not await tx.fetch("SELECT 1 FROM terms WHERE id = $1", term_id):
        raise NotHere


async def _check_case(tx: Tx, application_id: str) -> None:
    rows = await tx.fetch("SELECT state FROM applications WHERE id = $1", application_id)
    if not rows:
        raise NotHere
    if rows[0][0] != State.COMPLETED:
        raise TooLate("not_complete", rows[0][0])


async def _changed(tx: Tx, application_id: str) -> Refusal:
    rows = await tx.fetch("SELECT version, stage FROM decisions WHERE application_id = $1", application_id)
    if rows and rows[0][1] == Stage.RELEASED:
        return TooLate("decision_released", rows[0][1])
    return Changed(rows[0][0] if rows else 0)
