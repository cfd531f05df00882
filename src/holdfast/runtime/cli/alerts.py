"""`holdfast alerts`: what is open, and what was lately."""

from __future__ import annotations

from argparse import Namespace

import msgspec

from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli.command import DONE, add_command, add_group
from holdfast.runtime.cli.output import document, show_table
from holdfast.runtime.cli.parser import Commands, Parser, count
from holdfast.runtime.cli.table import Column
from holdfast.runtime.cli.times import ago

_COLUMNS = (
    Column("kind", whole=True),
    Column("cause", spare=True),
    Column("number"),
    Column("opened"),
    Column("told"),
    Column("over"),
)


def add(commands: Commands) -> None:
    about = "list the alerts that are open, and those that are over"
    parser, group = add_group(commands, "alerts", about=about, act=list_alerts)
    listing = add_command(group, "list", list_alerts, about="list the alerts, as `alerts` alone does")
    for each in (parser, listing):
        _limited(each)


def _limited(parser: Parser) -> None:
    parser.add_argument("--limit", type=count, default=100, help="how many at most (100)")


async def list_alerts(hf: Holdfast, options: Namespace) -> int:
    alerts = await hf.alerts.list(limit=options.limit)
    if options.json:
        document({"alerts": [msgspec.structs.asdict(each) for each in alerts]})
        return DONE
    now = await hf.store.now()
    rows = [
        [
            each.kind,
            each.cause,
            f"{each.number:,}",
            ago(each.opened_at, now),
            ago(each.told_at, now),
            None if each.ended_at is None else ago(each.ended_at, now),
        ]
        for each in alerts
    ]
    show_table(_COLUMNS, rows, nothing="No alert is open, and none was lately.")
    return DONE
