"""A few hundred seeds of all kinds on the real SQLite store, and those that found a bug before."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from holdfast.testing.simulation.kinds import KINDS
from holdfast.testing.simulation.simulate import simulate
from holdfast.testing.simulation.sometimes import ENOUGH, missing

REGRESSIONS = Path(__file__).with_name("regressions.txt")
PARTS = 5


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", KINDS)
def test_no_invariant_breaks_and_everything_was_seen(template, shared, kind, part):
    """In parts, which may run side by side; the last to end looks at what all have seen."""
    counts = Counter()
    for seed in range(part, ENOUGH[kind], PARTS):
        result = simulate(seed, template, kind=kind)
        assert result.violations == [], (
            f"python -m holdfast.testing.simulation --kind {kind} --seed {seed} --shrink"
        )
        counts.update(result.counts)
    seen = _seen_by_all(shared, kind, part, counts)
    assert seen is None or missing(seen, kind) == [], "what never happened proves nothing"


def _seen_by_all(folder, kind, part, counts):
    """None: another part has not ended yet, and will ask again."""
    unfinished = folder / f"unfinished-{kind}-{part}"
    unfinished.write_bytes(msgspec.json.encode(counts))
    unfinished.rename(folder / f"seen-{kind}-{part}")
    parts = list(folder.glob(f"seen-{kind}-*"))
    if len(parts) < PARTS:
        return None
    return sum((Counter(msgspec.json.decode(each.read_bytes())) for each in parts), Counter())


def _regressions():
    lines = (line.partition("#")[0].split() for line in REGRESSIONS.read_text("utf-8").splitlines())
    return [(line[0], int(line[1])) for line in lines if line]


@pytest.mark.parametrize(("kind", "seed"), _regressions())
def test_what_was_found_before_stays_fixed(template, kind, seed):
    assert simulate(seed, template, kind=kind).violations == []
