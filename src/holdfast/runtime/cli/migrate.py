"""`holdfast migrate`: bring the tables up to date, say what is missing, or print the SQL."""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace

from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli import program
from holdfast.runtime.cli.command import DONE, NOT_AS_WISHED
from holdfast.runtime.cli.output import document, say
from holdfast.runtime.cli.parser import Commands
from holdfast.runtime.inside import inside
from holdfast.store.postgres import schema as postgres_schema
from holdfast.store.sqlite import schema as sqlite_schema


def add(commands: Commands) -> None:
    about = "bring the tables of the database up to date"
    migrate = commands.add_parser("migrate", help=about, description=f"{about.capitalize()}.")
    mode = migrate.add_mutually_exclusive_group()
    mode.add_argument(
        "--check", action="store_true", help="change nothing; exit with 1 when something is to be applied"
    )
    mode.add_argument(
        "--print-sql", action="store_true", help="print the SQL of all migrations; no connection is made"
    )
    migrate.set_defaults(run=run)


def run(options: Namespace) -> int:
    hf = program.find(options)
    if options.print_sql:
        return _print_sql(hf, options)
    names = asyncio.run(hf.store.pending() if options.check else hf.migrate())
    if options.json:
        document({"database": repr(inside(hf).location), "pending" if options.check else "applied": names})
    elif not names:
        say(f"{inside(hf).location!r} is up to date.")
    else:
        say(f"{inside(hf).location!r}: {'to be applied' if options.check else 'applied'}: {', '.join(names)}")
    return NOT_AS_WISHED if options.check and names else DONE


def _print_sql(hf: Holdfast, options: Namespace) -> int:
    schema = sqlite_schema if inside(hf).location.kind == "sqlite" else postgres_schema
    if options.json:
        parts: list[str] = []
        schema.print_sql(parts.append)
        document({"database": repr(inside(hf).location), "sql": "".join(parts)})
    else:
        schema.print_sql(sys.stdout.write)
    return DONE
