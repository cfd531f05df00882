"""A guard: everything that stands around the calls to one dependency, and the ways to call through it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Collection, Coroutine
from functools import partial
from types import TracebackType
from typing import Any, Generic, Never, ParamSpec, TypedDict, TypeVar, Unpack, overload

from holdfast.guards.admission import Gates
from holdfast.guards.backoff import Backoff
from holdfast.guards.blocks import Block, Ending
from holdfast.guards.breaker import Breaker
from holdfast.guards.budget import Budget
from holdfast.guards.bulkhead import Bulkhead
from holdfast.guards.checks import check_callable, check_number, check_part
from holdfast.guards.entered import pop, push
from holdfast.guards.fallback import Degraded, Fallback
from holdfast.guards.faults import Classifier, Fault, check_faults
from holdfast.guards.faults import classify as by_default
from holdfast.guards.limiter import Limiter
from holdfast.guards.pipeline import Ask, Begun, Pipeline
from holdfast.guards.retry import Retries
from holdfast.guards.settings import Kept
from holdfast.guards.ways import IN_THREAD, ON_LOOP, finished, refuse_on_loop
from holdfast.kernel.awaits import around, by_context, is_async, must_await
from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_name, check_seconds
from holdfast.kernel.options import Named
from holdfast.kernel.places import place_of_caller
from holdfast.kernel.show import show

_LEAST = 1e-9  # that a call may cost
P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F")
D_co = TypeVar(
    "D_co", covariant=True
)  # what it may answer beside the call's own result: Degraded, or nothing


class Options(TypedDict, total=False):
    """The options of a guard."""

    timeout: float | None  # seconds for one attempt
    deadline: float | None  # seconds for all of it
    retry: Backoff | None
    budget: Budget | None  # for retries; one of its own, when not given
    breaker: Breaker | None
    limiter: Limiter | None
    bulkhead: Bulkhead | None
    classify: Classifier | None
    repeatable: bool  # False: what nobody knows the outcome of is not called again
    uncharged: (
        Collection[Fault] | None
    )  # with which a job that it guards is put off without a charged attempt


class Calls(Generic[D_co], metaclass=Named):
    """What a guard and `guard.keyed(…)` have in common: ways to call."""

    __slots__ = ("_ask", "_pipeline")

    def __init__(self, pipeline: Pipeline, ask: Ask) -> None:
        self._pipeline, self._ask = pipeline, ask

    def call(
        self, fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, T | D_co]:
        """`await guard.call(fn, *args)`: its result. Refused when no call was made; else the error of the last attempt."""
        work = self._pipeline.run(ON_LOOP, self._ask, partial(fn, *args, **kwargs))
        if (awaits := around()) is not None:
            awaits.add(work, "guard.call", self._pipeline.gates.name)
        return work

    def call_sync(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T | D_co:
        """`call` for plain functions in threads. They cannot be cut off: `timeout` only bounds what they call in turn."""
        refuse_on_loop("call_sync", "await guard.call(…)")
        result: T | D_co = finished(self._pipeline.run(IN_THREAD, self._ask, partial(fn, *args, **kwargs)))
        return result

    # --- answers that go on, such as a body that streams: whoever asked ends them ---

    def open(
        self, fn: Callable[[], Awaitable[T]], *, once: bool, discard: Callable[[Exception, float], Any]
    ) -> Coroutine[Any, Any, tuple[T, Ending] | D_co]:
        """`call`, and what its result still holds. `discard` hears of an error whose attempt is repeated, and how many seconds it has;
        `once`: none is."""
        return self._pipeline.run(ON_LOOP, self._ask.lasting(once=once, discard=discard), partial(fn))

    def open_sync(
        self, fn: Callable[[], T], *, once: bool, discard: Callable[[Exception, float], Any]
    ) -> tuple[T, Ending] | D_co:
        """`open`, for plain functions in threads."""
        refuse_on_loop("A sync client", "an async client")
        ask = self._ask.lasting(once=once, discard=discard)
        result: tuple[T, Ending] | D_co = finished(self._pipeline.run(IN_THREAD, ask, partial(fn)))
        return result

    # --- calls before which something must be written: who is refused has written nothing ---

    @property
    def key(self) -> str:
        """Of its limiter; empty: none."""
        return self._ask.key

    def begin(self, *, once: bool, longest: float) -> Coroutine[Any, Any, Begun]:
        """Admission now, after at most `longest` seconds, and the call a little later. `once`: it is not repeated."""
        return self._pipeline.begin(self._ask.single() if once else self._ask, longest)

    @overload
    def __call__(
        self, fn: Callable[P, Coroutine[Any, Any, T]], /
    ) -> Callable[P, Coroutine[Any, Any, T | D_co]]: ...
    @overload
    def __call__(self, fn: Callable[P, T], /) -> Callable[P, T | D_co]: ...
    def __call__(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """`@guard` above a function, `async def` or `def`: each call of it is guarded."""
        if _is_async(fn):

            @functools.wraps(fn)
            async def guarded(*args: Any, **kwargs: Any) -> Any:
                return await self._pipeline.run(ON_LOOP, self._ask, partial(fn, *args, **kwargs))

            verb = getattr(fn, "__name__", type(fn).__name__)
            return must_await(verb, name=lambda _: None, to=by_context)(guarded)

        @functools.wraps(fn)
        def guarded_sync(*args: Any, **kwargs: Any) -> Any:
            return self.call_sync(fn, *args, **kwargs)

        return guarded_sync

    # --- `async with guard:` is admission and deadline only ---

    async def __aenter__(self) -> None:
        push(self, await self._pipeline.enter(ON_LOOP, self._ask))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        block: Block = pop(self)
        await block.leave(kind, error, trace)

    def __enter__(self) -> None:
        refuse_on_loop("`with guard:`", "async with guard:")
        push(self, finished(self._pipeline.enter(IN_THREAD, self._ask)))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        block: Block = pop(self)
        block.over(error)


class Keyed(Calls[D_co]):
    """A guard, for one key of its limiter."""

    __slots__ = ("_guard",)

    def __init__(self, guard: Guard[D_co], pipeline: Pipeline, ask: Ask) -> None:
        super().__init__(pipeline, ask)
        self._guard = guard

    @property
    def guard(self) -> Guard[Any]:
        return self._guard


class Guard(Calls[D_co], metaclass=Kept):
    """Guards every call to one dependency: `await guard.call(fn, *args)`, `@guard`, or `async with guard:`.

    `timeout` is for one attempt, `deadline` for all of them and their waits, in seconds; both also bound guards inside.
    `retry` repeats transient and throttled faults, and unknown ones if the calls are `repeatable`. With a `fallback`
    the result is the call's own, or `Degraded`. `uncharged` are the faults with which a job behind it is put off without a
    charged attempt, up to 20 times; when it is not given, throttled ones are, as often as they come.
    """

    __slots__ = ("_name", "place", "settings", "uncharged")

    settings: dict[str, Any]  # its options, as they were given

    @overload
    def __init__(
        self: Guard[Never], name: str, *, fallback: None = None, **options: Unpack[Options]
    ) -> None: ...
    @overload
    def __init__(
        self: Guard[Degraded[F]],
        name: str,
        *,
        fallback: Callable[[Exception], Coroutine[Any, Any, F]] | Callable[[], Coroutine[Any, Any, F]],
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __init__(
        self: Guard[Degraded[F]],
        name: str,
        *,
        fallback: Fallback[F] | Callable[[Exception], F] | Callable[[], F],
        **options: Unpack[Options],
    ) -> None: ...
    def __init__(
        self,
        name: str,
        *,
        timeout: float | None = None,
        deadline: float | None = None,
        retry: Backoff | None = None,
        budget: Budget | None = None,
        breaker: Breaker | None = None,
        limiter: Limiter | None = None,
        bulkhead: Bulkhead | None = None,
        fallback: Any = None,
        classify: Classifier | None = None,
        repeatable: bool = True,
        uncharged: Collection[Fault] | None = None,
    ) -> None:
        self._name = check_name("guard", name)
        if classify is not None:
            check_callable("classify", classify)
        _check_repeatable(repeatable)
        timeout, deadline = _check_times(timeout, deadline)
        pipeline = Pipeline(
            _gates(self._name, breaker, limiter, bulkhead),
            timeout=timeout,
            deadline=deadline,
            retries=_retries(self._name, retry, budget),
            fallback=fallback if fallback is None or isinstance(fallback, Fallback) else Fallback(fallback),
            classify=classify or by_default,
        )
        super().__init__(pipeline, Ask("", 1.0, repeatable))
        self.place = place_of_caller()  # where it was declared
        self.uncharged = _check_uncharged(uncharged)

    def reset(self) -> None:
        """Forget what was seen: the breaker is closed, the limiter and the retries are as at the beginning."""
        self._pipeline.reset()

    @property
    def name(self) -> str:
        return self._name

    @property
    def guard(self) -> Guard[Any]:
        return self

    @property
    def answers_itself(self) -> bool:
        """Whether its fallback may answer instead of the call."""
        return self._pipeline.answers_itself

    @property
    def classify(self) -> Classifier:
        return self._pipeline.classify

    @property
    def gates(self) -> Gates:
        """What each attempt must pass."""
        return self._pipeline.gates

    @gates.setter
    def gates(self, gates: Gates) -> None:
        self._pipeline.gates = gates

    @property
    def breaker(self) -> Breaker | None:
        return self._pipeline.gates.breaker

    @property
    def limiter(self) -> Limiter | None:
        return self._pipeline.gates.limiter

    @property
    def bulkhead(self) -> Bulkhead | None:
        return self._pipeline.gates.bulkhead

    def keyed(
        self, *values: Any, cost: float = 1.0, repeatable: bool | None = None, **named: Any
    ) -> Keyed[D_co]:
        """This guard for one key: `guard.keyed(user_id).call(fn)`. `cost` is what a call takes of the limiter."""
        limiter = self._pipeline.gates.limiter
        if (values or named) and limiter is None:
            raise UsageError(
                f"Guard {self._name!r} has no limiter, so a key has no meaning. Give it limiter=Limiter(per=…)."
            )
        if cost != 1.0:
            check_number("cost", cost, _LEAST)
        if repeatable is not None:
            _check_repeatable(repeatable)
        key = limiter.key_for(*values, **named) if limiter is not None and (values or named) else ""
        ask = Ask(key, cost, self._ask.repeatable if repeatable is None else repeatable)
        return Keyed(self, self._pipeline, ask)

    def __repr__(self) -> str:
        return f"<Guard {self._name!r}>"


def _is_async(fn: Any) -> bool:
    """Of what `@guard` stands on. The call of a generator only makes one: what it does comes later, and unguarded."""
    check_callable("What a guard stands on", fn)
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise UsageError(
            f"{show(fn)} is a generator function, and a guard stands on calls that end. "
            "Put the guard on what it calls, or write `async with guard:` inside it."
        )
    return is_async(fn) or is_async(getattr(fn, "__call__", None))  # noqa: B004


def _check_repeatable(repeatable: Any) -> None:
    if not isinstance(repeatable, bool):
        raise UsageError(f"repeatable is True or False, not {show(repeatable)}.")


def _check_uncharged(faults: Collection[Fault] | None) -> frozenset[Fault] | None:
    if faults is None:
        return None
    found = check_faults("uncharged", faults)
    if Fault.PERMANENT in found:
        raise UsageError(
            "uncharged has no permanent fault: the same call would fail again, and the job never die. Leave it out."
        )
    return found


def _check_times(timeout: float | None, deadline: float | None) -> tuple[float | None, float | None]:
    if timeout is not None:
        timeout = check_seconds("timeout", timeout, 0.001, 86_400)
    if deadline is not None:
        deadline = check_seconds("deadline", deadline, 0.001, 86_400)
    if timeout is not None and deadline is not None and timeout > deadline:
        raise UsageError(
            f"timeout={timeout:g}, for one attempt, is above deadline={deadline:g}, for all of them. Lower it."
        )
    return timeout, deadline


def _gates(name: str, breaker: Any, limiter: Any, bulkhead: Any) -> Gates:
    check_part("breaker", breaker, Breaker, "Breaker(failures=3)")
    check_part("limiter", limiter, Limiter, "Limiter(rate=10)")
    check_part("bulkhead", bulkhead, Bulkhead, "Bulkhead(10)")
    for part in (breaker, limiter, bulkhead):
        if part is not None:
            part.take_name(name)
    return Gates(name, breaker, limiter, bulkhead)


def _retries(name: str, retry: Any, budget: Any) -> Retries | None:
    check_part("retry", retry, Backoff, "Backoff(attempts=3)")
    check_part("budget", budget, Budget, "Budget(retries=100, ratio=0.1)")
    if retry is None and budget is not None:
        raise UsageError("budget= is for retries, and there are none. Give retry=Backoff(…) too.")
    return None if retry is None else Retries(name, retry, budget or Budget())
