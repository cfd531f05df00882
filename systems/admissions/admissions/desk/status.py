"""How an application stands: from the view, through a cache of five minutes that the next event renews."""

from __future__ import annotations

from typing import Any

from admissions.core import hf
from admissions.desk.applying import draft_of
from admissions.desk.refusals import NotHere
from admissions.status import application_view
from holdfast import Emitted, Event

FLAG = "status-cache"


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
