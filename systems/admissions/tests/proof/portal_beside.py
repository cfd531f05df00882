"""The seed's before and after in one run: the same requests, the same outside with the seed's delays, the same limits."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path

from portal_world import World, answers

from tools.processes import Process
from tools.proving.figures import Findings, milliseconds, percentile
from tools.waiting import until

DELAYS = {"validate": 2.0, "verify": 3.0, "pay": 2.0, "mail": 1.0}  # seconds, as the seed has them
FAILURES = 0.2  # of Stripe's calls
LATE = 10.0  # seconds after which a client has gone, times the scale
PARTS = {"clamd": "scan", "stripe": "*", "smtp": "data"}


@dataclass
class Side:
    name: str
    took: list[float] = field(default_factory=list)
    failed: int = 0
    seconds: float = 0.0
    completed: int = 0
    down: dict[str, float] = field(default_factory=dict)  # share of good answers while a part is down

    @property
    def rate(self) -> float:
        return len(self.took) / self.seconds

    @property
    def errors(self) -> float:
        return self.failed / max(1, self.failed + len(self.took))


class Beside:
    def __init__(self, world: World, findings: Findings) -> None:
        self._world, self._findings, self._number = world, findings, 0

    async def measure(self) -> None:
        size, world = self._world.size, self._world
        scale = size.scale
        told = ", ".join(f"{name} {seconds * scale:g} s" for name, seconds in DELAYS.items())
        world.place.tell(
            f"before and after: {told}, Stripe fails {FAILURES:.0%}, {size.clients} clients for {size.load:g} s each"
        )
        await world.ask("clamd", "PUT", "settings", {"answers_in": DELAYS["verify"] * scale})
        await world.ask(
            "stripe", "PUT", "settings", {"answers_in": DELAYS["pay"] * scale, "webhook_off": False}
        )
        await world.ask("smtp", "PUT", "settings", {"answers_in": DELAYS["mail"] * scale})
        before = await self._before()
        after = await self._after()
        for name in PARTS:
            await world.ask(name, "PUT", "settings", {"answers_in": 0.0})
            await world.ask(name, "DELETE", "faults")
        self._tell(before, after)

    # --- the two sides ---

    async def _before(self) -> Side:
        world, side = self._world, Side("before")
        port = str(world.lines["before"])

        def start(_: int, log: Path) -> Process:
            return world.process(["portal_before", port, str(DELAYS["validate"] * world.size.scale)], log)

        world.crew.role("before", 1, start)
        address = f"http://127.0.0.1:{port}"
        await until(lambda: answers(f"{address}/probes/ready"), 60)
        people = await self._people([address], "b")
        await self._load(side, people, None)
        side.completed = len(side.took)  # who is answered is done
        await world.crew.leave(["before"])
        return side

    async def _after(self) -> Side:
        from portal_count import states
        from portal_people import close, terms

        world, side = self._world, Side("after")
        await world.start_portal()
        people = await self._people(world.addresses, "c", logged_in=True)
        payers = [asyncio.create_task(self._pay(each)) for each in people]
        begun = await states()
        began = time.monotonic()
        await self._load(side, people, await terms(1))
        side.completed = (await states())["completed"] - begun["completed"]
        side.completed = round(side.completed * side.seconds / (time.monotonic() - began))
        for each in payers:
            each.cancel()
        await asyncio.gather(*payers, return_exceptions=True)
        await close(people)
        await world.crew.leave(["worker", "api"])
        return side

    async def _people(self, addresses: list[str], name: str, *, logged_in: bool = False) -> list:
        import httpx2
        from portal_people import Applicant, applicants

        number = self._world.size.clients
        if logged_in:
            return await applicants(number, addresses, name)
        return [
            Applicant(name, httpx2.AsyncClient(trust_env=False, timeout=60), addresses, place)
            for place in range(number)
        ]

    async def _pay(self, person) -> None:
        while True:
            await person.pay()
            await asyncio.sleep(0.5)

    # --- the load ---

    async def _load(self, side: Side, people: list, chosen: list[str] | None) -> None:
        world, size = self._world, self._world.size
        fault = {"endpoint": "*", "kind": "unavailable", "share": FAILURES}
        await world.ask("stripe", "PUT", "faults", fault)
        began = time.monotonic()
        await self._many(side, people, chosen, size.load)
        side.seconds = time.monotonic() - began
        for part, endpoint in PARTS.items():
            await world.ask("stripe", "DELETE", "faults")
            kind = "unavailable" if part == "stripe" else "refused"
            await world.ask(part, "PUT", "faults", {"endpoint": endpoint, "kind": kind})
            away = Side(part)
            await self._many(away, people, chosen, size.load / 4)
            side.down[part] = 1 - away.errors
            await world.ask(part, "DELETE", "faults")

    async def _many(self, side: Side, people: list, chosen: list[str] | None, seconds: float) -> None:
        end = time.monotonic() + seconds

        async def one(person) -> None:
            while time.monotonic() < end:
                await self._ask(side, person, chosen)

        await asyncio.gather(*map(one, people))

    async def _ask(self, side: Side, person, chosen: list[str] | None) -> None:
        """One request, and no second try: how a person sees it. A new term for each, since one application stands for a person and term."""
        import admissions_kit as kit
        import httpx2
        from portal_people import TYPED

        self._number += 1
        term = "" if chosen is None else await kit.term()
        file = ("transcript", ("grades.pdf", kit.PDF, "application/pdf"))
        headers = {"idempotency-key": f"{side.name}-{self._number}"}
        data = {"termId": term, **TYPED}
        address = person.addresses[self._number % len(person.addresses)]
        began = time.monotonic()
        try:
            answer = await person.client.post(
                f"{address}/applications", data=data, files=[file], headers=headers
            )
            is_good = answer.status_code in (200, 202)
        except httpx2.TransportError:
            is_good = False
        if is_good:
            side.took.append(time.monotonic() - began)
        else:
            side.failed += 1

    # --- what came of it ---

    def _tell(self, before: Side, after: Side) -> None:
        add = self._findings.add
        add("", "before, after, ratio", "the seed's")
        for share, name in ((0.5, "p50"), (0.99, "p99")):
            one, two = percentile(before.took, share), percentile(after.took, share)
            add(
                f"response time, {name}", f"{milliseconds(one)}, {milliseconds(two)}, {one / two:.1f}x", "30x"
            )
        add(
            "accepted a second",
            f"{before.rate:.2f}, {after.rate:.2f}, {after.rate / before.rate:.1f}x",
            "50x",
        )
        done = [each.completed / each.seconds for each in (before, after)]
        add(
            "completed a second",
            f"{done[0]:.2f}, {done[1]:.2f}",
            "the limits of the outside are the same for both",
        )
        fewer = before.errors / after.errors if after.errors else float("inf")
        add("errors", f"{before.errors:.1%}, {after.errors:.1%}, {fewer:.1f}x", "20x")
        for part in PARTS:
            add(
                f"answered well while {part} is down",
                f"{before.down[part]:.1%}, {after.down[part]:.1%}",
                "95 %, 99.9 %",
            )
        wrong = [f"{part}: {share:.1%}" for part, share in after.down.items() if share < 0.999]
        self._findings.must("parts whose failure a client has seen", wrong)
        self._findings.must("errors above 1 %", [f"{after.errors:.1%}"] if after.errors > 0.01 else [])
        self._findings.line |= {
            "faster": f"{percentile(before.took, 0.5) / percentile(after.took, 0.5):.1f}x"
        }
