"""A worker: claims ready jobs, runs them in slots, and writes how they ended, one commit for many."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from holdfast.jobs.allowance import Allowance
from holdfast.jobs.aside import STOP_GRACE, Aside
from holdfast.jobs.endings import Endings
from holdfast.jobs.entrance import Entrance
from holdfast.jobs.executor import Executor
from holdfast.jobs.gating import guard_of, is_closed
from holdfast.jobs.judge import Ending, Released, Settled, Unknown
from holdfast.jobs.pace import Pace
from holdfast.jobs.registry import Registry
from holdfast.jobs.renewer import MARGIN
from holdfast.jobs.returns import Returns
from holdfast.jobs.room import Room
from holdfast.jobs.run import Run, Stop
from holdfast.jobs.shutting import Shutting
from holdfast.jobs.slots import Slots
from holdfast.kernel.clock import monotonic, patience, recover, shorten
from holdfast.kernel.crashpoints import crashpoint
from holdfast.kernel.outcomes import Done
from holdfast.kernel.randomness import jittered
from holdfast.kernel.spawn import end, spawn
from holdfast.kernel.telemetry import is_heard, note
from holdfast.store.bell import STOP
from holdfast.store.ports import Store
from holdfast.store.records import Claim
from holdfast.store.states import Held

_RETURNED = (Released, Unknown)
POLL = 1.0  # seconds between looks when no wake-up comes
_AHEAD_LIMIT = 0.5  # seconds for which what was taken ahead of its slot waits at most, about


class Worker:
    """Give it claims' slots for each queue; it takes no more than it can start soon."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        executor: Executor,
        slots: Mapping[str, int],
        runs: dict[tuple[str, int], Run],
        *,
        name: str,
        lease: float,
        poll: float = POLL,
    ) -> None:
        self._store, self._claims, self._registry = store, store.claims, registry
        self.name, self._lease, self._poll = name, lease, poll
        self.runs = runs  # all that is held; the renewer reads it too
        self._queues, self._window = list(slots), max(slots.values(), default=1)
        self._pace = {queue: Pace(number) for queue, number in slots.items()}
        self._held: Counter[str] = Counter()
        self._bell = asyncio.Event()
        self._hints = 1  # looks that were asked for, and how many have been made
        self._looked = 0
        self.asked = self.answered = 0  # questions for claims: how many were begun, and have ended somehow
        self._trouble: str | None = None
        self._draining = False
        self._allowance = Allowance()
        self._room = Room(store.leases, runs, worker=name, lease=lease)
        self.ends = ends = executor.ends
        self._endings = Endings(
            store.claims, ends, runs, worker=name, lease=lease, on_over=self._over, on_apart=self._bell.set
        )
        self._returns = Returns(
            store.claims, ends, lease=lease, is_over=self._is_known_to_be_over, on_empty=self._all_are_back
        )
        self._aside = Aside(
            store.holds,
            ends,
            self._endings,
            self._returns,
            Shutting(store, registry, window=self._window),
            forget=self._forget,
            gave_back=self._allowance.gave_back,
            look=self.look,
            tell=executor.tell_refused if registry.hooks.heard("on_put_off") else None,
        )
        self._entrance = Entrance(self._asked_again, self._aside.turn_away)
        self._slots = Slots(slots, executor, self._report, self._entrance.admits)
        self._tasks: list[asyncio.Task[None]] = []
        self._hurried = float("inf")  # on the monotonic clock: until then what runs may end, while it leaves
        self._grace: asyncio.Timeout | None = None  # for what runs, while it leaves
        self.finished = 0  # runs that ended here
        self._leave: Callable[[], None] | None = None
        self.on_hint: Callable[[], None] | None = None  # something happened somewhere
        self.on_idle: Callable[[], None] | None = None  # when a look has found nothing and nothing is held

    # --- life ---

    async def start(self) -> None:
        self._tasks = [spawn(self._pump(), name="worker"), spawn(self._listen(), name="worker-wakeups")]

    def drain(self) -> None:
        """Claim nothing more."""
        self._draining = self._endings.in_haste = True

    async def stop(self, grace: float = 0.0) -> None:
        """Claim nothing more, let what runs end within the grace, put the rest back uncharged."""
        self.drain()
        self._let_go_of_unrun()
        self._bell.set()
        if (left := min(grace, self._hurried - monotonic())) > 0:
            self._grace = patience(left)
            await self._left(self._grace)
            self._grace = None
        for run in list(self.runs.values()):
            run.halt(Stop.DRAIN)
        await self._left(patience(STOP_GRACE))
        await self._stop_tasks()
        if self.runs:  # nobody may have them before their leases end
            names = sorted({run.claim.task for run in self.runs.values()})
            note("worker.left_running", worker=self.name, tasks=names)

    async def let_go(self) -> bool:
        """Put back what still runs after `stop`; whether there was any. The process must end now."""
        held = bool(self.runs)
        await asyncio.gather(self._endings.write_all(), self._returns.rest())
        stuck = self._endings.under_way()
        await self._returns.put_back([run.claim for run in self.runs.values() if run.finish is None])
        # From now on others may run them, and nothing is waited for but what has ended meanwhile.
        await self._endings.write_known(besides=stuck)
        return held

    def _let_go_of_unrun(self) -> None:
        unrun = [*self._slots.close(), *self._entrance.close()]
        self._returns.begin([run.claim for run in unrun])
        for run in unrun:
            self._forget(run)

    async def _left(self, limit: asyncio.Timeout) -> None:
        """Wait for the pump. It is not cancelled in between: a claim whose answer nobody hears would be lost."""
        if self._tasks:
            with suppress(TimeoutError):
                async with limit:
                    await asyncio.shield(self._tasks[0])

    def hurry(self, grace: float) -> None:
        """It is leaving, and what runs has less time to end than was said."""
        self._hurried = min(self._hurried, monotonic() + grace)
        if self._grace is not None:
            shorten(self._grace, grace)

    async def _stop_tasks(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            await end(task)
        self._endings.is_left = True
        await asyncio.gather(self._endings.write_all(), self._returns.rest(), self._room.give_back())

    def leave_after(self, runs: int, leave: Callable[[], None]) -> None:
        """Claim nothing more once so many runs have been taken, and say so when they have ended."""
        self._allowance.set(runs)
        self._leave = leave

    # --- claiming and finishing ---

    async def _pump(self) -> None:
        """One round: write what has ended, claim what fits, in one commit where both are due."""
        while self._goes_on():
            try:
                await self._round()
                self._trouble = None
            except Exception as error:  # noqa: BLE001  whatever it is, this worker must not stand still unnoticed
                self._trouble = f"worker {self.name}: {error}"
                note("worker.trouble", worker=self.name, error=repr(error))
                await recover(jittered(0.5))

    async def _round(self) -> None:
        if self._suspect_is_due():
            await self._look_for_suspect()
        await self._room.keep()
        wants = self._wants()
        if self._endings or wants is not None:
            await self._write(wants)
        elif self._goes_on():  # it may have been asked to leave during this round, and nobody rings twice
            self._bell.clear()
            if self.on_idle is not None and self._seems_idle() and await self._is_idle():
                self.on_idle()
            await self._bell.wait()

    def _goes_on(self) -> bool:
        return bool(self.runs or self._endings or not self._draining)

    def _seems_idle(self) -> bool:
        return not (self.runs or self._draining or self._may_look()) and self._returns.is_empty

    async def _is_idle(self) -> bool:
        """Upkeep may not have come round yet: what has arrived is promoted, and a suspect looked for, before it counts."""
        if await self._store.holds.promote(window=self._window) > 0:
            self.look()
        elif any(
            each.held is Held.ARRIVED and each.queue in self._pace for each in await self._store.jobs.count()
        ):
            return False  # someone else is promoting it right now
        elif await self._are_metered():
            return False
        else:
            await self._look_for_suspect()
        return self._seems_idle()

    async def _are_metered(self) -> bool:
        """Whether jobs are held that will soon be let go, at the rate of a limiter. Those of an open breaker may wait for long."""
        guards = self._registry.known_guards
        if not any(map(is_closed, guards.values())):
            return False
        found = [guard_of(key, guards) for key in await self._store.holds.gates()]
        return any(guard is not None and is_closed(guard) for guard in found)

    def _may_look(self) -> bool:
        return self._looked < self._hints

    def _wants(self) -> dict[str, int] | None:
        if self._draining or self._room.alone or self._room.clears() or not self._may_look():
            return None
        wants = {
            queue: number
            for queue, pace in self._pace.items()
            if (number := pace.wants(self._held[queue])) > 0
        }
        return self._allowance.of(wants) or None

    async def _write(self, wants: dict[str, int] | None) -> None:
        finishes = self._endings.take()
        hints, began = self._hints, monotonic()
        claims: list[Claim] = []
        accepted: Sequence[bool | None] = []
        self.asked += 1
        try:
            async with patience(
                self._lease
            ):  # an answer after that is of no use, and a finish may be asked again
                if finishes:
                    accepted, claims = await self._claims.finish_and_claim(
                        finishes, wants or {}, lease=self._lease, worker=self.name
                    )
                elif wants:
                    claims = await self._claims.claim(wants, lease=self._lease, worker=self.name)
        except BaseException:
            self._endings.put_again(finishes)
            raise
        finally:
            self.answered += 1
        self._endings.answered(finishes, accepted)
        if claims and is_heard("worker.claimed"):
            note("worker.claimed", worker=self.name, jobs=len(claims), seconds=monotonic() - began)
        if wants is not None:
            taken = Counter(claim.queue for claim in claims)
            if None not in accepted and _are_all(taken, wants) and not _bring_more(claims):
                self._looked = hints  # there is no more, unless someone has hinted meanwhile
            await self._accept(claims, began)

    async def _accept(self, claims: list[Claim], began: float) -> None:
        if self._may_take(began):
            self._take(claims, began)
        else:
            await self._returns.put_back(claims)
            if not self._draining:
                self.look()  # it was not nothing that was found

    def _may_take(self, began: float) -> bool:
        """Not when the signal came while the store was asked, or when that took so long that a run would be stopped at once."""
        return not self._draining and monotonic() < began + self._lease * (1 - MARGIN)

    def _take(self, claims: list[Claim], began: float) -> None:
        until = began + self._lease
        for claim in claims:
            run = Run(claim, self._registry.get(claim.task), until)
            self.runs[run.key] = run
            self._held[claim.queue] += 1
            self._slots.add(run)
        self._allowance.took(len(claims))
        if claims:
            crashpoint("claim.taken")
            self._slots.begin()

    def _asked_again(self, runs: Sequence[Run]) -> None:
        """Quota may have come for them."""
        if self._draining:
            self._returns.begin([run.claim for run in runs])
            for run in runs:
                self._forget(run)
        else:
            self._slots.add_first(runs)
            self._slots.begin()

    def _report(self, run: Run, ending: Ending) -> None:
        """A run has ended: its slot is free, and what became of it goes into the next commit."""
        run.over = True
        self.finished += 1
        assert run.began is not None
        run.took = monotonic() - run.began
        self._pace[run.claim.queue].took(run.took)
        if run.flight is not None:
            self._endings.settled(run, is_written=isinstance(ending, Settled))
        if isinstance(ending, Settled | Done):
            self._entrance.over(run)
        if isinstance(ending, Settled):
            self._over(run)
        elif isinstance(ending, _RETURNED):
            spawn(self._return(run, ending), name="worker-return")
        else:
            self._endings.add(run, ending)
        self._bell.set()

    def _all_are_back(self) -> None:
        """A burst runs them yet; others find them at their next look."""
        if self.on_idle is not None:
            self.look()
        self._bell.set()

    def _is_known_to_be_over(self, key: tuple[str, int]) -> bool:
        return (run := self.runs.get(key)) is not None and run.ending is not None

    async def _return(self, run: Run, ending: Released | Unknown) -> None:
        if isinstance(ending, Released):
            await self._returns.put_back([run.claim])
        else:
            await self._aside.leave_to_others(run.claim, ending.why)
        self._forget(run)
        self._bell.set()

    def _over(self, run: Run) -> None:
        self._forget(run)
        if run.claim.keyed:  # its end may have made another ready, and nobody hints at that
            self.look()

    def _forget(self, run: Run) -> None:
        self._drop(run)
        if self._leave is not None and self._allowance.spent() and not self.runs:
            self._leave()

    def _drop(self, run: Run) -> None:
        run.over = True  # whoever waits for its end, such as a gate for its probe, need not
        if run.reservation is not None:
            run.reservation.give_back()
        if self.runs.pop(run.key, None) is not None:
            self._held[run.claim.queue] -= 1
            if run.claim.alone:
                self._room.left(run)

    # --- suspects: jobs whose worker died under them run alone ---

    def _suspect_is_due(self) -> bool:
        return not (self._draining or self._allowance.spent()) and self._room.is_due()

    async def _look_for_suspect(self) -> None:
        began = monotonic()
        self.asked += 1
        try:
            async with patience(self._lease):
                claim = await self._claims.claim_suspect(self._queues, lease=self._lease, worker=self.name)
        finally:
            self.answered += 1
        self._room.looked()
        if claim is None:
            return
        if self.runs:
            await self._returns.put_back([claim])
            if not self._draining:
                await self._room.make()
            return
        self._room.found()
        try:
            await self._accept([claim], began)
        finally:
            self._room.alone = bool(self.runs)
        await self._room.give_back()

    # --- wake-ups ---

    async def _listen(self) -> None:
        """Hints from whoever enqueues; without any, a look now and then: polling is the truth."""
        news = [*self._queues, STOP]
        while True:
            try:
                hinted = await self._store.wakeups.wait(news, jittered(self._poll))
                if (
                    hinted
                    and self.on_hint is not None
                    and any(run.began is not None for run in self.runs.values())
                ):
                    self.on_hint()
                await self._give_back_late()
            except Exception as error:  # noqa: BLE001  whatever it is, it must go on looking
                note("worker.no_wakeups", error=repr(error))
                await recover(jittered(self._poll))
            self.look()

    async def _give_back_late(self) -> None:
        """What was taken ahead and does not begin soon after all is for whoever has a slot."""
        if self._room.alone:
            return
        for queue, runs in self._slots.late(_AHEAD_LIMIT).items():
            for run in runs:
                self._forget(run)
            self._pace[queue].slow_down(_AHEAD_LIMIT)
            await self._returns.put_back([run.claim for run in runs])

    def look(self) -> None:
        """There may be something to claim."""
        self._hints += 1
        self._bell.set()

    def trouble(self) -> str | None:
        return self._trouble


def _are_all(taken: Counter[str], wants: Mapping[str, int]) -> bool:
    """Whether each queue has given less than was wanted of it."""
    return all(taken[queue] < number for queue, number in wants.items())


def _bring_more(claims: list[Claim]) -> bool:
    """A tenant has a window of ready jobs, and the claim that empties it fills it again."""
    return any(claim.tenant is not None for claim in claims)
