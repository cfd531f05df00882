"""Galleries by the API: what DeviantArt has, how old it is, and folders that are changed there."""

from __future__ import annotations

import pytest


async def test_folders_and_what_is_in_them(ada_in, simulator):
    made = await ada_in.post("/api/galleries", json={"name": "Lanterns"})
    assert made.status_code == 201, made.text
    shown = (await ada_in.get("/api/galleries")).json()
    assert made.json()["folderid"] in [each["folderid"] for each in shown["value"]]
    assert (shown["is_fresh"], shown["limited_until"]) == (True, None)
    answer = await ada_in.get("/api/galleries/all")
    assert (answer.status_code, answer.json()["value"]["results"]) == (200, [])
    answer = await ada_in.put(f"/api/galleries/{made.json()['folderid']}/position", json={"position": 0})
    assert answer.status_code == 204, answer.text


@pytest.mark.parametrize(
    "path",
    ["/api/browse/home", "/api/browse/topics", "/api/browse/tag?tag=ink", "/api/browse/daily?day=2026-11-19",
     "/api/browse/topic?topic=digital-art", "/api/browse/tags?begin=la"],
)  # fmt: skip
async def test_browsing_tells_its_age_and_asks_once(ada_in, simulator, path):
    first = await ada_in.get(path)
    assert first.status_code == 200, first.text
    calls = dict(simulator.ledger.calls)
    again = await ada_in.get(path)
    assert again.json()["value"] == first.json()["value"]
    assert simulator.ledger.calls == calls


@pytest.mark.parametrize("folder", ["..", "..%2F..%2Fuser", "a b", "é", "x" * 100])
async def test_an_id_cannot_lead_elsewhere(ada_in, simulator, folder):
    calls = sum(simulator.ledger.calls.values())
    answer = await ada_in.get(f"/api/galleries/{folder}")
    assert answer.status_code in (404, 422)
    assert sum(simulator.ledger.calls.values()) == calls


async def test_a_refresh_too_many_says_when_again(ada_in, simulator):
    answers = [await ada_in.get("/api/galleries", params={"refresh": "true"}) for _ in range(8)]
    refused = [each for each in answers if each.status_code == 429]
    assert refused
    assert int(refused[0].headers["retry-after"]) > 0
    assert refused[0].json()["code"] == "TOO_SOON"
