"""A worker as the contract wants it: claim, run, renew, finish, and stop before a lease ends that cannot be renewed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import msgspec

from holdfast.kernel.clock import monotonic, sleep
from holdfast.kernel.crashpoints import crashpoint
from holdfast.kernel.errors import CommitUnknown, LeaseLost, StepLeft
from holdfast.kernel.outcomes import Cancel, Dead, Done, Outcome, Retry, Snooze, Unknown
from holdfast.kernel.randomness import jittered, random
from holdfast.store.records import Claim, Finish
from holdfast.store.states import Held
from holdfast.testing.simulation.fleet import Args, Life, watched
from holdfast.testing.simulation.history import REFUSALS
from holdfast.testing.simulation.plan import LEASE, POLL, Beat
from holdfast.testing.simulation.process import Killed
from holdfast.testing.simulation.stepping import doubt, last_step, take_steps

SLOTS = 2  # bodies at a time
PREFETCH = 3  # claims at a time
MARGIN = 0.5  # seconds before its end at which a lease that was not renewed is given up
TROUBLE = (*REFUSALS, CommitUnknown)


@dataclass
class Holding:
    """A claim in this worker's hands."""

    claim: Claim
    until: float  # on the monotonic clock: counted from before the call, so never later than the lease
    task: asyncio.Task[None] | None = None
    finishing: bool = False
    stop: str | None = None  # someone asked it to stop


class Worker:
    def __init__(self, life: Life) -> None:
        self._life, self._claims, self._history = life, life.store.claims, life.history
        self._held: dict[tuple[str, int], Holding] = {}
        self._alone = False
        self._queues = life.fleet.plan.queues

    # --- claiming ---

    async def run(self) -> None:
        while not self._life.process.draining:
            try:
                await self._round()
            except TROUBLE:
                self._history.event("claim failed", None)
            await sleep(jittered(POLL))
        await self._release()

    async def _round(self) -> None:
        if not self._held and random() < 0.6:
            began = monotonic()
            suspect = await self._history.call(
                "claim_suspect",
                None,
                lambda: self._claims.claim_suspect(self._queues, lease=LEASE, worker=self._life.name),
            )
            if suspect is not None:
                self._alone = True
                self._take([suspect], began)
                return
        if (wants := self._wants()) is not None:
            began = monotonic()
            claims = await self._history.call(
                "claim", wants, lambda: self._claims.claim(wants, lease=LEASE, worker=self._life.name)
            )
            self._take(claims, began)

    def _wants(self) -> dict[str, int] | None:
        free = PREFETCH - len(self._held)
        if free <= 0 or self._alone or self._life.process.draining:
            return None
        return {queue: (free + place) // len(self._queues) for place, queue in enumerate(self._queues)}

    def _take(self, claims: list[Claim], began: float) -> None:
        for claim in claims:
            self._held[claim.job_id, claim.token] = Holding(claim, began + LEASE)
        if claims:
            crashpoint("claim.taken")
        self._start_next()

    def _start_next(self) -> None:
        if self._life.process.draining:
            return
        running = sum(holding.task is not None for holding in self._held.values())
        for holding in list(self._held.values()):
            if holding.task is None and running < SLOTS:
                running += 1
                work = watched(self._life, self._run, holding)
                holding.task = self._life.process.start(work, "body")

    async def _release(self) -> None:
        """What was not begun goes back, uncharged."""
        if unrun := self._let_go_of_unrun():
            asked = [(claim.job_id, claim.token) for claim in unrun]
            try:
                await self._history.call("release", asked, lambda: self._claims.release(unrun))
            except TROUBLE:
                return

    def _let_go_of_unrun(self) -> list[Claim]:
        """What was not begun: no longer this worker's, whatever comes of it."""
        unrun = [holding for holding in self._held.values() if holding.task is None]
        for holding in unrun:
            self._held.pop((holding.claim.job_id, holding.claim.token))
        return [holding.claim for holding in unrun]

    # --- running ---

    async def _run(self, holding: Holding) -> None:
        claim = holding.claim
        beat = self._beat(claim)
        self._history.event("body", (claim.job_id, claim.token, claim.attempt, claim.alone))
        try:
            if self._life.fleet.plan.stepping:
                await take_steps(self._life, claim)
            await sleep(beat.seconds)
            if beat.outcome == "poison":
                self._life.fleet.kill(self._life.process)
                raise Killed
            if self._life.fleet.plan.stepping:
                await (doubt if beat.outcome == "unknown" else last_step)(self._life, claim)
            crashpoint("body.done")
            holding.finishing = True
            await self._write(holding, beat.outcome, beat.after)
        except asyncio.CancelledError:
            return  # its claim was lost
        finally:
            if self._life.process.alive:
                self._history.event("body over", (claim.job_id, claim.token))
                self._drop(holding)

    def _beat(self, claim: Claim) -> Beat:
        script = msgspec.json.decode(claim.args, type=Args).script
        runs = self._life.fleet.runs
        runs[claim.job_id] += 1
        return script[min(runs[claim.job_id], len(script)) - 1]

    def _drop(self, holding: Holding) -> None:
        was_held = self._held.pop((holding.claim.job_id, holding.claim.token), None)
        if was_held is not None and holding.claim.alone:
            self._alone = False
        self._start_next()

    # --- finishing ---

    async def _write(self, holding: Holding, outcome: str, after: float) -> None:
        """Until it is accepted or refused; an error means neither. The deaf do not believe the first refusal."""
        stubborn = 3 if self._life.fleet.plan.deaf else 0
        while True:
            try:
                accepted = await self._write_once(holding, outcome, after)
            except CommitUnknown:
                accepted = await self._settled(holding.claim)
            except REFUSALS:
                accepted = False
            except StepLeft:  # what became of an effect could not be written: a person must look
                outcome, accepted = "unknown", False
            else:
                if not accepted:
                    stubborn -= 1
            if accepted or stubborn < 0:
                return
            await sleep(jittered(1.0))

    async def _write_once(self, holding: Holding, outcome: str, after: float) -> bool:
        match outcome:
            case "effect":
                return await self._finish_with_rows(holding.claim)
            case "hold":
                return await self._hold(holding.claim)
            case _:
                return await self._finish(holding.claim, _outcome(holding, outcome, after))

    async def _finish(self, claim: Claim, outcome: Outcome) -> bool:
        beside = self._let_go_of_unrun() if random() < 0.2 else []  # put off in the same call
        finishes = [Finish(claim, outcome), *(Finish(other, Snooze(after=0.5)) for other in beside)]
        asked = [(item.claim.job_id, item.claim.token, *_told(item.outcome)) for item in finishes]
        wants = self._wants() if random() < 0.4 and not claim.alone else None
        if wants is None:
            answers = await self._history.call("finish", asked, lambda: self._claims.finish(finishes))
            return answers[0]
        began = monotonic()

        async def both() -> list[bool]:
            accepted, claims = await self._claims.finish_and_claim(
                finishes, wants, lease=LEASE, worker=self._life.name
            )
            self._history.event("claimed with finish", [(claim.job_id, claim.token) for claim in claims])
            self._take(claims, began)
            return [ok is True for ok in accepted]

        answers = await self._history.call("finish", asked, both)
        return answers[0]

    async def _finish_with_rows(self, claim: Claim) -> bool:
        """The rows and the success commit together, or neither does."""

        async def together() -> list[bool]:
            async with self._life.store.transaction() as tx:
                sql = "INSERT INTO sim_row (op, kind, job_id) VALUES ($1, 'effect', $2)"
                await tx.execute(sql, claim.token, claim.job_id)
                return await self._claims.finish([Finish(claim, Done())], tx=tx)

        asked = [(claim.job_id, claim.token, "effect", 0.0)]
        try:
            [accepted] = await self._history.call("finish", asked, together)
        except LeaseLost:
            return False
        return accepted

    async def _hold(self, claim: Claim) -> bool:
        asked = [(claim.job_id, claim.token)]
        hold = self._life.store.holds.hold
        [accepted] = await self._history.call("hold", asked, lambda: hold([claim], Held.GUARD))
        return accepted

    async def _settled(self, claim: Claim) -> bool:
        asked = (claim.job_id, claim.token)
        try:
            return await self._history.call("settle", asked, lambda: self._claims.settle(*asked))
        except TROUBLE:
            return False

    # --- renewing ---

    async def renew(self) -> None:
        while True:
            await sleep(jittered(LEASE / 3, 0.1))
            self._give_up()
            if holdings := list(self._held.values()):
                try:
                    await self._renew(holdings)
                except TROUBLE:
                    self._history.event("renew failed", None)
                    await sleep(0.3)
            self._give_up()

    async def _renew(self, holdings: list[Holding]) -> None:
        claims = [holding.claim for holding in holdings]
        asked = [(claim.job_id, claim.token) for claim in claims]
        began = monotonic()
        renewals = await self._history.call("renew", asked, lambda: self._claims.renew(claims, lease=LEASE))
        kept = {(renewal.job_id, renewal.token): renewal for renewal in renewals}
        for holding in holdings:
            renewal = kept.get((holding.claim.job_id, holding.claim.token))
            if renewal is None:
                self._stop(holding)
            else:
                holding.until = began + LEASE
                if renewal.cancel is not None and holding.stop is None:
                    holding.stop = renewal.cancel

    def _give_up(self) -> None:
        """Stop what can no longer be renewed in time, before someone else may begin it."""
        for holding in list(self._held.values()):
            if monotonic() > holding.until - MARGIN:
                self._stop(holding)

    def _stop(self, holding: Holding) -> None:
        if holding.finishing or (holding.task is not None and self._life.fleet.plan.deaf):
            return  # its token decides
        if holding.task is not None:
            holding.task.cancel()
        self._drop(holding)


def _outcome(holding: Holding, outcome: str, after: float) -> Outcome:
    if holding.stop is not None:
        return Cancel(holding.stop)
    match outcome:
        case "retry":
            return Retry(after=after, error="simulated")
        case "snooze":
            return Snooze(after=after)
        case "cancel":
            return Cancel("simulated")
        case "dead":
            return Dead("simulated")
        case "unknown":
            return Unknown("simulated")
        case _:
            return Done("1")


def _told(outcome: Outcome) -> tuple[str, float]:
    """Its name and its seconds, for the history."""
    return type(outcome).__name__, outcome.after if isinstance(outcome, Retry | Snooze) else 0.0


async def work(life: Life) -> None:
    """The program: a worker and its renewals."""
    worker = Worker(life)
    life.process.start(watched(life, worker.renew), "renew")
    await worker.run()
