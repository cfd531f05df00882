"""At which event a view stands still that takes all or nothing, and why: found out again by its own function."""

from __future__ import annotations

from holdfast.store.ports import Store
from holdfast.store.view_records import SetAside
from holdfast.views.fold import Fold, hear, keys_of
from holdfast.views.projection import Projection
from holdfast.views.projector import BATCH


async def halt_of(store: Store, projection: Projection) -> SetAside | None:
    """None: it goes on, as far as this program's code can tell. Keeps nothing."""
    serving = [
        each for each in await store.views.checkpoints(view=projection.name) if each.state == "serving"
    ]
    if projection.on_error != "stop" or not serving:
        return None
    heard = hear(projection, await store.outbox.log(after=serving[0].position, limit=BATCH))
    loaded = await store.views.load(projection.name, serving[0].generation, keys_of(heard))
    fold = Fold(projection, loaded)
    return next((fold.aside[-1] for each in heard if not fold.take(each)), None)
