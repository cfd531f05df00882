"""A saga that does not go on by itself: a person, or other code, is needed."""

from __future__ import annotations

from holdfast.store.saga_records import SagaState
from holdfast.store.steps import Step


class Stuck(Exception):
    """`steps` are written with that."""

    def __init__(
        self, state: SagaState, why: str, *, steps: list[Step] | None = None, undoing: bool = False
    ) -> None:
        super().__init__(why)
        self.state, self.steps, self.undoing = state, steps or [], undoing
