"""`holdfast queues`: how many jobs each queue has, by state and reason; pause and resume it for the whole fleet."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import msgspec

from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli.command import DONE, actor, add_command, add_group
from holdfast.runtime.cli.output import complain, document, say, show_table
from holdfast.runtime.cli.parser import Commands
from holdfast.runtime.cli.table import Column
from holdfast.runtime.cli.times import ago
from holdfast.runtime.inside import inside
from holdfast.store.records import Count, Paused
from holdfast.store.states import State

_COLUMNS = (
    Column("queue"),
    Column("ready", right=True),
    Column("running", right=True),
    Column("held"),
    Column("dead", right=True),
    Column("unknown", right=True),
    Column("paused"),
)


def add(commands: Commands) -> None:
    about = "list the queues with the numbers of their jobs; pause and resume them"
    _, group = add_group(commands, "queues", about=about, act=list_queues)
    add_command(group, "list", list_queues, about="list the queues, as `queues` alone does")
    pausing = add_command(group, "pause", pause, about="let nobody claim from a queue; what runs goes on")
    pausing.add_argument("name")
    resuming = add_command(group, "resume", resume, about="let jobs of a queue be claimed again")
    resuming.add_argument("name")


async def list_queues(hf: Holdfast, options: Namespace) -> int:
    queues = _gathered(await hf.queues.count(), await hf.queues.paused())
    if options.json:
        document({"queues": queues})
        return DONE
    now = await hf.store.now()
    show_table(_COLUMNS, [_row(queue, now) for queue in queues], nothing="No queue has jobs or is paused.")
    return DONE


def _gathered(counts: Sequence[Count], paused: Sequence[Paused]) -> list[dict[str, Any]]:
    """A queue is known by its jobs that are not over, and by being paused."""
    by_name = {each.queue: each for each in paused}
    names = sorted({count.queue for count in counts} | set(by_name))
    return [
        _queue(name, [each for each in counts if each.queue == name], by_name.get(name)) for name in names
    ]


def _queue(name: str, counts: Sequence[Count], paused: Paused | None) -> dict[str, Any]:
    def number(state: State) -> int:
        return sum(count.number for count in counts if count.state is state and count.held is None)

    return {
        "queue": name,
        "ready": number(State.QUEUED),
        "running": number(State.RUNNING),
        "held": {str(count.held): count.number for count in counts if count.held is not None},
        "dead": number(State.DEAD),
        "unknown": number(State.UNKNOWN),
        "paused": None if paused is None else {"by": paused.by, "at": paused.at},
    }


def _row(queue: dict[str, Any], now: float) -> list[object]:
    held = ", ".join(f"{reason} {number:,}" for reason, number in queue["held"].items()) or None
    paused = queue["paused"] and f"by {queue['paused']['by']}, {ago(queue['paused']['at'], now)}"
    numbers = {name: f"{queue[name]:,}" for name in ("ready", "running", "dead", "unknown")}
    return [
        queue["queue"], numbers["ready"], numbers["running"], held, numbers["dead"], numbers["unknown"], paused
    ]  # fmt: skip


async def pause(hf: Holdfast, options: Namespace) -> int:
    if (there := await _paused(hf, options.name)) is not None and not options.json:
        say(f"{options.name} was paused before, by {there.by}.")
    known = await _known(hf)
    await hf.queues.pause(options.name, by=actor(options))
    if options.name not in known and there is None:
        meant = get_close_matches(options.name, sorted(known), n=1)
        complain(
            f"No job, live worker or task here has a queue {options.name!r}; it is paused for any that comes."
            f"{f' Did you mean {meant[0]}?' if meant else ''}"
        )
    if there is None and not options.json:
        say(f"{options.name} is paused; its jobs wait until `holdfast queues resume {options.name}`.")
    return await _end(hf, options)


async def _known(hf: Holdfast) -> set[str]:
    """Queues that have jobs, that a live worker serves, or that a task of the program has."""
    served = {queue for each in await hf.workers.list(limit=1000) for queue in each.queues}
    return {each.queue for each in await hf.queues.count()} | served | inside(hf).registry.queues


async def resume(hf: Holdfast, options: Namespace) -> int:
    there = await _paused(hf, options.name)
    await hf.queues.resume(options.name, by=actor(options))
    if not options.json:
        say(f"{options.name} {'was not paused' if there is None else 'is resumed'}.")
    return await _end(hf, options)


async def _end(hf: Holdfast, options: Namespace) -> int:
    if options.json:
        now = await _paused(hf, options.name)
        document({"queue": options.name, "paused": now and msgspec.structs.asdict(now)})
    return DONE


async def _paused(hf: Holdfast, name: str) -> Paused | None:
    return next((each for each in await hf.queues.paused() if each.queue == name), None)
