"""Which faults, how often, with how many processes: a whole run, and a short one for the test suite."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from chaos.faults.brokers import EventKills, EventZombies, OverNats, OverRedis
from chaos.faults.clocks import Clocks
from chaos.faults.deaths import CrashPoints, Kills
from chaos.faults.deploys import Deploys
from chaos.faults.disks import FullDisk
from chaos.faults.locks import HeldLock
from chaos.faults.pauses import Zombies
from chaos.faults.publications import Publications
from chaos.faults.servers import Backends, Pool, Postmaster, ReadOnly, Snapshot
from chaos.faults.storms import Storm
from chaos.faults.wires import CutAfterCommit, CutBeforeCommit, HangUp, SilentWire, SlowWire
from chaos.fleet import Size
from chaos.phase import Phase


class Plan(msgspec.Struct, frozen=True):
    size: Size
    phases: tuple[Phase, ...]

    def only(self, keys: Sequence[str]) -> Plan:
        if not keys:
            return self
        return Plan(self.size, tuple(phase for phase in self.phases if phase.key in keys))

    def each(self, count: int | None) -> Plan:
        """With so many injections in every phase."""
        if count is None:
            return self
        return Plan(self.size, tuple(msgspec.structs.replace(phase, count=count) for phase in self.phases))


WHOLE = Plan(
    Size(),
    (
        Phase(key="kills", fault=Kills, count=310, seconds=600),
        Phase(key="zombies", fault=Zombies, count=105, seconds=300),
        Phase(key="publications", fault=partial(Publications, 1000), count=100, seconds=300),
        Phase(key="event-kills", fault=EventKills, count=100, seconds=200),
        Phase(key="event-zombies", fault=EventZombies, count=50, seconds=150),
        Phase(key="redis", fault=OverRedis, count=100, seconds=200),
        Phase(key="nats", fault=OverNats, count=100, seconds=200),
        Phase(key="crash-points", fault=CrashPoints, count=44, seconds=180),
        Phase(key="storm", fault=Storm, count=60, seconds=120),
        Phase(key="deploys", fault=Deploys, count=6, seconds=90),
        Phase(key="held-lock", fault=HeldLock, count=8, seconds=90),
        Phase(key="full-disk", fault=FullDisk, count=8, seconds=90),
        Phase(key="slow-wire", fault=SlowWire, count=4, seconds=60),
        Phase(key="cut-before-commit", fault=CutBeforeCommit, count=100, seconds=60),
        Phase(key="cut-after-commit", fault=CutAfterCommit, count=100, seconds=60),
        Phase(key="hang-up", fault=HangUp, count=40, seconds=60),
        Phase(key="silent-wire", fault=SilentWire, count=5, seconds=90),
        Phase(key="postmaster", fault=Postmaster, count=8, seconds=90),
        Phase(key="backends", fault=Backends, count=500, seconds=30),
        Phase(key="read-only", fault=ReadOnly, count=8, seconds=60),
        Phase(key="pool", fault=Pool, count=8, seconds=60),
        Phase(key="snapshot", fault=Snapshot, count=2, seconds=60),
        Phase(key="clocks", fault=Clocks, count=12, seconds=40),
    ),
)
_FEW = Size(workers=2, supervisors=1, children=1, callers=1)
SHORT = Plan(
    _FEW,
    (
        Phase(key="kills", fault=Kills, count=3, seconds=15),
        Phase(key="zombies", fault=Zombies, count=2, seconds=15),
        Phase(key="redis", fault=OverRedis, count=3, seconds=15),
        Phase(key="cut-after-commit", fault=CutAfterCommit, count=5, seconds=10),
    ),
)
