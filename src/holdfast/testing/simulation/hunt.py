"""The hunt for planted bugs: each must be found, and the first seed that finds it may be kept in a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from holdfast.testing.simulation.checkers import SURPRISE
from holdfast.testing.simulation.many import run_many
from holdfast.testing.simulation.mutants import MUTANTS
from holdfast.testing.simulation.simulate import Result


def hunt(seeds: range, *, jobs: int, kind: str | None = None, keep: Path | None = None) -> int:
    """Plant every bug in turn, and tell which seed found it, those that are kept first; 1 if one was not found."""
    names = [name for name, mutant in MUTANTS.items() if kind in (None, mutant.kind)]
    kept = known(keep) if keep is not None else {}
    found = {}
    for name in names:
        result = _first_failing(name, [kept[name]], 1) if name in kept else None
        result = result or _first_failing(name, seeds, jobs)
        if result is not None:
            found[name] = result.seed
        print(_told(name, result), flush=True)
    if keep is not None:
        _keep(keep, found)
    if survived := [name for name in names if name not in found]:
        print(f"{len(survived)} planted bugs were not found in {len(seeds)} seeds: {', '.join(survived)}")
        return 1
    print("All planted bugs were found.")
    return 0


def known(path: Path) -> dict[str, int]:
    """The seeds that are kept there, by the name of the bug."""
    return msgspec.json.decode(path.read_bytes(), type=dict[str, int]) if path.exists() else {}


def _keep(path: Path, found: dict[str, int]) -> None:
    seeds = {name: seed for name, seed in (known(path) | found).items() if name in MUTANTS}
    path.write_bytes(msgspec.json.format(msgspec.json.encode(seeds, order="sorted"), indent=2) + b"\n")


def _first_failing(mutant: str, seeds: Sequence[int], jobs: int) -> Result | None:
    results = run_many(seeds, jobs=jobs, kind=MUTANTS[mutant].kind, mutant=mutant, twice_every=0)
    return next((result for result in results if is_proof(result)), None)


# What Python raises where a planted function is not called as it was written: the rest of such a run is noise.
_UNFIT = re.compile(r"\b(TypeError|AttributeError|NameError|UnboundLocalError)\b")


def is_proof(found: Result) -> bool:
    """Whether a promise broke, and not the planting: an error that nobody expected proves nothing."""
    surprises = [each.text for each in found.violations if each.invariant == SURPRISE]
    return len(surprises) < len(found.violations) and not any(map(_UNFIT.search, surprises))


def _told(name: str, found: Result | None) -> str:
    if found is None:
        what = "SURVIVED, or no longer fits the code"
    else:
        broken = next(violation for violation in found.violations if violation.invariant != SURPRISE)
        what = f"seed {found.seed:>4}  {broken.invariant}"
    return f"  {name:{max(map(len, MUTANTS))}}  {what}   ({MUTANTS[name].breaks})"
