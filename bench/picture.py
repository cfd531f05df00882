"""Draw the figures as bars, one panel for each measure: python -m bench.picture FIGURES PICTURE.

Runs in an environment of its own, the only one with matplotlib.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter, NullFormatter

PANELS = {
    "drain": "Drain, jobs/s",
    "enqueue_one": "Enqueue, one caller awaiting each commit, jobs/s",
    "enqueue_concurrent": "Enqueue, 100 callers at once, jobs/s",
    "enqueue_bulk": "Enqueue in bulk, jobs/s",
    "steps": "Steps of jobs with ten each, steps/s",
    "latency_p50": "Pickup latency, median, ms (less is better)",
    "latency_p99": "Pickup latency, p99, ms (less is better)",
    "memory_idle": "Memory of an idle worker, MB (less is better)",
    "events": "Events, emitted until handled, a row at each end, events/s",
    "events_plain": "Events, without rows, events/s",
    "emit_one": "Emit with a row, one caller, events/s",
    "emit_concurrent": "Emit with a row, 50 callers at once, events/s",
    "event_latency_p50": "From the commit until the handler, median, ms (less is better)",
    "event_latency_p99": "From the commit until the handler, p99, ms (less is better)",
    "sagas": "Sagas of five steps, each with its undo, sagas/s",
    "sagas_plain": "Sagas of five steps, without undos, sagas/s",
    "sagas_started": "With undos, started by the processes that run them, sagas/s",
    "sleeping_begin": "Sagas that fall asleep, sagas/s",
    "sleeping_each": "Memory for each saga that sleeps, KB (less is better)",
    "sleeping_wake": "100,000 wake at once, until done, s (less is better)",
    "guard_retry_p50": "Retry, median, µs",
    "guard_breaker_p50": "Breaker, median, µs",
    "guard_limiter_p50": "Limiter, median, µs",
    "guard_all_p50": "Everything, median, µs",
    "guard_all_waiting_p50": "Everything, when the call waits, median, µs",
    "guard_all_waiting_p99": "Everything, when the call waits, p99, µs",
}
OF_GUARDS = "What a guard adds to a call, each measure in one run; logarithmic scales, less is better."
OF_EVENTS = "Events: Holdfast beside FastStream and the raw clients (limit), each measure in one run; logarithmic scales."
OF_SAGAS = "Sagas: Holdfast beside DBOS and what the store itself could do (limit), each measure in one run; logarithmic scales."
TITLE = (
    "Holdfast beside its peers, each measure in one run; logarithmic scales. "
    "Hatched: a job that was acknowledged may be lost with the power."
)
TITLES = {("guard_",): OF_GUARDS, ("event", "emit"): OF_EVENTS, ("sagas", "sleeping"): OF_SAGAS}
ORDER = ("postgres", "redis", "nats", "sqlite", "memory")
COLOURS = {
    "holdfast": "#c2410c",
    "limit": "#d6d3d1",
    "postgres": "#33658a",
    "redis": "#7a9cb8",
    "nats": "#8a7fb0",
    "sqlite": "#55806e",
    "memory": "#33658a",
}


def draw(figures: list[dict[str, Any]], picture: Path) -> None:
    panels = {measure: _bars(figures, measure) for measure in PANELS}
    shown = {measure: bars for measure, bars in panels.items() if bars}
    if not shown:
        sys.exit("There is nothing to draw.")
    pairs = [list(shown.items())[start : start + 2] for start in range(0, len(shown), 2)]
    heights = [0.9 + 0.23 * max(len(bars) for _, bars in pair) for pair in pairs]
    plt.rcParams.update({"font.size": 9, "font.family": "DejaVu Sans", "hatch.linewidth": 0.6})
    canvas, axes = plt.subplots(
        len(pairs), 2, figsize=(13, sum(heights) + 0.6), squeeze=False, height_ratios=heights
    )
    for row, pair in zip(axes, pairs, strict=True):
        for axis, (measure, bars) in zip(row, pair, strict=False):
            _panel(axis, PANELS[measure], bars)
        for axis in row[len(pair) :]:
            axis.axis("off")
    canvas.suptitle(_title(shown), fontsize=11, x=0.01, ha="left")
    canvas.tight_layout(rect=(0, 0, 1, 0.985), h_pad=2.0, w_pad=3.0)
    canvas.savefig(picture, dpi=110)


def _title(shown: Iterable[str]) -> str:
    for begins, title in TITLES.items():
        if all(measure.startswith(begins) for measure in shown):
            return title
    return TITLE


def _bars(figures: list[dict[str, Any]], measure: str) -> list[dict[str, Any]]:
    """By store, the best first within each."""
    found = [each for each in figures if each["measure"] == measure and each["store"] in ORDER]
    sign = -1 if all(each["unit"].endswith("/s") for each in found) else 1
    return sorted(found, key=lambda each: (ORDER.index(each["store"]), sign * each["rate"]))


def _name(bar: dict[str, Any]) -> str:
    return str(bar["system"]) if bar["store"] == "memory" else f"{bar['system']} · {bar['store']}"


def _panel(axis: Any, title: str, bars: list[dict[str, Any]]) -> None:
    rates = [max(bar["rate"], 1e-3) for bar in bars]
    colours = [COLOURS.get(bar["system"], COLOURS[bar["store"]]) for bar in bars]
    drawn = axis.barh(range(len(bars)), rates, color=colours, height=0.72)
    for shape, bar in zip(drawn, bars, strict=True):
        if not bar["config"].get("durable", True):
            shape.set(hatch="////", edgecolor="white")
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xlim(min(rates) / 3, max(rates) * 4)
    axis.set_yticks(range(len(bars)), [_name(bar) for bar in bars])
    for label, bar in zip(axis.get_yticklabels(), bars, strict=True):
        label.set_fontweight("bold" if bar["system"] == "holdfast" else "normal")
    for place, (rate, bar) in enumerate(zip(rates, bars, strict=True)):
        text = f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"
        axis.text(
            rate * 1.08,
            place,
            text,
            va="center",
            fontweight="bold" if bar["system"] == "holdfast" else "normal",
        )
    axis.invert_yaxis()
    axis.set_title(title, loc="left", fontweight="bold", fontsize=10)
    axis.grid(axis="x", color="#e7e5e4", linewidth=0.8)
    axis.set_axisbelow(True)
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.tick_params(axis="y", length=0)


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
