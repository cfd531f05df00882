"""Draw it: calls and the fleet's rate against time above, the state of each process's breaker below."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

from bench.outage.provider import CAPACITY, DOWN, LENGTH

STEP = 0.5  # seconds of one bar
ANSWERS = {
    200: ("answered", "#55806e"),
    429: ("told to come later (429)", "#e0a458"),
    500: ("failed", "#b3392f"),
}
STATES = {"closed": "#cfe3d8", "open": "#b3392f", "half_open": "#e0a458"}


def draw(found: dict[str, Any], picture: Path) -> None:
    plt.rcParams.update({"font.size": 9, "font.family": "DejaVu Sans"})
    canvas, (rates, states) = plt.subplots(
        2, 1, figsize=(11, 5.6), sharex=True, height_ratios=[3.2, 1], gridspec_kw={"hspace": 0.12}
    )
    _bars(rates, found["calls"])
    _lines(rates, found["nodes"])
    _bands(states, found["nodes"])
    for axis in (rates, states):
        axis.axvspan(*DOWN, color="#f2e3e1", zorder=0)
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_xlim(0, LENGTH)
    canvas.suptitle(
        "One guard, three processes, a provider that takes 40 calls a second and fails for 8 s",
        x=0.09,
        ha="left",
    )
    canvas.savefig(picture, dpi=110, bbox_inches="tight")


def _bars(axis: Any, calls: list[list[float]]) -> None:
    places = [number * STEP for number in range(int(LENGTH / STEP))]
    below = [0.0] * len(places)
    for status, (label, colour) in ANSWERS.items():
        heights = [
            sum(at <= when < at + STEP and kind == status for when, kind in calls) / STEP for at in places
        ]
        axis.bar(places, heights, STEP * 0.92, bottom=below, align="edge", color=colour, label=label)
        below = [one + other for one, other in zip(below, heights, strict=True)]
    axis.axhline(CAPACITY, color="#57534e", linewidth=0.8, linestyle="--", label="what it can take")
    axis.set_ylabel("calls a second, all processes")


def _lines(axis: Any, nodes: list[list[list[Any]]]) -> None:
    for number, seen in enumerate(nodes):
        label = "the limiter's rate, as each process knows it" if number == 0 else None
        axis.plot(
            [each[0] for each in seen],
            [each[1] for each in seen],
            color="#33658a",
            linewidth=1.1,
            alpha=0.7,
            label=label,
        )
    axis.legend(frameon=False, loc="upper left", ncols=3, fontsize=8)
    axis.set_ylim(0, 95)


def _bands(axis: Any, nodes: list[list[list[Any]]]) -> None:
    for number, seen in enumerate(nodes):
        for (at, _, state), after in zip(seen, [*seen[1:], [LENGTH, 0, ""]], strict=True):
            axis.barh(number, after[0] - at, left=at, height=0.7, color=STATES[state])
    axis.set_yticks(range(len(nodes)), [f"process {number + 1}" for number in range(len(nodes))])
    axis.invert_yaxis()
    axis.set_xlabel("seconds")
    for state, colour in STATES.items():
        axis.barh(0, 0, color=colour, label=f"breaker {state.replace('_', '-')}")
    axis.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.42), ncols=3, fontsize=8)


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
