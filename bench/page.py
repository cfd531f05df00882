"""Write docs/benchmarks.md: how it is measured, the figures of the last whole run, and where the time of a job goes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench import report
from bench.musts import Must, event_musts, guard_musts, musts, saga_musts
from bench.profile.parts import ORDER
from bench.schema import report as file
from bench.schema.model import Figure
from bench.systems import PEERS

LEFT_OUT = "left-out.txt"  # beside the figures: what could not be measured, and why
_HOW = """\
# Benchmarks

Made by `make bench`; do not edit by hand. Ratios count here, not absolutes: all systems run on one machine, in one run, in
turns, so that a ratio survives another machine.

## How it is measured

- **The work.** Jobs that do nothing, with about 100 bytes of arguments. Every job is counted; nothing is sampled.
- **Durability.** PostgreSQL as installed (fsync and synchronous_commit on), SQLite with `synchronous=FULL` for Holdfast and
  for the limit, on a real disk. Redis stands as it comes, without an append-only file: its peers may lose what they have
  acknowledged, and it is to their advantage. `FULL=1` also measures them with `appendfsync always`.
- **The limit** is what the store itself can do through the same driver: a row inserted and committed; a bulk load (COPY);
  claiming a batch of rows and deleting it, with 2 connections and 500 rows on PostgreSQL, 1 process and 100 rows on SQLite.
- **drain.** The queue is filled, then 2 worker processes are started (SQLite: 1; huey on Redis has 4, which is its best). The
  clock starts when every process has run a job, and what was done before does not count. It ends when the store says that
  nothing is left; for peers on Redis, when the last job has run. The number of jobs follows the system's speed, so that a run
  takes 3 to 10 seconds. Each peer has the configuration in which it was found fastest.
- **enqueue.** One caller awaiting each commit; 100 callers at once in one process (as tasks, or as threads where the library
  blocks); 10,000 jobs in one call (1,000 for DBOS and Celery, which have no bulk call of their own).
- **Pickup latency.** From before the call that enqueues until the handler starts, one idle worker in another process, jobs 20
  to 40 ms apart. arq looks every 10 ms instead of every 500, DBOS every 50 ms instead of every second.
- **Memory.** The resident size of the largest process of an idle worker that has run a few jobs.
- **Recovery** (peers only with `FULL=1`). A worker is killed with SIGKILL in the middle of a job and started again, with default settings.

Holdfast and the limit are measured before and after the peers of each measure; the figure is the median. What a peer's program
looks like stands in `bench/peers/`, one small file each; their versions are locked in `requirements/bench/`.
"""
_NOTHING = "No whole run has been made on a quiet machine yet. `make bench` makes one, in about 12 minutes.\n"
_WHY = """\
## What stands in the way of the rest

Measured on a disk that answers in 0.1 to 0.2 ms. On one that takes a millisecond or more, the first two are small beside it.

- **One caller on SQLite.** A call goes to the writer's thread and back: 71 µs for a bare hop between an event loop and a thread,
  97 with an empty transaction. The commit of a job writes its row, its id, its place in the queue and two counters: 190 µs, where one bare
  row takes 150. The arguments take 25, the statements 36. Writing on the event loop itself would save the hop, and stop everything
  else for as long as the disk takes.
- **One caller on PostgreSQL.** A row of 38 columns with 19 indexes takes the server 60 to 80 µs more than a bare one. Binding,
  checking and encoding take 47 µs before the call and 19 after it.
- **100 callers on SQLite.** About 45 µs of CPU for each call, of the caller, the event loop and the writer's thread, which share one
  interpreter; eight times the limit of one would leave 22.
- **Bulk on SQLite** is behind litequeue alone, which does not wait for the disk. In latency the two are about equal, and either may be ahead.
"""
_WHERE = """\
## Where the time of a job goes

CPU time of one worker process that drains no-op jobs, in µs for each job, by sampling on the CPU clock. The server's comes from
the kernel's count. Made by `make bench-profile`. Beside other work all of it grows by up to a fifth, and the shares stay.
"""


_GUARDS = """\
## Guards

What a guard adds to a call that does nothing, in µs; made by `make bench-guards`, and by `make bench` with the rest. Each library runs
in a process of its own, all in turns, ours first and last; each call is timed by itself, in turns with the bare one, and the figure is
what it takes more than the median of that. The p99 has the garbage collector in it. "Waits" is a call that waits for one turn of
the loop, as any call over a network does: only then must a timer be set for its timeout. *Everything* is timeout, deadline, retry,
breaker, limiter, bulkhead and fallback: one `Guard`; all parts of hyx; or a stack of two libraries with aiolimiter, `asyncio.Semaphore`,
`asyncio.timeout` and `try`. Alone, ours do more than what they are beside: the breaker has a sliding window and leased permits and the limiter
adapts, is safe for threads and gives back what is not used.
"""

_BUSY = 1.0  # load from which it is said that a run was not alone
_EVENTS = """\
## Events

From emit to handled, made by `make bench-events` in a quarter of an hour; rates and latency also by `make bench`. All systems of one measure run in one run, in turns; the figure is the median of three rounds
(latency and memory: one).

- **events.** 50 callers at once in one process; each writes a row of its own and emits, in one transaction of PostgreSQL. Workers
  in 2 processes (SQLite: 1) have a handler that writes one row. The clock runs from the first emit until the last handler's row is committed.
  The store in the table is what carries the events: PostgreSQL or SQLite themselves, Redis Streams or NATS JetStream.
- **Not the same promise.** With Holdfast the row and the event are one transaction (outbox), and so are the handler's row, the inbox and the
  job's success. FastStream and the raw clients have neither: the producer commits its row and then publishes, the handler commits
  its row and then acknowledges, by hand. A crash in between loses the event or handles it twice. *Without rows* there is no database at all.
- **The same brokers.** Valkey with an append-only file, `appendfsync everysec`, NATS JetStream with file storage as it comes: both
  acknowledge before the disk has it, for all alike.
- **The limit** is redis-py and nats-py, with one statement for each row; for *emit* asyncpg and APSW with two bare inserts in one transaction.
- **Latency.** From the commit of the caller's row until the handler begins, one worker, 300 events 20 to 40 ms apart.
- **Memory.** What the relay's process has at most while it publishes 1,000,000 waiting events, less what it had after 2,000.
"""
_EVENTS_WHY = """\
**Where the time of an event goes**, on PostgreSQL, from the server's log of statements and by sampling one worker that handles what was emitted
before. Times are of a busy machine; the order is what counts.

1. **The handler's commit waits for the disk**: 5 to 9 ms there, where all other statements of the event take about 1 ms together. Each
   event has a commit of its own, and a worker has as many at once as its pool has connections. `pool_size` in the URL gives more;
   handlers that take several events in one transaction would need fewer.
2. **Six trips to the server, one after the other**: begin (with the reset of what the last one left in the session), inbox, the handler's own, two
   that end a job with a key (its lock, with the settings for planning; its end with the turn of the next), and commit. They are most of the CPU
   time of the worker: to send costs more than to compute, for it wakes the server. It was ten before the turn was passed on in the statement that
   ends the job, and eight before the reset and the settings went with others.
3. **Ending the job** itself, 0.3 ms of the server: a row leaves one table for another, with all their indexes.

The relay and the consumer work in batches of 500, and are hardly seen: the script by which a reader on Redis takes messages, and all else that Redis
does, takes 25 µs of an event's 4 ms of CPU time. Latency at low load is a chain of transactions: emit, publish and
stamp, deliver, claim: a delivery in whose order nobody is has its turn as soon as it is stored. Each begins with the hint of the one before it, and nothing waits for a clock: what is late, is late by the disk.

**Emit on SQLite.** A caller's transaction goes to the writer's thread and back four times (begin, the row, the event, commit), 300 µs of CPU
where two bare inserts take 26, and has a commit of its own: it holds the only write lock until then, and 50 callers are no faster than one.
Two of them in one commit would be faster, and then a statement of one could roll back what the other was told. Without `tx` events share commits:
on a busy disk 50 callers emitted 3,900 in a second, where one had 300.
"""


_SAGAS = """\
## Sagas

Made by `make bench-sagas`, in about 10 minutes. All systems of one measure run in one run, in turns; the figure is the median of three
rounds (of those that sleep: one).

- **The work.** A function with five steps, each an async function that returns its number, and about 100 bytes of arguments. 2 worker
  processes (SQLite: 1) with room for 100 sagas each. The sagas are started before; the clock runs as for *drain*. *Started by the
  processes that run them*: 100 callers in each process, and the start counts too.
- **DBOS** has workflows and no undos: its saga is a workflow with the way back in its `except`, as its manual says. It runs on the same
  PostgreSQL with the same durability, from its queue with a concurrency of 100 and a look every 50 ms (1 s as it comes), or by
  `start_workflow_async`, each caller waiting for the result. Its steps are recorded when they are done.
- **With undos**, Holdfast commits how a step is undone before its call, and its result after it: ten commits for a saga. Without
  undos five, as DBOS. Commits of sagas that run at the same time are made together.
- **The limit** is what PostgreSQL through asyncpg and SQLite through APSW can do: 100 rows are claimed, written to a table of steps ten
  (five) times, one commit each time, and deleted.
- **Asleep.** One worker process; 100,000 sagas sleep for a day, and that day is then ended for all at once, in the database. Its memory is
  compared with what it had when the first 100 slept. Of DBOS 2,000 sleep, in the memory of their process; they cannot be woken from outside.
"""


def write(where: Path, results: Path) -> Path:
    where.mkdir(parents=True, exist_ok=True)
    page = where / "benchmarks.md"
    page.write_text(render(where, results))
    return page


def render(where: Path, results: Path) -> str:
    figures, missing = file.read(results / "peers.json"), results / LEFT_OUT
    left_out = missing.read_text().splitlines() if missing.exists() else []
    parts = [_HOW, "## Figures\n"]
    parts += [_figures(where, results, figures, left_out), _WHY] if figures else [_NOTHING]
    if (results / "guards.json").exists():
        parts.append(_guards(where, results, file.read(results / "guards.json")))
    if (results / "events.json").exists():
        parts.append(_events(where, results, file.read(results / "events.json")))
    if (results / "sagas.json").exists():
        parts.append(_sagas(where, results, file.read(results / "sagas.json")))
    profile = Path(__file__).parent / "results" / "profile.json"
    if profile.exists():
        parts.append(_profile(file.read(profile)))
    return "\n".join(parts)


def _figures(where: Path, results: Path, figures: Sequence[Figure], left_out: Sequence[str]) -> str:
    parts = []
    if (results / "peers.png").exists():
        parts.append(f"![Bars for each measure]({os.path.relpath(results / 'peers.png', where)})\n")
    parts += [
        report.musts_markdown(list(musts(figures))),
        "",
        report.markdown(figures),
        "",
        _versions(figures),
    ]
    if left_out:
        parts += ["\nLeft out in this run:\n", *(f"- {line}" for line in left_out)]
    return "\n".join([*parts, ""])


def _guards(where: Path, results: Path, found: Sequence[Figure]) -> str:
    parts = [_GUARDS]
    if (results / "guards.png").exists():
        parts.append(f"![What guards add to a call]({os.path.relpath(results / 'guards.png', where)})\n")
    versions = {
        each.system: each.config["version"]
        for each in found
        if "version" in each.config and "+" not in each.system
    }
    told = "Versions: " + ", ".join(f"{name} {version}" for name, version in sorted(versions.items())) + "."
    parts += [report.musts_markdown(list(guard_musts(found))), "", report.markdown(found), "", told, ""]
    return "\n".join(parts)


def _events(where: Path, results: Path, found: Sequence[Figure]) -> str:
    return "\n".join(
        [_EVENTS, _chapter(where, results / "events.png", found, event_musts(found)), _EVENTS_WHY]
    )


def _sagas(where: Path, results: Path, found: Sequence[Figure]) -> str:
    return "\n".join([_SAGAS, _chapter(where, results / "sagas.png", found, saga_musts(found))])


def _chapter(where: Path, picture: Path, found: Sequence[Figure], musts: Iterable[Must]) -> str:
    """What all chapters have that are measured by themselves."""
    parts = []
    if picture.exists():
        parts.append(f"![{picture.stem.capitalize()}]({os.path.relpath(picture, where)})\n")
    load = max((float(str(each.config.get("load", 0.0))) for each in found), default=0.0)
    if load > _BUSY:
        parts.append(
            f"**Other programs kept the machine busy** (load up to {load:.1f}): rounds of one system differ by up to {_spread(found):.1f} times, "
            "and ratios by as much. A figure above its limit is such a case.\n"
        )
    versions = {each.config["package"]: each.config["version"] for each in found if "version" in each.config}
    told = "Versions: " + ", ".join(f"{name} {version}" for name, version in sorted(versions.items())) + "."
    return "\n".join([*parts, report.musts_markdown(list(musts)), "", report.markdown(found), "", told, ""])


def _spread(found: Sequence[Figure]) -> float:
    """The best round of a system against its worst, where they differ most."""
    rounds = [each.config.get("values") for each in found]
    return max(
        (max(each) / min(each) for each in rounds if isinstance(each, list) and min(each)), default=1.0
    )


def _versions(figures: Sequence[Figure]) -> str:
    known = {
        each.system.split(" ")[0]: each.config["version"] for each in figures if "version" in each.config
    }
    drains = {(each.system, each.store): each.config for each in figures if each.measure == "drain"}
    lines = [
        f"{system.name} on {system.store}: {system.config}"
        for system in PEERS
        if (system.name, system.store) in drains
    ]
    return "Versions: " + ", ".join(f"{name} {version}" for name, version in sorted(known.items())) + ".\n\n" + "; ".join(
        lines
    ) + "."  # fmt: skip


def _profile(found: Sequence[Figure]) -> str:
    stores = list(dict.fromkeys(each.store for each in found))
    parts: dict[str, dict[str, float]] = {}
    for each in sorted(found, key=lambda each: ORDER.index(str(each.config["part"]))):
        parts.setdefault(str(each.config["part"]), {})[each.store] = each.rate
    lines = [_WHERE, "| Part | " + " | ".join(stores) + " |", "|---|" + "--:|" * len(stores)]
    lines += [
        f"| {part} | "
        + " | ".join(f"{rates[store]:.1f}" if store in rates else "" for store in stores)
        + " |"
        for part, rates in parts.items()
    ]
    return "\n".join([*lines, ""])
