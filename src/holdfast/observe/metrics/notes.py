"""Counts what is noted: only these notes are heard, so the others stay as cheap as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from holdfast.observe.metrics import catalog as c

Fields = Mapping[str, Any]


def _gated(fields: Fields) -> None:
    c.GATED.add(by=fields["jobs"])


def _breaker(state: str) -> Callable[[Fields], None]:
    return lambda fields: c.BREAKER_CHANGES.add(fields["breaker"], state)


def _delivered(fields: Fields) -> None:
    c.DELIVERED.add(fields["group"], by=fields["count"])
    c.DUPLICATES.add(fields["group"], by=fields["again"])


HEARD: dict[str, Callable[[Fields], None]] = {
    "job.lease_lost": lambda fields: c.LEASES_LOST.add(fields["task"]),
    "job.finish_refused": lambda fields: c.FINISH_REFUSED.add(fields["task"]),
    "job.rescued": lambda fields: c.RESCUED.add(fields["task"], str(fields["state"])),
    "job.gated": _gated,
    "worker.claimed": lambda fields: c.CLAIM.observe(value=fields["seconds"]),
    "loop.blocked": lambda _: c.LOOP_BLOCKED.add(),
    "breaker.opened": _breaker("open"),
    "breaker.half_opened": _breaker("half_open"),
    "breaker.closed": _breaker("closed"),
    "limiter.waited": lambda fields: c.LIMITER_WAIT.observe(fields["guard"], value=fields["seconds"]),
    "limiter.held_up": lambda fields: c.LIMITER_HELD_UP.add(fields["limiter"]),
    "relay.published": lambda fields: c.PUBLISHED.add(by=fields["count"]),
    "relay.quarantined": lambda fields: c.QUARANTINED.add(fields["type"]),
    "group.delivered": _delivered,
    "saga.over": lambda fields: c.SAGAS_OVER.add(fields["name"], str(fields["state"])),
    "request.repeated": lambda fields: c.KEYS.add(fields["what"]),
    "request.limited": lambda fields: c.LIMITED.add(fields["limit"]),
}


def heard(name: str, fields: Fields) -> None:
    HEARD[name](fields)
