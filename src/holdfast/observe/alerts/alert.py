"""One message about an alert: kinds and names, and no data of jobs or events."""

from __future__ import annotations

from typing import Literal

import msgspec

from holdfast.store.alert_records import COUNTED, AlertRecord, Kind


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """What `@hf.on_alert` handlers and webhooks get. The messages of one alert have its id."""

    id: str
    kind: str
    cause: str  # the task, the queue, the guard … that it is about
    state: Literal["opened", "again", "over"]
    number: int  # how much of it there is: jobs, events, seconds, nodes
    opened_at: float  # seconds since 1970
    at: float  # of this message

    @property
    def text(self) -> str:
        """A sentence for people."""
        return f"{_STATES[self.state]}{_sentence(self)}"


def alert_of(row: AlertRecord, state: Literal["opened", "again", "over"], at: float) -> Alert:
    return Alert(
        id=row.id, kind=row.kind, cause=row.cause, state=state, number=row.number, opened_at=row.opened_at, at=at
    )  # fmt: skip


_STATES = {"opened": "", "again": "Still: ", "over": "Over: "}
_SENTENCES = {
    Kind.DEAD: "dead jobs of {cause}: {number}.",
    Kind.UNKNOWN: "jobs of {cause} with an effect of which nobody knows: {number}.",
    Kind.NEEDS_OPERATOR: "sagas {cause} that need a person: {number}.",
    Kind.QUARANTINED: "events {cause} that cannot be published: {number}.",
    Kind.BREAKER: "the breaker of the guard {cause} is open.",
    Kind.OUTBOX_LAG: "the oldest event in the outbox has waited for {number} s.",
    Kind.VIEW_LAG: "the view {cause} is {number} s behind.",
    Kind.WAITING: "the oldest ready job of the queue {cause} has waited for {number} s.",
    Kind.EXPIRING: "{cause} expires soon.",
}
_EXPIRED = 2  # the number of what has expired


def _sentence(alert: Alert) -> str:
    if alert.kind == Kind.EXPIRING and alert.number >= _EXPIRED:
        return f"{alert.cause} has expired."
    template = _SENTENCES.get(alert.kind, "{kind}, {cause}: {number}.")  # type: ignore[call-overload]
    number = f"{alert.number:,}" + (" or more" if alert.number == COUNTED else "")
    told: str = template.format(kind=alert.kind, cause=alert.cause, number=number)
    return told if alert.state != "opened" else told[:1].upper() + told[1:]
