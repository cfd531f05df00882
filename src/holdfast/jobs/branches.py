"""What goes on beside a task, coroutines and threads: each is known by its first step, and there is no order between them."""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from holdfast.kernel.threads import is_over

HOME = ""  # the branch of the task itself


class Branches:
    def __init__(self, home: asyncio.Task[Any] | None) -> None:
        self._home = home or asyncio.current_task()  # the task's own coroutine
        self._names: WeakKeyDictionary[object, str] = (
            WeakKeyDictionary()
        )  # by coroutine's task or thread's work
        self._works: WeakValueDictionary[str, object] = WeakValueDictionary()  # the same by name

    def current(self, step: str) -> str:
        """Of the coroutine that asks for this step."""
        task = asyncio.current_task()
        return HOME if task is self._home or task is None else self.of(task, step)

    def of(self, work: object, step: str) -> str:
        branch = self._names.setdefault(work, step)
        self._works[branch] = work
        return branch

    def go_on(self, branch: str, step: str, by: str | None) -> None:
        """Who begins with a step that has failed in a branch goes on in its place: a later attempt goes straight through."""
        own = self.current(step) if by is None else by
        if own == step and branch not in (HOME, own):
            self._names[self._works[own]] = branch
            self._works[branch] = self._works.pop(own)

    def has_handled(self, branch: str, by: str) -> bool:
        """Whether who goes on has handled the failures of a branch: its own, and those of what it may have waited for.

        What a thread does for a pool that we do not know may have ended: the task itself has waited for it.
        """
        if branch in (HOME, by):
            return branch == by
        work = self._works.get(branch)
        return work is None or is_over(work) or (by == HOME and not isinstance(work, asyncio.Task))
