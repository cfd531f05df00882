"""Decisions of a round are told at one time, each once, also when the release is repeated."""

from __future__ import annotations

import admissions_kit as kit
from admissions.work.releasing import release

from holdfast.testing import drain


async def decided(hf, number, stage="checked"):
    """Applications of one round, with a decision each."""
    owners = [await kit.person(f"a{each}@example.org") for each in range(number)]
    term, now = await kit.term(), await hf.now()
    async with hf.transaction() as tx:
        for each, owner in enumerate(owners):
            await tx.execute(
                "INSERT INTO applications (id, number, person_id, term_id, state, progress, answers, fee, currency, reason, failed_in, version, "
                "made_at, changed_at, submitted_at) VALUES ($1, $2, $3, $4, 'completed', 100, '{}', 7500, 'usd', '', '', 1, $5, $5, $5)",
                f"app-{each:03}", f"2026-{each:06}", owner, term, now,
            )  # fmt: skip
            checked = ("bob", now) if stage != "drafted" else (None, None)
            await tx.execute(
                "INSERT INTO decisions (application_id, outcome, stage, words, drafted_by, drafted_at, checked_by, checked_at, version) "
                "VALUES ($1, $2, $3, 'Welcome.', 'ada', $4, $5, $6, 1)",
                f"app-{each:03}", ("accept", "reject", "wait_list")[each % 3], stage, now, *checked,
            )  # fmt: skip
    return term


async def test_a_round_is_told_at_one_time(manual_clock, any_portal, stripe_simulator, box):
    hf = any_portal
    term = await decided(hf, 205)
    run = await release.start(term, id=f"release:{term}")
    await manual_clock.run(drain(hf, raise_dead=True))
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT stage, count(*), count(DISTINCT released_at) FROM decisions GROUP BY stage"
        )
    assert [tuple(row) for row in rows] == [("released", 205, 1)]
    assert len(box.received) == 205
    assert str(await run.status()) == "done"
    again = await release.start(term, id=f"release:{term}")
    assert not again.created
    assert {len(box.of(f"a{each}@example.org")) for each in range(205)} == {1}


async def test_what_is_not_checked_is_not_told(manual_clock, portal, stripe_simulator, box):
    term = await decided(portal, 3, stage="drafted")
    await release.start(term, id=f"release:{term}")
    await manual_clock.run(drain(portal, raise_dead=True))
    assert len(box.received) == 0
