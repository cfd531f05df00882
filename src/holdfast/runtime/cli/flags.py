"""`holdfast flags`: what people have decided; set a flag, and take a decision back."""

from __future__ import annotations

from argparse import Namespace

import msgspec

from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli.command import DONE, NOT_AS_WISHED, actor, add_command, add_group
from holdfast.runtime.cli.output import complain, document, say, show_table
from holdfast.runtime.cli.parser import Commands
from holdfast.runtime.cli.table import Column
from holdfast.runtime.cli.times import ago

_COLUMNS = (
    Column("name", whole=True),
    Column("tenant"),
    Column("value"),
    Column("set"),
    Column("by"),
    Column("reason", spare=True),
)
_VALUES = {"on": True, "off": False}


def add(commands: Commands) -> None:
    _, group = add_group(
        commands, "flags", about="list the flags that are set; set and unset them", act=list_flags
    )
    add_command(group, "list", list_flags, about="list the flags, as `flags` alone does")
    setting = add_command(
        group, "set", set_flag, about="set a flag; every process hears of it within two seconds"
    )
    setting.add_argument("name")
    setting.add_argument("value", choices=tuple(_VALUES))
    unsetting = add_command(
        group, "unset", unset, about="take a decision back: the program's own default counts again"
    )
    unsetting.add_argument("name")
    for parser in (setting, unsetting):
        parser.add_argument("--tenant", help="for this tenant alone")
        parser.add_argument("--reason", default="", help="kept with the flag, and in the audit row")


async def list_flags(hf: Holdfast, options: Namespace) -> int:
    flags = await hf.flags.list()
    if options.json:
        document({"flags": [msgspec.structs.asdict(each) for each in flags]})
        return DONE
    now = await hf.store.now()
    rows = [
        [
            each.name,
            each.tenant,
            "on" if each.value else "off",
            ago(each.set_at, now),
            each.set_by,
            each.reason or None,
        ]
        for each in flags
    ]
    show_table(_COLUMNS, rows, nothing="No flag is set: the program's own defaults count.")
    return DONE


async def set_flag(hf: Holdfast, options: Namespace) -> int:
    value = _VALUES[options.value]
    await hf.flags.set(options.name, value, tenant=options.tenant, by=actor(options), reason=options.reason)
    if options.json:
        document({"name": options.name, "tenant": options.tenant, "value": value})
    else:
        say(f"{options.name} is {options.value}{_for(options.tenant)}.")
    return DONE


async def unset(hf: Holdfast, options: Namespace) -> int:
    done = await hf.flags.unset(options.name, tenant=options.tenant, by=actor(options), reason=options.reason)
    if options.json:
        document({"name": options.name, "tenant": options.tenant, "done": done})
    elif done:
        say(f"{options.name} is not set any more{_for(options.tenant)}.")
    else:
        complain(f"{options.name!r} is not set{_for(options.tenant)}. `holdfast flags` lists those that are.")
    return DONE if done else NOT_AS_WISHED


def _for(tenant: str | None) -> str:
    return "" if tenant is None else f" for {tenant}"
