"""`holdfast doctor`: look at everything that could break a promise, and say what to do."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Sequence

import msgspec

from holdfast.events.findings import examine
from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli import program
from holdfast.runtime.cli.command import DONE, NOT_AS_WISHED
from holdfast.runtime.cli.output import document, say
from holdfast.runtime.cli.parser import Commands, count
from holdfast.runtime.cli.table import clean
from holdfast.store.findings import Finding, Level


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
            {"database": repr(hf.location), "worst": worst, "checks": [_plain(each) for each in findings]}
        )
    else:
        _print(findings, repr(hf.location))
    return NOT_AS_WISHED if worst is Level.BAD else DONE


async def _examined(hf: Holdfast, processes: int) -> list[Finding]:
    """Events are looked at where the tables are well: that needs an open store."""
    found = [*await hf.store.diagnosis.examine(processes=processes)]
    if not any(each.check == "tables" and each.level is Level.OK for each in found):
        return found
    hf.fleet.sit_out()
    async with hf:
        return [*found, *await examine(hf.store)]


def _plain(finding: Finding) -> dict[str, object]:
    return msgspec.structs.asdict(finding)


def _print(findings: Sequence[Finding], database: str) -> None:
    """One line each, whole: an advice that is cut off helps nobody."""
    say(database)
    width = max((len(finding.check) for finding in findings), default=0)
    for finding in findings:
        advice = f" {finding.todo}" if finding.todo else ""
        say(f"{finding.level.upper():<4}  {finding.check:<{width}}  {clean(finding.found + advice)}")
