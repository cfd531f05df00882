"""The command line: `publisher api | worker | all | migrate | seed | settings`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable

from holdfast.errors import HoldfastError

WRONG = 2  # the exit code of what was asked for wrongly


def main(arguments: list[str] | None = None) -> int:
    options = _parsed(arguments)
    try:
        import publisher.core  # noqa: F401, PLC0415  it reads all settings
    except HoldfastError as error:
        print(error, file=sys.stderr)  # noqa: T201  it is a command
        return WRONG
    return int(options.run(options))


def _parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="publisher", description=__doc__)
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
    from publisher.running import serve  # noqa: PLC0415

    return serve(options.parent)


def worker(options: argparse.Namespace) -> int:
    from publisher.running import work  # noqa: PLC0415

    return work(options.processes, options.parent)


def both(options: argparse.Namespace) -> int:
    from publisher.core import settings  # noqa: PLC0415
    from publisher.supervising import run  # noqa: PLC0415

    if settings.database_url.startswith("sqlite:"):
        migrate(options)  # a file that is nobody else's; PostgreSQL is migrated when somebody says so
    return run(options.processes)


def migrate(_: argparse.Namespace) -> int:
    from publisher.migrating import bring_up_to_date  # noqa: PLC0415

    print(bring_up_to_date())  # noqa: T201  it is a command
    return 0


def seed(_: argparse.Namespace) -> int:
    from publisher.program import hf  # noqa: PLC0415
    from publisher.seeding import seed as plant  # noqa: PLC0415

    async def planted() -> str:
        async with hf:
            return await plant()

    print(asyncio.run(planted()))  # noqa: T201  it is a command
    return 0


def settings(_: argparse.Namespace) -> int:
    from holdfast.settings import shown  # noqa: PLC0415
    from publisher.core import settings as in_force  # noqa: PLC0415

    rows = shown(in_force)
    width = max(len(name) for name, _, _ in rows)
    for name, value, told in rows:
        print(f"{name:<{width}}  {value}{'' if told == 'set' else '  (default)'}")  # noqa: T201  it is a command
    return 0


COMMANDS: tuple[tuple[str, Callable[[argparse.Namespace], int], str], ...] = (
    ("api", api, "serve the pages and the API"),
    ("worker", worker, "publish what is due, and do what else there is to do"),
    ("all", both, "the API and a worker, as two processes that end together"),
    ("migrate", migrate, "bring all tables up to date"),
    ("seed", seed, "make two artists with drawn pictures, to look around"),
    ("settings", settings, "show the settings in force, without secrets"),
)

if __name__ == "__main__":
    sys.exit(main())
