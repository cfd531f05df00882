"""`holdfast doctor`: look at everything that could break a promise, and say what to do."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Sequence

import msgspec

from holdfast.blobs.errors import BlobError
from holdfast.events import findings as events
from holdfast.fleet.looking import owner_of
from holdfast.kernel.errors import StoreError
from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli import alerting, beside, colour, program, seen
from holdfast.runtime.cli.command import DONE, NOT_AS_WISHED
from holdfast.runtime.cli.output import document, say
from holdfast.runtime.cli.parser import Commands, count
from holdfast.runtime.cli.table import clean
from holdfast.runtime.inside import inside
from holdfast.store.blob_records import BlobState
from holdfast.store.findings import Finding, Level, ok, warn
from holdfast.views import findings as views

_KEYS = 1000  # that are looked at
_NAMED = 3  # of many, so many are named


def add(commands: Commands) -> None:
    about = "look for trouble in the database, the machine and the jobs; exit code 1 when something is bad"
    doctor = commands.add_parser("doctor", help=about, description=f"{about[0].upper()}{about[1:]}.")
    doctor.add_argument(
        "-p",
        "--processes",
        type=count,
        default=1,
        help="worker processes that shall run, for their connections (1)",
    )
    doctor.set_defaults(run=run)


def run(options: Namespace) -> int:
    hf = program.find(options)
    findings = asyncio.run(_examined(hf, options.processes))
    worst = max((finding.level for finding in findings), key=list(Level).index, default=Level.OK)
    if options.json:
        document(
            {
                "database": repr(inside(hf).location),
                "worst": worst,
                "checks": [_plain(each) for each in findings],
            }
        )
    else:
        _print([_advised(each, options) for each in findings], repr(inside(hf).location))
    return NOT_AS_WISHED if worst is Level.BAD else DONE


async def _examined(hf: Holdfast, processes: int) -> list[Finding]:
    """Events, views and held jobs are looked at where the tables are well: that needs an open store."""
    found = [*await hf.store.diagnosis.examine(processes=processes), *seen.examine(), *await _redis(hf)]
    if not any(each.check == "tables" and each.level is Level.OK for each in found):
        return found
    inside(hf).fleet.sit_out()
    async with hf:
        broker = await events.examine_broker(inside(hf).bus.wire, inside(hf).bus.settings)
        return [
            *found,
            *await events.examine(hf.store),
            *broker,
            *await views.examine(hf.store),
            *await _held(hf),
            *await _blobs(hf),
            *await alerting.examine(hf),
            *await beside.examine(hf),
        ]


async def _redis(hf: Holdfast) -> list[Finding]:
    """Where guards meet, if that is not the database."""
    elsewhere = inside(hf).guards_elsewhere
    if elsewhere is None:
        return []
    try:
        await elsewhere.open()
        await elsewhere.look("holdfast", now=0.0)  # its scripts run, and what it holds can be read
    except StoreError as error:
        todo = "Until it is back, each process goes on with its share of each rate."
        return [warn("guards on redis", str(error), todo)]
    finally:
        await elsewhere.close()
    return [ok("guards on redis", f"{elsewhere!r} answers.")]


async def _held(hf: Holdfast) -> list[Finding]:
    """Jobs that nobody would let go of."""
    keys = await hf.store.holds.gates(limit=_KEYS)
    heard = {guard.name for guard in await hf.store.guards.find(limit=_KEYS) if guard.nodes}
    known = {*heard, *inside(hf).registry.known_guards}
    strange = [key for key in keys if owner_of(key, known) is None]
    if not strange:
        return [ok("held by guards", "All jobs that guards hold have a guard that lets them go.")]
    names = ", ".join(map(repr, strange[:_NAMED])) + (" and others" if len(strange) > _NAMED else "")
    return [
        warn(
            "held by guards",
            f"Jobs are held by guards that no process has: {names}.",
            "Start a worker that has them, or one of another version with the jobs' tasks: it lets them go within a minute.",
        )
    ]


async def _blobs(hf: Holdfast) -> list[Finding]:
    """The place of the blobs takes an object and lets it go, and nothing waits for a person."""
    if hf.blobs.settings is None:
        return []
    place = hf.blobs.place()
    try:
        await place.check()
    except BlobError as error:
        todo = "Mend it, or set HOLDFAST_BLOBS_URL: files can be neither stored nor read."
        return [Finding("blobs", Level.BAD, str(error), todo)]
    found = [ok("blobs", f"{place!r} takes and removes objects.")]
    for state, todo in _OF_BLOBS.items():
        if rows := await hf.store.blobs.find(state=state, limit=_KEYS):
            number = f"{len(rows)}{' or more' if len(rows) == _KEYS else ''}"
            found.append(warn(f"blobs {state}", f"{number}, such as {rows[0].name}.", todo))
    return found


_OF_BLOBS = {
    BlobState.MISSING: "Their objects are gone: bring them back from a copy and `hf.blobs.restore` them, or delete them.",
    BlobState.QUARANTINED: "Decide: `holdfast blobs release`, or delete them.",
}


def _advised(finding: Finding, options: Namespace) -> Finding:
    todo = None if finding.todo is None else program.command(options, finding.todo)
    return msgspec.structs.replace(finding, todo=todo)


def _plain(finding: Finding) -> dict[str, object]:
    return msgspec.structs.asdict(finding)


def _print(findings: Sequence[Finding], database: str) -> None:
    """One line each, whole: an advice that is cut off helps nobody."""
    say(database)
    coloured = colour.is_wanted()
    width = max((len(finding.check) for finding in findings), default=0)
    for finding in findings:
        advice = f" {finding.todo}" if finding.todo else ""
        level = colour.painted(f"{finding.level.upper():<4}", colour.LEVELS if coloured else {})
        say(f"{level}  {finding.check:<{width}}  {clean(finding.found + advice)}")
