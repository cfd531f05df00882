"""A store under Hypothesis, and how what it says is compared with what the model says."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, ClassVar, TypeVar

import msgspec
from hypothesis.stateful import RuleBasedStateMachine

from holdfast.store.ports import Store
from holdfast.store.records import JobRecord
from holdfast.store.states import OVER, Held
from holdfast.testing.conformance.harness import StoreHarness, event_loop

T = TypeVar("T")


class StoreMachine(RuleBasedStateMachine):
    """A store on an event loop of its own. A subclass sets the harness."""

    bench: ClassVar[StoreHarness]

    def __init__(self) -> None:
        super().__init__()
        self._loop = event_loop(self.bench)
        self._runner = self._loop.__enter__()
        self.store: Store = self.do(self.bench.open())

    def teardown(self) -> None:
        self.do(self.bench.close())
        self._loop.__exit__(None, None, None)

    def do(self, answer: Awaitable[T]) -> T:
        async def wait() -> T:
            return await answer

        return self._runner.run(wait())


def same(found: Any, expected: Any) -> None:
    """What the store says is what the model says."""
    if found == expected:
        return
    where = ""
    if isinstance(found, JobRecord) and isinstance(expected, JobRecord):
        where = f" on job {found.id}"
        found, expected = _differing(found, expected), _differing(expected, found)
    raise AssertionError(f"the store and the model differ{where}:\n  store: {found}\n  model: {expected}")


def _differing(record: JobRecord, other: JobRecord) -> dict[str, object]:
    names = (name for name in record.__struct_fields__ if getattr(record, name) != getattr(other, name))
    return {name: getattr(record, name) for name in names}


def known(record: JobRecord) -> JobRecord:
    """What a record promises in its state; the rest may be kept or not."""
    return msgspec.structs.replace(
        record,
        token=None,
        run_at=record.run_at if record.held is Held.TIME else None,
        strikes=0 if record.state in OVER else record.strikes,
        suspect=False if record.state in OVER else record.suspect,
        expires_at=None if record.state in OVER else record.expires_at,
        deadline=None if record.state in OVER else record.deadline,
    )
