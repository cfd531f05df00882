"""Programmes, rounds and people."""

from __future__ import annotations

from datetime import datetime

from admissions.core import hf, settings
from admissions.desk.people import hashed
from admissions.ids import new_id
from admissions.seeding import plan
from holdfast import Tx


async def make_rounds(now: float) -> list[tuple[str, plan.Round]]:
    """Their ids, in the order of the plan."""
    rounds = []
    async with hf.transaction() as tx:
        programmes = [await _programme(tx, place, *names) for place, names in enumerate(plan.PROGRAMMES)]
        for each in plan.ROUNDS:
            found = new_id()
            opens, closes = now + each.opens * plan.DAY, now + each.closes * plan.DAY
            fee = settings.fee if each.fee == plan.ROUNDS[0].fee else each.fee
            await tx.execute(
                "INSERT INTO terms (id, programme_id, name, opens_at, closes_at, grace, fee, currency, places, released_at) "
                "VALUES ($1, $2, $3, $4, $5, 600, $6, $7, 20, $8)",
                found, programmes[each.programme], each.name, opens, _end_of_day(closes), fee, settings.currency,
                now - 30 * plan.DAY if each.is_told else None,
            )  # fmt: skip
            rounds.append((found, each))
    return rounds


def _end_of_day(at: float) -> float:
    """23:59:59 where the university is; without a zone's trouble, as nobody here depends on it."""
    there = datetime.fromtimestamp(at, settings.its_zone)
    return there.replace(hour=23, minute=59, second=59, microsecond=0).timestamp()


async def _programme(tx: Tx, place: int, name: str, name_vi: str) -> str:
    found = new_id()
    await tx.execute(
        "INSERT INTO programmes (id, name, name_vi, is_open, position) VALUES ($1, $2, $3, $4, $5)",
        found, name, name_vi, True, place,
    )  # fmt: skip
    return found


async def make_people(now: float, applicants: int) -> tuple[list[str], list[str]]:
    """Ids of staff, and of applicants, of which the first is Ánh. All have one password, so that it is hashed once."""
    password = await hashed(plan.PASSWORD)
    async with hf.transaction() as tx:
        staff = [
            await _person(tx, mail, name, role, language="en", password=password, at=now - 200 * plan.DAY)
            for mail, name, role in plan.STAFF
        ]
        found = [
            await _person(
                tx,
                "anh@example.org",
                plan.NAMES[0],
                "applicant",
                language="en",
                password=password,
                at=now - 60 * plan.DAY,
            )
        ]
        for number in range(1, applicants):
            name = plan.NAMES[number % len(plan.NAMES)]
            language = "vi" if number % 3 == 0 else "en"
            mail = f"applicant{number}@example.org"
            found.append(
                await _person(
                    tx, mail, name, "applicant", language=language, password=password, at=now - 55 * plan.DAY
                )
            )
    return staff, found


async def _person(tx: Tx, mail: str, name: str, role: str, *, language: str, password: str, at: float) -> str:
    found = new_id()
    await tx.execute(
        "INSERT INTO people (id, mail, password, name, role, language, confirmed_at, made_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $7)",
        found, mail, password, name, role, language, at,
    )  # fmt: skip
    return found
