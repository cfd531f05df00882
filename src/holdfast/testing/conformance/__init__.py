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
from pathlib import Path

# pytest shows the values in a failed `assert` only of modules that it knew of before they were imported.
if (_pytest := sys.modules.get("pytest")) is not None:
    _parts = sorted(path.stem for path in Path(__file__).parent.glob("*.py"))
    _pytest.register_assert_rewrite(*(f"{__name__}.{name}" for name in _parts if name != "__init__"))

from holdfast.testing.conformance.alerts import AlertsConformance
from holdfast.testing.conformance.audit import AuditConformance
from holdfast.testing.conformance.blob_kit import BlobsHarness
from holdfast.testing.conformance.blob_rows import BlobRowsConformance
from holdfast.testing.conformance.blobs import BlobLinksConformance, BlobsConformance
from holdfast.testing.conformance.breakers import SharedGuardsConformance
from holdfast.testing.conformance.cache import CacheConformance, SharedCacheConformance
from holdfast.testing.conformance.calls import CallsConformance
from holdfast.testing.conformance.claims import ClaimsConformance
from holdfast.testing.conformance.dead import DeadConformance
from holdfast.testing.conformance.diagnosis import DiagnosisConformance
from holdfast.testing.conformance.doubts import DoubtsConformance
from holdfast.testing.conformance.ends import EndsConformance
from holdfast.testing.conformance.failing_statements import FailingStatementsConformance
from holdfast.testing.conformance.finding import CountingConformance, FindingConformance
from holdfast.testing.conformance.flags import FlagsConformance
from holdfast.testing.conformance.groups import GroupsConformance
from holdfast.testing.conformance.guards import GuardsConformance
from holdfast.testing.conformance.harness import Conformance, SharesGuards, SqliteHarness, StoreHarness
from holdfast.testing.conformance.held import HeldConformance
from holdfast.testing.conformance.history import HistoryConformance
from holdfast.testing.conformance.holds import HoldsConformance
from holdfast.testing.conformance.inbox import InboxConformance
from holdfast.testing.conformance.jobs import JobsConformance
from holdfast.testing.conformance.keys import KeysConformance
from holdfast.testing.conformance.leases import LeasesConformance
from holdfast.testing.conformance.looks import LooksConformance
from holdfast.testing.conformance.lost_answers import LostAnswersConformance, OneCommitConformance
from holdfast.testing.conformance.many import ManyConformance
from holdfast.testing.conformance.names import NamesConformance
from holdfast.testing.conformance.outbox import OutboxConformance
from holdfast.testing.conformance.pauses import DueOrderConformance, PausesConformance
from holdfast.testing.conformance.queues import QueuesConformance
from holdfast.testing.conformance.relaying import RelayingConformance
from holdfast.testing.conformance.replacing import ReplacingConformance
from holdfast.testing.conformance.saga_families import SagaFamiliesConformance
from holdfast.testing.conformance.saga_people import SagaPeopleConformance
from holdfast.testing.conformance.saga_waits import SagaWaitsConformance
from holdfast.testing.conformance.sagas import SagasConformance
from holdfast.testing.conformance.savepoints import SavepointsConformance
from holdfast.testing.conformance.schedules import SchedulesConformance
from holdfast.testing.conformance.schema import SchemaConformance
from holdfast.testing.conformance.snapshots import SnapshotsConformance
from holdfast.testing.conformance.steps import StepsConformance, UnknownConformance
from holdfast.testing.conformance.stories import StoriesConformance
from holdfast.testing.conformance.strays import StraysConformance
from holdfast.testing.conformance.transactions import TransactionsConformance
from holdfast.testing.conformance.transport import TransportConformance
from holdfast.testing.conformance.transport_faults import TransportFaultsConformance
from holdfast.testing.conformance.values import ValuesConformance
from holdfast.testing.conformance.versions import VersionsConformance
from holdfast.testing.conformance.view_generations import ViewGenerationsConformance
from holdfast.testing.conformance.views import ViewsConformance
from holdfast.testing.conformance.visits import SharedVisitsConformance, VisitsConformance
from holdfast.testing.conformance.wakeups import WakeupsConformance
from holdfast.testing.conformance.workers import WorkersConformance

__all__ = [
    "AlertsConformance",
    "AuditConformance",
    "BlobLinksConformance",
    "BlobRowsConformance",
    "BlobsConformance",
    "BlobsHarness",
    "CacheConformance",
    "CallsConformance",
    "ClaimsConformance",
    "Conformance",
    "CountingConformance",
    "DeadConformance",
    "DiagnosisConformance",
    "DoubtsConformance",
    "DueOrderConformance",
    "EndsConformance",
    "FailingStatementsConformance",
    "FindingConformance",
    "FlagsConformance",
    "GroupsConformance",
    "GuardsConformance",
    "HeldConformance",
    "HistoryConformance",
    "HoldsConformance",
    "InboxConformance",
    "JobsConformance",
    "KeysConformance",
    "LeasesConformance",
    "LooksConformance",
    "LostAnswersConformance",
    "ManyConformance",
    "NamesConformance",
    "OneCommitConformance",
    "OutboxConformance",
    "PausesConformance",
    "QueuesConformance",
    "RelayingConformance",
    "ReplacingConformance",
    "SagaFamiliesConformance",
    "SagaPeopleConformance",
    "SagaWaitsConformance",
    "SagasConformance",
    "SavepointsConformance",
    "SchedulesConformance",
    "SchemaConformance",
    "SharedCacheConformance",
    "SharedGuardsConformance",
    "SharedVisitsConformance",
    "SharesGuards",
    "SnapshotsConformance",
    "SqliteHarness",
    "StepsConformance",
    "StoreConformance",
    "StoreHarness",
    "StoriesConformance",
    "StraysConformance",
    "TransactionsConformance",
    "TransportConformance",
    "TransportFaultsConformance",
    "UnknownConformance",
    "ValuesConformance",
    "VersionsConformance",
    "ViewGenerationsConformance",
    "ViewsConformance",
    "VisitsConformance",
    "WakeupsConformance",
    "WorkersConformance",
]


class StoreConformance(
    JobsConformance,
    ClaimsConformance,
    HoldsConformance,
    HeldConformance,
    DeadConformance,
    SnapshotsConformance,
    StepsConformance,
    CallsConformance,
    StoriesConformance,
    LooksConformance,
    UnknownConformance,
    DoubtsConformance,
    EndsConformance,
    ReplacingConformance,
    WakeupsConformance,
    DueOrderConformance,
    PausesConformance,
    FindingConformance,
    CountingConformance,
    QueuesConformance,
    HistoryConformance,
    LeasesConformance,
    WorkersConformance,
    SchedulesConformance,
    KeysConformance,
    VisitsConformance,
    FlagsConformance,
    AlertsConformance,
    GuardsConformance,
    OutboxConformance,
    RelayingConformance,
    InboxConformance,
    GroupsConformance,
    StraysConformance,
    ViewsConformance,
    ViewGenerationsConformance,
    VersionsConformance,
    BlobRowsConformance,
    CacheConformance,
    SagasConformance,
    SagaWaitsConformance,
    SagaPeopleConformance,
    SagaFamiliesConformance,
    AuditConformance,
    DiagnosisConformance,
    ManyConformance,
    NamesConformance,
    LostAnswersConformance,
    OneCommitConformance,
    TransactionsConformance,
    FailingStatementsConformance,
    SavepointsConformance,
    ValuesConformance,
    SchemaConformance,
):
    """All of it."""
