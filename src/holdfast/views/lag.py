"""How far a view is behind what is published."""

from __future__ import annotations

import msgspec

from holdfast.store.ports import Store

_COUNTED = 1_001  # events set aside that are counted; a view stands still with more


class Lag(msgspec.Struct, frozen=True):
    view: str
    generation: int
    position: int  # up to here its rows have all events
    newest: int  # the newest position that is published
    seconds: float  # since the oldest event that it has not read was published; 0: it has read all
    aside: int  # events that it could not take; counted up to 1,001

    @property
    def events(self) -> int:
        """Published events that it has not read."""
        return max(0, self.newest - self.position)


async def lag_of(store: Store, view: str) -> Lag | None:
    """Of the generation that serves; None: nobody has run the view yet."""
    serving = [each for each in await store.views.checkpoints(view=view) if each.state == "serving"]
    if not serving:
        return None
    [checkpoint] = serving
    aside = await store.views.aside(view, limit=_COUNTED)
    newest = (await store.outbox.lag()).position
    unread = await store.outbox.log(after=checkpoint.position, limit=1)
    since = unread[0].published_at if unread else None
    seconds = 0.0 if since is None else max(0.0, await store.now() - since)
    return Lag(view, checkpoint.generation, checkpoint.position, newest, seconds, len(aside))
