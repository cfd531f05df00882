"""What a person decided about a dead job or a schedule, as an audit row: the same words on every store."""

from __future__ import annotations

import msgspec

from holdfast.kernel.masking import masked
from holdfast.store.records import AuditEntry, Tick


def replayed(
    job_id: str, *, actor: str, generation: int, old_args: str | None = None, new_args: str | None = None
) -> AuditEntry:
    """Arguments are shown only when they were edited, and never what is secret in them."""
    before: dict[str, object] = {"state": "dead", "generation": generation}
    after: dict[str, object] = {"state": "queued", "generation": generation}
    if new_args is not None:
        before["args"] = masked(old_args or "{}")
        after |= {"generation": generation + 1, "args": masked(new_args)}
    return AuditEntry(
        actor=actor, action="dead.replay", subject=job_id, before=_json(before), after=_json(after)
    )


def discarded(job_id: str, *, actor: str, reason: str) -> AuditEntry:
    before, after = {"state": "dead"}, {"state": "cancelled", "reason": reason}
    return AuditEntry(
        actor=actor, action="dead.discard", subject=job_id, before=_json(before), after=_json(after)
    )


def reset(tick: Tick, *, actor: str) -> AuditEntry:
    before = {"nominal": tick.nominal, "job_id": tick.job_id, "at": tick.at}
    return AuditEntry(
        actor=actor, action="schedule.reset", subject=f"schedule:{tick.schedule}", before=_json(before)
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
