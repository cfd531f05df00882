"""The kinds of simulation: workers of our own that try the store's verbs, the production worker, guards, events, sagas, and alerts."""

from __future__ import annotations

from contextlib import nullcontext

import msgspec

from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.simulation import callers, plan
from holdfast.testing.simulation.alerts import node as alerts_node
from holdfast.testing.simulation.alerts import plan as alerts_plan
from holdfast.testing.simulation.events import caching
from holdfast.testing.simulation.events import end_state as events_end
from holdfast.testing.simulation.events import node as events_node
from holdfast.testing.simulation.events import plan as events_plan
from holdfast.testing.simulation.events.recorded import EventfulStore
from holdfast.testing.simulation.fleet import Fleet, Life, Workload
from holdfast.testing.simulation.guards import node as guards_node
from holdfast.testing.simulation.guards import plan as guards_plan
from holdfast.testing.simulation.guards.provider import Provider as GuardedProvider
from holdfast.testing.simulation.guards.watched import GuardedStore
from holdfast.testing.simulation.history import History
from holdfast.testing.simulation.plan import Plan
from holdfast.testing.simulation.replacing import with_replacing
from holdfast.testing.simulation.sagas import end_state as sagas_end
from holdfast.testing.simulation.sagas import node as sagas_node
from holdfast.testing.simulation.sagas import operator as sagas_operator
from holdfast.testing.simulation.sagas import plan as sagas_plan
from holdfast.testing.simulation.sagas.recorded import SagaStore
from holdfast.testing.simulation.scheduler import schedule
from holdfast.testing.simulation.service import node
from holdfast.testing.simulation.service import operator as service_operator
from holdfast.testing.simulation.service import plan as service_plan
from holdfast.testing.simulation.service.hurry import hurried
from holdfast.testing.simulation.service.provider import Provider
from holdfast.testing.simulation.service.recorded import RecordedStore
from holdfast.testing.simulation.service.supervisor import supervise
from holdfast.testing.simulation.stepping import is_stepping
from holdfast.testing.simulation.upkeep import operate, upkeep
from holdfast.testing.simulation.worker import work


def _open(path: str, _: History) -> SqliteStore:
    return SqliteStore(path, synchronous="OFF")


def _store_plan(seed: int) -> Plan:
    made = plan.make_plan(seed)
    ops = with_replacing(seed, made.ops, len(made.skews), made.queues[0])
    return msgspec.structs.replace(made, ops=ops, stepping=is_stepping(seed))


def _nothing(_: Life | Fleet) -> None:
    """It needs none."""


def _surroundings(fleet: Fleet) -> None:
    fleet.provider = Provider(fleet)
    supervise(fleet)


def _guarded_surroundings(fleet: Fleet) -> None:
    fleet.provider = GuardedProvider(fleet)


KINDS = {
    "store": Workload(
        plan=_store_plan,
        open=_open,
        furnish=_nothing,
        programs=(work, upkeep, schedule, operate),
        new_job=callers.new_job,
        beside=_nothing,
        hurried=nullcontext,
    ),
    "worker": Workload(
        plan=service_plan.make_plan,
        open=RecordedStore,
        furnish=node.furnish,
        programs=(node.serve, node.upgrade, service_operator.operate),
        new_job=node.new_job,
        beside=_surroundings,
        hurried=hurried,
    ),
    "guards": Workload(
        plan=guards_plan.make_plan,
        open=GuardedStore,
        furnish=guards_node.furnish,
        programs=(guards_node.serve, guards_node.call_often, guards_node.come_to_rest),
        new_job=guards_node.new_job,
        beside=_guarded_surroundings,
        hurried=hurried,
        calm=guards_node.REST + 1.0,
    ),
    "events": Workload(
        plan=events_plan.make_plan,
        open=EventfulStore,
        furnish=events_node.furnish,
        programs=(
            events_node.serve,
            events_node.upgrade,
            events_node.operate,
            caching.read_often,
            caching.change_often,
        ),
        new_job=events_node.new_job,
        beside=events_node.beside,
        hurried=hurried,
        calm=events_node.REST,
        pending=events_end.pending,
    ),
    "sagas": Workload(
        plan=sagas_plan.make_plan,
        open=SagaStore,
        furnish=sagas_node.furnish,
        programs=(sagas_node.serve, sagas_operator.operate),
        new_job=sagas_node.new_job,
        beside=sagas_node.beside,
        hurried=hurried,
        calm=sagas_operator.QUIET + 12.0,
        pending=sagas_end.pending,
    ),
    "alerts": Workload(
        plan=alerts_plan.make_plan,
        open=RecordedStore,
        furnish=alerts_node.furnish,
        programs=(alerts_node.serve,),
        new_job=alerts_node.new_job,
        beside=_nothing,
        hurried=hurried,
        calm=12.0,
        pending=alerts_node.pending,
    ),
}


def make_plan(seed: int, kind: str) -> Plan:
    return KINDS[kind].plan(seed)


def kind_of(seed: int) -> str:
    """Of a run of all kinds, mixed."""
    return tuple(KINDS)[seed % len(KINDS)]
