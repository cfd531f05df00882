"""The heart of a program that publishes posts when they are due: its rows, its task, and what people do with a post."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

from heart_provider import Slow, Unavailable, ask

from holdfast import Backoff, CannotTell, Found, Holdfast, Job, NotFound, State, Tx
from holdfast.guards import Limiter

TABLE = """CREATE TABLE posts (
    id INTEGER PRIMARY KEY, account TEXT NOT NULL, state TEXT NOT NULL, job TEXT NOT NULL, published INTEGER NOT NULL DEFAULT 0)"""
LOOKS = Backoff(attempts=50, first=0.3, ceiling=0.3)


@dataclass(frozen=True)
class Settings:
    url: str
    address: str  # of the provider
    rate: float = 1000.0  # calls a second of each account
    burst: int = 1000
    settle: float = 0.1


class Publisher:
    """`hf` is what workers run; the verbs are what its pages do."""

    def __init__(self, settings: Settings) -> None:
        self.hf = hf = Holdfast(settings.url)
        self._site = partial(ask, settings.address)
        limiter = Limiter(rate=settings.rate, burst=settings.burst, per="account:{account}", wait=0.0)
        site = hf.guard("site", limiter=limiter)

        @hf.task(name="publish", retry=Backoff(attempts=4, first=0.1, ceiling=0.5))
        async def publish(job: Job, post: int, account: str) -> str:
            guard = site.keyed(account)
            item = await job.step("submit", self._submit, post, guard=guard)
            url = await job.effect(
                "publish", self._publish, item, policy="at_most_once", not_done=(Unavailable,), guard=guard,
                reconcile=self._find, look_again=LOOKS, settle=settings.settle,
            )  # fmt: skip
            async with job.commit(url) as tx:
                await tx.execute(
                    "UPDATE posts SET state = 'published', published = published + 1 WHERE id = $1", post
                )
            return url

        hf.on_unknown(publish)(_marks("unknown"))
        hf.on_dead(publish)(_marks("dead"))
        hf.on_cancelled(publish)(_marks("cancelled"))
        self.publish = publish

    # --- calls ---

    async def _submit(self, post: int) -> str:
        await self._site("submit", str(post))
        return str(post)

    async def _publish(self, item: str) -> str:
        await self._site("publish", item)
        return f"/posts/{item}"

    async def _find(self, item: str):
        try:
            answer = await self._site("look", item)
        except (Slow, Unavailable):
            return CannotTell
        return Found(f"/posts/{item}") if answer["found"] else NotFound

    # --- what its pages do ---

    async def prepare(self) -> None:
        async with self.hf.transaction() as tx:
            await tx.execute("DROP TABLE IF EXISTS posts")  # of an earlier test on this database
            await tx.execute(TABLE)

    async def schedule(self, posts: list[tuple[int, str, float]]) -> None:
        """Posts, their accounts, and when they are due."""
        async with self.hf.transaction() as tx:
            for post, account, at in posts:
                options = self.publish.options(unique=f"post:{post}", tenant=account, at=at, tx=tx)
                handle = await options.enqueue(post, account)
                row = post, account, handle.id
                await tx.execute(
                    "INSERT INTO posts (id, account, state, job) VALUES ($1, $2, 'scheduled', $3)", *row
                )

    async def job_of(self, post: int, tx: Tx) -> str:
        [(job,)] = await tx.fetch("SELECT job FROM posts WHERE id = $1", post)
        return job

    async def cancel(self, post: int) -> bool:
        """Whether it came in time. The row says so by the handler, in the same transaction."""
        async with self.hf.transaction() as tx:
            job = await self.job_of(post, tx)
            met = await self.hf.jobs.cancel(job, "the artist has changed her mind", running=False, tx=tx)
        return met is State.CANCELLED

    async def move(self, post: int, at: float) -> bool:
        """Whether it came in time."""
        async with self.hf.transaction() as tx:
            return await self.hf.jobs.move(await self.job_of(post, tx), at=at, tx=tx) is State.QUEUED

    async def hold(self, account: str) -> None:
        async with self.hf.transaction() as tx:
            await self.hf.tenants.pause(account, reason="needs a new login", by="refresh", tx=tx)

    async def release(self, account: str) -> None:
        async with self.hf.transaction() as tx:
            await self.hf.tenants.resume(account, by="refresh", tx=tx)

    async def decide(self, post: int, *, done: bool) -> bool:
        """Whether the artist was the first to say so."""
        async with self.hf.transaction() as tx:
            job = await self.job_of(post, tx)
            result = f"/posts/{post}" if done else None
            told = await self.hf.unknown.resolve(
                job, actor="artist", done=done, effect="publish", result=result, tx=tx
            )
            if told.outcome == "queued":
                await tx.execute("UPDATE posts SET state = 'scheduled' WHERE id = $1", post)
        return told.outcome == "queued"

    async def waits(self, post: int) -> bool:
        [job] = await self.hf.jobs.find(unique=f"post:{post}")
        return job.state is State.QUEUED

    async def is_held(self, post: int) -> bool:
        """Whether it waits for its account, and says why."""
        [found] = await self.hf.jobs.find(unique=f"post:{post}")
        by = (await self.hf.jobs.get(found.id)).held_by
        return by is not None and (by.reason, by.words) == ("paused", "needs a new login")

    async def decisions(self, post: int) -> tuple[Any, ...]:
        [job] = await self.hf.jobs.find(unique=f"post:{post}")
        return (await self.hf.jobs.story(job.id)).decisions

    async def told_of_others(self, states: Collection[str]) -> str:
        """What is known of the posts that are in no such state, for whoever wonders."""
        posts = [post for post, state in (await self.states()).items() if state not in states][:5]
        found = await self.hf.jobs.find(unique=[f"post:{post}" for post in posts])
        return "\n".join([f"{job}\n{await self.hf.jobs.story(job.id)}" for job in found])

    async def states(self) -> dict[int, str]:
        async with self.hf.transaction() as tx:
            return dict(await tx.fetch("SELECT id, state FROM posts"))


def _marks(state: str) -> Callable[[Job, Tx], Awaitable[None]]:
    async def mark(job: Job, tx: Tx) -> None:
        await tx.execute("UPDATE posts SET state = $1 WHERE job = $2", state, job.id)

    return mark
