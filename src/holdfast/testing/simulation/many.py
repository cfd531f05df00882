"""Many seeds on many processes: results come back in the order of the seeds."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator

from holdfast.kernel.telemetry import silence
from holdfast.testing.simulation.kinds import KINDS, kind_of
from holdfast.testing.simulation.mutants import planted, schema_of
from holdfast.testing.simulation.simulate import Choices, Result, simulate
from holdfast.testing.simulation.template import Template, scratch, template

Task = tuple[int, str, bool]  # seed, kind, whether to run it twice
_one: Callable[[Task], Result]  # of a process in the pool


def run_many(
    seeds: Iterable[int],
    *,
    jobs: int,
    kind: str | None = None,
    mutant: str | None = None,
    twice_every: int = 50,
) -> Iterator[Result]:
    """Simulate each seed, of one kind or of all in turn; every so many of them twice, to compare the traces."""
    tasks = [
        (seed, kind or kind_of(seed), twice_every > 0 and seed % twice_every < len(KINDS)) for seed in seeds
    ]
    with scratch() as folder:
        if jobs == 1:
            yield from map(_simulator(folder, mutant), tasks)
            return
        # Those in the pool are ended, not asked: the folder is the parent's to remove.
        with multiprocessing.get_context("spawn").Pool(jobs, _start, (folder, mutant)) as pool:
            yield from pool.imap(_in_pool, tasks, chunksize=4)


def run_one(
    seed: int, choices: Choices, *, kind: str, mutant: str | None = None, story: bool = False
) -> Result:
    with template(schema_of(mutant)) as made, planted(mutant):
        return simulate(seed, made, choices, kind=kind, story=story)


def _start(folder: str, mutant: str | None) -> None:
    global _one  # noqa: PLW0603  one for each process, made once
    silence()  # also for what ends behind a simulation, when its remains are cleared away
    _one = _simulator(folder, mutant)


def _in_pool(task: Task) -> Result:
    return _one(task)


def _simulator(folder: str, mutant: str | None) -> Callable[[Task], Result]:
    made = Template(folder, schema_of(mutant))

    def one(task: Task) -> Result:
        seed, kind, twice = task
        with planted(mutant):
            result = simulate(seed, made, kind=kind)
            if twice and (again := simulate(seed, made, kind=kind)).trace != result.trace:
                raise AssertionError(
                    f"seed {seed} ({kind}) is not deterministic: {result.trace}, then {again.trace}"
                )
            return result

    return one
