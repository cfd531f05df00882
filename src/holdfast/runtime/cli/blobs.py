"""`holdfast blobs`: list files, keep one from being read, remove what nobody needs, and compare rows with objects."""

from __future__ import annotations

from argparse import Namespace

import msgspec

from holdfast.blobs.keys import NOBODY, check_prefix, check_tenant
from holdfast.kernel.codec import encode
from holdfast.kernel.context import within
from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli.command import DONE, NOT_AS_WISHED, actor, add_command, add_group
from holdfast.runtime.cli.output import complain, document, say, show_table
from holdfast.runtime.cli.parser import Commands, Parser, count
from holdfast.runtime.cli.table import Column
from holdfast.runtime.cli.times import cell
from holdfast.store.blob_records import BlobState
from holdfast.store.records import AuditEntry

_COLUMNS = (
    Column("tenant"),
    Column("key", whole=True),
    Column("state"),
    Column("bytes", right=True),
    Column("type"),
    Column("since"),
    Column("reason"),
)


def add(commands: Commands) -> None:
    parser, group = add_group(
        commands, "blobs", about="list files, quarantine them, sweep, and check", act=list_blobs
    )
    _filters(parser)
    _filters(add_command(group, "list", list_blobs, about="list the files, as `blobs` alone does"))
    for name, act, about in (
        ("quarantine", quarantine, "keep a file from being read"),
        ("release", release, "let a file of the quarantine be read again"),
    ):
        command = add_command(group, name, act, about=about)
        command.add_argument("key")
        command.add_argument("--tenant", help="whose it is")
        command.add_argument("--reason", required=True, help="kept with the file and in the audit row")
    add_command(group, "sweep", sweep, about="remove what was never committed or was deleted long ago, now")
    checking = add_command(
        group, "check", check, about="compare all rows with all objects; exit code 1 when they do not fit"
    )
    checking.add_argument(
        "--remove-orphans",
        action="store_true",
        help="remove the objects that belong to no row of this database",
    )


def _filters(parser: Parser) -> None:
    parser.add_argument("--tenant", help="only those of this one")
    parser.add_argument(
        "--prefix", default="", help="only keys that begin so; with --tenant, or of no tenant"
    )
    parser.add_argument("--state", choices=[str(each) for each in BlobState], help="only those in this state")
    parser.add_argument("--after", default="", help="only those after this TENANT/KEY")
    parser.add_argument("--limit", type=count, default=100, help="at most so many (100)")


async def list_blobs(hf: Holdfast, options: Namespace) -> int:
    prefix = check_prefix(options.prefix)
    if options.tenant or prefix:
        prefix = f"{check_tenant(options.tenant)}/{prefix}"
    rows = await hf.store.blobs.find(
        prefix=prefix, after=options.after, state=options.state and BlobState(options.state), limit=options.limit
    )  # fmt: skip
    if options.json:
        document({"blobs": [msgspec.structs.asdict(row) for row in rows]})
        return DONE
    now = await hf.store.now()
    cells = []
    for row in rows:
        tenant, _, key = row.name.partition("/")
        shown = "-" if tenant == NOBODY else tenant
        cells.append(
            [shown, key, row.state, row.size, row.content_type, cell(row.changed_at, now), row.reason or "-"]
        )
    show_table(_COLUMNS, cells, nothing="There are no such files.")
    return DONE


async def quarantine(hf: Holdfast, options: Namespace) -> int:
    return await _turn(
        hf, options, "blob.quarantined", "is in quarantine: nobody reads it", "could be read before"
    )


async def release(hf: Holdfast, options: Namespace) -> int:
    return await _turn(hf, options, "blob.released", "can be read again", "is in quarantine")


async def _turn(hf: Holdfast, options: Namespace, action: str, done: str, needed: str) -> int:
    """The change and its audit row in one transaction."""
    turn = hf.blobs.quarantine if action == "blob.quarantined" else hf.blobs.release
    with within(tenant=options.tenant):
        async with hf.transaction() as tx:
            is_done = await turn(options.key, options.reason, tx=tx)
            if is_done:
                subject = f"blob:{check_tenant(options.tenant)}/{options.key}"[:600]
                entry = AuditEntry(
                    actor=actor(options),
                    action=action,
                    subject=subject,
                    after=encode({"reason": options.reason}),
                )
                await hf.store.audit.write(entry, tx=tx)
    if options.json:
        document({"key": options.key, "tenant": options.tenant, "done": is_done})
    elif is_done:
        say(f"{options.key} {done}.")
    else:
        complain(
            f"There is no file {options.key!r} of this tenant that {needed}. `holdfast blobs list` shows them."
        )
    return DONE if is_done else NOT_AS_WISHED


async def sweep(hf: Holdfast, options: Namespace) -> int:
    swept = await hf.blobs.sweep()
    if options.json:
        document(msgspec.structs.asdict(swept))
    else:
        say(
            f"Removed {swept.unused} objects that were never committed, the remains of {swept.remains} writers and {swept.purged} deleted files; "
            f"brought {swept.settled} files to their place."
        )
    return DONE


async def check(hf: Holdfast, options: Namespace) -> int:
    found = await hf.blobs.check(remove_orphans=options.remove_orphans)
    if options.json:
        document(msgspec.structs.asdict(found))
    else:
        say(f"{found.rows} files and {found.objects} objects were compared.")
        for blob in found.missing:
            say(f"missing: {blob.tenant or NOBODY}/{blob.key}, {blob.size} bytes; its object is gone")
        for name in found.orphans:
            say(f"orphan:  {name}{', removed' if options.remove_orphans else ''}")
    return NOT_AS_WISHED if found.missing or (found.orphans and not options.remove_orphans) else DONE
