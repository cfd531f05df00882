"""I25 of a fleet: a breaker is opened for all when most have opened theirs; one sick node of several cannot do it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from holdfast.testing.simulation.checkers.breakers import followed
from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.guards.provider import REQUEST
from holdfast.testing.simulation.history import Call

_LATELY = 12.0  # seconds: what a node has said does not count for longer
_MINUTE = 60.0  # seconds in which calls count


def agreed(run: Run) -> Iterator[str]:
    """Neither most nodes nor those who make most of the calls were against it. Only clear cases: reports come late."""
    opened = [call for call in run.history.of("open_fleet") if call.kind == "ok" and call.answer]
    if not opened:
        return
    states = _states(run)
    for call in opened:
        calls = _calls(run, call)
        against = [name for name in calls if _is_well(run, states[name, call.asked[0]], name, call)]
        of_them, of_others = (
            sum(calls[name] for name in against),
            sum(calls[n] for n in calls if n not in against),
        )
        if 2 * len(against) >= len(calls) and of_them > 1.5 * of_others:
            yield (
                f"{call.process} opens {call.asked[0]!r} for all at {call.invoked.moment:.3f} s; "
                f"{', '.join(against)} made {of_them} of {of_them + of_others} calls, and found nothing wrong"
            )


def _calls(run: Run, opened: Call) -> dict[str, int]:
    """Of each process that lives and calls: how many have ended in the last minute."""
    now = opened.invoked.moment
    ended = Counter(
        request.process
        for request in run.history.of(REQUEST)
        if request.asked.guard == opened.asked[0]
        and request.answered is not None
        and now - _MINUTE < request.answered.moment < now
    )
    return {name: number for name, number in ended.items() if run.lives[name].ended > now - _LATELY}


def _is_well(run: Run, states: list[tuple[float, str]], process: str, opened: Call) -> bool:
    """There all the time, heard by all, and closed."""
    now = opened.invoked.moment
    begin = now - _LATELY
    before = [state for moment, state in states if moment <= begin]
    between = [state for moment, state in states if begin < moment <= now]
    alone = [event for event in run.history.happened("guards.alone") if event.process == process]
    return (
        run.lives[process].opened < begin
        and run.lives[process].ended > now
        and not any(begin < event.moment <= now for event in alone)
        and not any(start < now and begin < stop for start, stop in run.lives[process].paused)
        and not run.stepped_within(begin, now)
        and (not before or before[-1] == "closed")
        and not between
    )


def heard_at_the_start(run: Run) -> Iterator[str]:
    """Who begins while it is open for all, and reaches the store, makes no call before that time is over."""
    closed = [call for call in run.history.of("close_fleet") if call.kind != "fail"]
    for call in run.history.of("open_fleet"):
        name, _, seconds = call.asked
        since = call.invoked.moment
        if call.kind != "ok" or not call.answer or run.stepped_within(since, since + seconds):
            continue
        ends = [
            other.invoked.moment
            for other in closed
            if other.asked[0] == name and other.invoked.moment > since
        ]
        until = min([since + seconds, *ends])
        for process in _begun(run, since, until):
            for request in run.history.of(REQUEST):
                if (request.process, request.asked.guard) == (
                    process,
                    name,
                ) and request.invoked.moment < until:
                    yield f"{process} began while {name!r} was open for all, and calls at {request.invoked.moment:.3f} s, before {until:.3f} s"


def _begun(run: Run, since: float, until: float) -> Iterator[str]:
    alone = {event.process for event in run.history.happened("guards.alone")}
    for process, life in run.lives.items():
        if since < life.opened < until and process not in alone:
            yield process


def _states(run: Run) -> dict[tuple[str, str], list[tuple[float, str]]]:
    found: dict[tuple[str, str], list[tuple[float, str]]] = defaultdict(list)
    for event, guard, breaker in followed(run):
        if event.verb != REQUEST:
            found[event.process, guard].append((event.moment, breaker.state))
    return found
