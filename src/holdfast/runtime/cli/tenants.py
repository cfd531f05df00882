"""`holdfast tenants`: which tenants are paused, why and by whom; pause and resume one for the whole fleet."""

from __future__ import annotations

from argparse import Namespace

import msgspec

from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli.command import DONE, actor, add_command, add_group
from holdfast.runtime.cli.output import document, say, show_table
from holdfast.runtime.cli.parser import Commands
from holdfast.runtime.cli.table import Column
from holdfast.runtime.cli.times import ago
from holdfast.store.records import PausedTenant

_COLUMNS = (Column("tenant"), Column("by"), Column("paused"), Column("reason"))


def add(commands: Commands) -> None:
    about = "list the tenants that are paused; pause and resume one"
    _, group = add_group(commands, "tenants", about=about, act=list_tenants)
    add_command(group, "list", list_tenants, about="list the paused tenants, as `tenants` alone does")
    pausing = add_command(group, "pause", pause, about="let nobody claim jobs of a tenant; what runs goes on")
    pausing.add_argument("key")
    pausing.add_argument("--reason", required=True, help="why: each of its jobs that is held says so")
    resuming = add_command(
        group, "resume", resume, about="let the jobs of a tenant go, in the order of their times"
    )
    resuming.add_argument("key")


async def list_tenants(hf: Holdfast, options: Namespace) -> int:
    paused = await hf.tenants.paused()
    if options.json:
        document({"tenants": [msgspec.structs.asdict(each) for each in paused]})
        return DONE
    now = await hf.store.now()
    rows = [[each.tenant, each.by, ago(each.at, now), each.reason] for each in paused]
    show_table(_COLUMNS, rows, nothing="No tenant is paused.")
    return DONE


async def pause(hf: Holdfast, options: Namespace) -> int:
    there = await _paused(hf, options.key)
    await hf.tenants.pause(options.key, reason=options.reason, by=actor(options))
    if not options.json:
        if there is None:
            say(f"{options.key} is paused; its jobs wait until `holdfast tenants resume {options.key}`.")
        else:
            say(f"{options.key} was paused before, by {there.by}: {there.reason}")
    return await _end(hf, options)


async def resume(hf: Holdfast, options: Namespace) -> int:
    there = await _paused(hf, options.key)
    await hf.tenants.resume(options.key, by=actor(options))
    if not options.json:
        say(f"{options.key} {'was not paused' if there is None else 'is resumed'}.")
    return await _end(hf, options)


async def _end(hf: Holdfast, options: Namespace) -> int:
    if options.json:
        now = await _paused(hf, options.key)
        document({"tenant": options.key, "paused": now and msgspec.structs.asdict(now)})
    return DONE


async def _paused(hf: Holdfast, key: str) -> PausedTenant | None:
    return next((each for each in await hf.tenants.paused() if each.tenant == key), None)
