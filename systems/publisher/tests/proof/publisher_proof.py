"""The publisher's proof: many posts due at once and over an outage, while workers are killed and frozen and DeviantArt misbehaves."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from contextlib import suppress

import msgspec
from proof_world import CALL_TIMEOUT, LIMITS, SMALL, TIMES, WHOLE, World

from holdfast.vault import new_key
from tools.proving.crew import Crew
from tools.proving.figures import Findings, milliseconds, of_buckets, percentile
from tools.proving.place import Place
from tools.waiting import until

ONE_IN = 25  # posts is cancelled in the moment in which it is due
PRESSING = 10  # artists who publish by hand meanwhile


async def prove(place: Place) -> Findings:
    world = World(place, SMALL if place.is_small else WHOLE, Crew(place.folder))
    try:
        os.environ["PUBLISHER_KEYS"] = new_key("proof")
        await world.start_simulator()
        # The program reads these when it is imported: from here on this process is one of its processes.
        os.environ.update({"DATABASE_URL": place.url} | world.told())
        from proof_trouble import Trouble
        from publisher.core import hf
        from publisher.program import hf as program
        from publisher.tables import Base

        assert program is hf
        await hf.migrate()
        async with hf:
            async with hf.sqlalchemy().begin() as connection:
                await connection.run_sync(Base.metadata.create_all)
            return await Run(world, Trouble(world)).all()
    finally:
        await world.crew.end()


class Run:
    def __init__(self, world: World, trouble) -> None:
        self.world, self.trouble, self.size = world, trouble, world.size
        self.findings = Findings()
        self.commits: list[float] = []

    async def all(self) -> Findings:
        self._tell_settings()
        await self._prepare()
        self.reading = asyncio.create_task(self.returning.go_on())
        try:
            await self._at_once()
            await self._over_an_outage()
            await self._count()
        finally:
            self.reading.cancel()
        await self._leave()
        return self.findings

    def _tell_settings(self) -> None:
        size, place = self.size, self.world.place
        told = " ".join(f"{name}={value}" for name, value in TIMES.items())
        place.tell(
            f"{place.store}: {size.workers} workers, {size.artists} artists, "
            f"{size.at_once} + {size.over_outage} + {size.pressed} posts"
        )
        place.tell(
            f"Times are a hundredth of the usual: {told}; PUBLISHER_CALL_TIMEOUT_S={CALL_TIMEOUT} (30 usually)"
        )
        place.tell(
            "Limits of the simulator: " + " ".join(f"{name}={value}" for name, value in LIMITS.items())
        )

    # --- steps ---

    async def _prepare(self) -> None:
        import proof_people as people

        began = time.monotonic()
        artists = await people.artists(self.size.artists)
        self.now = await people.drafts(artists, self.size.at_once, 0)
        self.later = await people.drafts(artists, self.size.over_outage, self.size.at_once)
        first = self.size.at_once + self.size.over_outage
        self.pressed = await people.drafts(artists[:PRESSING], self.size.pressed, first)
        self.returning = people.Returning()
        self._tell(f"artists and drafts are there after {time.monotonic() - began:.1f} s")

    async def _at_once(self) -> None:
        """All are due in one moment, and from the first wish on everything goes wrong."""
        from publisher.core import PUBLISHING

        hf = self._hf()
        from proof_visits import Visits

        self.world.start_workers()
        visits = Visits(self.world.start_api(), self.pressed)
        await self.world.workers_are_there()
        await visits.are_there()
        self.world.crew.keep()
        await hf.queues.pause(PUBLISHING)  # all are due at once when it goes on
        began = time.monotonic()
        self.trouble.begin()
        alone = asyncio.create_task(self._commit_alone())
        visits.begin()
        try:
            await self._wish([("schedule", *each, None) for each in self.now])
            self.pace = (time.monotonic() - began) / len(self.now)  # seconds for each
            await hf.queues.resume(PUBLISHING)
            await self._wish([("cancel", *each, None) for each in self.now[::ONE_IN]])
            await self.trouble.now()
            await asyncio.sleep(max(0.0, self.size.hurt_for + began - time.monotonic()))
            await self._so_long_as_it_takes(0.97)
            await visits.end()
        finally:
            await self.trouble.end()
            alone.cancel()
        if self.size.apis:
            self.findings.add("API restarted in turn", self.trouble.api_restarts)
        visits.count(self.findings)
        took = time.monotonic() - began
        self._tell(f"trouble over after {took:.0f} s: {dict(await self._states())}")
        await self._over()
        self._tell(f"all of the first are over: {dict(await self._states())}")

    async def _over_an_outage(self) -> None:
        """No worker lives while they fall due."""
        hf = self._hf()
        begin = await hf.now() + 3 + 2 * self.pace * len(self.later)
        await self._wish(
            [("schedule", *each, begin + 3.0 * n / len(self.later)) for n, each in enumerate(self.later)]
        )
        codes = await self.world.crew.leave(["worker"])
        self.findings.must("exit codes of workers that were asked to leave", [each for each in codes if each])
        await until(self._is_past(begin + 3.0), 60 + max(0.0, begin - await hf.now()))
        self.back_at = await hf.now()
        self.world.start_workers()
        await self._over()
        self._tell(f"after the outage: {dict(await self._states())}")

    async def _count(self) -> None:
        from proof_count import Count, all_posts

        await self._decided()
        await self._count_logins()
        hf = self._hf()
        self._count_trouble((await self.world.ask("GET", "calls"))["faults"])
        listed = {each.id for each in await hf.unknown.find(limit=1000)}
        posts = await all_posts()
        await Count(self.world, posts, await self.world.ask("GET", "ledger"), listed).make(self.findings)
        self._count_outage(posts)
        self._count_claims(await self.world.scraped())

    def _count_trouble(self, faults: dict[str, int]) -> None:
        trouble, add = self.trouble, self.findings.add
        add("killed, frozen past the lease", f"{trouble.kills}, {trouble.freezes}")
        add("wire cut, desk killed", f"{trouble.cuts}, {trouble.restarts}")
        add("faults of the outside", " ".join(f"{kind} {number}" for kind, number in sorted(faults.items())))
        self.findings.line |= {"kills": trouble.kills, "freezes": trouble.freezes, "cuts": trouble.cuts}

    async def _count_logins(self) -> None:
        """A pair of tokens is dead before its answer is sent: who dies in between loses it, and the artist is asked, once."""
        from proof_people import asked_to_log_in

        times, mails = self.returning.times, await asked_to_log_in()
        self.findings.add("logins that died with a worker, and were renewed by a person", times)
        self.findings.must("mails for a new login beyond one for each", [mails] if mails != times else [])
        self.findings.line["new_logins"] = times

    async def _decided(self) -> None:
        """The artist looks into the gallery, and says whether it is there. Half published ones cannot be told."""
        from proof_count import all_posts
        from publisher.desk import scheduling

        ledger = {
            each["title"]: each for each in await self.world.ask("GET", "ledger") if "deviationid" in each
        }
        unknown = [each for each in await all_posts() if each.state == "unknown"]
        self.findings.add("unknown at first, for the artist", len(unknown))
        for post in unknown:
            found = ledger.get(post.title)
            if found is None:
                await scheduling.decide(post.artist_id, post.id, done=False)
            elif found["kind"] == "published":
                url = f"https://www.deviantart.com/x/art/{found['deviationid']}"
                await scheduling.decide(
                    post.artist_id, post.id, done=True, deviationid=found["deviationid"], url=url
                )
        await self._over()

    def _count_outage(self, posts) -> None:
        ids = {post_id for _, post_id in self.later}
        sent = sorted(
            (each for each in posts if each.id in ids and each.sent_at), key=lambda each: each.sent_at
        )
        due = sorted(sent, key=lambda each: each.due_at)
        places = {each.id: number for number, each in enumerate(due)}
        displaced = [abs(places[each.id] - number) for number, each in enumerate(sent)]
        after = [each.sent_at - self.back_at for each in sent]
        add = self.findings.add
        add(
            "after the outage: sent (first, last)",
            f"{min(after):.1f} s, {max(after):.1f} s",
            "seed: 1 min, 50 at a time",
        )
        add(
            "  places out of the order of their times",
            f"median {percentile(displaced, 0.5):.0f}, most {max(displaced)}",
            "seed: unordered",
        )
        late = [f"{each:.1f} s" for each in after[:1] if each > 35]
        self.findings.must("the first after an outage later than 35 s", late)

    def _count_claims(self, text: str) -> None:
        buckets: dict[float, float] = {}
        for end, number in re.findall(r'holdfast_claim_seconds_bucket\{le="([^"]+)"\} (\S+)', text):
            buckets[float(end)] = float(number)
        claim = [of_buckets(buckets, share) for share in (0.5, 0.99)]
        bare = [percentile(self.commits, share) for share in (0.5, 0.99)]
        add = self.findings.add
        add("lock acquired (p50, p99)", ", ".join(map(milliseconds, claim)), "seed: 20 ms, 100 ms")
        add(
            "  a bare commit in the same run (p50, p99)",
            ", ".join(map(milliseconds, bare)),
            f"of {len(self.commits)}",
        )
        add("  claims that brought something", f"{max(buckets.values(), default=0):.0f}")
        for role, most in sorted(self.world.crew.highest.items()):
            add(f"memory of a {role}, at most", f"{most / 2**20:.0f} MB")
        self.findings.line |= {
            "claim_p50": milliseconds(claim[0]),
            "claim_p99": milliseconds(claim[1]),
            "commit_p99": milliseconds(bare[1]),
        }
        if not buckets:
            self.findings.wrong.append("no claim was measured")

    async def _leave(self) -> None:
        codes = await self.world.crew.leave(["worker", "api"])
        self.findings.must(
            "processes that ended by an error of their own", [*self.world.crew.trouble, *filter(None, codes)]
        )

    # --- helpers ---

    def _hf(self):
        from publisher.core import hf

        return hf

    def _tell(self, text: str) -> None:
        self.world.place.tell(text)

    async def _wish(self, orders) -> None:
        """Told to the desk, until it has done all."""
        with (self.world.folder / "orders.jsonl").open("ab") as file:
            for wish, artist, post, at in orders:
                line = {"wish": wish, "artist": artist.id, "post": post, "at": at}
                file.write(msgspec.json.encode(line) + b"\n")
        desk = [sys.executable, "-m", "proof_desk", str(self.world.folder)]
        self.world.crew.role("desk", 1, lambda _, log: self.world.process(desk, log))
        await until(
            lambda: not any(each.role == "desk" for each in self.world.crew.members), self.size.patience
        )

    async def _commit_alone(self) -> None:
        """What one row costs, the way that workers go."""
        from publisher.core import hf

        async with hf.transaction() as tx:
            await tx.execute("CREATE TABLE bare (id INTEGER PRIMARY KEY, at DOUBLE PRECISION)")
        number = 0
        while True:
            await asyncio.sleep(0.1)
            began = time.monotonic()
            async with hf.transaction() as tx:
                await tx.execute("INSERT INTO bare (id, at) VALUES ($1, $2)", number, began)
            self.commits.append(time.monotonic() - began)
            number += 1

    def _is_past(self, moment: float):
        async def past() -> bool:
            return await self._hf().now() > moment

        return past

    async def _so_long_as_it_takes(self, share: float) -> None:
        """Until then everything goes wrong. On a busy machine workers may die faster than new ones come: then it ends, and this says so."""
        with suppress(AssertionError):
            await until(lambda: self._is_over(share), self.size.patience)
        states = await self._states()
        begun = sum(states.values()) - states["draft"]
        done = 1 - (states["scheduled"] + states["publishing"]) / begun
        self.findings.add("of the first, over while all this went wrong", f"{100 * done:.1f} %")

    async def _is_over(self, share: float) -> bool:
        states = await self._states()
        waiting = states["scheduled"] + states["publishing"]
        return waiting <= (1 - share) * (sum(states.values()) - states["draft"])

    async def _states(self):
        from proof_count import open_posts

        return await open_posts()

    async def _over(self) -> None:
        """Until what was scheduled has come to an end; what is unknown is looked up meanwhile."""
        try:
            await until(lambda: self._is_over(1.0), self.size.patience)
        except AssertionError:
            self.findings.wrong.append(f"stuck after {self.size.patience:g} s: {dict(await self._states())}")
