"""What became of each saga, as the ledger and the provider tell it. For the checkers of sagas."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.history import Event
from holdfast.testing.simulation.ledger import Entry, Fact
from holdfast.testing.simulation.sagas.provider import CALL, DID, UNDID, UNDO
from holdfast.testing.simulation.sagas.spec import Act, SagaSpec, Story, every

UNDO_STEP, WAIT_STEP = "undo/", "wait/"
OVER, STUCK, OPEN, KNOWN = (
    ("done", "undone"),
    ("needs_operator", "parked"),
    ("begun", "sought", "unknown"),
    ("done", "resolved"),
)


class Saga:
    """One id. What was pruned, and started again, is told as one."""

    def __init__(self, saga_id: str, acts: tuple[Act, ...]) -> None:
        self.id, self.acts = saga_id, acts
        self.rows: list[Fact] = []
        self.steps: dict[str, list[Entry]] = defaultdict(list)
        self.happened: dict[str, list[Event]] = defaultdict(list)  # at the provider, by step
        self.asked: list[Event] = []  # calls of steps and undos, as they begin

    @property
    def job(self) -> str:
        return str(self.rows[0]["job_id"])

    @property
    def parent(self) -> str | None:
        return None if self.rows[0]["parent"] is None else str(self.rows[0]["parent"])

    @property
    def state(self) -> str:
        """The last."""
        return str(self.rows[-1]["state"])

    def became(self, *states: str) -> Iterator[Fact]:
        """The rows that say so first, each time."""
        before = None
        for row in self.rows:
            if row["state"] in states and row["state"] != before:
                yield row
            before = row["state"]

    def at(self, step: int) -> Fact | None:
        """Its row as it was at this step of the simulation."""
        return next((row for row in reversed(self.rows) if row.step <= step), None)

    def last(self, name: str, step: int | None = None) -> Entry | None:
        """What was recorded last of a step, up to this step of the simulation."""
        return next((each for each in reversed(self.steps[name]) if step is None or each.step <= step), None)

    def is_there(self, name: str, step: int | None = None) -> bool:
        """Whether what a step does is there, at the provider."""
        found = [each for each in self.happened[name] if step is None or each.step <= step]
        return bool(found) and found[-1].verb == DID

    def begun_anew(self, step: int) -> float:
        """The first step after this one at which it was started again, because what was over had been pruned; or none ever."""
        starts = (row.step for row in self.rows if row.change == "INSERT" and row.step > step)
        return next(starts, math.inf)

    @property
    def decided(self) -> Fact | None:
        """When it was decided to undo it."""
        return next((row for row in self.rows if row["undoing"]), None)

    def own_acts(self) -> list[Act]:
        """Its steps and waits, without those of its children."""
        return every(self.acts, deep=False)


class Told:
    def __init__(self, run: Run) -> None:
        assert run.plan.story is not None
        self.run, self.story = run, run.plan.story
        acts = acts_of(self.story)
        self.sagas: dict[str, Saga] = {}
        self.by_number: dict[int, Saga] = {}
        by_job: dict[str, Saga] = {}
        for row in run.ledger.facts["saga"]:
            saga = self.sagas.setdefault(row["id"], Saga(row["id"], acts[row["id"]]))
            saga.rows.append(row)
            by_job[row["job_id"]] = self.by_number[row["seq"]] = saga
        for entry in run.ledger.of("step"):
            by_job[entry.id].steps[entry.name or ""].append(entry)
        self._hear()
        self.owners = _owners(run)

    def _hear(self) -> None:
        for event in self.run.history.events:
            if event.verb in (DID, UNDID):
                saga_id, _, step = event.data.rpartition("/")
                self.sagas[saga_id].happened[step].append(event)
            elif event.verb in (CALL, UNDO):
                self.sagas[event.data[0]].asked.append(event)

    def holds(self, saga: Saga, event: Event) -> bool:
        """Whether the process that does this holds the saga's job: a zombie's call is nobody's decision."""
        owner = None
        for step, now in self.owners[saga.job]:
            if step > event.step:
                break
            owner = now
        return owner == event.process

    def children(self, saga: Saga) -> list[Saga]:
        return [each for each in self.sagas.values() if each.parent == saga.id]


def told(run: Run) -> Told:
    if run.told is None:
        run.told = Told(run)
    found: Told = run.told
    return found


def acts_of(story: Story) -> dict[str, tuple[Act, ...]]:
    """By the id of the saga."""
    return {
        spec.id: spec.acts
        for root in story.sagas
        for spec in (root, *(_as_spec(act) for act in every(root.acts) if act.kind == "child"))
    }


def _as_spec(act: Act) -> SagaSpec:
    return SagaSpec(id=act.name, name="leg", acts=act.acts)


def _owners(run: Run) -> dict[str, list[tuple[int, str | None]]]:
    """For each job who holds it from which step on."""
    found: dict[str, list[tuple[int, str | None]]] = defaultdict(list)
    for job_id, entries in run.ledger.by_job.items():
        for entry in entries:
            found[job_id].append((entry.step, entry.owner if entry.state == "running" else None))
    return found


def insisted(acts: tuple[Act, ...]) -> Iterator[Act]:
    """The steps without which it is not done."""
    for act in acts:
        if act.catches:
            continue
        if act.kind == "step":
            yield act
        for branch in act.branches:
            yield from insisted(branch)


def read(text: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {} if text is None else msgspec.json.decode(text)
    return found
