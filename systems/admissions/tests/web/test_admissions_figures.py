"""Figures for the staff, as JSON and as tables that calculate nothing by themselves."""

from __future__ import annotations

import csv
import io

import admissions_kit as kit
from admissions.core import hf
from admissions_visitors import Visitor

from holdfast.testing import drain


def rows(answer):
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["content-disposition"].startswith("attachment")
    return list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))


async def test_days_and_stages_are_counted(manual_clock, site, stripe_simulator, box):
    async with Visitor(site) as ada:
        await ada.log_in("ada@uni.example", "officer")
        begin = (await ada.get("/api/figures")).json()["days"][-1]["day"]
        first = await kit.submitted(mail="a1@example.org")
        await manual_clock.run(drain(hf, raise_dead=True))
        await kit.pay(first)
        await manual_clock.run(drain(hf, raise_dead=True))
        manual_clock.advance(86_400)
        await ada.come_back("ada@uni.example")
        await kit.submitted(mail="a2@example.org")
        await manual_clock.run(drain(hf, raise_dead=True))
        found = (await ada.get("/api/figures")).json()
        assert len(found["days"]) == 30
        before, today = found["days"][-2:]
        assert before == {
            "day": begin,
            "submitted": 0,
            "verified": 1,
            "paid": 1,
            "completed": 1,
            "failed": 0,
            "withdrawn": 0,
        }
        assert (today["verified"], today["paid"]) == (1, 0)
        assert sorted((each["state"], each["number"]) for each in found["stages"]) == [
            ("awaiting_payment", 1),
            ("completed", 1),
        ]
        days = rows(await ada.get("/api/figures/days.csv", params={"first": begin, "last": begin}))
        assert [(each["day"], each["verified"]) for each in days] == [(begin, "1")]


async def test_names_of_programmes_are_no_formulas(site):
    term = await kit.term()
    async with hf.transaction() as tx:
        await tx.execute("UPDATE programmes SET name = $1", '=HYPERLINK("http://evil.example","a")')
    async with Visitor(site) as anh, Visitor(site) as ada:
        await anh.log_in()
        await ada.log_in("ada@uni.example", "officer")
        await anh.submitted(term)
        [found] = rows(await ada.get("/api/figures/stages.csv"))
    assert found["programme"].startswith("'=")
    assert (found["state"], found["number"]) == ("submitted", "1")


async def test_days_that_cannot_be_are_refused(site):
    async with Visitor(site) as ada:
        await ada.log_in("ada@uni.example", "officer")
        for first, last in (
            ("2026-02-01", "2026-01-01"),
            ("2020-01-01", "2026-01-01"),
            ("0001-01-01", "9999-12-31"),
            ("x", "y"),
        ):
            answer = await ada.get("/api/figures", params={"first": first, "last": last})
            assert answer.status_code == 422, answer.text
        for edge in ("0001-01-01", "9999-12-31"):
            answer = await ada.get("/api/figures", params={"first": edge, "last": edge})
            assert answer.status_code in (200, 422), answer.text
