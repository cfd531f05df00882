"""Say the figures: one table with ratios for people at a terminal, the same in markdown for the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.musts import Must
from bench.plan import FULL
from bench.schema.model import Figure

MEASURES = {
    "drain": "drain",
    "enqueue_one": "enqueue, one caller awaiting each commit",
    "enqueue_concurrent": "enqueue, 100 callers at once",
    "enqueue_bulk": "enqueue, 10,000 in one call",
    "steps": "steps of jobs with ten each, recorded",
    "latency_p50": "pickup latency, p50",
    "latency_p99": "pickup latency, p99",
    "memory_idle": "memory of an idle worker",
    "commit_p50": "the store's own commit, p50",
    "commit_p99": "the store's own commit, p99",
    "recovery": "after kill -9, runs again after",
    "events": "events, emitted until handled, a row at each end",
    "events_plain": "events, without rows",
    "emit_one": "emit with a row, one caller",
    "emit_concurrent": "emit with a row, 50 callers at once",
    "event_latency_p50": "from the commit until the handler, p50",
    "event_latency_p99": "from the commit until the handler, p99",
    "relay_memory": "memory that a relay gains while it publishes a backlog",
    "sagas": "sagas of five steps, each with its undo",
    "sagas_plain": "sagas of five steps, without undos",
    "sagas_started": "the same with undos, started by the processes that run them",
    "sleeping_begin": "sagas that fall asleep",
    "sleeping_each": "memory of the worker for each saga that sleeps",
    "sleeping_memory": "memory that a worker gains while 100,000 sagas sleep",
    "sleeping_wake": "until 100,000 sagas that wake at once are done",
    **{
        f"guard_{kind}{waiting}_{part}": f"{what}{', when the call waits' if waiting else ''}, {part}"
        for kind, what in (
            ("bare", "the bare call"),
            ("retry", "retry"),
            ("breaker", "breaker"),
            ("limiter", "limiter"),
            ("all", "everything"),
        )
        for waiting in ("", "_waiting")
        for part in ("p50", "p99")
    },
}
LESS_IS_BETTER = {"µs", "ms", "KB", "MB", "s"}
Row = tuple[str, str, str, str, str]


def rows(figures: Sequence[Figure]) -> Iterator[Row]:
    """Measure, store, system, figure, and how many times better Holdfast is."""
    ours = {(each.store, each.measure): each.rate for each in figures if each.system == "holdfast"}
    for measure in MEASURES:
        for store in (*FULL.stores, "nats", "memory"):
            found = [each for each in figures if (each.store, each.measure) == (store, measure)]
            for each in sorted(
                found, key=lambda each: each.rate if each.unit in LESS_IS_BETTER else -each.rate
            ):
                yield measure, store, each.system, _said(each), _times(each, ours)


def _said(figure: Figure) -> str:
    number = f"{figure.rate:,.0f}" if figure.unit not in LESS_IS_BETTER else f"{figure.rate:,.3g}"
    return f"{number} {figure.unit}"


def _times(figure: Figure, ours: dict[tuple[str, str], float]) -> str:
    """Against Holdfast on the same store; where it is not on Redis, against Holdfast on PostgreSQL."""
    own = ours.get((figure.store, figure.measure))
    if own is None and figure.store.startswith("redis"):
        own = ours.get(("postgres", figure.measure))
    if own is None or not own or not figure.rate or figure.system == "holdfast":
        return ""
    ratio = figure.rate / own if figure.unit in LESS_IS_BETTER else own / figure.rate
    return f"{ratio:,.2f} times" if ratio < 10 else f"{ratio:,.0f} times"


def verdict(must: Must) -> str:
    return {None: "not measured", True: "yes", False: "NO"}[must.holds]


def reached(must: Must) -> str:
    return "" if must.reached is None else f"{must.reached:,.2f}"


def markdown(figures: Sequence[Figure]) -> str:
    lines = ["| Measure | Store | System | Figure | Holdfast is better by |", "|---|---|---|--:|--:|"]
    last = ""
    for measure, store, system, figure, times in rows(figures):
        title, last = ("" if measure == last else MEASURES[measure]), measure
        name = f"**{system}**" if system == "holdfast" else system
        lines.append(f"| {title} | {store} | {name} | {figure} | {times} |")
    return "\n".join(lines)


def musts_markdown(musts: Sequence[Must]) -> str:
    lines = ["| Must | Reached | Holds |", "|---|--:|---|"]
    return "\n".join(lines + [f"| {must.what} | {reached(must)} | {verdict(must)} |" for must in musts])
