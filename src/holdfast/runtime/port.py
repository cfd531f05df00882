"""The port of a worker: probes and metrics, for this process or, in a supervisor, for all of its processes."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from holdfast.jobs.working import Work
from holdfast.kernel.clock import monotonic
from holdfast.kernel.service import Periodic, Services
from holdfast.observe.metrics import catalog as c
from holdfast.observe.metrics.folder import Folder
from holdfast.observe.metrics.ledger import ledger
from holdfast.observe.metrics.route import Metrics
from holdfast.observe.metrics.scrape import begin
from holdfast.runtime.app import Holdfast
from holdfast.store.ports import HasPool
from holdfast.web.asgi import App, Receive, Scope, Send, path_of
from holdfast.web.probes.probes import Probes, probes_of
from holdfast.web.serving import Server, address

METRICS = "/metrics"
COUNTS = "HOLDFAST_SUPERVISOR_COUNTS"  # in a child's environment: it counts in the folder that it is told
_EVERY = 1.0  # seconds between looks at what is so now
STALLED = 30.0  # seconds after which a process of ours whose loop has not turned is not live
_LAST_TURN = f'["g","{c.LAST_TURN.name}"]'
_RUNNING = f'["g","{c.RUNNING.name}"]'


def has_metrics() -> bool:
    return find_spec("prometheus_client") is not None


class Port:
    """Its app. What it does not know is not there."""

    def __init__(self, probes: Probes, metrics: App | None) -> None:
        self._probes, self._metrics = probes, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_metrics = path_of(scope) == METRICS and self._metrics is not None
        app: App = self._metrics if is_metrics and self._metrics is not None else self._probes
        await app(scope, receive, send)


def served(hf: Holdfast, where: str) -> Server:
    """The server of this process, not started yet."""
    host, port = address(where)
    return Server(Port(probes_of(hf), Metrics(hf) if has_metrics() else None), host, port)


# --- what each process tells ---


def telling(hf: Holdfast) -> Services:
    """A service of a process that counts: it says how it is now."""
    begin()
    return Services([Periodic("metrics", lambda: _tell(hf), every=_EVERY)])


async def _tell(hf: Holdfast) -> None:
    work = hf.working()
    c.LAST_TURN.set(to=monotonic())
    c.PROCESSES.set(to=1)
    c.RUNNING.set(to=0 if work is None else work.jobs)
    if isinstance(hf.store, HasPool):
        use = hf.store.pool_use()
        c.POOL.set("used", to=use.used)
        c.POOL.set("allowed", to=use.allowed)
        c.POOL_WAITING.set(to=use.waiting)


# --- the supervisor ---


@contextmanager
def folder_for_all() -> Generator[Path, None, None]:
    """Where all processes of a supervisor keep their numbers, and it as well."""
    with tempfile.TemporaryDirectory(prefix="holdfast-metrics-") as name:
        folder = Path(name)
        ledger.keep_in(folder)
        yield folder


def work_in(folder: Path, expected: int) -> Work:
    """What the processes that live have told."""
    living = [each for each in Folder(folder).living() if _LAST_TURN in each]
    now = monotonic()
    silent = max((now - each[_LAST_TURN] for each in living), default=0.0)
    stalled = f"a process of the worker has stood still for {silent:.0f} s" if silent > STALLED else None
    return Work(
        running=bool(living) and stalled is None,
        jobs=int(sum(each.get(_RUNNING, 0.0) for each in living)),
        processes=len(living),
        trouble=None if len(living) >= expected else f"{len(living)} of {expected} processes run",
        stalled=stalled,
    )
