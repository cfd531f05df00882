"""`hf.session()`: SQLAlchemy's AsyncSession, in which a forgotten `await` is no success."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any

from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncSession

from holdfast.kernel.awaits import Awaits, around, must_await


class OwnSession(AsyncSession):
    """Raises NeverAwaited at a commit, and at the end of its block, for what was asked for and never awaited."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.awaits = awaits = Awaits()  # also of verbs with `tx=` this session
        # It hears of every commit: of `commit()`, and of the end of a block of `begin()` and `begin_nested()`.
        event.listen(self.sync_session, "before_commit", lambda _: awaits.check())

    async def __aexit__(
        self, type_: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        forgotten = self.awaits.at_end(well=type_ is None)
        await super().__aexit__(type_, value, traceback)
        if forgotten is not None:
            raise forgotten


def _noticed(name: str, verb: Callable[..., Any]) -> Callable[..., Any]:
    """In the session, and in the run or the step around: that may end without the end of a block."""
    notice = must_await(f"session.{name}", name=lambda _: None, to=lambda args, _: args[0].awaits)(verb)

    @functools.wraps(notice)
    def ask(self: OwnSession, *args: Any, **named: Any) -> Coroutine[Any, Any, Any]:
        work: Coroutine[Any, Any, Any] = notice(self, *args, **named)
        if (awaits := around()) is not None:
            awaits.add(work, f"session.{name}", None)
        return work

    return ask


for _name, _verb in [*vars(AsyncSession).items()]:
    if inspect.iscoroutinefunction(_verb) and not _name.startswith("_"):
        setattr(OwnSession, _name, _noticed(_name, _verb))
