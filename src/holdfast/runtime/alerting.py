"""`hf.alerts` and `@hf.on_alert`: what is told, by a job of ours for each channel, enqueued in the transaction that keeps the alert."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

from holdfast.fleet.leading import TTL
from holdfast.guards.backoff import Backoff
from holdfast.jobs.blocking import inner
from holdfast.jobs.job import Job
from holdfast.jobs.options import moment, seconds
from holdfast.kernel.awaits import must_await_all
from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_name, check_seconds
from holdfast.kernel.service import Service
from holdfast.observe.alerts.alert import Alert
from holdfast.observe.alerts.handlers import Handler
from holdfast.observe.alerts.looking import Looker
from holdfast.observe.alerts.settings import AlertSettings
from holdfast.observe.alerts.watch import Watch
from holdfast.observe.alerts.webhook import post
from holdfast.runtime.inside import Inside
from holdfast.runtime.mailing import ProgramMail
from holdfast.store.alert_records import CAUSES, OF_HOLDFAST, AlertRecord, Kind
from holdfast.store.breakers import GuardRecord
from holdfast.store.ports import Store, Tx

QUEUE = "holdfast.alerts"  # of its own: what tells that a queue is stuck must not stand in it
SLOTS = 2
NOTICE = 3 * 86_400.0  # seconds before its end in which a credential is told as expiring
# Waits are drawn from 0 to the ceiling: with a minute on average, about 16 hours.
PATIENCE = Backoff(attempts=1_000, first=5.0, ceiling=120.0)
H = TypeVar("H", bound=Callable[..., Any])


class _Program(Protocol):
    """As much of Holdfast as this needs."""

    store: Store
    mail: ProgramMail
    _inside: Inside

    def task(self, /, **options: Any) -> Callable[[Any], Any]: ...


@must_await_all("hf.alerts")
class ProgramAlerts:
    """Say what a person should know of, and that it is over. Workers look for what Holdfast itself knows."""

    def __init__(self, program: _Program, settings: AlertSettings) -> None:
        self._program, self.settings = program, settings
        self._handlers: dict[str, Handler] = {}
        self._tasks: dict[str, Any] = {}  # by channel
        if settings.webhook is not None:
            self._declare_webhook(settings)
        if settings.mail:
            _check_mail(program.mail)

    # --- what programs say ---

    async def raise_(self, kind: str, cause: str, *, tx: Any = None) -> None:
        """A person should know of this, until `over`: told within seconds, once for each kind and cause, however often it is raised.

        Transactions that raise the same one wait for each other.
        """
        await self._program.store.alerts.say(_kind(kind), check_name("cause", cause), tx=inner(tx))

    async def over(self, kind: str, cause: str, *, tx: Any = None) -> bool:
        """It does not hold any more. False: it was not raised."""
        check_name("kind", kind)
        return await self._program.store.alerts.unsay(kind, check_name("cause", cause), tx=inner(tx))

    async def expires(
        self,
        cause: str,
        *,
        at: float | datetime | None,
        notice: float | timedelta = NOTICE,
        tx: Any = None,
    ) -> None:
        """When a credential ends, such as `expires("deviantart:user:7", at=…)`: told `notice` seconds before, unless a later end is said until then.

        What is said last counts; None: it does not end.
        """
        store, name, ahead = self._program.store, check_name("cause", cause), seconds(notice)
        check_seconds("notice", ahead)
        if at is None:
            await store.alerts.unsay(str(Kind.EXPIRING), name, tx=inner(tx))
            return
        end = check_seconds("at", moment(at))
        due = max(0.0, end - ahead)
        await store.alerts.say(str(Kind.EXPIRING), name, due=due, expires=end, tx=inner(tx))

    # --- whom it is told ---

    def add(self, function: Any, name: str | None) -> None:
        handler = Handler(function)
        channel = f"on_alert:{check_name('name', name or handler.name)}"
        there = self._handlers.get(channel)
        if there is not None and not there.is_same(handler):
            raise UsageError(
                f"Two on_alert handlers are called {channel.partition(':')[2]!r}: {there.where} and {handler.where}. Give one of them a "
                "name: @hf.on_alert(name=…)."
            )
        self._handlers[channel] = handler
        self._tasks[channel] = self._declared(channel, handler.as_task())

    def _declare_webhook(self, settings: AlertSettings) -> None:
        async def webhook(job: Job, alert: Alert, order: str) -> int:  # noqa: ARG001  its order is a template's
            return await post(settings, alert, job.id)

        self._tasks["webhook"] = self._declared("webhook", webhook)

    def _declared(self, channel: str, function: Any, **options: Any) -> Any:
        """The messages of one alert are told in order; one that is down repeats none of the others."""
        declare = self._program.task(
            name=f"holdfast.alerts.{channel}", queue=QUEUE, retry=PATIENCE, ordered="holdfast.alerts:{order}", **options
        )  # fmt: skip
        return declare(function)

    @property
    def is_active(self) -> bool:
        return bool(self._tasks or self.settings.mail)

    @property
    def channels(self) -> Sequence[str]:
        return (*self._tasks, *(("mail",) if self.settings.mail else ()))

    async def _tell(self, alerts: Sequence[Alert], tx: Tx) -> None:
        for channel, task in self._tasks.items():
            calls = [{"alert": alert, "order": f"{channel}:{alert.id}"} for alert in alerts]
            await task.options(tx=tx).enqueue_many(calls)
        if self.settings.mail:
            for alert in alerts:
                await self._program.mail.send(
                    to=self.settings.mail, subject=f"[alert] {alert.text}"[:200], text=_letter(alert), tx=tx
                )

    # --- what workers run ---

    def services(self, owner: str, lease: float) -> Sequence[Service]:
        if not self.is_active:
            return ()
        store = self._program.store
        looker = Looker(store, self.settings, self._guards)
        return (Watch(store, looker, self.settings, self._tell, owner=owner, ttl=min(TTL, lease)),)

    def queues(self, queues: Mapping[str, int]) -> Mapping[str, int]:
        """Those of a worker, with ours: what is told must not wait behind what it tells of."""
        return {QUEUE: SLOTS, **queues} if self._tasks else queues

    async def _guards(self) -> Sequence[GuardRecord]:
        """What people hold is in the database, wherever the guards meet."""
        inside = self._program._inside  # noqa: SLF001  hidden from programs
        records = await self._program.store.guards.find(limit=CAUSES + 1)
        if (elsewhere := inside.guards_elsewhere) is None:
            return records
        moment_ = await self._program.store.now()
        names = sorted({*inside.fleet.guards, *(each.name for each in records)})
        return [*records, *[await elsewhere.look(name, now=moment_) for name in names]]

    async def list(self, *, limit: int = 100) -> list[AlertRecord]:
        """Those that are open first, then those that are over, each newest first."""
        return await self._program.store.alerts.find(limit=limit)

    def __repr__(self) -> str:
        return f"Alerts({self.settings!r})"


def _kind(kind: str) -> str:
    if check_name("kind", kind) in OF_HOLDFAST:
        raise UsageError(
            f"Holdfast looks for {kind!r} by itself. Name yours differently; it has: {', '.join(sorted(OF_HOLDFAST))}."
        )
    return kind


def _check_mail(mail: ProgramMail) -> None:
    if mail.settings is None or mail.settings.sender is None:
        raise UsageError(
            "Alerts by mail need to know where mail goes, and who it is from: set HOLDFAST_MAIL_URL and HOLDFAST_MAIL_FROM, or say "
            "Holdfast(mail=MailSettings(url=…, sender=…))."
        )


def _letter(alert: Alert) -> str:
    lines = [alert.text, ""]
    lines += [f"{name}: {getattr(alert, name)}" for name in ("kind", "cause", "state", "number", "id")]
    return "\n".join([*lines, "", "See: holdfast alerts", ""])
