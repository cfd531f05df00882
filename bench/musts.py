"""The speed that must be reached, as ratios within one run; see the design's section on speed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bench.schema.model import Figure
from bench.systems import PEERS

_DURABLE = {system.key for system in PEERS if system.durable}
_WORKERS = {system.key for system in PEERS if system.own_worker}


@dataclass(frozen=True)
class Must:
    """One condition: what was reached, as a ratio where more is better, and what must be."""

    what: str
    wanted: float
    reached: float | None  # None: not measured in this run

    @property
    def holds(self) -> bool | None:
        return None if self.reached is None else self.reached >= self.wanted


class Table:
    """Figures by system, store and measure."""

    def __init__(self, figures: Sequence[Figure]) -> None:
        self._rates = {(each.system, each.store, each.measure): each.rate for each in figures}

    def rate(self, system: str, store: str, measure: str) -> float | None:
        return self._rates.get((system, store, measure))

    def peers(
        self, store: str, measure: str, fits: Callable[[tuple[str, str]], bool] = lambda _: True
    ) -> list[float]:
        return [
            rate
            for (system, there, what), rate in self._rates.items()
            if there == store and what == measure and system not in ("holdfast", "limit") and fits((system, there))
        ]  # fmt: skip

    def over(self, store: str, measure: str, base: float | None) -> float | None:
        """Holdfast's rate against a base."""
        ours = self.rate("holdfast", store, measure)
        return None if ours is None or not base else ours / base

    def over_limit(self, store: str, measure: str, of: str | None = None) -> float | None:
        return self.over(store, measure, self.rate("limit", store, of or measure))

    def over_best(self, store: str, measure: str, fits: Callable[[tuple[str, str]], bool] = lambda _: True,
                  elsewhere: str | None = None) -> float | None:  # fmt: skip
        return self.over(store, measure, max(self.peers(elsewhere or store, measure, fits), default=None))

    def under_best(self, store: str, measure: str) -> float | None:
        """Where less is better: the best peer's against ours."""
        ours, best = self.rate("holdfast", store, measure), min(self.peers(store, measure), default=None)
        return None if not ours or best is None else best / ours


def musts(figures: Sequence[Figure]) -> Iterator[Must]:
    table = Table(figures)
    yield from _drain_on_postgres(table)
    yield from _drain_on_sqlite(table)
    yield from _steps(table)
    for store in ("postgres", "sqlite"):
        yield Must(
            f"{store}: enqueue, one caller ≥ 0.8 of the limit", 0.8, table.over_limit(store, "enqueue_one")
        )
        many = table.over_limit(store, "enqueue_concurrent", of="enqueue_one")
        yield Must(f"{store}: enqueue, 100 callers ≥ 8 times the limit of one", 8.0, many)
        yield Must(f"{store}: bulk ahead of every peer", 1.0, table.over_best(store, "enqueue_bulk"))
        yield Must(f"{store}: bulk ≥ 0.3 of the limit", 0.3, table.over_limit(store, "enqueue_bulk"))
        for part in ("p50", "p99"):
            ahead = table.under_best(store, f"latency_{part}")
            yield Must(f"{store}: latency {part} ahead of every peer", 1.0, ahead)
        yield _memory(table, store)
        again = table.rate("holdfast", store, "recovery")
        yield Must(
            f"{store}: runs again within 35 s after kill -9",
            1.0,
            None if again is None else 35 / max(again, 0.1),
        )


def guard_musts(figures: Sequence[Figure]) -> Iterator[Must]:
    """Of guards, which are measured by themselves."""
    table = Table(figures)
    ours = table.rate("holdfast", "memory", "guard_all_p50")
    for what, kind in (("a call", "all"), ("a call that waits", "all_waiting")):
        ahead = table.under_best("memory", f"guard_{kind}_p50")
        yield Must(f"guards: all parts around {what} cost less than every stack of peers", 1.0, ahead)
    yield Must("guards: all parts add less than 15 µs", 1.0, None if not ours else 15 / ours)


def event_musts(figures: Sequence[Figure]) -> Iterator[Must]:
    """Of events, which are measured by themselves."""
    table = Table(figures)
    for store in ("redis", "nats"):
        reached = table.over(store, "events", table.rate("faststream", store, "events"))
        yield Must(
            f"events over {store}: ≥ 0.5 of FastStream, which has no outbox and no inbox", 0.5, reached
        )
    for store in ("postgres", "sqlite"):
        for measure, what in (("emit_one", "one caller"), ("emit_concurrent", "50 callers")):
            reached = table.over_limit(store, measure)
            yield Must(f"{store}: emit, {what} ≥ 0.5 of the limit", 0.5, reached)
    for store in ("postgres", "redis", "nats"):
        growth = table.rate("holdfast", store, "relay_memory")
        reached = None if growth is None else 50 / max(growth, 0.1)
        yield Must(
            f"relay to {store}: grows by less than 50 MB with a million events to publish", 1.0, reached
        )


def saga_musts(figures: Sequence[Figure]) -> Iterator[Must]:
    """Of sagas, which are measured by themselves."""
    table = Table(figures)
    for measure, what in (
        ("sagas", "of five steps with undos"),
        ("sagas_plain", "of five steps without undos"),
        ("sagas_started", "started where they run"),
    ):
        reached = table.over("postgres", measure, table.rate("dbos", "postgres", measure))
        yield Must(f"postgres: sagas {what} ahead of dbos", 1.0, reached)
    for store in ("postgres", "sqlite"):
        gained = table.rate("holdfast", store, "sleeping_memory")
        yield Must(
            f"{store}: a worker grows by less than 50 MB while 100,000 sagas sleep",
            1.0,
            None if gained is None else 50 / max(gained, 0.1),
        )


def _drain_on_postgres(table: Table) -> Iterator[Must]:
    for peer, wanted in (("pgqueuer", 1.3), ("procrastinate", 20.0), ("dbos", 20.0), ("saq", 20.0)):
        reached = table.over("postgres", "drain", table.rate(peer, "postgres", "drain"))
        yield Must(f"postgres: drain ≥ {wanted:g} times {peer}", wanted, reached)
    best = table.over_best("postgres", "drain", elsewhere="redis")
    yield Must("postgres: drain ≥ 3 times the best peer on Redis", 3.0, best)
    yield Must("postgres: drain ≥ 0.25 of the limit", 0.25, table.over_limit("postgres", "drain"))


def _steps(table: Table) -> Iterator[Must]:
    reached = table.over("postgres", "steps", table.rate("dbos", "postgres", "steps"))
    yield Must("postgres: steps ≥ 5 times dbos", 5.0, reached)


def _drain_on_sqlite(table: Table) -> Iterator[Must]:
    durable = table.over_best("sqlite", "drain", fits=_DURABLE.__contains__)
    others = table.over_best("sqlite", "drain", fits=lambda key: key not in _DURABLE)
    yield Must("sqlite: drain ≥ 5 times the best peer with fsync", 5.0, durable)
    yield Must("sqlite: drain ≥ 2 times the best peer without", 2.0, others)
    yield Must("sqlite: drain ≥ 0.2 of the limit", 0.2, table.over_limit("sqlite", "drain"))


def _memory(table: Table, store: str) -> Must:
    """Only the smallest peer, on any store, may be smaller. Those without a worker of their own have nothing to weigh."""
    ours = table.rate("holdfast", store, "memory_idle")
    sizes = sorted(
        size
        for each in ("postgres", "redis", "sqlite")
        for size in table.peers(each, "memory_idle", _WORKERS.__contains__)
    )
    reached = None if ours is None or len(sizes) < 2 else sizes[1] / ours
    return Must(f"{store}: an idle worker is smaller than every peer but the smallest", 1.0, reached)
