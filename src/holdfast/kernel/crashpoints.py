"""Named places where a crash would hurt most. Production walks past them; tests arm them to die, fail or wait there."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

# Every name, with what is true at that place. A crash point that is not listed here fails the check.
CRASHPOINTS = {
    "store.before_commit": "all statements ran, nothing is committed",
    "store.after_commit": "committed, and nobody has been told",
    "transaction.before_commit": "the caller's statements ran, nothing is committed",
    "transaction.after_commit": "the caller's transaction is committed, and the caller does not know",
    "claim.taken": "a claim is held and its body has not begun",
    "body.done": "the body has run and its outcome is not written",
    "end.told": "the handlers of an end have written, and neither that nor the end is committed",
    "end.committed": "an end and what its handlers wrote are committed, and the worker does not know",
    "step.called": "a step's function has returned, and its result is not recorded",
    "step.recorded": "a step's result is recorded, and the task does not have it",
    "effect.begun": "an effect's intent is recorded, and its call has not been made",
    "effect.called": "an effect's call has returned, and nothing of that is recorded",
    "view.before_apply": "a batch of events is folded into rows, and nothing of it is kept",
    "view.after_apply": "rows and checkpoint of a view are kept, and its projector does not know",
    "look.taken": "an unknown job is due to be looked up, and its lookup was not asked",
    "look.answered": "the lookup of an unknown effect has answered, and nothing is decided",
    "look.decided": "a lookup has decided about an unknown effect, and its worker does not know",
    "saga.decided": "the decision to undo a saga is written with the step that failed, and nothing is undone",
    "saga.resting": "a saga has to wait, and its job still runs",
    "saga.over": "a saga is done or undone, and its job does not know",
    "undo.begun": "the intent to undo a step is recorded, and its call has not been made",
    "undo.called": "a step is undone, and nothing of that is recorded",
    "undo.recorded": "a step is recorded as undone, and the next one is not begun",
    "schedule.before_tick": "a tick is due and its job is not enqueued",
    "relay.before_publish": "the relay has read what waits, and has published nothing of it",
    "relay.after_publish": "the broker has the events, and the outbox does not know",
    "consumer.fetched": "a consumer has messages of a broker, and has stored nothing of them",
    "consumer.after_deliver": "a message is stored as a job, and the broker does not know",
    "blob.staged": "bytes are written, and nobody knows of them",
    "blob.copied": "an object is copied to where it belongs, and its row does not say so",
    "blob.moved": "a row names the new object, and the old one is still there",
    "blob.tidied": "an object is where it belongs and nowhere else, and its row does not say so",
    "blob.swept": "a page of unused objects is removed",
    "blob.purged": "the object of a deleted blob is removed, and its row is still there",
    "alerts.looked": "a leader has seen what an alert is to tell, and nothing is written",
    "alerts.before_commit": "what an alert tells is enqueued beside its row, and neither is committed",
    "request.before_commit": "the handler has answered, and its rows are not committed",
    "request.after_commit": "the rows of a request and its answer are committed, and the client does not know",
}


class Crash(BaseException):
    """What a simulated crash raises to end the stack it stands on: nobody may go on after it."""


_armed: dict[str, Callable[[str], None]] = {}


def crashpoint(name: str) -> None:
    """Walk past, unless a test has armed this place."""
    if _armed:
        action = _armed.get(name) or _armed.get("*")
        if action is not None:
            action(name)


@contextmanager
def armed(name: str, action: Callable[[str], None]) -> Generator[None, None, None]:
    """In a test: do `action` at the place called `name`, or at every place for `*`."""
    if name != "*" and name not in CRASHPOINTS:
        raise ValueError(f"There is no crash point {name!r}. There are: {', '.join(CRASHPOINTS)}.")
    before = _armed.get(name)
    _armed[name] = action
    try:
        yield
    finally:
        if before is None:
            del _armed[name]
        else:
            _armed[name] = before
