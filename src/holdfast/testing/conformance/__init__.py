"""One suite for every store: each test is named after a promise of docs/store.md.

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def harness(self, tmp_path):
            return MyHarness(tmp_path)

No plugin is needed: every test runs in an event loop of its own. `machine.MachineConformance` adds random commands,
compared with `model.Model`, and needs Hypothesis.
"""

from __future__ import annotations

import sys

# pytest shows the values in a failed `assert` only of modules that it knew of before they were imported.
if (_pytest := sys.modules.get("pytest")) is not None:
    _subjects = "jobs enqueue cancels claims finishes fencing reports rescues suspects races holds ordering concurrency tenants"
    _others = "dead steps doubts diagnosis queues history leases schedules keys quota breakers guards audit transactions wakeups names sagas lost_answers schema kit jobs_machine coordination_machine guards_model guards_machine"
    _pytest.register_assert_rewrite(*(f"{__name__}.{name}" for name in f"{_subjects} {_others}".split()))

from holdfast.testing.conformance.audit import AuditConformance
from holdfast.testing.conformance.breakers import SharedGuardsConformance
from holdfast.testing.conformance.claims import ClaimsConformance
from holdfast.testing.conformance.dead import DeadConformance
from holdfast.testing.conformance.diagnosis import DiagnosisConformance
from holdfast.testing.conformance.doubts import DoubtsConformance
from holdfast.testing.conformance.guards import GuardsConformance
from holdfast.testing.conformance.harness import Conformance, SharesGuards, SqliteHarness, StoreHarness
from holdfast.testing.conformance.history import HistoryConformance
from holdfast.testing.conformance.holds import HoldsConformance
from holdfast.testing.conformance.jobs import JobsConformance
from holdfast.testing.conformance.keys import KeysConformance
from holdfast.testing.conformance.leases import LeasesConformance
from holdfast.testing.conformance.lost_answers import LostAnswersConformance, OneCommitConformance
from holdfast.testing.conformance.names import NamesConformance
from holdfast.testing.conformance.queues import QueuesConformance
from holdfast.testing.conformance.sagas import SagasConformance
from holdfast.testing.conformance.schedules import SchedulesConformance
from holdfast.testing.conformance.schema import SchemaConformance
from holdfast.testing.conformance.steps import StepsConformance, UnknownConformance
from holdfast.testing.conformance.transactions import TransactionsConformance
from holdfast.testing.conformance.wakeups import WakeupsConformance

__all__ = [
    "AuditConformance",
    "ClaimsConformance",
    "Conformance",
    "DeadConformance",
    "DiagnosisConformance",
    "DoubtsConformance",
    "GuardsConformance",
    "HistoryConformance",
    "HoldsConformance",
    "JobsConformance",
    "KeysConformance",
    "LeasesConformance",
    "LostAnswersConformance",
    "NamesConformance",
    "OneCommitConformance",
    "QueuesConformance",
    "SagasConformance",
    "SchedulesConformance",
    "SchemaConformance",
    "SharedGuardsConformance",
    "SharesGuards",
    "SqliteHarness",
    "StepsConformance",
    "StoreConformance",
    "StoreHarness",
    "TransactionsConformance",
    "UnknownConformance",
    "WakeupsConformance",
]


class StoreConformance(
    JobsConformance,
    ClaimsConformance,
    HoldsConformance,
    DeadConformance,
    StepsConformance,
    UnknownConformance,
    DoubtsConformance,
    WakeupsConformance,
    QueuesConformance,
    HistoryConformance,
    LeasesConformance,
    SchedulesConformance,
    KeysConformance,
    GuardsConformance,
    SagasConformance,
    AuditConformance,
    DiagnosisConformance,
    NamesConformance,
    LostAnswersConformance,
    OneCommitConformance,
    TransactionsConformance,
    SchemaConformance,
):
    """All of it."""
