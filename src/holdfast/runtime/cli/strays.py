"""`holdfast outbox strays`: messages from a broker that nobody understood or knew the type of, as they came."""

from __future__ import annotations

from argparse import Namespace
from itertools import islice

import msgspec

from holdfast.kernel.errors import PayloadError, UsageError
from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli.command import DONE, NOT_AS_WISHED, actor, add_command, add_group
from holdfast.runtime.cli.output import complain, document, say, show_fields, show_table
from holdfast.runtime.cli.parser import Commands, Parser, count, number
from holdfast.runtime.cli.progress import Progress
from holdfast.runtime.cli.table import Column
from holdfast.runtime.cli.times import cell, told
from holdfast.store.event_records import Stray

_COLUMNS = (
    Column("stray", right=True),
    Column("transport"),
    Column("group"),
    Column("type"),
    Column("came"),
    Column("reason"),
)
_PAGE = 1_000
_SHOWN = 20  # strays that could not be replayed; the number says how many there are


def add(commands: Commands) -> None:
    about = "list messages that nobody understood or knew; show one as it came; replay or drop them"
    parser, group = add_group(commands, "strays", about=about, act=list_strays)
    parser.add_argument("--type", help="only events of this type")
    parser.add_argument("--limit", type=count, default=100, help="at most so many, the newest first (100)")
    showing = add_command(group, "show", show, about="show one message as it came")
    showing.add_argument("stray", type=number)
    replaying = add_command(group, "replay", replay, about="read messages once more, for their groups")
    _add_selection(replaying)
    replaying.add_argument("--message", help="an event in JSON, in place of the one message that is named")
    dropping = add_command(group, "drop", drop, about="give messages up")
    _add_selection(dropping)
    dropping.add_argument("--reason", required=True, help="kept in the audit row")


def _add_selection(parser: Parser) -> None:
    parser.add_argument("strays", nargs="*", type=number, metavar="STRAY")
    parser.add_argument("--type", help="all events of this type, in place of numbers")


async def _selected(hf: Holdfast, options: Namespace) -> list[int]:
    """Oldest first: so events of one key come to their group in order."""
    if bool(options.strays) == (options.type is not None):
        raise UsageError("Say which: numbers, as `holdfast outbox strays` lists them, or --type.")
    if options.type is None:
        return [int(each) for each in options.strays]
    found: list[int] = []
    while page := await hf.outbox.strays(type=options.type, before=found[-1] if found else None, limit=_PAGE):
        found += [each.id for each in page]
    return found[::-1]


async def list_strays(hf: Holdfast, options: Namespace) -> int:
    strays = await hf.outbox.strays(type=options.type, limit=options.limit)
    if options.json:
        document({"strays": [_plain(stray) for stray in strays]})
        return DONE
    now = await hf.store.now()
    rows = [
        [each.id, each.transport, each.group, each.type, cell(each.at, now), each.reason] for each in strays
    ]
    show_table(_COLUMNS, rows, nothing="Every message was understood.")
    return DONE


async def show(hf: Holdfast, options: Namespace) -> int:
    stray = await hf.store.strays.get(options.stray)
    if stray is None:
        complain(f"There is no stray {options.stray}. `holdfast outbox strays` lists them.")
        return NOT_AS_WISHED
    if options.json:
        document(_plain(stray))
        return DONE
    now = await hf.store.now()
    show_fields(
        [
            ("stray", stray.id),
            ("transport", stray.transport),
            ("group", stray.group),
            ("type", stray.type),
            ("came", told(stray.at, now)),
            ("reason", stray.reason),
            ("message", _text(stray.raw)),
        ]
    )
    return DONE


async def replay(hf: Holdfast, options: Namespace) -> int:
    if options.message is not None and len(options.strays) != 1:
        raise UsageError("--message is for one stray: give one with it.")
    strays = await _selected(hf, options)
    message = None if options.message is None else options.message.encode(errors="surrogateescape")
    failed: dict[int, str] = {}
    with Progress("replayed", len(strays)) as bar:
        for number, each in enumerate(strays, 1):
            try:
                if not await hf.outbox.replay_stray(each, message=message, by=actor(options)):
                    failed[each] = "There is no such stray."
            except (PayloadError, UsageError) as error:
                failed[each] = str(error)
            bar.at(number)
    if options.json:
        document({"replayed": [{"id": each, "error": failed.get(each)} for each in strays]})
    else:
        for each, why in islice(failed.items(), _SHOWN):
            complain(f"Stray {each}: {why}")
        say(f"{len(strays) - len(failed):,} of {len(strays):,} replayed.")
    return NOT_AS_WISHED if failed else DONE


async def drop(hf: Holdfast, options: Namespace) -> int:
    strays = await _selected(hf, options)
    done = await hf.store.strays.drop(strays, actor=actor(options), reason=options.reason)
    if options.json:
        answers = [{"id": each, "done": is_done} for each, is_done in zip(strays, done, strict=True)]
        document({"dropped": answers})
    else:
        say(f"{sum(done):,} of {len(done):,} dropped.")
    return DONE if all(done) else NOT_AS_WISHED


def _plain(stray: Stray) -> dict[str, object]:
    return {**msgspec.structs.asdict(stray), "raw": _text(stray.raw)}


def _text(raw: bytes) -> str:
    """What is no UTF-8 is shown by its numbers."""
    return raw.decode(errors="backslashreplace")
