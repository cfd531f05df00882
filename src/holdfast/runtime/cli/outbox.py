"""`holdfast outbox`: events on their way, what was set aside, and publishing again what a broker has lost."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any, Self

import msgspec

from holdfast.kernel.errors import UsageError
from holdfast.kernel.masking import MASK
from holdfast.kernel.telemetry import subscribe
from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli import strays
from holdfast.runtime.cli.command import DONE, NOT_AS_WISHED, actor, add_command, add_group
from holdfast.runtime.cli.output import complain, document, say, show_fields, show_table
from holdfast.runtime.cli.parser import Commands, Parser, count, event_id, number, past
from holdfast.runtime.cli.progress import Progress
from holdfast.runtime.cli.table import Column
from holdfast.runtime.cli.times import cell, span, told
from holdfast.runtime.inside import inside
from holdfast.store.event_records import OutboxEvent

_COLUMNS = (
    Column("event", whole=True),
    Column("type"),
    Column("key"),
    Column("version", right=True),
    Column("state"),
    Column("tries", right=True, spare=True),
    Column("emitted"),
    Column("error", spare=True),
)
_STATES = ("waiting", "published", "quarantined")
_FAILURES_TOLD = 10
_PAGE = 100


def add(commands: Commands) -> None:
    about = "list events on their way; requeue or drop what is set aside; publish again; groups and strays"
    parser, group = add_group(commands, "outbox", about=about, act=list_events)
    _add_selection(parser)
    _add_selection(add_command(group, "list", list_events, about="list events, as `outbox` alone does"))
    showing = add_command(group, "show", show, about="show one event, with its data")
    showing.add_argument("event", type=event_id, metavar="ID")
    add_command(group, "lag", lag, about="tell how far publishing is behind")
    requeueing = add_command(group, "requeue", requeue, about="publish quarantined events after all")
    requeueing.add_argument("events", nargs="*", type=event_id, metavar="ID")
    requeueing.add_argument("--all", action="store_true", help="all that are quarantined")
    dropping = add_command(group, "drop", drop, about="give quarantined events up; their keys go on")
    dropping.add_argument("events", nargs="+", type=event_id, metavar="ID")
    dropping.add_argument("--reason", required=True, help="kept in the audit row")
    again = add_command(group, "redrive", redrive, about="publish again what a broker has lost")
    again.add_argument(
        "--since", type=past, help="from this moment on: 2026-11-16T10:00, or 2h for two hours ago"
    )
    again.add_argument("--after", type=number, default=None, help="behind this position; 0: all that is kept")
    add_command(group, "groups", groups, about="list the groups of subscribers and how far they have read")
    leaving = add_command(group, "unsubscribe", unsubscribe, about="forget a group that nobody runs any more")
    leaving.add_argument("group")
    giving_up = add_command(
        group,
        "forget-broker",
        forget_broker,
        about="let programs without this broker publish: it is given up for good",
    )
    giving_up.add_argument("broker", help="such as redis or nats")
    strays.add(group)


def _add_selection(parser: Parser) -> None:
    parser.add_argument("--state", choices=_STATES, help="only these")
    parser.add_argument("--type", help="only of this type")
    parser.add_argument("--key", help="only of this key")
    parser.add_argument("--limit", type=count, default=100, help="at most so many, the newest first (100)")


async def list_events(hf: Holdfast, options: Namespace) -> int:
    events = await hf.outbox.find(
        state=options.state, type=options.type, key=options.key, limit=options.limit
    )
    if options.json:
        document({"events": [_plain(event) for event in events]})
        return DONE
    now = await hf.store.now()
    show_table(_COLUMNS, [_row(event, now) for event in events], nothing="No event is kept.")
    return DONE


def _plain(event: OutboxEvent) -> dict[str, Any]:
    """Without its data, which not everyone shall see who looks at a list."""
    found = msgspec.structs.asdict(event)
    del found["data"]
    return found


async def show(hf: Holdfast, options: Namespace) -> int:
    event = await hf.outbox.get(options.event)
    if event is None:
        complain(f"There is no event {options.event}. `holdfast outbox list` shows the newest.")
        return NOT_AS_WISHED
    data = MASK if inside(hf).bus.catalog.is_secret(event.type) else event.data
    if options.json:
        document({**_plain(event), "data": data if data == MASK else msgspec.json.decode(data)})
        return DONE
    now = await hf.store.now()
    show_fields(
        [
            ("id", event.id),
            ("type", event.type),
            ("key", event.key),
            ("version", event.version),
            ("emitted", told(event.time, now)),
            ("state", event.state),
            ("published", told(event.published_at, now)),
            ("position", event.position),
            ("tries", event.tries or None),
            ("error", event.error),
            ("story", event.correlation_id),
            ("cause", event.causation_id),
            ("data", data),
        ]
    )
    return DONE


def _row(event: OutboxEvent, now: float) -> list[object]:
    return [
        event.id, event.type, event.key, event.version, event.state, event.tries, cell(event.time, now), event.error
    ]  # fmt: skip


async def lag(hf: Holdfast, options: Namespace) -> int:
    found = await hf.outbox.lag()
    if options.json:
        document(msgspec.structs.asdict(found))
        return DONE
    show_fields(
        [
            ("waiting", f"{found.waiting:,}"),
            ("oldest", None if found.oldest is None else span(found.oldest)),
            ("quarantined", f"{found.quarantined:,}"),
            ("position", f"{found.position:,}"),
        ]
    )
    return DONE


async def requeue(hf: Holdfast, options: Namespace) -> int:
    if bool(options.events) == options.all:
        raise UsageError("Name the events to requeue, or say --all.")
    if options.all:
        ids, done = await _requeue_all(hf, actor(options))
    else:
        ids, done = options.events, await hf.outbox.requeue(options.events, by=actor(options))
    return _answered(options, ids, done, "requeued", "is not quarantined")


async def _requeue_all(hf: Holdfast, by: str) -> tuple[list[str], list[bool]]:
    """A few at a time, for they may be large. What comes back meanwhile, refused once more, is passed over."""
    done: dict[str, bool] = {}
    limit = _PAGE
    while True:
        page = [event.id for event in await hf.outbox.find(state="quarantined", limit=limit)]
        if ids := [each for each in page if each not in done]:
            done |= zip(ids, await hf.outbox.requeue(ids, by=by), strict=True)
        elif len(page) < limit:
            return list(done), list(done.values())
        else:
            limit *= 2


async def drop(hf: Holdfast, options: Namespace) -> int:
    done = await hf.outbox.drop(options.events, reason=options.reason, by=actor(options))
    return _answered(options, options.events, done, "dropped", "is not quarantined")


def _answered(options: Namespace, ids: Sequence[str], done: Sequence[bool], did: str, why: str) -> int:
    if options.json:
        answers: list[dict[str, Any]] = [
            {"id": each, "done": is_done} for each, is_done in zip(ids, done, strict=True)
        ]
        document({did: answers})
    else:
        for each, is_done in zip(ids, done, strict=True):
            if not is_done:
                complain(f"Event {each} {why}.")
        say(f"{sum(done):,} of {len(ids):,} {did}.")
    return DONE if all(done) else NOT_AS_WISHED


async def redrive(hf: Holdfast, options: Namespace) -> int:
    if (options.since is None) == (options.after is None):
        raise UsageError(
            "Say from where: --since 2h, or --after POSITION, as `holdfast outbox lag` shows positions."
        )
    newest = (await hf.outbox.lag()).position
    first = options.after or 0
    with Progress("positions", max(newest - first, 0)) as bar, _Failures() as failures:
        published = await hf.outbox.redrive(
            since=options.since, after=first, told=lambda _, position: bar.at(position - first)
        )
    if options.json:
        document({"published": published, "failed": failures.number})
    else:
        failures.complain()
        say(f"{published:,} published again; groups that had them ignore them.")
    return NOT_AS_WISHED if failures.number else DONE


class _Failures:
    """What the broker did not take, as it is noted."""

    def __init__(self) -> None:
        self.number, self._told = 0, list[str]()

    def __enter__(self) -> Self:
        self._forget = subscribe(self._hear)
        return self

    def __exit__(self, *error: object) -> None:
        self._forget()

    def _hear(self, name: str, fields: Mapping[str, Any]) -> None:
        if name == "redrive.failed":
            self.number += 1
            if self.number <= _FAILURES_TOLD:
                self._told.append(f"Event {fields['event']} was not published again: {fields['error']}")

    def complain(self) -> None:
        for line in self._told:
            complain(line)
        if self.number > len(self._told):
            complain(f"And {self.number - len(self._told):,} more were not.")


async def groups(hf: Holdfast, options: Namespace) -> int:
    cursors, newest = await hf.outbox.groups(), (await hf.outbox.lag()).position
    backlogs = await hf.outbox.backlogs()
    if options.json:
        found = [{**msgspec.structs.asdict(each), "behind": newest - each.position} for each in cursors]
        far = [{"group": group, "behind": behind} for group, behind in backlogs.items()]
        document({"groups": found, "broker": far})
        return DONE
    now = await hf.store.now()
    columns = (
        Column("group", whole=True),
        Column("position", right=True),
        Column("behind", right=True),
        Column("seen"),
    )
    rows = [
        [each.group, f"{each.position:,}", f"{newest - each.position:,}", cell(each.seen_at, now)]
        for each in cursors
    ]
    rows += [
        [group, "on the broker", "?" if behind is None else f"{behind:,}", None]
        for group, behind in backlogs.items()
    ]
    show_table(columns, rows, nothing="No group has read from this database.")
    return DONE


async def unsubscribe(hf: Holdfast, options: Namespace) -> int:
    done = await hf.outbox.unsubscribe(options.group, by=actor(options))
    if options.json:
        document({"group": options.group, "done": done})
    elif done:
        say(
            f"{options.group} is forgotten: no event is kept for it. A worker that has it makes it known again."
        )
    else:
        complain(f"There is no group {options.group!r}. `holdfast outbox groups` lists them.")
    return DONE if done else NOT_AS_WISHED


async def forget_broker(hf: Holdfast, options: Namespace) -> int:
    done = await hf.outbox.forget_broker(options.broker, by=actor(options))
    if options.json:
        document({"broker": options.broker, "done": done})
    elif done:
        say(f"{options.broker} is forgotten. A worker that has it makes it known again.")
    else:
        found = ", ".join(await hf.outbox.brokers()) or "none"
        complain(f"No program here publishes through {options.broker!r}; known: {found}.")
    return DONE if done else NOT_AS_WISHED
