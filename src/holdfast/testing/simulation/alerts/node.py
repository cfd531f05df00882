"""What runs in each process: a worker that also looks for alerts, and a handler that writes down what it is told."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import apsw

from holdfast.kernel.clock import sleep
from holdfast.kernel.context import context
from holdfast.kernel.randomness import random
from holdfast.observe.alerts.alert import Alert
from holdfast.observe.alerts.settings import AlertSettings
from holdfast.runtime.alerting import ProgramAlerts
from holdfast.store.ports import Tx
from holdfast.store.records import NewJob
from holdfast.testing.simulation.alerts.spec import KIND, TOLD
from holdfast.testing.simulation.fleet import Fleet, Life
from holdfast.testing.simulation.plan import JobSpec, Op
from holdfast.testing.simulation.service.node import Program, leave_service, new_service
from holdfast.testing.simulation.service.tasks import Watch

SETTINGS = AlertSettings(every=0.7, calm=2.0)
_ROW = "INSERT INTO sim_row (op, kind, job_id) VALUES (0, 'alert', $1)"


class App(Program):
    """A program with alerts, as Holdfast wires it."""

    def __init__(self, life: Life) -> None:
        super().__init__(life)
        part: Any = SimpleNamespace(
            store=life.store, mail=None, task=self._task, _inside=SimpleNamespace(guards_elsewhere=None)
        )
        self.alerts = ProgramAlerts(part, SETTINGS)

        async def tell(alert: Alert, tx: Tx) -> None:
            """Somebody who is told late, and now and then not at all."""
            if random() < 0.2 and not life.fleet.healed:
                raise ConnectionError("nobody listens")
            await sleep(random() * 0.5)
            await tx.execute(_ROW, context().job_id)
            life.history.event(TOLD, (context().job_id, alert.id, alert.cause, alert.state))

        self.alerts.add(tell, None)
        self.hooks.use(Watch(life))
        self.service = new_service(life, self, self.alerts.services)

    def _task(self, **options: Any) -> Callable[[Any], Any]:
        return lambda function: self.registry.add(function, self.enqueuer, options)


def furnish(life: Life) -> None:
    life.app = App(life)
    life.leave = lambda: leave_service(life.app.service)


def new_job(_life: Life, _op: Op, _place: int, _spec: JobSpec) -> NewJob:
    raise AssertionError("callers of this kind raise alerts")


async def serve(life: Life) -> None:
    """The program."""
    if not life.process.draining:
        await life.app.service.start()


# --- what must still end ---

_SAID = "SELECT cause FROM holdfast_alert_cause"
_OPEN = "SELECT cause FROM holdfast_alert WHERE kind = ? AND ended_at IS NULL"


def pending(_: Fleet, watcher: apsw.Connection) -> list[str]:
    """What holds is told, and what does not is over."""
    said = {cause for (cause,) in watcher.execute(_SAID)}
    open_ones = {cause for (cause,) in watcher.execute(_OPEN, (KIND,))}
    untold = [f"nobody is told of {cause}" for cause in sorted(said - open_ones)]
    return untold + [f"the alert {cause} is not over" for cause in sorted(open_ones - said)]
