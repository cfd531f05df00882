"""Who waits for work in this process, and which queues have news. A hint may be lost: polling is the truth."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from holdfast.kernel.clock import look_within, now
from holdfast.kernel.spawn import Reply, deliver
from holdfast.store.event_records import Delivery, Stored
from holdfast.store.records import Enqueued, NewJob

ARRIVED = "!arrived"  # no queue: a job with keys waits for promote
STOP = "!stop"  # no queue: someone asks a running job to stop
OUTBOX = "holdfast:outbox"  # no queue: an event waits to be published
LOG = "holdfast:log"  # no queue: events were published
VIEWS = "holdfast:views"  # no queue: some view has gone on; told where nobody knows which
EVERYONE = "*"  # news for whoever waits, whatever the queue
_MOST = 1_000  # names kept for who waits later; more of them are news for everyone


class Bell:
    """Rung by whoever has news, from any thread; heard by those who wait, or by the next who does."""

    def __init__(self) -> None:
        self._news: set[str] = set()
        self._waiting: dict[Reply[None], frozenset[str]] = {}

    def ring(self, queues: Collection[str]) -> None:
        """Every enqueue passes here, and most of the time nobody waits and nothing is new."""
        if not self._waiting and self._news.issuperset(queues):
            return
        self._news.update(queues)
        if len(self._news) > _MOST:
            self._news = {EVERYONE}
        if self._waiting:
            woken = [reply for reply, wanted in tuple(self._waiting.items()) if _concerns(queues, wanted)]
            deliver([(reply, None) for reply in woken])

    @property
    def is_awaited(self) -> bool:
        return bool(self._waiting)

    async def wait(self, queues: Collection[str], seconds: float) -> bool:
        """True as soon as there is news for one of these queues; False after so many seconds."""
        wanted, reply = frozenset(queues), Reply[None]()
        self._waiting[reply] = wanted  # before the look at the news: a ring in between reaches one of the two
        try:
            if not self.take(wanted):
                async with look_within(seconds):
                    await reply
                self.take(wanted)
        except TimeoutError:
            return False
        finally:
            del self._waiting[reply]
        return True

    def take(self, queues: Collection[str]) -> bool:
        """Whether there is news for these queues; from now on it is old."""
        if not self._news:
            return False
        concerns = _concerns(self._news, queues)
        self._news.difference_update(queues, (EVERYONE,))
        return concerns


def _concerns(news: Collection[str], queues: Collection[str]) -> bool:
    return EVERYONE in news or any(queue in news for queue in queues)


def names_of(queues: object) -> set[str]:
    """What a hint was given, without what cannot be a name: a hint is never refused."""
    if isinstance(queues, str):
        return {queues}
    if not isinstance(queues, Iterable):
        return set()
    return {queue for queue in queues if isinstance(queue, str)}


def news_of(jobs: Sequence[NewJob], answers: Sequence[Enqueued]) -> set[str]:
    """The queues in which one of these jobs can be taken, or looked at by promote, from now on."""
    news: set[str] = set()
    for job, answer in zip(jobs, answers, strict=True):
        replaced = answer.standing is not None and answer.standing.replaced
        if (answer.created or replaced) and _is_soon(job):
            news.add(job.queue)
            if job.keyed:
                news.add(ARRIVED)
    return news


def news_of_deliveries(deliveries: Sequence[Delivery], stored: Stored) -> set[str]:
    """Those that have their turn need no promote."""
    jobs = [each.job for each in deliveries]
    news = news_of(jobs, [Enqueued(job.id, new) for job, new in zip(jobs, stored.answers, strict=True)])
    return news if stored.arrived else news - {ARRIVED}


def _is_soon(job: NewJob) -> bool:
    """The process's own clock is good enough for a hint."""
    if job.delay is None and job.at is None:
        return True
    return job.keyed or (not job.delay and (job.at is None or job.at <= now()))
