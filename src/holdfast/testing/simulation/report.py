"""What a person reads: a failure with its reduced schedule and the command that replays it, and the tables."""

from __future__ import annotations

from collections import Counter

from holdfast.testing.simulation.kinds import make_plan
from holdfast.testing.simulation.simulate import Choices, Result
from holdfast.testing.simulation.sometimes import REQUIRED

PROGRAM = "python -m holdfast.testing.simulation"


def command(seed: int, kind: str, choices: Choices, mutant: str | None = None) -> str:
    words = [PROGRAM, "--kind", kind, "--seed", str(seed)]
    if choices.without_faults:
        words += ["--without-fault", ",".join(map(str, sorted(choices.without_faults)))]
    if choices.fifo_after is not None:
        words += ["--fifo-after", str(choices.fifo_after)]
    if mutant is not None:
        words += ["--mutant", f"'{mutant}'"]
    return " ".join(words)


def failure(result: Result, choices: Choices, mutant: str | None = None) -> str:
    faults = make_plan(result.seed, result.kind).without(choices.without_faults).faults
    lines = [
        f"Seed {result.seed} ({result.kind}) failed after {result.steps} steps, {result.ended:.0f} virtual seconds:"
    ]
    lines += [f"  {violation}" for violation in result.violations[:10]]
    if len(result.violations) > 10:
        lines.append(f"  … and {len(result.violations) - 10} more")
    lines += ["Its faults, as few as still break it:" if choices.without_faults else "Its faults:"]
    lines += [f"  {fault}" for fault in faults] or ["  none"]
    if choices.fifo_after is not None:
        lines.append(f"From step {choices.fifo_after} on the oldest callback runs first.")
    lines += ["Replay it:", f"  {command(result.seed, result.kind, choices, mutant)}"]
    return "\n".join(lines)


def sometimes(counts: Counter[str], kind: str) -> str:
    width = max(len(name) for names in REQUIRED.values() for name in names)
    return "\n".join(f"  {name:{width}} {counts[name]:>9,}" for name in REQUIRED[kind])
