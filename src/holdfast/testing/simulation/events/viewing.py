"""Views of simulated programs: projected by the production projector, read by who has just written, and built anew."""

from __future__ import annotations

from functools import partial
from typing import Any

from holdfast.events.event import AnyEvent
from holdfast.kernel.errors import UsageError, ViewBehind
from holdfast.kernel.randomness import random
from holdfast.kernel.service import Service
from holdfast.store.event_records import Emitted
from holdfast.testing.simulation.events.projecting import VIEWS, projected
from holdfast.testing.simulation.events.spec import Stream
from holdfast.testing.simulation.events.troubles import TROUBLE
from holdfast.testing.simulation.fleet import Life
from holdfast.testing.simulation.plan import Op
from holdfast.views.projection import Projection
from holdfast.views.projector import Projector
from holdfast.views.view import View

ASKED = "read own write"
_SHARE = 0.3  # of emitters look at what they have written


class Viewing:
    """Those of one process."""

    def __init__(self, life: Life, stream: Stream) -> None:
        self._life = life
        self.views: dict[str, View[Any]] = {
            name: View(_projection(life, name, history=stream.history), lambda: life.store)
            for name in stream.views
        }

    def services(self, owner: str, lease: float) -> list[Service]:
        store = self._life.store
        return [Projector(store, view.projection, owner=owner, ttl=lease) for view in self.views.values()]

    async def look(self, emitted: Emitted, type_: str, key: str | None, data: Any) -> None:
        """Who has emitted wants to see it, for two seconds."""
        for name, view in self.views.items():
            row = VIEWS[name].key(key, data)
            if row is None or not VIEWS[name].hears(type_) or random() > _SHARE:
                continue
            try:
                await self._life.history.call(
                    ASKED, (name, row, emitted.id), partial(_seen, view, row, emitted)
                )
            except (*TROUBLE, ViewBehind):
                continue


class CannotTake(Exception):
    """The code of a view is not ready for this event."""


def _projection(life: Life, name: str, *, history: bool) -> Projection:
    spec = VIEWS[name]

    def project(row: dict[str, Any] | None, event: AnyEvent) -> dict[str, Any]:
        if event.data.get("bad") and not (life.fleet.healed or _is_ready(life)):
            raise CannotTake(event.id)
        return projected(row, event.id)

    def key(event: AnyEvent) -> str:
        found = spec.key(event.key, event.data)
        assert found is not None
        return found

    return Projection(name, project, on=spec.pattern, key=key, history=history)


def _is_ready(life: Life) -> bool:
    """Some processes have better code: so a rebuild may lack what the rows have that serve."""
    return life.process.number % 3 == 1


async def _seen(view: View[Any], key: str, emitted: Emitted) -> list[str]:
    row = await view.get(key, at_least=emitted, wait=2.0)
    return [] if row is None else list(row["seen"])


async def rebuild(life: Life, op: Op) -> None:
    view: View[Any] | None = life.app.viewing.views.get(op.name)
    if view is None:
        return
    try:
        await life.history.call("rebuild", op.name, partial(view.rebuild, actor="simulated"))
    except (*TROUBLE, UsageError):
        return  # nobody has run it yet
