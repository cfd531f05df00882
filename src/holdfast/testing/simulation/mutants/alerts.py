"""Bugs in alerts: told beside their transaction, by a leader that is none any more, or of what was taken back."""
# ruff: noqa: SLF001  a planted function reaches what the true one reaches

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Any

from holdfast.fleet.leading import Leading
from holdfast.observe.alerts import changes
from holdfast.observe.alerts.watch import Watch
from holdfast.store.sqlite import alerts
from holdfast.store.sqlite.alerts import Alerts
from holdfast.store.sqlite.connection import Db
from holdfast.testing.simulation.mutants.planting import beside, mutant, replace

of_alerts = partial(mutant, kind="alerts")


@of_alerts("an alert is told beside its transaction")
def _told_beside(stack: ExitStack) -> None:
    """the messages are enqueued when the alert is kept, in a transaction of their own"""
    original = Watch.turn

    async def turn(self: Watch, lease: Any) -> bool:
        kept, tell = [], self._tell

        async def later(messages: Any, _: Any) -> None:
            kept.extend(messages)

        self._tell = later
        try:
            more = await original(self, lease)
        finally:
            self._tell = tell
        if kept:
            async with self._store.transaction() as tx:
                await tell(kept, tx)
        return more

    replace(stack, Watch, "turn", turn)


@of_alerts("a late leader tells")
def _a_late_leader_tells(stack: ExitStack) -> None:
    """who has stood still since its look tells what it saw, though another leads now"""
    original = Alerts.standing

    async def standing(self: Alerts, _lease: Any = None, *, tx: object | None = None) -> Any:
        return await original(self, None, tx=tx)

    replace(stack, Alerts, "standing", standing)
    replace(stack, Leading, "_must_lead", lambda _: None)


@of_alerts("an alert is raised beside its transaction")
def _raised_beside(stack: ExitStack) -> None:
    """what a program raises in its transaction is stored in one of its own, and stays when that is rolled back"""
    original = alerts.say

    def say(db: Db, *given: Any, **named: Any) -> None:
        beside(lambda own: original(own, *given, **named))(db)

    replace(stack, alerts, "say", say)


@of_alerts("what is over is forgotten")
def _over_is_forgotten(stack: ExitStack) -> None:
    """an alert that ends is ended in the database, and nobody is told"""
    original = changes._not_seen

    def not_seen(*given: Any) -> Any:
        row, _ = original(*given)
        return row, None

    replace(stack, changes, "_not_seen", not_seen)
