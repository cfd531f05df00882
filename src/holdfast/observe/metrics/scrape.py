"""One scrape: the numbers of all processes that share a folder, and the fleet's, which the database may be too slow for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from holdfast.jobs.counting import count_by
from holdfast.kernel.clock import timeout
from holdfast.kernel.errors import HoldfastError
from holdfast.kernel.telemetry import listen, note
from holdfast.observe.metrics import catalog as c
from holdfast.observe.metrics.families import Collector, Numbers, exposition
from holdfast.observe.metrics.fleet import Figures, figures
from holdfast.observe.metrics.folder import Folder
from holdfast.observe.metrics.jobs import JobCounts
from holdfast.observe.metrics.ledger import ledger
from holdfast.observe.metrics.notes import HEARD, heard
from holdfast.observe.metrics.settling import settle
from holdfast.store.ports import Store

_PATIENCE = 2.0  # seconds for the database, each time
_collectors: list[Collector] = []
_stop: Callable[[], None] | None = None


def begin() -> None:
    """Count in this process from now on."""
    global _stop  # noqa: PLW0603  one for each process
    if _stop is None:
        count_by(JobCounts())
        _stop = listen(heard, HEARD)
        ledger.begin()  # here, and not in the middle of the first job


def stop() -> None:
    """Count nothing any more."""
    global _stop  # noqa: PLW0603
    if _stop is not None:
        count_by(None)
        _stop()
        _stop = None


def collect_also(collector: Collector) -> None:
    """Show what this collects, too: a metric of prometheus-client, or a collector of your own."""
    if collector not in _collectors:
        _collectors.append(collector)


async def scrape(store: Store, accept: str) -> tuple[bytes, str]:
    """The text, and its type. Without the database, the numbers of the processes alone."""
    fleet = await _figures(store)
    return exposition(Numbers(await summed(store), fleet), _collectors, accept)


async def summed(store: Store) -> Mapping[str, float]:
    """Of all processes that share the folder; of this one alone without one."""
    if ledger.folder is None:
        return ledger.cells.read()
    folder = Folder(ledger.folder)
    try:
        async with timeout(_PATIENCE):
            await folder.tidy(partial(settle, store))
    except (TimeoutError, HoldfastError, OSError) as error:  # the next scrape goes on
        note("metrics.untidy", error=repr(error))
    return folder.read()


async def _figures(store: Store) -> Figures:
    try:
        async with timeout(_PATIENCE):
            found = await figures(store)
    except (TimeoutError, HoldfastError) as error:
        note("metrics.no_figures", error=repr(error))
        found = []
    return [*found, (c.FLEET_UP.name, [], float(bool(found)))]
