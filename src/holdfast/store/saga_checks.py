"""What the verbs of sagas are given, checked before any database sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_text
from holdfast.kernel.outcomes import RESULT_LIMIT
from holdfast.kernel.show import show
from holdfast.store.saga_records import Move, NewSaga, Rest, SagaState, Wait
from holdfast.store.steps import Step


def check_new(sagas: Any) -> tuple[NewSaga, ...]:
    if isinstance(sagas, str | Mapping) or not isinstance(sagas, Iterable):
        raise UsageError(f"Sagas to start come in a list, not {show(sagas)} ({type(sagas).__name__}).")
    copied = tuple(sagas)
    for each in copied:
        _check_kind("A saga to start is a NewSaga", NewSaga, each)
    return copied


def check_state(state: Any) -> SagaState | None:
    if state is None:
        return None
    if not isinstance(state, str) or state not in SagaState.__members__.values():
        raise UsageError(f"The state of a saga is one of {', '.join(SagaState)}; not {show(state)}.")
    return SagaState(state)


def check_value(value: Any) -> None:
    check_text("value", value, RESULT_LIMIT)


def check_step_if_given(step: Any) -> None:
    if step is not None:
        _check_kind("A step to keep is a Step", Step, step)


def check_move(move: Any) -> None:
    if move is not None:
        _check_kind("What becomes of a saga is a Move", Move, move)


def check_rest(rest: Any) -> None:
    if rest is not None:
        _check_kind("How long a saga rests is a Rest", Rest, rest)


def check_wait(wait: Any) -> None:
    _check_kind("What a step waits for is a Wait", Wait, wait)


def _check_kind(wanted: str, kind: type, value: Any) -> None:
    if not isinstance(value, kind):
        raise UsageError(f"{wanted}, not {show(value)} ({type(value).__name__}).")
