"""Who uses the pages during a proof: one artist who looks around, and some who press "publish now"."""

from __future__ import annotations

import asyncio

import publisher_kit as kit
from proof_visitor import Balancer, Visitor

from tools.proving.figures import Findings, milliseconds, percentile

APART = 1.0  # seconds between two presses of one artist


class Visits:
    """Without addresses nobody comes."""

    def __init__(self, addresses: list[str], pressed: list[tuple[kit.Artist, str]]) -> None:
        self._balancer = Balancer(addresses)
        self._posts: dict[str, list[str]] = {}
        for artist, post in pressed:
            self._posts.setdefault(artist.name, []).append(post)
        self._looking = Visitor(self._balancer, "artist-000")
        self._pressing = [Visitor(self._balancer, name) for name in self._posts]
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def _all(self) -> list[Visitor]:
        return [self._looking, *self._pressing]

    async def are_there(self) -> None:
        if self._balancer.addresses:
            await self._balancer.are_there()
            for each in self._all:
                await each.log_in()

    def begin(self) -> None:
        if self._balancer.addresses:
            self._tasks = [
                asyncio.create_task(self._looking.look()),
                *(asyncio.create_task(each.press(self._posts[each.name], APART)) for each in self._pressing),
            ]

    async def end(self) -> None:
        """Who presses comes to an end; who looks would go on."""
        if self._tasks:
            await asyncio.gather(*self._tasks[1:])
            self._tasks[0].cancel()
        for each in self._all:
            await each.leave()

    def count(self, findings: Findings) -> None:
        if not self._balancer.addresses:
            return
        presses = [took for each in self._pressing for took in each.presses]
        findings.add("  its pages meanwhile (p50, p99)", *_told(self._looking.looks))
        findings.add('  "publish now" meanwhile (p50, p99)', *_told(presses))
        findings.add("  told to come later (429, 503)", self._balancer.later)
        findings.must(
            "pages and presses that nobody answered", [why for each in self._all for why in each.failed]
        )
        findings.line["now_p99"] = milliseconds(percentile(presses, 0.99))


def _told(times: list[float]) -> tuple[str, str]:
    return ", ".join(milliseconds(percentile(times, share)) for share in (0.5, 0.99)), f"of {len(times)}"
