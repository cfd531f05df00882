"""`holdfast cache`: what cached functions keep in the store, and forgetting it by key or tag."""

from __future__ import annotations

from argparse import Namespace

import msgspec

from holdfast.kernel.errors import UsageError
from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli.command import DONE, NOT_AS_WISHED, add_command, add_group
from holdfast.runtime.cli.output import complain, document, say, show_table
from holdfast.runtime.cli.parser import Commands, count
from holdfast.runtime.cli.table import Column
from holdfast.runtime.cli.times import span
from holdfast.store.cache_records import CacheRecord

_COLUMNS = (
    Column("key", whole=True),
    Column("size", right=True),
    Column("age"),
    Column("state"),
    Column("tags"),
)


def add(commands: Commands) -> None:
    parser, group = add_group(
        commands, "cache", about="list the values that cached functions keep in the store", act=list_values
    )
    parser.add_argument("--limit", type=count, default=100, help="at most so many (100)")
    add_command(group, "list", list_values, about="list the values, as `cache` alone does")
    forgetting = add_command(
        group,
        "invalidate",
        invalidate,
        about="forget values, also those that are being loaded now",
        check=_something,
    )
    forgetting.add_argument("key", nargs="*", help="as `holdfast cache` shows it")
    forgetting.add_argument("--tag", action="append", default=[], help="every value with this tag")


async def list_values(hf: Holdfast, options: Namespace) -> int:
    found = await hf.store.cache.find(limit=options.limit)
    if options.json:
        document({"values": [msgspec.structs.asdict(each) for each in found]})
        return DONE
    show_table(_COLUMNS, [_row(each) for each in found], nothing="No value is kept in the store.")
    return DONE


def _row(value: CacheRecord) -> list[object]:
    age = None if value.size is None else span(value.age)
    return [value.key, value.size, age, _state(value), ", ".join(value.tags) or None]


def _state(value: CacheRecord) -> str:
    if value.size is None:
        return "is being loaded"
    if value.fresh_for > 0:
        return f"fresh for {span(value.fresh_for)}"
    return f"stale, served for {span(value.stale_for)}{', is being loaded' if value.is_loading else ''}"


def _something(options: Namespace) -> None:
    if not options.key and not options.tag:
        raise UsageError("Say what to forget: keys, or --tag user:7.")


async def invalidate(hf: Holdfast, options: Namespace) -> int:
    """Wherever this program keeps values; a process's own memory is out of reach."""
    done = await hf.cache.invalidate(*options.key) if options.key else True
    done = (await hf.cache.invalidate_tags(*options.tag) if options.tag else True) and done
    if options.json:
        document({"keys": options.key, "tags": options.tag, "done": done})
    elif done:
        say("Forgotten. What is being loaded now is not kept, and loaded again.")
    else:
        complain("Where values are kept does not answer: they are still there. Try again.")
    return DONE if done else NOT_AS_WISHED
