"""I5, I7, I24: steps and effects. What is recorded stays, what may have been done is not done again, nothing is lost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import msgspec

from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.history import BY_LOOK, Call, Event
from holdfast.testing.simulation.ledger import Entry

Subject = tuple[str, str]  # a job and the name of its step or effect
_OPEN = ("begun", "sought", "unknown")
_DONE = ("done", "resolved", "aside")
_FOR_GOOD = (*_DONE, "handled")
_SAME = 1e-3


def fenced(run: Run) -> Iterator[str]:
    """I5: a run writes of its steps while it holds the newest token; else a person who decides, or whoever ends the job."""
    resolves, ends = run.history.of("resolve", "looked", BY_LOOK), _ends(run)
    about_sagas = run.history.of("retry a saga", "settle a saga", "cancel a saga")
    state: dict[str, Entry] = {}
    for entry in run.ledger.entries:
        if entry.what in ("enqueued", "moved", "over"):
            state[entry.id] = entry
        if entry.what != "step":
            continue
        now = state[entry.id]
        if now.state == "running" and (now.token, now.owner) == (entry.token, entry.process):
            continue
        if now.state == "unknown" and any(call.spans(entry) for call in resolves):
            continue
        if _is_left(entry, ends) or any(call.spans(entry) for call in about_sagas):
            continue
        yield (
            f"job {entry.id}: {entry.process} wrote {entry.name!r} {entry.progress} with token {entry.token} at "
            f"{entry.moment:.3f} s; the job was {now.state} with {now.token} of {now.owner}"
        )


def told(run: Run) -> Iterator[str]:
    """I5: who writes of a step is told the truth: accepted is written, refused was no longer the holder."""
    written = _records(run)
    held, ends = _held_until(run), _ends(run)
    for call in run.history.of("step"):
        job_id, token, name, progress = call.asked
        own = [
            entry
            for entry in written[job_id, name]
            if call.spans(entry)
            and (entry.token, entry.progress) == (token, progress)
            and not _is_left(entry, ends)
        ]
        if call.kind == "ok" and call.answer and not own:
            yield f"job {job_id}: {call.process} was told that {name!r} is {progress}; nothing was written"
        if call.kind == "ok" and not call.answer:
            assert call.answered is not None
            if own:
                yield f"job {job_id}: {call.process} was told that {name!r} was refused; it was written"
            elif held.get((job_id, token), call.answered.step + 1) > call.answered.step and not _is_done(
                written[job_id, name], call
            ):
                yield f"job {job_id}: {call.process} was told that its claim {token} was lost; it still held it"
        if call.kind == "fail" and own:
            yield f"job {job_id}: {call.process} was told {call.answer} of {name!r}; it was written"


def _is_done(entries: list[Entry], call: Call) -> bool:
    """Whether it was done when the call was made, by another run: then nobody may say anything else of it."""
    before = [entry for entry in entries if entry.step <= call.invoked.step]
    return bool(before) and before[-1].progress in _DONE and before[-1].token != call.asked[1]


def loaded(run: Run) -> Iterator[str]:
    """I5: who looks gets all that was recorded, as it was at one moment of the look."""
    by_job: dict[str, list[Entry]] = defaultdict(list)
    for entry in run.ledger.of("step"):
        by_job[entry.id].append(entry)
    for call in run.history.of("load"):
        if call.kind != "ok":
            continue
        assert call.answered is not None
        got = {each.name: (str(each.progress), each.token, each.result) for each in call.answer}
        now: dict[str, tuple[str | None, int | None, str | None]] = {}
        seen = []
        for entry in by_job[call.asked[0]]:
            if entry.step >= call.invoked.step:
                seen.append(dict(now))
            if entry.step > call.answered.step:
                break
            now[entry.name or ""] = (entry.progress, entry.token, entry.result)
        if got not in [*seen, now]:
            yield f"job {call.asked[0]}: {call.process} was told {got} at {call.answered.moment:.3f} s; stored was {now}"


def intended(run: Run) -> Iterator[str]:
    """I24: every call of an effect has an intent of its own, committed before it, by its token."""
    written = _records(run)
    calls: Counter[tuple[str, str, int]] = Counter()
    for event in run.history.happened("call"):
        job_id, name, token = event.data[:3]
        calls[job_id, name, token] += 1
        intents = [
            entry
            for entry in written[job_id, name]
            if entry.progress == "begun" and entry.token == token and entry.step <= event.step
        ]
        if len(intents) < calls[job_id, name, token]:
            yield (
                f"job {job_id}: {event.process} called for {name!r} at {event.moment:.3f} s with token {token}; "
                f"{len(intents)} intents are stored for {calls[job_id, name, token]} calls"
            )


def at_most_once(run: Run) -> Iterator[str]:
    """I7: accepted at most once; and no call while nobody knows what became of the last."""
    for subject, number in _accepted(run).items():
        if number > 1 and _kind(run, subject) == "at_most_once":
            yield f"job {subject[0]}: the provider accepted {subject[1]!r} {number} times"
    for subject, story in _stories(run).items():
        last: Event | None = None
        for each in story:
            if isinstance(each, Entry):
                last = last if each.progress in _OPEN else None
            elif each.verb == "call":
                if last is not None and _kind(run, subject) == "at_most_once":
                    yield (
                        f"job {subject[0]}: {each.process} called for {subject[1]!r} at {each.moment:.3f} s; what became "
                        f"of the call at {last.moment:.3f} s is not recorded"
                    )
                last = each


def settled(run: Run) -> Iterator[str]:
    """I7: that it was not done counts, when someone else began it, only after it was sought for long. A person sees more."""
    resolves = run.history.of("resolve", "settle a saga")
    for subject, entries in _records(run).items():
        begun = sought = None
        for entry in entries:
            if entry.progress == "begun":
                begun, sought = entry, None
            elif entry.progress == "sought":
                sought = sought or entry
            elif entry.progress == "failed" and begun is not None and entry.kind == "at_most_once":
                passed = 0.0 if sought is None else entry.at - sought.at
                by_hand = any(call.spans(entry) for call in resolves)
                if entry.token != begun.token and passed < run.plan.settle - _SAME and not by_hand:
                    yield f"job {subject[0]}: {subject[1]!r} was taken for not done {passed:.3f} s after it was first sought"


def truthful(run: Run) -> Iterator[str]:
    """I7: what is recorded as not done was not done."""
    accepted: dict[Subject, Event] = {}
    for each in run.history.happened("accepted"):
        accepted.setdefault(each.data[:2], each)
    for subject, entries in _records(run).items():
        event = accepted.get(subject)
        for entry in entries:
            if entry.progress == "failed" and event is not None and event.step < entry.step:
                yield (
                    f"job {subject[0]}: {subject[1]!r} was recorded as not done at {entry.moment:.3f} s; it was "
                    f"accepted at {event.moment:.3f} s"
                )


def one_key(run: Run) -> Iterator[str]:
    """A keyed effect has one key, which no other has."""
    keys: dict[Subject, set[str]] = defaultdict(set)
    for event in run.history.happened("call"):
        if event.data[4] is not None:
            keys[event.data[:2]].add(event.data[4])
    for subject, found in keys.items():
        if len(found) > 1:
            yield f"job {subject[0]}: {subject[1]!r} was called with {len(found)} keys"
    for key, number in Counter(key for found in keys.values() for key in found).items():
        if number > 1:
            yield f"the key {key} was used for {number} effects"
    for subject, number in _accepted(run).items():
        if subject in keys and number > 1:
            yield f"job {subject[0]}: {subject[1]!r} has a key, and was accepted {number} times"


def not_again(run: Run) -> Iterator[str]:
    """What is recorded for good is not run again by its token or a newer one, and is never written over."""
    for subject, story in _stories(run).items():
        last: Entry | None = None
        for each in story:
            if isinstance(each, Entry):
                if _is_reconsidered(last, each):
                    last = None
                if last is not None and (each.progress, each.result) != (last.progress, last.result):
                    yield f"job {subject[0]}: {subject[1]!r} was {last.progress} and became {each.progress} at {each.moment:.3f} s"
                last = each if each.progress in _FOR_GOOD else last
            elif last is not None and each.data[2] >= (last.token or 0):
                yield (
                    f"job {subject[0]}: {subject[1]!r} was run again at {each.moment:.3f} s, and was recorded as "
                    f"{last.progress} at {last.moment:.3f} s"
                )


def _is_reconsidered(last: Entry | None, entry: Entry) -> bool:
    """A failure was kept as handled, and then it ended the run; it may have been done all the same. What was done after it is kept aside."""
    if last is None:
        return False
    moved = last.progress, entry.progress
    return moved in (("handled", "failed"), ("handled", "begun"), ("resolved", "unknown")) or (
        (last.progress, entry.progress, entry.result) == ("done", "aside", last.result)
    )


def same_for_all(run: Run) -> Iterator[str]:
    """What a task gets is what is recorded; a failure that it handled is raised again with the same words."""
    written = _records(run)
    for event in run.history.happened("saw"):
        job_id, name, token, how, what = event.data
        before = [entry for entry in written[job_id, name] if entry.step <= event.step]
        if how == "got" and not any(_is_result(entry, what) for entry in before):
            yield f"job {job_id}: {name!r} gave {what!r} at {event.moment:.3f} s, which is not recorded"
        if how == "handled" and not any(_is_failure(entry, what) for entry in before):
            yield f"job {job_id}: {name!r} raised {what!r} again at {event.moment:.3f} s, which is not recorded"
        earlier = [entry for entry in before if (entry.token or 0) < token]
        if earlier and earlier[-1].progress == "handled" and how in ("got", "failed"):
            yield f"job {job_id}: {name!r} was handled by an earlier run; at {event.moment:.3f} s it {how}: {what}"


def handled_by_the_task(run: Run) -> Iterator[str]:
    """Only what the task has handled is kept as that: else a failure that could pass would last for ever.

    A run that dies cannot say that it was not handled; the next one that ends by itself does.
    """
    rescued = {(entry.id, entry.was_token) for entry in run.ledger.entries if entry.rescued}
    told: Counter[tuple[str, str, str]] = Counter()
    for event in run.history.happened("not handled"):
        job_id, name, token, words = event.data
        told[job_id, name, words] += (job_id, token) not in rescued
        if told[job_id, name, words] > 1:
            yield f"job {job_id}: {name!r} raised {words!r} again at {event.moment:.3f} s, which nobody has handled"


def _is_result(entry: Entry, value: str) -> bool:
    return entry.progress in _DONE and entry.result == msgspec.json.encode(value).decode()


def _is_failure(entry: Entry, words: str) -> bool:
    return entry.progress == "handled" and words == msgspec.json.decode(entry.result or "{}")["message"]


def kept_from_going_on(run: Run) -> Iterator[str]:
    """Nobody is kept from going on by a step of which this run was told what became of it."""
    told: set[tuple[str, str, int]] = set()
    for event in run.history.happened("saw"):
        job_id, name, token, how, what = event.data
        if how in ("got", "handled"):
            told.add((job_id, name, token))
        elif how == "ended" and "without knowing what became of" in what:
            for left in what.split("'")[1::2]:
                if (job_id, left, token) in told:
                    yield f"job {job_id}: at {event.moment:.3f} s it may not go on for {left!r}, which it was told of"


def unchanged(run: Run) -> Iterator[str]:
    """I24: bodies ask for the same steps in every attempt, and nobody takes them for changed."""
    for entry in run.ledger.of("moved"):
        if entry.state in ("dead", "unknown") and "the code has changed since" in (entry.reason or ""):
            yield f"job {entry.id}: {entry.state} at {entry.moment:.3f} s: {entry.reason}"


def unknown_when_open(run: Run) -> Iterator[str]:
    """A job is unknown only when an effect of it was begun, and nobody knows of its end, or what a person said did not fit."""
    last: dict[Subject, Entry] = {}
    for entry in run.ledger.entries:
        if entry.what == "step":
            subject = entry.id, entry.name or ""
            before = last.get(subject)
            if entry.progress == "unknown" and (
                before is None or before.progress not in (*_OPEN, "resolved")
            ):
                yield f"job {entry.id}: {entry.name!r} became unknown at {entry.moment:.3f} s, and no intent was open"
            last[subject] = entry
        elif (
            entry.what == "moved"
            and entry.state == "unknown"
            and run.plan.kind == "worker"
            and "unknown" not in {each.progress for (job_id, _), each in last.items() if job_id == entry.id}
        ):
            yield f"job {entry.id}: unknown at {entry.moment:.3f} s, and none of its effects is"


def dead_with_nothing_open(run: Run) -> Iterator[str]:
    """I7: a job that is given up, by whomever, leaves no effect of which nobody knows. Nor does one that expires."""
    last: dict[str, dict[str, Entry]] = defaultdict(dict)
    for entry in run.ledger.entries:
        if entry.what == "step":
            last[entry.id][entry.name or ""] = entry
        elif entry.state == "dead" or entry.reason == "expired":
            for each in last[entry.id].values():
                if _waits_for_a_person(each):
                    yield f"job {entry.id}: {entry.state} at {entry.moment:.3f} s, and nobody knows of {each.name!r}"


def _waits_for_a_person(entry: Entry) -> bool:
    return entry.progress == "unknown" or (entry.kind == "at_most_once" and entry.progress in _OPEN)


def nothing_lost(run: Run) -> Iterator[str]:
    """A job that succeeded leaves no effect open, and what it recorded as done was accepted."""
    if run.plan.kind != "worker":
        return
    accepted = _accepted(run)
    succeeded = {entry.id: entry for entry in run.ledger.of("over") if entry.state == "succeeded"}
    for (job_id, name), entries in _records(run).items():
        over, last = succeeded.get(job_id), entries[-1]
        if last.progress in _DONE and last.kind != "step" and not accepted[job_id, name]:
            yield f"job {job_id}: {name!r} is recorded as done, and was never accepted"
        if over is None:
            continue
        if _waits_for_a_person(last):
            yield f"job {job_id}: it succeeded at {over.moment:.3f} s, and nobody knows of {name!r}, which is {last.progress}"
    yield from _all_acts(run, set(succeeded))


# Acts whose effects or steps the task insists on, with the end of their names.
_INSISTS = {
    "sequence": (".a", ".b"),
    "beside": (".a", ".aa", ".b", ".bb", ".c", ".cc"),
    "ahead": (".a", ".b", ".c"),
    "handled": (".c",),
    "hurried": (".c",),
    "bare": ("",),
    "looked up": ("",),
    "often": ("",),
    "keyed": ("",),
    "effects beside": (".a", ".b", ".c", ".d"),
}


def _all_acts(run: Run, succeeded: set[str]) -> Iterator[str]:
    written = _records(run)
    for job_id in sorted(succeeded):
        spec = run.spec(run.ledger.made[job_id])
        for place, act in enumerate(() if spec is None else spec.acts):
            for end in _INSISTS.get(act, ()):
                name = f"{act}:{place}{end}"
                entries = written.get((job_id, name), [])
                if not entries or entries[-1].progress not in _DONE:
                    yield f"job {job_id}: it succeeded, and {name!r} is not done"


# --- what was written and called ---


def _records(run: Run) -> dict[Subject, list[Entry]]:
    found: dict[Subject, list[Entry]] = defaultdict(list)
    for entry in run.ledger.of("step"):
        found[entry.id, entry.name or ""].append(entry)
    return found


def _kind(run: Run, subject: Subject) -> str | None:
    return next((entry.kind for entry in run.ledger.of("step") if (entry.id, entry.name) == subject), None)


def _accepted(run: Run) -> Counter[Subject]:
    return Counter(event.data[:2] for event in run.history.happened("accepted"))


def _stories(run: Run) -> dict[Subject, list[Entry | Event]]:
    """For each step and effect what was recorded of it and when it was run, in order."""
    found: dict[Subject, list[Entry | Event]] = defaultdict(list)
    for subject, entries in _records(run).items():
        found[subject] += entries
    for event in (*run.history.happened("call"), *run.history.happened("step run")):
        found[event.data[:2]].append(event)
    for story in found.values():
        story.sort(key=lambda each: each.step)  # in one step: first what was written
    return found


def _ends(run: Run) -> set[tuple[str, int]]:
    """Jobs and the steps of the simulation in which they became unknown or were cancelled."""
    return {(entry.id, entry.step) for entry in run.ledger.entries if entry.state in ("unknown", "cancelled")}


def _is_left(entry: Entry, ends: set[tuple[str, int]]) -> bool:
    """Whether it became unknown in the transaction that ended its job: nobody knew of it then."""
    return entry.progress == "unknown" and (entry.id, entry.step) in ends


def _held_until(run: Run) -> dict[tuple[str, int], int]:
    """For each claim, the step at which it ended."""
    return {
        (entry.id, (entry.was_token if entry.rescued else entry.token) or 0): entry.step
        for entry in run.ledger.entries
        if entry.ended or entry.rescued
    }
