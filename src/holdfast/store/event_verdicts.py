"""What a person decides about an event, a group or a stray message: the same words on every store."""

from __future__ import annotations

import msgspec

from holdfast.store.event_records import Cursor, OutboxEvent, Stray
from holdfast.store.records import AuditEntry


def requeued(event: OutboxEvent, *, actor: str) -> AuditEntry:
    return AuditEntry(
        actor=actor,
        action="outbox.requeue",
        subject=event.id,
        before=_event(event),
        after=_json({"state": "waiting"}),
    )


def dropped(event: OutboxEvent, *, actor: str, reason: str) -> AuditEntry:
    """Its data may be secret, and is not kept."""
    return AuditEntry(
        actor=actor,
        action="outbox.drop",
        subject=event.id,
        before=_event(event),
        after=_json({"reason": reason}),
    )


def unsubscribed(cursor: Cursor, *, actor: str) -> AuditEntry:
    before = {"position": cursor.position, "seen_at": cursor.seen_at}
    return AuditEntry(
        actor=actor, action="group.unsubscribe", subject=f"group:{cursor.group}", before=_json(before)
    )


def forgotten(group: str, *, transport: str, backlog: int | None, actor: str) -> AuditEntry:
    """On a broker, which has no cursor to tell of."""
    before = {"transport": transport, "backlog": backlog}
    return AuditEntry(actor=actor, action="group.unsubscribe", subject=f"group:{group}", before=_json(before))


def broker_forgotten(broker: str, *, actor: str) -> AuditEntry:
    return AuditEntry(actor=actor, action="broker.forget", subject=f"broker:{broker}")


def stray_dropped(stray: Stray, *, actor: str, reason: str) -> AuditEntry:
    before = {"transport": stray.transport, "group": stray.group, "reason": stray.reason}
    return AuditEntry(
        actor=actor,
        action="stray.drop",
        subject=f"stray:{stray.id}",
        before=_json(before),
        after=_json({"reason": reason}),
    )


def _event(event: OutboxEvent) -> str:
    return _json(
        {
            "state": event.state,
            "type": event.type,
            "key": event.key,
            "version": event.version,
            "tries": event.tries,
            "error": event.error,
        }
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
