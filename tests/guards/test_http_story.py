"""A request to another service tells to which story it belongs."""

from __future__ import annotations

import asyncio

import pytest
from http_kit import guarded

from holdfast import within

STORY, TRACE = "x-correlation-id", "traceparent"
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


async def test_a_request_tells_its_story(server):
    async with guarded(server) as kit:
        with within(correlation_id="order-7", trace=PARENT):
            await kit.get("/")
        await kit.get("/")
    told, bare = (each.headers for each in server.asked)
    assert (told[STORY], told[TRACE]) == ("order-7", PARENT)
    assert not {STORY, TRACE} & bare.keys()


async def test_requests_side_by_side_tell_each_its_own(server):
    async def ask(kit, number):
        with within(correlation_id=f"order-{number}"):
            await kit.get(f"/{number}")

    async with guarded(server) as kit:
        await asyncio.gather(*(ask(kit, number) for number in range(5)))
    assert {each.headers[STORY] for each in server.asked} == {f"order-{number}" for number in range(5)}


async def test_what_the_caller_says_himself_stays_and_it_can_be_kept_to_oneself(server):
    async with guarded(server) as kit, guarded(server, tell_story=False) as silent:
        with within(correlation_id="order-7", trace=PARENT):
            await kit.get("/", headers={STORY: "mine", TRACE: "mine, too"})
            await silent.get("/")
    told, kept = (each.headers for each in server.asked)
    assert (told[STORY], told[TRACE]) == ("mine", "mine, too")
    assert not {STORY, TRACE} & kept.keys()


@pytest.mark.parametrize("odd", ["a b", "order:7", "a\r\nX-Forged: 1", "ä", "x" * 65])
async def test_a_name_that_nobody_would_take_over_is_not_told(server, odd):
    async with guarded(server) as kit:
        with within(correlation_id=odd):
            await kit.get("/")
    assert not {STORY, "x-forged"} & server.asked[0].headers.keys()
