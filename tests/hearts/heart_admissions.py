"""The heart of a program that takes applications: each is paid by a job, and a withdrawal takes it back by a saga."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from heart_provider import Unavailable, ask

from holdfast import Backoff, Holdfast, Job, State, Tx
from holdfast.guards import Breaker, Fault

TABLE = "CREATE TABLE applications (id INTEGER PRIMARY KEY, state TEXT NOT NULL)"


@dataclass(frozen=True)
class Settings:
    url: str
    address: str  # of the provider


class Admissions:
    def __init__(self, settings: Settings) -> None:
        self.hf = hf = Holdfast(settings.url)
        self._stripe = partial(ask, settings.address)
        stripe = hf.guard(
            "stripe",
            breaker=Breaker(failures=3, window=60, cooldown=0.5, permits=1),
            uncharged={Fault.THROTTLED, Fault.TRANSIENT, Fault.UNKNOWN},
        )

        @hf.task(name="pay", retry=Backoff(attempts=3, first=0.1, ceiling=0.5))
        async def pay(job: Job, application: int) -> None:
            await job.effect(
                "intent", self._charge, application, job.key_for("intent"), policy="keyed",
                not_done=(Unavailable,), guard=stripe,
            )  # fmt: skip
            async with job.commit() as tx:
                await tx.execute(
                    "UPDATE applications SET state = 'paid' WHERE id = $1 AND state = 'submitted'",
                    application,
                )

        @hf.on_dead(pay)
        async def fail(job: Job, tx: Tx) -> None:
            await tx.execute(
                "UPDATE applications SET state = 'failed' WHERE id = $1", job.arguments["application"]
            )

        @hf.saga("withdraw")
        async def withdraw(saga, application: int) -> int:
            await saga.step("close", self._close, application)
            return await saga.step("stop", self._stop, application)

        self.pay, self.withdraw = pay, withdraw

    async def _charge(self, application: int, key: str) -> None:
        await self._stripe("intent", str(application), key)

    async def _close(self, application: int) -> None:
        async with self.hf.transaction() as tx:
            await tx.execute("UPDATE applications SET state = 'withdrawn' WHERE id = $1", application)

    async def _stop(self, application: int) -> int:
        """How many payment jobs were cancelled."""
        waiting = {State.QUEUED, State.RUNNING, State.UNKNOWN, State.DEAD}
        jobs = await self.hf.jobs.find(tenant=f"application:{application}", states=waiting)
        met = [await self.hf.jobs.cancel(each.id, "the application was withdrawn") for each in jobs]
        return met.count(State.CANCELLED)

    async def prepare(self) -> None:
        async with self.hf.transaction() as tx:
            await tx.execute("DROP TABLE IF EXISTS applications")  # of an earlier test on this database
            await tx.execute(TABLE)

    async def submit(self, application: int) -> str:
        async with self.hf.transaction() as tx:
            await tx.execute("INSERT INTO applications (id, state) VALUES ($1, 'submitted')", application)
            handle = await self.pay.options(tenant=f"application:{application}", tx=tx).enqueue(application)
        return handle.id

    async def states(self) -> dict[int, str]:
        async with self.hf.transaction() as tx:
            return dict(await tx.fetch("SELECT id, state FROM applications"))
