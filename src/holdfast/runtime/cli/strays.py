"""`holdfast outbox strays`: messages from a broker that nobody understood, as they came."""

from __future__ import annotations

from argparse import Namespace

import msgspec

from holdfast.kernel.errors import PayloadError, UsageError
from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli.command import DONE, NOT_AS_WISHED, actor, add_command, add_group
from holdfast.runtime.cli.output import complain, document, say, show_fields, show_table
from holdfast.runtime.cli.parser import Commands, count
from holdfast.runtime.cli.table import Column
from holdfast.runtime.cli.times import cell, told
from holdfast.store.event_records import Stray

_COLUMNS = (
    Column("stray", right=True),
    Column("transport"),
    Column("group"),
    Column("came"),
    Column("reason"),
)


def add(commands: Commands) -> None:
    about = "list messages that nobody understood; show one as it came; replay or drop them"
    parser, group = add_group(commands, "strays", about=about, act=list_strays)
    parser.add_argument("--limit", type=count, default=100, help="at most so many, the newest first (100)")
    showing = add_command(group, "show", show, about="show one message as it came")
    showing.add_argument("stray", type=count)
    replaying = add_command(group, "replay", replay, about="read messages once more, for their groups")
    replaying.add_argument("strays", nargs="+", type=count, metavar="STRAY")
    replaying.add_argument("--message", help="an event in JSON, in place of the one message that is named")
    dropping = add_command(group, "drop", drop, about="give messages up")
    dropping.add_argument("strays", nargs="+", type=count, metavar="STRAY")
    dropping.add_argument("--reason", required=True, help="kept in the audit row")


async def list_strays(hf: Holdfast, options: Namespace) -> int:
    strays = await hf.outbox.strays(limit=options.limit)
    if options.json:
        document({"strays": [_plain(stray) for stray in strays]})
        return DONE
    now = await hf.store.now()
    rows = [[each.id, each.transport, each.group, cell(each.at, now), each.reason] for each in strays]
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
            ("came", told(stray.at, now)),
            ("reason", stray.reason),
            ("message", _text(stray.raw)),
        ]
    )
    return DONE


async def replay(hf: Holdfast, options: Namespace) -> int:
    if options.message is not None and len(options.strays) != 1:
        raise UsageError("--message is for one stray: give one with it.")
    message = None if options.message is None else options.message.encode(errors="surrogateescape")
    failed: dict[int, str] = {}
    for each in options.strays:
        try:
            if not await hf.outbox.replay_stray(each, message=message, by=actor(options)):
                failed[each] = "There is no such stray."
        except (PayloadError, UsageError) as error:
            failed[each] = str(error)
    if options.json:
        document({"replayed": [{"id": each, "error": failed.get(each)} for each in options.strays]})
    else:
        for each, why in failed.items():
            complain(f"Stray {each}: {why}")
        say(f"{len(options.strays) - len(failed):,} of {len(options.strays):,} replayed.")
    return NOT_AS_WISHED if failed else DONE


async def drop(hf: Holdfast, options: Namespace) -> int:
    done = await hf.store.strays.drop(options.strays, actor=actor(options), reason=options.reason)
    if options.json:
        document(
            {
                "dropped": [
                    {"id": each, "done": is_done} for each, is_done in zip(options.strays, done, strict=True)
                ]
            }
        )
    else:
        say(f"{sum(done):,} of {len(done):,} dropped.")
    return DONE if all(done) else NOT_AS_WISHED


def _plain(stray: Stray) -> dict[str, object]:
    return {**msgspec.structs.asdict(stray), "raw": _text(stray.raw)}


def _text(raw: bytes) -> str:
    """What is no UTF-8 is shown by its numbers."""
    return raw.decode(errors="backslashreplace")
