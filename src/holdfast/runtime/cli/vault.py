"""`holdfast vault`: make a key, see which keys have sealed what, and bring everything under the current one."""

from __future__ import annotations

from argparse import Namespace

from holdfast.kernel.clock import moment, now
from holdfast.kernel.errors import UsageError
from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli.command import DONE, NOT_AS_WISHED, add_command, add_group
from holdfast.runtime.cli.output import complain, document, say, show_table
from holdfast.runtime.cli.parser import Commands
from holdfast.runtime.cli.table import Column
from holdfast.vault.keyring import new_key

_COLUMNS = (Column("column", whole=True), Column("key"), Column("rows", right=True), Column("is"))
_NOTHING = "No column of this program keeps sealed text. Name the program by --app; it declares them by hf.vault.column()."


def add(commands: Commands) -> None:
    about = "make keys for sealed columns, see what each has sealed, and rotate"
    _, group = add_group(commands, "vault", about=about, act=status)
    add_command(
        group, "status", status, about="count rows by the key that sealed them, as `vault` alone does"
    )
    making = group.add_parser(
        "new-key", help="print a new key", description="Print a new key for HOLDFAST_KEYS."
    )
    making.add_argument("id", nargs="?", help="the key's name (the year and month)")
    making.set_defaults(run=print_key)
    rotating = add_command(
        group,
        "rotate",
        rotate,
        about="enqueue the job that seals every declared column under the current key",
    )
    rotating.add_argument("--queue", default="default", help="the queue of the job (default)")


def print_key(options: Namespace) -> int:
    key_id = options.id or f"{moment(now()):%Y-%m}"
    line = new_key(key_id)
    if options.json:
        document({"id": key_id, "line": line})
    else:
        say(line)
    return DONE


async def status(hf: Holdfast, options: Namespace) -> int:
    _refuse_none(hf)
    counts = await hf.vault.counts()
    current = hf.vault.keyring().current
    if options.json:
        document({"current": current, "columns": counts})
        return DONE
    rows = [
        [column, key_id or "none that is here", number, "current" if key_id == current else "to be rotated"]
        for column, keys in counts.items()
        for key_id, number in keys.items()
    ]
    show_table(_COLUMNS, rows, nothing="The sealed columns are empty.")
    return DONE


async def rotate(hf: Holdfast, options: Namespace) -> int:
    _refuse_none(hf)
    handle = await hf.vault.rotate(queue=options.queue)
    if options.json:
        document({"job": handle.id, "done": handle.created})
    elif handle.created:
        say(f"Job {handle.id} rotates. `holdfast jobs show {handle.id}` tells how far it is.")
    else:
        complain(f"Job {handle.id} rotates already. `holdfast jobs show {handle.id}` tells how far it is.")
    return DONE if handle.created else NOT_AS_WISHED


def _refuse_none(hf: Holdfast) -> None:
    if not hf.vault.columns:
        raise UsageError(_NOTHING)
