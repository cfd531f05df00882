"""What is measured: Holdfast, its peers, and what the stores can do by themselves (the limit)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from bench.place import BULK

STORES = ("postgres", "redis", "sqlite")


@dataclass(frozen=True)
class System:
    """One library on one store, in the configuration that serves it best."""

    name: str
    store: str
    module: str  # it runs in the system's own virtual environment
    environment: str | None = None  # under .bench; None: the one that runs this
    package: str | None = None  # whose version is told
    guess: int = 1_000  # jobs/s that a drain may reach: how many are queued for the first try
    config: str = ""  # of the drain, in words
    bulk: int = BULK  # jobs in one bulk call; 0: there is no such call
    durable: bool = True  # whether a job that was acknowledged survives the loss of power
    has_steps: bool = False  # whether a job can have steps whose results are recorded
    own_worker: bool = True  # False: the loop that runs jobs is ours
    broker: str = ""  # that carries events, where the store does not
    settings: dict[str, str] = field(default_factory=dict, hash=False)  # read by the module

    @property
    def key(self) -> tuple[str, str]:
        return self.name, self.store

    def on(self, store: str) -> System:
        """The same on another store, where a job that was acknowledged is on the disk."""
        return replace(self, store=store, durable=True)


def _peer(name: str, store: str, guess: int, config: str, **more: object) -> System:
    """A peer whose module and environment have its own name."""
    word = name.split(" ", maxsplit=1)[0].replace("-", "_")
    given: dict[str, object] = {
        "module": f"bench.peers.{word}",
        "environment": word,
        "package": name.split(" ", maxsplit=1)[0],
        **more,
    }
    durable = bool(given.pop("durable", store != "redis"))
    return System(name=name, store=store, guess=guess, config=config, durable=durable, **given)  # type: ignore[arg-type]


LIMITS = [
    System("limit", "postgres", "bench.limits", guess=70_000, config="claim 500, then delete; 2 connections"),
    System("limit", "sqlite", "bench.limits", guess=80_000, config="claim 100, then delete; 1 process"),
]
HOLDFAST = [
    System(
        "holdfast",
        "postgres",
        "bench.peers.holdfast",
        guess=20_000,
        config="2 processes, 100 slots",
        has_steps=True,
    ),
    System(
        "holdfast",
        "sqlite",
        "bench.peers.holdfast",
        guess=20_000,
        config="1 process, 100 slots",
        has_steps=True,
    ),
]
PEERS = [
    _peer("pgqueuer", "postgres", 15_000, "2 processes, batches of 500, uvloop"),
    _peer("procrastinate", "postgres", 480, "2 processes, concurrency 10"),
    _peer("dbos", "postgres", 400, "2 processes, concurrency 100, poll 50 ms", bulk=1_000,
          has_steps=True),
    _peer("saq", "postgres", 400, "2 processes, concurrency 50", bulk=0),
    _peer("huey", "redis", 4_200, "4 processes", bulk=0),
    _peer("dramatiq", "redis", 3_800, "2 processes, 8 threads, prefetch 64", bulk=0),
    _peer("taskiq", "redis", 3_800, "2 processes, streams", bulk=0),
    _peer("saq", "redis", 1_600, "2 processes, concurrency 50", bulk=0),
    _peer("celery", "redis", 1_300, "2 solo processes, prefetch 64", bulk=1_000),
    _peer("arq", "redis", 1_000, "2 processes, 100 jobs, poll 10 ms", bulk=0),
    _peer("rq", "redis", 280, "2 simple workers"),
    _peer("huey", "sqlite", 2_000, "1 thread, fsync", bulk=0, settings={"FSYNC": "1"}),
    _peer("huey (no fsync)", "sqlite", 3_000, "2 processes, no fsync", bulk=0, durable=False),
    _peer("persist-queue", "sqlite", 500, "1 process, get, run, ack", bulk=0, environment="lite", own_worker=False),
    _peer("litequeue", "sqlite", 5_000, "1 process, pop, run, done; no fsync", durable=False, environment="lite",
          own_worker=False),
]  # fmt: skip
