"""`holdfast health`: one question that a supervisor asks, answered by the exit code."""

from __future__ import annotations

import asyncio
from argparse import Namespace

from holdfast.kernel.clock import monotonic, timeout
from holdfast.kernel.errors import HoldfastError, SchemaMissing, StoreUnavailable, UsageError
from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli import program
from holdfast.runtime.cli.command import DONE, NOT_AS_WISHED, refuse_missing_file
from holdfast.runtime.cli.output import complain, document, say
from holdfast.runtime.cli.parser import Commands, seconds
from holdfast.runtime.port_client import asked
from holdfast.web.serving import address

PROBES = ("live", "startup", "ready")


def add(commands: Commands) -> None:
    about = "answer a probe: exit code 0 when it is well, 1 when not"
    health = commands.add_parser("health", help=about, description=f"{about.capitalize()}.")
    which = health.add_mutually_exclusive_group()
    which.add_argument("--live", action="store_true", help="the program can be loaded; asks no database")
    which.add_argument(
        "--startup", action="store_true", help="the database answers, and its tables are up to date"
    )
    which.add_argument(
        "--ready", action="store_true", help="the same, and it takes writes; this is the default"
    )
    health.add_argument("--timeout", type=seconds, default=5.0, help="seconds to wait for the database (5)")
    health.add_argument(
        "--at", metavar="HOST:PORT[/PATH]", default=None,
        help="ask the port of a worker, as --probe has it, or any other, instead of the database; PATH when the program has paths of its own",
    )  # fmt: skip
    health.set_defaults(run=run)


def run(options: Namespace) -> int:
    probe = next((each for each in PROBES if getattr(options, each)), "ready")
    began = monotonic()
    if options.at is not None:
        place, _, path = options.at.partition("/")
        trouble = asyncio.run(asked(*address(place), path or probe, options.timeout))
        return _end(probe, trouble, began, options)
    try:
        hf = program.find(options)
        if probe != "live":
            asyncio.run(_ask(hf, probe, options.timeout))
    except UsageError:
        raise
    except HoldfastError as error:
        return _end(probe, program.command(options, str(error)), began, options)
    return _end(probe, None, began, options)


async def _ask(hf: Holdfast, probe: str, patience: float) -> None:
    try:
        async with timeout(patience):
            await _look(hf, writing=probe == "ready")
    except TimeoutError:
        raise StoreUnavailable(f"The database did not answer within {patience:g} s.") from None


async def _look(hf: Holdfast, *, writing: bool) -> None:
    refuse_missing_file(hf)
    if missing := await hf.store.pending():
        raise SchemaMissing(f"The tables lack the migrations {', '.join(missing)}. Run `holdfast migrate`.")
    async with hf:
        await hf.store.now()
        if (
            writing
        ):  # what has ended may be forgotten at any time, and a database that takes no writes says so
            await hf.store.leases.prune(limit=1)


def _end(probe: str, trouble: str | None, began: float, options: Namespace) -> int:
    took = monotonic() - began
    if options.json:
        document({"probe": probe, "well": trouble is None, "trouble": trouble, "seconds": round(took, 3)})
    elif trouble is None:
        say(f"{probe}: well.")
    else:
        complain(f"{probe}: {trouble}")
    return DONE if trouble is None else NOT_AS_WISHED
