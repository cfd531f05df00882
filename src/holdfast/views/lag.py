"""How far a view is behind what is published, and whether it can catch up at all."""

from __future__ import annotations

import msgspec

from holdfast.store.event_records import OutboxEvent
from holdfast.store.ports import Store
from holdfast.store.view_records import Checkpoint

_COUNTED = 1_001  # events set aside that are counted; a view stands still with more


class Lag(msgspec.Struct, frozen=True):
    view: str
    generation: int
    position: int  # up to here its rows have all events
    newest: int  # the newest position that is published
    seconds: float  # since the oldest event that it has not read was published; 0: it has read all
    aside: int  # events that it could not take; counted up to 1,001
    gap: tuple[int, int] | None = None  # first and last position of what was pruned before it had read that

    @property
    def events(self) -> int:
        """Published events that it has not read."""
        return max(0, self.newest - self.position)


async def lag_of(store: Store, view: str) -> Lag | None:
    """Of the generation that serves; None: nobody has run the view yet."""
    serving = [each for each in await store.views.checkpoints(view=view) if each.state == "serving"]
    return await lag_at(store, serving[0]) if serving else None


async def lag_at(store: Store, checkpoint: Checkpoint) -> Lag:
    """Of one generation. The newest position is asked before the log: so what is not there then is gone."""
    view, generation, position = checkpoint.view, checkpoint.generation, checkpoint.position
    aside = await store.views.count_aside(view, generation=generation, limit=_COUNTED)
    newest = (await store.outbox.lag()).position
    unread = await store.outbox.log(after=position, limit=1)
    since = unread[0].published_at if unread else None
    seconds = 0.0 if since is None else max(0.0, await store.now() - since)
    return Lag(view, generation, position, newest, seconds, aside, gap_in(position, newest, unread))


def gap_in(position: int, newest: int, unread: list[OutboxEvent]) -> tuple[int, int] | None:
    """Positions have no gaps: what is missing behind this one was pruned, and rows would be wrong without it."""
    last = (unread[0].position or 0) - 1 if unread else newest
    return (position + 1, last) if last > position else None
