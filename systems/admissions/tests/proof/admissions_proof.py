"""The portal's proof: thousands of applications while everything dies in turn, and then the seed's before and after in one run."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress

from portal_world import PLACES, SMALL, TIMES, WHOLE, World

from tools.proving.crew import Crew
from tools.proving.figures import Findings
from tools.proving.place import Place
from tools.waiting import until


async def prove(place: Place) -> Findings:
    world = World(place, SMALL if place.is_small else WHOLE, Crew(place.folder))
    world.choose_ports()
    try:
        # The program reads these when it is imported: from here on this process is one of its processes.
        os.environ.update({"DATABASE_URL": place.url} | world.told())
        from admissions.program import hf
        from admissions.tables import Base

        await hf.migrate()
        async with hf:
            async with hf.sqlalchemy().begin() as connection:
                await connection.run_sync(Base.metadata.create_all)
            return await Run(world).all()
    finally:
        await world.crew.end()


class Run:
    def __init__(self, world: World) -> None:
        self.world, self.size, self.findings = world, world.size, Findings()

    async def all(self) -> Findings:
        from portal_beside import Beside

        world = self.world
        await world.start_simulators()
        await self._under_trouble()
        await Beside(world, self.findings).measure()
        return self.findings

    async def _under_trouble(self) -> None:
        from portal_count import Count, states
        from portal_people import applicants, close, terms
        from portal_trouble import Trouble

        size, world = self.size, self.world
        world.place.tell(
            f"{world.place.store}: {size.applications} applications twice each over {size.connections} connections, 2 APIs, {size.workers} "
            f"workers, with {' '.join(f'{name}={value}' for name, value in (TIMES | PLACES).items())}"
        )
        await world.start_portal(**PLACES)
        chosen = await terms(size.terms)
        people = await applicants(size.applications // size.terms, world.addresses)
        trouble, began = Trouble(world), time.monotonic()
        world.crew.keep()
        await trouble.begin()
        payers = [asyncio.create_task(self._pay(each)) for each in people]
        try:
            answers = await self._submit_all(people, chosen)
            world.place.tell(
                f"all are accepted after {time.monotonic() - began:.1f} s: {dict(await states())}"
            )
            with suppress(AssertionError):  # it is told below
                await until(self._are_over(0.5), size.patience)
        finally:
            await trouble.end()
        world.place.tell(f"trouble over after {time.monotonic() - began:.1f} s: {dict(await states())}")
        try:
            await until(self._are_over(1.0), size.patience)
            await until(self._mails_are_out, size.patience)
        except AssertionError:
            self.findings.wrong.append(f"stuck after {size.patience:g} s: {dict(await states())}")
        took = time.monotonic() - began
        for each in payers:
            each.cancel()
        told = await asyncio.gather(*payers, return_exceptions=True)
        self.findings.must("payers that gave up", [each for each in told if isinstance(each, Exception)])
        await close(people)
        self._tell_trouble(trouble, took)
        await Count(world, answers).make(self.findings)
        codes = await world.crew.leave(["worker", "api"])
        ended = [*world.crew.trouble, *(each for each in codes if each)]
        self.findings.must("processes that ended by an error of their own", ended)

    def _tell_trouble(self, trouble, took: float) -> None:
        self.findings.add(
            "done meanwhile", ", ".join(f"{what} {number}" for what, number in sorted(trouble.done.items()))
        )
        self.findings.add("from the first submission to the last end", f"{took:.1f} s")
        self.findings.line |= {"hurt": trouble.done.total()}

    async def _submit_all(self, people, chosen) -> dict[str, list[bytes]]:
        """Each twice at the same time, with one key."""
        room, answers = asyncio.Semaphore(self.size.connections), {}

        async def one(person, term: str, key: str) -> None:
            async with room:
                answer = await person.submit(term, key)
            answers.setdefault(key, []).append(answer.content)

        wishes = [
            (person, term, f"{person.mail[:5]}-{place}")
            for place, term in enumerate(chosen)
            for person in people
        ]
        await asyncio.gather(*(one(*wish) for wish in wishes for _ in range(2)))
        return answers

    async def _pay(self, person) -> None:
        while True:
            await person.pay()
            await asyncio.sleep(1.0)

    def _are_over(self, share: float):
        from portal_count import states

        async def over() -> bool:
            found = await states()
            return found["completed"] + found["failed"] >= share * self.size.applications

        return over

    async def _mails_are_out(self) -> bool:
        from admissions.core import hf

        async with hf.transaction() as tx:
            return not await tx.fetch("SELECT 1 FROM letters WHERE state = 'stored' LIMIT 1")
