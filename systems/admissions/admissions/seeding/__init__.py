"""`admissions seed`: programmes, staff, and 200 applications in all states. A database that has people is left alone."""

from __future__ import annotations

import random

from admissions.core import hf
from admissions.desk import applying
from admissions.domain.forms import Answers
from admissions.seeding import plan
from admissions.seeding.cases import decide
from admissions.seeding.failing import stop_for_good
from admissions.seeding.money import open_all
from admissions.seeding.people import make_people, make_rounds
from admissions.seeding.rows import Planted, stage, store

MANY = 200
_OPEN, _TOLD = (0, 1, 2, 3), (5, 6)  # rounds of the plan
# What Ánh has, so that her pages show the most: a fee to pay, a form to finish, a letter.
_OF_ANH = {0: "awaiting_payment", 1: "draft", 5: "told"}


async def seed(many: int = MANY) -> str:
    """What was done, in a sentence. `hf` is open, and Stripe (or its simulator) answers."""
    async with hf.transaction() as tx:
        if await tx.fetch("SELECT 1 FROM people LIMIT 1"):
            return "There are people already: nothing was changed."
    now = await hf.now()
    rounds = await make_rounds(now)
    staff, applicants = await make_people(now, many + 1)
    planted = _planned(rounds, applicants, now, many)
    await open_all(planted)
    await _store(planted, applicants, staff)
    await stop_for_good([each for each in planted if each.kind == "failed"])
    await decide(planted, staff, now)
    for each in (each for each in planted if each.kind == "submitted"):
        await _submit(each, applicants)
    return f"{len(planted)} applications of {len(applicants)} people, and {len(staff)} of staff. The password of all: {plan.PASSWORD}"


def _planned(
    rounds: list[tuple[str, plan.Round]], applicants: list[str], now: float, many: int
) -> list[Planted]:
    chance = random.Random(7)
    found = [
        _one(rounds[place], applicants[0], kind, number=number, now=now, chance=chance)
        for number, (place, kind) in enumerate(_OF_ANH.items())
    ]
    for number, kind in enumerate(plan.states(max(0, many - len(found))), len(found)):
        place = chance.choice(_TOLD if kind == "told" else _OPEN)
        found.append(
            _one(
                rounds[place],
                applicants[number - len(_OF_ANH) + 1],
                kind,
                number=number,
                now=now,
                chance=chance,
            )
        )
    return found


def _one(
    its: tuple[str, plan.Round], person_id: str, kind: str, *, number: int, now: float, chance: random.Random
) -> Planted:
    term_id, term = its
    first, last = term.opens, min(term.closes, -0.5)
    days = last - (last - first) * chance.random() ** 2  # more of them near the end
    if kind in ("draft", "submitted", "failed"):
        days = -chance.uniform(0.05, 2)
    return Planted(person_id, term_id, kind, number, now + days * plan.DAY, term.fee, now)


async def _store(planted: list[Planted], applicants: list[str], staff: list[str]) -> None:
    """Some in a transaction: a commit for each would take longer than all the rest."""
    kept = [each for each in planted if each.kind != "submitted"]
    for begin in range(0, len(kept), 20):
        part = [(each, await stage(each)) for each in kept[begin : begin + 20]]
        async with hf.transaction() as tx:
            for each, files in part:
                officer = staff[each.number % 2] if each.kind == "told" or each.number % 3 == 0 else None
                await store(
                    tx, each, _name(each, applicants), files, None if each.kind == "draft" else officer
                )


def _name(each: Planted, applicants: list[str]) -> str:
    return plan.NAMES[applicants.index(each.person_id) % len(plan.NAMES)]


async def _submit(each: Planted, applicants: list[str]) -> None:
    """As its owner would: the pipeline has work when it starts."""
    whole: Answers = each.answers(_name(each, applicants))
    files = await stage(each)
    async with hf.transaction() as tx:
        await applying.submit_whole(
            each.person_id,
            each.term_id,
            whole,
            files,
            application_id=each.id,
            arrived_at=await hf.now(),
            tx=tx,
        )
