"""The command line. Exit codes: 0 done, 1 not as wished (a check failed), 2 wrong use, 3 the store could not do it."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence

from holdfast.kernel.errors import HoldfastError, UsageError
from holdfast.runtime import cli_worker
from holdfast.runtime.app import Holdfast
from holdfast.runtime.config import locate
from holdfast.store.postgres import schema as postgres_schema
from holdfast.store.sqlite import schema as sqlite_schema


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except UsageError as error:
        print(f"holdfast: {error}", file=sys.stderr)
        return 2
    except HoldfastError as error:
        print(f"holdfast: {error}", file=sys.stderr)
        return 3
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="holdfast", description="Work that must not be lost and must not be done twice."
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    migrate = commands.add_parser("migrate", help="bring the tables of the database up to date")
    migrate.add_argument(
        "--url",
        default=os.environ.get("HOLDFAST_URL"),
        help="the database (HOLDFAST_URL, else DATABASE_URL, else sqlite:///holdfast.db)",
    )
    mode = migrate.add_mutually_exclusive_group()
    mode.add_argument(
        "--check", action="store_true", help="change nothing; exit with 1 when something is to be applied"
    )
    mode.add_argument(
        "--print-sql", action="store_true", help="print the SQL of all migrations; no connection is made"
    )
    migrate.add_argument("--json", action="store_true", help="print for programs")
    migrate.set_defaults(run=_migrate)
    cli_worker.add(commands)
    return parser


def _migrate(options: argparse.Namespace) -> int:
    if options.print_sql:
        return _print_sql(options.url)
    hf = Holdfast(options.url)
    names = asyncio.run(hf.store.pending() if options.check else hf.migrate())
    if options.json:
        print(json.dumps({"database": repr(hf.location), "pending" if options.check else "applied": names}))
    elif not names:
        print(f"{hf.location!r} is up to date.")
    else:
        print(f"{hf.location!r}: {'to be applied' if options.check else 'applied'}: {', '.join(names)}")
    return 1 if options.check and names else 0


def _print_sql(url: str | None) -> int:
    schema = sqlite_schema if locate(url).kind == "sqlite" else postgres_schema
    schema.print_sql(sys.stdout.write)
    return 0
