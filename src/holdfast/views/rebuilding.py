"""Where a view can begin, and begin again: before the oldest event that is kept."""

from __future__ import annotations

from holdfast.kernel.errors import StoreUnavailable, UsageError
from holdfast.kernel.show import show
from holdfast.store.ports import Store
from holdfast.store.view_records import Checkpoint

_LOOKS = 10  # at where the log begins, which may be pruned just then


async def first_position(store: Store) -> int:
    """The position before the first event in the log; 0 when nothing was ever pruned.

    The newest position is asked first: what is published after that is in the log, and begins it.
    """
    newest = (await store.outbox.lag()).position
    first = await store.outbox.log(limit=1)
    return (first[0].position or 1) - 1 if first else newest


async def rebuild(store: Store, view: str, *, partial: bool, actor: str) -> Checkpoint:
    """Begin the next generation. It must not know less than the one that serves, unless that is wanted."""
    for _ in range(_LOOKS):
        start = await first_position(store)
        serving = await _serving(store, view, start, partial=partial)
        if serving is None:
            raise UsageError(
                f"There is no view {show(view)} in the store: no worker has run it yet, so there is nothing to rebuild."
            )
        begun = await store.views.begin_rebuild(view, start=start, actor=actor)
        if begun is not None:
            return begun
    raise StoreUnavailable(
        f"Each time that the view {show(view)} was to be built anew, events that it would read were pruned. Nothing has changed; try again."
    )


async def _serving(store: Store, view: str, start: int, *, partial: bool) -> Checkpoint | None:
    serving = [each for each in await store.views.checkpoints(view=view) if each.state == "serving"]
    if serving and start > serving[0].start and not partial:
        raise UsageError(
            f"The view {view!r} cannot be built anew as it is: it has read events from position {serving[0].start + 1} on, and "
            f"those up to {start} were pruned since. Declare it with history=True before that, or, when the rows of what is "
            "gone may be lost, rebuild it with partial=True (--partial)."
        )
    return serving[0] if serving else None
