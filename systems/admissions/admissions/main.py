"""The command line: `admissions api | worker | all | migrate | seed | settings`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable

from holdfast.settings import WrongSettings

WRONG = 2  # the exit code of what was asked for wrongly


def main(arguments: list[str] | None = None) -> int:
    options = _parsed(arguments)
    try:
        return int(options.run(options))
    except WrongSettings as error:
        print(error, file=sys.stderr)  # noqa: T201  it is a command
        return WRONG


def _parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="admissions", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    for name, run, says in COMMANDS:
        command = commands.add_parser(name, help=says, description=says)
        command.set_defaults(run=run)
        if name in ("api", "worker"):
            command.add_argument("--parent", type=int, default=None, help=argparse.SUPPRESS)
        if name in ("worker", "all"):
            command.add_argument("-p", "--processes", type=int, default=1, help="worker processes (1)")
    return parser.parse_args(arguments)


# Each imports what it needs when it is asked for: importing the program reads all settings, which may be wrong.


def api(options: argparse.Namespace) -> int:
    from admissions.running import serve  # noqa: PLC0415

    return serve(options.parent)


def worker(options: argparse.Namespace) -> int:
    from admissions.running import work  # noqa: PLC0415

    return work(options.processes, options.parent)


def both(options: argparse.Namespace) -> int:
    from admissions.core import settings  # noqa: PLC0415
    from admissions.supervising import run  # noqa: PLC0415

    if settings.database_url.startswith("sqlite:"):
        migrate(options)  # a file that is nobody else's; PostgreSQL is migrated when somebody says so
    return run(options.processes)


def migrate(_: argparse.Namespace) -> int:
    from admissions.migrating import bring_up_to_date  # noqa: PLC0415

    print(bring_up_to_date())  # noqa: T201  it is a command
    return 0


def seed(_: argparse.Namespace) -> int:
    from admissions.program import hf  # noqa: PLC0415
    from admissions.seeding import seed as plant  # noqa: PLC0415

    async def planted() -> str:
        async with hf:
            return await plant()

    print(asyncio.run(planted()))  # noqa: T201  it is a command
    return 0


def settings(_: argparse.Namespace) -> int:
    from admissions.core import settings as in_force  # noqa: PLC0415
    from holdfast.settings import shown  # noqa: PLC0415

    rows = shown(in_force)
    width = max(len(name) for name, _, _ in rows)
    for name, value, told in rows:
        print(f"{name:<{width}}  {value}{'' if told == 'set' else '  (default)'}")  # noqa: T201  it is a command
    return 0


COMMANDS: tuple[tuple[str, Callable[[argparse.Namespace], int], str], ...] = (
    ("api", api, "serve the pages and the API"),
    ("worker", worker, "check documents, take payments, send mails"),
    ("all", both, "the API and a worker, as two processes that end together"),
    ("migrate", migrate, "bring all tables up to date"),
    ("seed", seed, "make programmes, people and applications, to look around"),
    ("settings", settings, "show the settings in force, without secrets"),
)

if __name__ == "__main__":
    sys.exit(main())
