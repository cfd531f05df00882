"""Random commands as tests: run a machine on a store, often enough for every run and more often when asked."""

from __future__ import annotations

import os
from math import inf

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from holdfast.testing.conformance.coordination_machine import CoordinationMachine
from holdfast.testing.conformance.guards_machine import GuardsMachine, SharedGuardsMachine
from holdfast.testing.conformance.harness import StoreHarness
from holdfast.testing.conformance.jobs_machine import JobsMachine
from holdfast.testing.conformance.store_machine import StoreMachine
from holdfast.testing.conformance.views_machine import ViewsMachine


class Compares:
    """The same commands in every run; HOLDFAST_TEST_DEEP=20 makes twenty times as many, and others each time."""

    examples = 30
    steps = 40
    shrink = False  # looking for the shortest list of commands that fails takes a slow database minutes

    def compare(
        self, machine: type[StoreMachine], harness: StoreHarness, *, share: float = 1.0, **traits: object
    ) -> None:
        deep = int(os.environ.get("HOLDFAST_TEST_DEEP", "0"))
        phases = [Phase.generate, *([Phase.shrink] if self.shrink else [])]
        run_state_machine_as_test(
            type(machine.__name__, (machine,), {"bench": harness, **traits}),
            settings=settings(
                max_examples=int(self.examples * share) * max(1, deep),
                stateful_step_count=self.steps,
                derandomize=not deep,
                database=None,
                deadline=None,
                phases=phases,
                suppress_health_check=list(HealthCheck),
            ),
        )


class MachineConformance(Compares):
    """For a store."""

    def test_random_jobs_are_answered_as_the_model_answers(self, harness: StoreHarness) -> None:
        self.compare(JobsMachine, harness)

    def test_random_leases_ticks_and_keys_are_answered_as_the_model_answers(
        self, harness: StoreHarness
    ) -> None:
        self.compare(CoordinationMachine, harness, share=0.5)

    def test_random_quota_and_breakers_are_answered_as_the_model_answers(self, harness: StoreHarness) -> None:
        self.compare(GuardsMachine, harness, share=0.5)

    def test_random_batches_of_views_are_answered_as_the_model_answers(self, harness: StoreHarness) -> None:
        self.compare(ViewsMachine, harness, share=0.25)


class SharedGuardsMachineConformance(Compares):
    """For what keeps only the shared part of `store.guards`."""

    counts = True  # generations go up by one
    grace = inf  # seconds after its end from which on a word or a permit is forgotten

    def test_random_shared_quota_and_breakers_are_answered_as_the_model_answers(
        self, harness: StoreHarness
    ) -> None:
        self.compare(SharedGuardsMachine, harness, counts=self.counts, grace=self.grace)
