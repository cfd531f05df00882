"""What is measured on both stores, each as one function from a bench to figures. Designs take turns in every one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

from .model import Bench, Figure, Phase, Speed, Work, middle
from .noise import Patience, load


@dataclass(frozen=True)
class Size:
    """How much of everything: small for a quick look, full for the figures that decide."""

    repeats: int
    queued: dict[int, int]
    deep: int
    passed: int
    finished: int
    snapshot_seconds: float
    snapshot_queued: int


QUICK = Size(2, {100: 20_000, 500: 40_000}, 200_000, 200_000, 500_000, 10.0, 250_000)
FULL = Size(3, {10: 20_000, 100: 60_000, 500: 100_000}, 1_000_000, 1_000_000, 10_000_000, 60.0, 800_000)

SHALLOW = 10_000
ROUNDS = 5
Figures = Iterator[Figure]


@dataclass(frozen=True)
class Session:
    """A bench with its sizes, the patience for quiet, and a voice for progress."""

    bench: Bench
    size: Size
    patience: Patience
    say: Callable[[str], None]

    def figure(self, system: str, measure: str, speed: Speed, **config: object) -> Figure:
        config |= {"cpu_us_per_job": round(speed.cpu_us, 2), "load": load()}
        return Figure(system, self.bench.store, measure, round(speed.rate), config=config)


def rates(session: Session) -> Figures:
    """Finish-and-claim on a fresh table, by batch and processes."""
    names = session.bench.designs()
    for batch, queued in session.size.queued.items():
        for procs in (1, 2):
            work = Work(batch, procs)
            speeds = take_turns(session, names, lambda name: fresh(session, name, queued, work))  # noqa: B023
            for name in names:
                yield figure_of(
                    session, "finish_claim", name, speeds, batch=batch, procs=procs, queued=queued
                )


def take_turns(session: Session, names: list[str], run: Callable[[str], Speed]) -> dict[str, list[Speed]]:
    """Run every name once, then every name again: a slow minute of the machine then hits all of them."""
    speeds: dict[str, list[Speed]] = {name: [] for name in names}
    for turn in range(session.size.repeats):
        for name in names:
            session.say(f"{name}, turn {turn + 1}")
            session.patience.wait()
            speeds[name].append(run(name))
    return speeds


def fresh(session: Session, name: str, queued: int, work: Work) -> Speed:
    session.bench.create("fresh", name)
    session.bench.fill("fresh", queued)
    (speed,) = session.bench.drain("fresh", work)
    session.bench.drop("fresh")
    return speed


def figure_of(
    session: Session, measure: str, name: str, speeds: dict[str, list[Speed]], **config: object
) -> Figure:
    ratio = paired_ratio(speeds[name], speeds["limit"]) if "limit" in speeds else None
    values = [round(speed.rate) for speed in speeds[name]]
    return session.figure(name, measure, middle(speeds[name]), **config, of_limit=ratio, values=values)


def paired_ratio(speeds: list[Speed], bases: list[Speed]) -> float:
    """The median over turns of rate against base: both of a pair ran within the same seconds."""
    return round(median(s.rate / b.rate for s, b in zip(speeds, bases, strict=True)), 2)


def enqueues(session: Session) -> Figures:
    """What the same designs cost at the other end: bulk inserts of 500 rows a commit."""
    names = [name for name in session.bench.designs() if name != "limit-apart"]

    def run(name: str) -> Speed:
        session.bench.create("fresh", name)
        speed = session.bench.enqueue("fresh", 500, 60)
        session.bench.drop("fresh")
        return speed

    speeds = take_turns(session, names, run)
    for name in names:
        yield figure_of(session, "enqueue_bulk", name, speeds, batch=500)


def depth(session: Session) -> Figures:
    """10,000 queued against a million: the same number of jobs taken from the top of each."""
    bench = session.bench
    work = Work(100, phases=(Phase(jobs=SHALLOW),))
    for name in ("design-A", "design-C", "design-D"):
        for space, queued in (("shallow", SHALLOW), ("deep", session.size.deep)):
            session.say(f"{name}, filling {queued:,}")
            bench.create(space, name)
            bench.fill(space, queued)

        def run(space: str) -> Speed:
            (speed,) = bench.drain(space, work)
            bench.fill(space, SHALLOW)
            return speed

        rounds = [take_turns(session, ["shallow", "deep"], run) for _ in range(ROUNDS)]
        shallow, deep = ([speed for turn in rounds for speed in turn[space]] for space in ("shallow", "deep"))
        yield session.figure(name, "depth", middle(shallow), queued=SHALLOW, batch=100)
        kept = paired_ratio(deep, shallow)
        yield session.figure(
            name, "depth", middle(deep), queued=session.size.deep, batch=100, of_shallow=kept
        )
        bench.drop("shallow")
        bench.drop("deep")


def passed(session: Session) -> Figures:
    """Fill and drain over and over with nobody tidying up but the store itself."""
    bench, block = session.bench, session.size.passed // 20
    names = [name for name in bench.designs() if name != "limit-apart"]
    for name in names:
        bench.create(name, name)
    speeds: dict[str, list[Speed]] = {name: [] for name in names}
    for number in range(20):
        for name in names:
            session.say(f"{name}, block {number + 1} of 20")
            bench.fill(name, block, tidy=False)
            speeds[name] += bench.drain(name, Work(100))
    for name in names:
        first, last = middle(speeds[name][:4]), middle(speeds[name][-4:])
        kept = round(last.rate / first.rate, 2)
        config = {"batch": 100, "passed": session.size.passed, "bytes": bench.size(name)}
        yield session.figure(name, "passed", first, **config, when="first")
        yield session.figure(name, "passed", last, **config, when="last", of_first=kept)
        bench.drop(name)


def finished(session: Session) -> Figures:
    """Ten million finished rows kept: the same design with and without them, turn by turn."""
    bench = session.bench
    for name in ("design-A", "design-C", "design-D"):
        session.say(f"{name}, loading {session.size.finished:,} finished rows")
        bench.create("kept", name)
        bench.load_finished("kept", session.size.finished)
        bench.create("none", name)

        def run(space: str) -> Speed:
            bench.fill(space, 50_000)
            (speed,) = bench.drain(space, Work(100))
            return speed

        run("kept")
        speeds = take_turns(session, ["none", "kept"], run)
        ratio = paired_ratio(speeds["kept"], speeds["none"])
        yield session.figure(name, "finished_kept", middle(speeds["none"]), finished=0, batch=100)
        config = {"finished": session.size.finished, "batch": 100, "bytes": bench.size("kept")}
        yield session.figure(name, "finished_kept", middle(speeds["kept"]), **config, of_none=ratio)
        bench.drop("kept")
        bench.drop("none")


def snapshots(session: Session) -> Figures:
    """An idle snapshot stays open while jobs pass: full speed at the start, a steady pace, full speed at the end."""
    bench, seconds = session.bench, session.size.snapshot_seconds
    burst = Phase(jobs=60_000, seconds=seconds / 6)
    phases = (burst, Phase(seconds=seconds, pace=10_000), burst)
    marks = [True, False] if bench.store == "postgres" else [True]
    for name in bench.designs():
        for mark in marks if name.startswith("design") else [False]:
            session.say(f"{name}, snapshot held, {'with' if mark else 'without'} low-water mark")
            bench.create("held", name)
            bench.fill("held", session.size.snapshot_queued)
            with bench.snapshot("held"):
                start, _, end = bench.drain("held", Work(100, phases=phases, mark=mark))
                config = {"seconds": seconds, "mark": mark, "batch": 100, "bytes": bench.size("held")}
            yield session.figure(name, "snapshot_held", start, **config, when="start")
            kept = round(end.rate / start.rate, 3) if start.rate else 0.0
            yield session.figure(name, "snapshot_held", end, **config, when="end", of_start=kept)
            bench.drop("held")
