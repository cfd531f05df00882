"""What every command shares: it is given the program, opened, and who asks."""

from __future__ import annotations

import asyncio
import getpass
import socket
from argparse import Namespace
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from holdfast.kernel.errors import StoreUnavailable
from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli import program
from holdfast.runtime.cli.output import complain
from holdfast.runtime.cli.parser import Commands, Parser, Prefix
from holdfast.runtime.inside import inside

DONE, NOT_AS_WISHED = 0, 1
_CANDIDATES = 5  # of ids that begin alike, so many are shown
Act = Callable[[Holdfast, Namespace], Awaitable[int]]
Check = Callable[[Namespace], None]


def add_command(commands: Commands, name: str, act: Act, *, about: str, check: Check | None = None) -> Parser:
    """A command that needs the store open; `check` refuses wrong use before that."""
    parser = commands.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.")
    parser.set_defaults(run=partial(on_store, act, check))
    return parser


def add_group(
    commands: Commands, name: str, *, about: str, act: Act | None = None, check: Check | None = None
) -> tuple[Parser, Commands]:
    """Commands under one name; `act` is what the name alone does."""
    parser = commands.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.")
    if act is not None:
        parser.set_defaults(run=partial(on_store, act, check))
    return parser, parser.add_subparsers(title="commands", metavar="COMMAND", required=act is None)


def on_store(act: Act, check: Check | None, options: Namespace) -> int:
    if check is not None:
        check(options)
    hf = program.find(options)
    refuse_missing_file(hf)
    return asyncio.run(_opened(hf, act, options))


async def _opened(hf: Holdfast, act: Act, options: Namespace) -> int:
    inside(hf).fleet.sit_out()
    async with hf:
        try:
            await _complete(hf, options)
        except _NotOneJob as why:
            complain(str(why))
            return NOT_AS_WISHED
        return await act(hf, options)


class _NotOneJob(Exception):
    """No job's id begins so, or several do."""


async def _complete(hf: Holdfast, options: Namespace) -> None:
    """Ids of jobs of which the beginning was given."""
    for name, value in vars(options).items():
        if isinstance(value, Prefix):
            setattr(options, name, await _whole_id(hf, value))
        elif isinstance(value, list):
            whole = [await _whole_id(hf, each) if isinstance(each, Prefix) else each for each in value]
            setattr(options, name, whole)


async def _whole_id(hf: Holdfast, prefix: str) -> str:
    found = await hf.store.jobs.starting(str(prefix), limit=_CANDIDATES + 1)
    if len(found) == 1:
        return found[0]
    if not found:
        raise _NotOneJob(f"No job has an id that begins with {prefix}. `holdfast jobs list` shows them.")
    more = " and more" if len(found) > _CANDIDATES else ""
    raise _NotOneJob(
        f"Several ids begin with {prefix}: {', '.join(found[:_CANDIDATES])}{more}. Give more of it."
    )


def refuse_missing_file(hf: Holdfast) -> None:
    """Opening a SQLite store makes its file: whoever only looks has most likely mistyped its name."""
    if inside(hf).location.kind == "sqlite" and not Path(inside(hf).location.address).exists():
        raise StoreUnavailable(
            f"There is no SQLite file {inside(hf).location.address!r}. Name another with --url, or make it: holdfast migrate."
        )


def actor(options: Namespace) -> str:
    """Who asks, for the audit rows."""
    if options.actor:
        return str(options.actor)
    try:
        login = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container's user may have no name
        login = "unknown"
    return f"{login}@{socket.gethostname()}"
