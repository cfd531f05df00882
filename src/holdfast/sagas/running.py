"""The running saga, as its function sees it: steps, waits, other sagas, and many of them at once."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable
from typing import Any, Protocol

from holdfast.events.event import AnyEvent
from holdfast.events.patterns import check_type
from holdfast.guards.backoff import Backoff
from holdfast.guards.guard import Guard, Keyed
from holdfast.jobs.attempt import Attempt
from holdfast.jobs.calls import Call, refuse_inside
from holdfast.jobs.control import Suspended
from holdfast.jobs.effects import KEY_TTL, SETTLE, Manner, Policy
from holdfast.kernel.awaits import Args, must_await
from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_name, check_seconds
from holdfast.kernel.show import show
from holdfast.kernel.spawn import over, start
from holdfast.sagas.log import SagaLog
from holdfast.sagas.plans import Plan, Undo, arguments
from holdfast.sagas.script import Script
from holdfast.sagas.stepping import SagaEffect, plain_step
from holdfast.sagas.stops import Stops, branch, together
from holdfast.sagas.waits import Waits
from holdfast.store.ports import Store
from holdfast.store.saga_records import Move, NewSaga, SagaState, Wait
from holdfast.store.saga_verdicts import UNDO, WAIT

_LONGEST = 400  # bytes of a step's name: that of its undo is longer
_LONGEST_ID = 480  # bytes of a child's: one that a person lets run anew has a longer one
_SHOWN_OF_ID = 200  # bytes of its parent's that stand in a shorter one


def _name_of_child(args: Args) -> str | None:
    return getattr(args[1], "name", None) if len(args) > 1 else None


class Startable(Protocol):
    """A saga that was declared: `@hf.saga(…)`."""

    name: str
    returns: Any  # the type of its result

    def new(self, args: tuple[Any, ...], *, id: str | None, parent: str | None = None) -> NewSaga: ...  # noqa: A002


class RunningSaga:
    """What the function of a saga gets as its first parameter.

    All that it does in the world, it does in steps: what stands between them runs again whenever the saga goes on after a
    wait or a crash, and must come to the same steps.
    """

    def __init__(self, attempt: Attempt, log: SagaLog, store: Store, script: Script, stops: Stops) -> None:
        self._attempt, self._steps, self._log, self._script = attempt, stops.steps, log, script
        self._stops = stops
        self._waits = Waits(stops.steps, log, store)
        self._numbers = Counter[str]()  # of waits and gathers, by their names

    @property
    def id(self) -> str:
        return self._log.record.id

    @property
    def name(self) -> str:
        return self._log.record.name

    def key_for(self, name: str) -> str:
        """A key for another side that accepts them: the same in every run of this saga, and in no other."""
        return self._attempt.key_for(name)

    # --- steps ---

    @must_await("saga.step")
    async def step(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        undo: Callable[..., Any] | Undo | None = None,
        retry: Backoff | None = None,
        guard: Guard[Any] | Keyed[Any] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  an option of the step
        pivot: bool = False,
        policy: Policy | None = None,
        reconcile: Callable[..., Any] | None = None,
        not_done: tuple[type[Exception], ...] = (),
        settle: float = SETTLE,
        key_ttl: float = KEY_TTL,
    ) -> Any:
        """Call the function, unless an earlier run has recorded its result: then that is returned.

        `undo` is how it is undone when the saga fails later, or the step itself does: `Undo(function, *args)`, or a
        function that is given the step's result, None when nobody has it. It is stored before the call, and may be called
        although nothing was done. After a step with `pivot=True` there is no way back. When nobody knows whether the step
        was done, it is called again (`policy="at_least_once"`, the default), or treated as `policy` says; `reconcile`,
        `not_done`, `settle` and `key_ttl` are those of `job.effect`. It fails for good when `retry` is exhausted: by default
        at its first failure.
        """
        self._check_name(name)
        self._stops.check_goes_on(name)
        call = Call(
            self._guarded(function, guard),
            args,
            retry=retry,
            limit=self._limit(timeout),
            threads=self._attempt.threads,
        )
        is_plain = undo is None and not pivot and policy is None and reconcile is None and not not_done
        try:
            if is_plain:
                return await plain_step(self._steps, name, call)
            manner = Manner.of(
                policy=policy or "at_least_once",
                reconcile=reconcile,
                not_done=not_done,
                settle=settle,
                key_ttl=key_ttl,
            )
            plan = self._plan(name, function, args, undo, manner, pivot=pivot)
            effect = SagaEffect(
                self._steps, call, manner, self._attempt.check_held, plan=plan, guarded=guard is not None
            )
            result = await effect.run(name)
        except Suspended as stop:
            raise self._stops.add(stop) from None
        if pivot and self._log.pivot is None:  # a person has said that it was done
            await self._log.move(Move(state=SagaState.RUNNING, pivot=name))
        return result

    def _check_name(self, name: str) -> None:
        refuse_inside(name)
        check_name("step", name)
        if name.startswith((UNDO, WAIT)) or len(name.encode()) > _LONGEST:
            raise UsageError(
                f"A step cannot be called {show(name)}: a name has at most {_LONGEST} bytes, and {UNDO!r} and {WAIT!r} are "
                "how the steps begin that undo and wait. Give it another name."
            )

    def _guarded(
        self, function: Callable[..., Any], guard: Guard[Any] | Keyed[Any] | None
    ) -> Callable[..., Any]:
        if guard is None:
            return function
        if not isinstance(guard, Guard | Keyed):
            raise UsageError(f"guard is what hf.guard(…) made, not {show(guard)}.")
        return _around(guard, function)

    def _limit(self, timeout: float | None) -> float | None:
        """No call goes on longer than its saga may."""
        left = None if self._log.pivot is not None else self._log.time_left
        if left is None:
            return timeout
        left = max(left, 0.001)
        return left if timeout is None else min(check_seconds("timeout", timeout, minimum=0.001), left)

    def _plan(
        self,
        name: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        undo: Callable[..., Any] | Undo | None,
        manner: Manner,
        *,
        pivot: bool,
    ) -> Plan:
        if undo is None and not pivot:
            return Plan()
        stored: dict[str, Any] = {"pivot": bool(pivot)}
        if isinstance(undo, Undo):
            stored["undo"] = self._script.name_of(undo.function, f"The undo of step {name!r}")
            stored["args"] = arguments(undo.args, f"The arguments of the undo of step {name!r}")
        elif undo is not None:
            if not callable(undo):
                raise UsageError(f"undo is a function, or Undo(function, *args); not {show(undo)}.")
            stored["undo"] = self._script.name_of(undo, f"The undo of step {name!r}")
            stored["does"] = self._known(function)
        if manner.reconcile is not None:
            stored["reconcile"] = self._script.name_of(manner.reconcile, f"reconcile of step {name!r}")
            stored["settle"] = manner.settle
            stored["call"] = arguments(args, f"The arguments of step {name!r}, which reconcile is given,")
        return Plan(**stored)

    def _known(self, function: Callable[..., Any]) -> str | None:
        try:
            return self._script.name_of(function, "")
        except UsageError:
            return None

    # --- waiting: without a slot, however long it takes ---

    @must_await("saga.sleep")
    async def sleep(self, seconds: float) -> None:
        """Go on after so many seconds, counted from when this was first asked."""
        name = self._next_wait("sleep")
        await self._suspending(self._waits.sleep(name, check_seconds("seconds", seconds)))

    @must_await("saga.signal")
    async def signal(self, name: str, *, timeout: float | None = None) -> Any:  # noqa: ASYNC109  an option of the wait
        """The value of the next signal of this name, sent by `run.signal(name, value)`; one that came early was kept.

        Raises TimeoutError after so many seconds without one.
        """
        place = self._next_wait(f"signal/{check_name('signal', name)}")
        return await self._suspending(self._waits.signal(place, name, _seconds(timeout)))

    async def _signal_or(self, name: str, timeout: float, late: Exception) -> Any:  # noqa: ASYNC109  an option of the wait
        """The same, and `late` is raised when its time is over; a signal that comes after that still counts."""
        place = self._next_wait(f"signal/{name}")
        return await self._suspending(self._waits.signal(place, name, timeout, late))

    @must_await("saga.wait_for")
    async def wait_for(
        self,
        type: str,  # noqa: A002  the word of events
        *,
        key: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  an option of the wait
    ) -> AnyEvent:
        """The next event of this type, and of this key when one is given. Those since the saga began count, once each.

        It is an event of this database's outbox, once it is published. Raises TimeoutError after so many seconds without one.
        """
        wait = Wait(kind="event", name=check_type(type), key=key)
        place = self._next_wait(f"event/{type}")
        found: AnyEvent = await self._suspending(self._waits.event(place, wait, _seconds(timeout)))
        return found

    @must_await("saga.run_child", name=_name_of_child)
    async def run_child(self, saga: Startable, /, *args: Any, id: str | None = None) -> Any:  # noqa: A002  the word of sagas
        """Start another saga, once, and wait for its result. It runs on any worker, beside others.

        Raises SagaUndone when it was undone. When this saga is undone, so is the other, unless that was started by someone
        else: `id` may name a saga that is there already.
        """
        if not callable(getattr(saga, "new", None)):
            raise UsageError(f"run_child takes what @hf.saga(…) made, and its arguments; not {show(saga)}.")
        place = self._next_wait(f"saga/{saga.name}")
        if id == self.id:
            raise UsageError(f"The saga {id!r} cannot wait for itself. Give the other an id of its own.")
        child = saga.new(args, id=self._id_below(place) if id is None else id, parent=self.id)
        return await self._suspending(self._waits.child(place, child, saga.returns))

    def _id_below(self, place: str) -> str:
        """Of the saga that this step starts: alike in every run, and short enough however deep it is."""
        whole = f"{self.id}/{place.removeprefix(WAIT)}"
        if len(whole.encode()) <= _LONGEST_ID:
            return whole
        begin = self.id.encode()[:_SHOWN_OF_ID].decode(errors="ignore")
        return f"{begin}/#{hashlib.sha256(whole.encode()).hexdigest()[:32]}"

    async def _suspending(self, wait: Awaitable[Any]) -> Any:
        try:
            return await wait
        except Suspended as stop:
            raise self._stops.add(stop) from None

    def _next_wait(self, kind: str) -> str:
        """The name of the next step of this branch that waits for this."""
        name = self._next(f"{WAIT}{branch.get()}{kind}")
        self._stops.check_goes_on(name)
        return name

    # --- many at once ---

    @must_await("saga.gather")
    async def gather(self, *works: Awaitable[Any]) -> list[Any]:
        """Steps, waits and other sagas side by side: their results in this order, when all of them have one.

        Each may be a coroutine with several steps of its own. All of them come to their ends, or to where they wait, before
        the first failure is raised.
        """
        for work in works:
            if not isawaitable(work):
                raise UsageError(
                    f"gather takes steps and coroutines, such as saga.step(…); not {show(work)}."
                )
        around = branch.get()
        label = f"{self._next(f'{around}gather')}"
        tasks = [
            start(self._beside(f"{label}.{place}/", work), name=label) for place, work in enumerate(works)
        ]
        try:
            await over(*tasks)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            await over(*tasks)
            raise
        errors = [error for task in tasks if (error := task.exception()) is not None]
        for error in sorted(errors, key=_urgency):
            if not isinstance(error, Suspended):
                raise error
        if stops := [error for error in errors if isinstance(error, Suspended)]:
            raise self._stops.add(together(stops))
        return [task.result() for task in tasks]

    async def _beside(self, name: str, work: Awaitable[Any]) -> Any:
        task = asyncio.current_task()
        assert task is not None
        branch.set(name)
        self._steps.branches.of(task, name)
        return await work

    # --- what all of it shares ---

    def _next(self, name: str) -> str:
        self._numbers[name] += 1
        return f"{name}/{self._numbers[name]}"

    def __repr__(self) -> str:
        return f"<RunningSaga {self.id} of {self.name}>"


def _urgency(error: BaseException) -> bool:
    """What ends programs comes before what failed."""
    return isinstance(error, Exception)


def _seconds(timeout: float | None) -> float | None:
    return None if timeout is None else check_seconds("timeout", timeout)


def _around(guard: Guard[Any] | Keyed[Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """The guard stands around the function itself: what a partial of it returns is what it says that it returns."""
    if isinstance(function, partial):
        return partial(_around(guard, function.func), *function.args, **function.keywords)
    return guard(function)
