"""`holdfast locks`: who holds which lease now, and taking it away."""

from __future__ import annotations

from argparse import Namespace

import msgspec

from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli.command import DONE, NOT_AS_WISHED, actor, add_command, add_group
from holdfast.runtime.cli.output import complain, document, say, show_table
from holdfast.runtime.cli.parser import Commands, count
from holdfast.runtime.cli.table import Column
from holdfast.runtime.cli.times import cell

_COLUMNS = (Column("name", whole=True), Column("owner"), Column("token", right=True), Column("until"))


def add(commands: Commands) -> None:
    parser, group = add_group(
        commands, "locks", about="list the leases that are held; take one away", act=list_locks
    )
    parser.add_argument("--limit", type=count, default=100, help="at most so many (100)")
    add_command(group, "list", list_locks, about="list the leases, as `locks` alone does")
    stealing = add_command(
        group, "steal", steal, about="end someone's lease; its holder's writes are refused"
    )
    stealing.add_argument("name")
    stealing.add_argument("--reason", required=True, help="kept in the audit row")


async def list_locks(hf: Holdfast, options: Namespace) -> int:
    leases = await hf.store.leases.find(limit=options.limit)
    if options.json:
        document({"locks": [msgspec.structs.asdict(lease) for lease in leases]})
        return DONE
    now = await hf.store.now()
    rows = [[lease.name, lease.owner, lease.token, cell(lease.until, now)] for lease in leases]
    show_table(_COLUMNS, rows, nothing="No lease is held.")
    return DONE


async def steal(hf: Holdfast, options: Namespace) -> int:
    done = await hf.store.leases.steal(options.name, actor=actor(options), reason=options.reason)
    if options.json:
        document({"name": options.name, "done": done})
    elif done:
        say(f"{options.name} is free; what its holder still writes with the old token is refused.")
    else:
        complain(
            f"Nobody holds {options.name!r}; there is nothing to steal. `holdfast locks` lists what is held."
        )
    return DONE if done else NOT_AS_WISHED
