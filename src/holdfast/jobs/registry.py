"""Everything a program has declared: tasks and their other names, what follows a death, schedules, resources, hooks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from types import FunctionType
from typing import Any

import msgspec

from holdfast.guards.guard import Guard
from holdfast.jobs.declaration import declare
from holdfast.jobs.end_handlers import AnyOnEnd, EndHandlers, OnEnd
from holdfast.jobs.hooks import Hooks
from holdfast.jobs.job import Job
from holdfast.jobs.rates import gate_of, shared_part
from holdfast.jobs.resources import Factory, Resources
from holdfast.jobs.schedule import Schedule
from holdfast.jobs.signature import Signature
from holdfast.jobs.task import Sender, Task
from holdfast.kernel.errors import UsageError
from holdfast.kernel.options import check_options, options_of
from holdfast.kernel.show import show
from holdfast.store.states import State

_OPTIONS = options_of(declare)[2:]  # behind the function and its arguments
_OWNERS = ("self", "cls")


class Registry:
    """`share` is called with what a fleet shares of each task's rate."""

    def __init__(self, hooks: Hooks, share: Callable[[Guard[Any]], None] = lambda _: None) -> None:
        self.hooks, self._share = hooks, share
        self.resources = Resources()
        self.schedules: dict[str, Schedule] = {}
        self._tasks: dict[str, Task[Any, Any]] = {}  # by name and by alias
        self._others: dict[str, Guard[Any]] = {}  # guards that need stand before no task
        self._on_end = EndHandlers()

    def add(self, function: Callable[..., Any], sender: Sender, options: dict[str, Any]) -> Task[Any, Any]:
        _refuse_odd(function)
        signature = Signature(function, Job)
        signature.supply(self.resources.factories)
        check_options(f"@hf.task on {function.__qualname__}", options, _OPTIONS)
        declaration = declare(function, signature.names, **options)
        task: Task[Any, Any] = Task(function, declaration, signature, sender)
        if declaration.process:
            _refuse_far(task)
        names = (declaration.name, *declaration.aliases)
        for name in names:
            self._refuse_twin(name, task)
        self._share_rate(task)
        self._tasks.update(dict.fromkeys(names, task))
        return task

    def _share_rate(self, task: Task[Any, Any]) -> None:
        """Once: a fleet knows limiters by name, so a task that is declared again by a reload goes on with the first one's."""
        says, there = task.declaration, self._tasks.get(task.name)
        before = None if there is None else there.declaration
        if before is not None and before.rate is not None and before.rate != says.rate:
            raise UsageError(
                f"The task {task.name!r} was declared with {before.rate} before, and now with {says.rate or 'no rate'}. "
                "A running program keeps the first: start it anew."
            )
        if says.rate is None or says.gate is None:
            return
        if before is not None and before.rate is not None and before.gate is not None:
            gate = gate_of(says.name, before.gate.limiter, says.guard)
            task.declaration = msgspec.structs.replace(says, gate=gate)
        else:
            self._share(shared_part(says.gate))

    def _refuse_twin(self, name: str, task: Task[Any, Any]) -> None:
        there = self._tasks.get(name)
        if there is None:
            return
        if _is_made_again(there, task):
            raise UsageError(
                f"{name!r} is declared twice: {_place(task)} stands inside a function that has run twice, and each time it may do something "
                "else; a job would be run by the last one. Declare it once, at the top of a module, and give it what differs as an argument."
            )
        if _is_reload(there, task):
            return
        raise UsageError(
            f"Two tasks are called {name!r}: {_place(there)} and {_place(task)}. Give one of them another name=."
        )

    def get(self, name: str) -> Task[Any, Any] | None:
        return self._tasks.get(name)

    def task(self, name: str) -> Task[Any, Any]:
        if (found := self._tasks.get(name)) is None:
            raise UsageError(
                f"There is no task {name!r}. There are: {', '.join(sorted(self._tasks)) or 'none'}."
            )
        return found

    @property
    def names(self) -> list[str]:
        """Names and aliases: what this program can run."""
        return list(self._tasks)

    @property
    def tasks(self) -> list[Task[Any, Any]]:
        """Each once, whatever its names."""
        return [*{id(task): task for task in self._tasks.values()}.values()]

    @property
    def queues(self) -> set[str]:
        """Those in which its tasks are put, unless a caller says another."""
        return {task.declaration.queue for task in self._tasks.values()}

    @property
    def guards(self) -> list[Guard[Any]]:
        """The gates that stand before tasks."""
        found = {
            id(gate): gate for task in self._tasks.values() if (gate := task.declaration.gate) is not None
        }
        return list(found.values())

    def add_guard(self, guard: Guard[Any]) -> None:
        self._others[guard.name] = guard

    def meet(self, guard: Guard[Any]) -> None:
        """One that nobody has declared with the program: a step has it."""
        self._others.setdefault(guard.name, guard)

    @property
    def known_guards(self) -> dict[str, Guard[Any]]:
        """All that the program has declared with its Holdfast, or has put before a task."""
        return {guard.name: guard for guard in self.guards} | self._others

    def guards_by_now(self) -> list[Guard[Any]]:
        """The same, for who asks again: more of them may be met."""
        return [*self.known_guards.values()]

    def guarded_by(self, guards: Collection[str]) -> list[str]:
        """The names of tasks that one of these gates stands before."""
        found = ((name, task.declaration.gate) for name, task in self._tasks.items())
        return [name for name, guard in found if guard is not None and guard.name in guards]

    def add_resource(self, factory: Factory) -> Factory:
        """Also for tasks that were declared before it."""
        self.resources.add(factory)
        for task in self._tasks.values():
            task.signature.supply(self.resources.factories)
        return factory

    def add_schedule(self, schedule: Schedule) -> None:
        self._refuse_strange(schedule)
        there = self.schedules.get(schedule.name)
        if there is not None and not _is_declared_again(there, schedule):
            raise UsageError(
                f"Two schedules are called {schedule.name!r}. Give one of them a name of its own: schedule=."
            )
        self.schedules[schedule.name] = schedule

    def _refuse_strange(self, schedule: Schedule) -> None:
        known = self._tasks.get(schedule.task.name)
        if known is None or known.sender is not schedule.task.sender:
            raise UsageError(
                f"The schedule {schedule.name!r} is for the task {schedule.task.name!r} of another Holdfast, "
                "and workers of this one would not know its jobs. Schedule it with the Holdfast that declares it."
            )

    def add_on_end(self, state: State, task: str, handler: AnyOnEnd) -> None:
        self._on_end.add(state, task, handler)

    def hears_ends(self, *states: State) -> bool:
        """Whether anyone has to write when a job ends in one of these states."""
        return self._on_end.any_for(*states)

    def on_end(self, state: State, task: str) -> list[OnEnd]:
        """Also under the task's other names: a job keeps the one it was enqueued with."""
        if not self._on_end.any_for(state):
            return []
        found = self._tasks.get(task)
        names = [task] if found is None else [found.name, *found.declaration.aliases]
        return self._on_end.of(state, names)

    def made_of(self, function: object) -> list[str]:
        """The names of the tasks that are made of this function: by `@hf.task`, or by `@hf.on`, which may stand on it twice."""
        return [task.name for task in self.tasks if function in (task.function, _declared(task))]


def _refuse_odd(function: Any) -> None:
    if not isinstance(function, FunctionType):
        raise UsageError(
            f"@hf.task stands on a function, once; here it is on {show(function)}. "
            "Wrap a method, a partial or a callable object in a function."
        )
    if function.__name__ == "<lambda>":
        raise UsageError(
            f"A lambda in {function.__module__} has no name by which its jobs could be found. "
            "Write a function: `def send(…): …`, with name= when its jobs are to be called otherwise."
        )
    parent, _, _ = function.__qualname__.rpartition(".")
    if (
        parent
        and not parent.endswith("<locals>")
        and next(iter(inspect.signature(function).parameters), "") in _OWNERS
    ):
        raise UsageError(
            f"{function.__qualname__} is a method, and its object would have to be stored with each job. "
            "Declare a function, or a staticmethod, that makes or finds the object."
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(
            f"{function.__qualname__} yields: a task runs to its end and returns. Enqueue a job for each part."
        )


def _refuse_far(task: Task[Any, Any]) -> None:
    """A process of its own imports the function and gets its arguments, and nothing else of this one."""
    name = task.function.__qualname__
    if "." in name:
        raise UsageError(
            f"process=True: {name} must stand at the top of its module, where a new process can import it."
        )
    if task.signature.takes_job or task.signature.resources:
        raise UsageError(
            f"process=True: {name} cannot take the running job or a resource; they live in the worker."
        )


def _is_reload(there: Task[Any, Any], task: Task[Any, Any]) -> bool:
    """The same function again: its module was run as a program and is imported as well."""
    return there.function.__qualname__ == task.function.__qualname__ and _file(there) == _file(task)


def _is_made_again(there: Task[Any, Any], task: Task[Any, Any]) -> bool:
    """By a function that has run twice: its code was loaded once. A reload loads it anew, and means the same."""
    one, other = _declared(there), _declared(task)
    if one is other or getattr(one, "__code__", None) is not getattr(other, "__code__", other):
        return False
    return _surroundings(one) != _surroundings(other) or there.declaration != task.declaration


def _surroundings(function: Any) -> tuple[Any, ...]:
    """What it closes over: the same things, not only equal ones."""
    cells = [id(cell.cell_contents) if _is_filled(cell) else id(cell) for cell in function.__closure__ or ()]
    return cells, function.__defaults__, function.__kwdefaults__


def _is_filled(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _declared(task: Task[Any, Any]) -> Any:
    """The function that the program has written: a handler's and a saga's stand inside a task of ours."""
    return getattr(task.function, "declared", task.function)


def _is_declared_again(there: Schedule, schedule: Schedule) -> bool:
    """By a reload. On one task, a second schedule of the same name is one too many, whatever its times."""
    same_task = there.task is not schedule.task and _is_reload(there.task, schedule.task)
    return same_task and schedule.has_times_of(there)


def _file(task: Task[Any, Any]) -> tuple[str, int]:
    code = getattr(_declared(task), "__code__", None)
    return ("", id(task.function)) if code is None else (code.co_filename, code.co_firstlineno)


def _place(task: Task[Any, Any]) -> str:
    file, line = _file(task)
    return f"{task.function.__qualname__} ({file}:{line})" if file else task.function.__qualname__
