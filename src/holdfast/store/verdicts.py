"""What a person decides about a dead job, an unknown effect, a schedule, a guard or a view: the same words on every store."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.kernel.masking import hide, masked, secret_values
from holdfast.store.breakers import BreakerState, Hold
from holdfast.store.records import AuditEntry, Tick
from holdfast.store.steps import Resolved
from holdfast.store.view_records import Checkpoint

_RESULT_SHOWN = 1000  # characters of a result that a person gave


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


def guard_held(name: str, before: Hold | None, state: BreakerState, *, actor: str) -> AuditEntry:
    return _guard(name, "guard.held", actor, _hold(before), {"held": state})


def guard_let_go(name: str, before: Hold, *, actor: str) -> AuditEntry:
    return _guard(name, "guard.let_go", actor, _hold(before), None)


def guard_reset(name: str, opened_until: float | None, keys: int, *, actor: str) -> AuditEntry:
    """`keys`: of how many a slower rate or a pause was lifted."""
    return _guard(name, "guard.reset", actor, {"opened_until": opened_until, "keys": keys}, None)


def _hold(hold: Hold | None) -> dict[str, object] | None:
    return None if hold is None else {"held": hold.state, "by": hold.by, "at": hold.at}


def _guard(
    name: str, action: str, actor: str, before: dict[str, object] | None, after: dict[str, object] | None
) -> AuditEntry:
    return AuditEntry(
        actor=actor,
        action=action,
        subject=f"guard:{name}",
        before=None if before is None else _json(before),
        after=None if after is None else _json(after),
    )


def view_rebuilt(serving: Checkpoint, building: Checkpoint, *, actor: str) -> AuditEntry:
    return AuditEntry(
        actor=actor,
        action="view.rebuild",
        subject=f"view:{serving.view}",
        before=_json(_generation(serving)),
        after=_json(_generation(building)),
    )


def view_forgotten(view: str, serving: Checkpoint | None, *, actor: str) -> AuditEntry:
    before = None if serving is None else _json(_generation(serving))
    return AuditEntry(actor=actor, action="view.forget", subject=f"view:{view}", before=before)


def _generation(checkpoint: Checkpoint) -> dict[str, object]:
    return {
        "generation": checkpoint.generation,
        "start": checkpoint.start,
        "position": checkpoint.position,
    }


class Verdict(msgspec.Struct, frozen=True):
    """On one unknown effect, or on a job that is unknown without any."""

    job_id: str
    effect: str | None
    left: tuple[str, ...]  # its other effects that wait for one
    done: bool

    @property
    def resolved(self) -> Resolved:
        return Resolved(self.job_id, "still_unknown" if self.left else "queued", self.left)

    def entry(self, actor: str, result: str | None, args: str) -> AuditEntry:
        """`args` are those of its job: what is secret in them is shown in no result."""
        after: dict[str, object] = {"decision": "done" if self.done else "not done"}
        if self.effect is not None:
            after["effect"] = self.effect
        if result is not None:
            after["result"] = _shown(result, args)
        return AuditEntry(
            actor=actor,
            action="unknown.resolve",
            subject=self.job_id,
            before=_json({"state": "unknown"}),
            after=_json(after),
        )


def resolve(job_id: str, open_: Sequence[str], effect: str | None, *, done: bool) -> Verdict | Resolved:
    """Which effect is meant; or why it cannot be told."""
    if effect is None:
        if len(open_) > 1:
            return Resolved(job_id, "say_which", tuple(open_))
        effect = open_[0] if open_ else None
    elif effect not in open_:
        return Resolved(job_id, "no_such_effect", tuple(open_))
    if effect is None and done:
        return Resolved(job_id, "no_such_effect")
    return Verdict(job_id, effect, tuple(each for each in open_ if each != effect), done)


def _shown(result: str, args: str) -> str:
    """Written anew, so that a secret in it looks as it does elsewhere; hidden before it is cut, or a part would be left."""
    try:
        text = _json(msgspec.json.decode(result))
    except msgspec.DecodeError:
        return f"not readable: {len(result):,} characters"
    text = hide(text, secret_values(args))
    return text if len(text) <= _RESULT_SHOWN else f"{text[:_RESULT_SHOWN]}…"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
