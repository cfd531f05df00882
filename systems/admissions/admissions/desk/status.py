"""How an application stands: from the view, through a cache of five minutes that the next event renews."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from admissions.core import hf
from admissions.desk.applying import draft_of
from admissions.desk.refusals import NotHere
from admissions.domain.states import State
from admissions.status import application_view, new
from holdfast import Emitted, Event
from holdfast.errors import HoldfastError

FLAG = "status-cache"
_SUBMITTED = 2  # the version of a key after both events of a submission


@hf.cached(fresh=300, stale=300, key="app:status:{application_id}")
async def cached(application_id: str) -> dict[str, Any] | None:
    found: dict[str, Any] | None = await application_view.get(application_id)
    return found


@hf.on(
    "application.*",
    "document.*",
    "payment.*",
    "email.*",
    group="status-cache",
    name="renew_status",
    ordered=False,
)
async def renew(event: Event[dict[str, Any]]) -> None:
    await cached.invalidate(str(event.data["application_id"]))


async def of(person_id: str, application_id: str, *, at_least: Emitted | int | None = None) -> dict[str, Any]:
    """For its owner. `at_least`: what was emitted by the reader's own request is in it."""
    await draft_of(person_id, application_id)
    if at_least is not None:
        found = await application_view.get(application_id, at_least=at_least, wait=2)
    elif await hf.flag(FLAG, default=True):
        found = await cached(application_id)
    else:
        found = await application_view.get(application_id)
    if found is None:
        raise NotHere
    return dict(found)


async def own(person_id: str, application_id: str) -> dict[str, Any]:
    """Whoever has just submitted sees it, also where the view is late: what was submitted is there, and nothing is guessed."""
    try:
        return await of(person_id, application_id)
    except NotHere:
        draft = await draft_of(person_id, application_id)
        if draft.state is State.DRAFT:
            raise
    await cached.invalidate(application_id)
    with suppress(HoldfastError, NotHere):  # behind, or without a worker
        return await of(person_id, application_id, at_least=_SUBMITTED)
    return await _of_rows(application_id)


async def _of_rows(application_id: str) -> dict[str, Any]:
    async with hf.transaction() as tx:
        [(number, state, at, changed_at)] = await tx.fetch(
            "SELECT number, state, submitted_at, changed_at FROM applications WHERE id = $1", application_id
        )
    return new(application_id, at) | {"number": number, "status": state, "updatedAt": changed_at}
