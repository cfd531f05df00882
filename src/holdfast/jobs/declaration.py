"""What `@hf.task(…)` says about a task, checked once, when the module is imported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from holdfast.guards.backoff import Backoff
from holdfast.guards.guard import Guard
from holdfast.jobs.gating import check_guard
from holdfast.jobs.rates import Rate, check_rated, gate_of
from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_int, check_name, check_seconds
from holdfast.kernel.show import show
from holdfast.kernel.templates import Template

DEFAULT_RETRY = Backoff()


Keys: TypeAlias = tuple[tuple[str, Template], ...]


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a task. Templates are rendered from the arguments of each job."""

    name: str
    aliases: tuple[str, ...] = ()
    queue: str = "default"
    retry: Backoff = DEFAULT_RETRY
    timeout: float | None = None  # seconds; then the run is cancelled, and some time later its process ended
    priority: int = 0
    expires: float | None = None
    max_waiting: int | None = None
    lock: Template | None = None
    keys: Keys = ()  # templates for the keys of a job, by option
    concurrency_limit: int | None = None
    process: bool = False  # each run has a process of its own
    guard: Guard[Any] | None = None  # that of the service which it calls
    rate: Rate | None = None
    gate: Guard[Any] | None = None  # asked before each run: the guard, or one with the rate


def declare(
    function: Callable[..., Any],
    arguments: Collection[str],
    *,
    name: str | None = None,
    aliases: Sequence[str] = (),
    queue: str = "default",
    retry: Backoff | None = None,
    timeout: float | None = None,
    priority: int = 0,
    expires: float | None = None,
    max_waiting: int | None = None,
    concurrency: tuple[str, int] | None = None,
    lock: str | None = None,
    unique: str | None = None,
    ordered: str | None = None,
    tenant: str | None = None,
    process: bool = False,
    guard: Guard[Any] | None = None,
    rate: float | tuple[str, float] | None = None,
) -> Declaration:
    if isinstance(aliases, str):
        raise UsageError(f"aliases is a list of names, not one text: aliases=[{aliases!r}].")
    if retry is not None and not isinstance(retry, Backoff):
        raise UsageError(f"retry is a Backoff, such as Backoff(attempts=5); not {show(retry)}.")
    where, limit = _concurrency(concurrency)
    keys = {"unique": unique, "ordered": ordered, "tenant": tenant, "concurrency": where}
    called = check_name("task", name_of(function) if name is None else name)
    guard = check_guard(guard, list(arguments))
    rated = check_rated(rate, guard, arguments)
    return Declaration(
        name=called,
        aliases=tuple(check_name("task", alias) for alias in aliases),
        queue=check_name("queue", queue),
        retry=retry or DEFAULT_RETRY,
        timeout=None if timeout is None else check_seconds("timeout", timeout, minimum=0.001),
        priority=check_int("priority", priority, -100, 100),
        expires=None if expires is None else check_seconds("expires", expires),
        max_waiting=None if max_waiting is None else check_int("max_waiting", max_waiting, 1, 1_000_000_000),
        process=bool(process),
        guard=guard,
        rate=rated,
        gate=gate_of(called, None if rated is None else rated.limiter(), guard),
        concurrency_limit=limit,
        lock=None if lock is None else Template("lock", lock, arguments),
        keys=tuple(
            (option, Template(option, text, arguments)) for option, text in keys.items() if text is not None
        ),
    )


def name_of(function: Callable[..., Any]) -> str:
    """Where the function is imported from. A module that is run has the same name as when it is imported."""
    return f"{module_of(function)}.{function.__qualname__}".replace("<locals>.", "")


def module_of(function: Callable[..., Any]) -> str:
    """The name of its module: one, whether that is imported, run as a script, or run by `python -m` of its package."""
    return import_of(function)[0].removesuffix(".__main__")


def import_of(function: Callable[..., Any]) -> tuple[str, str | None]:
    """The name by which its module can be imported, and the folder that the search path may lack for it."""
    module = function.__module__
    return _main_module() if module == "__main__" else (module, None)


def _main_module() -> tuple[str, str | None]:
    main = sys.modules["__main__"]
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is not None and spec.name != "__main__":  # python -m shop.tasks, and python -m shop
        return str(spec.name), None
    return _script(Path(file).absolute()) if file else ("__main__", None)


def _script(file: Path) -> tuple[str, str]:
    """`python shop/tasks.py` is shop.tasks: its folder is a package, and so may be those above."""
    names, folder = [file.stem], file.parent
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    return ".".join(names), str(folder)


def _concurrency(given: Any) -> tuple[str | None, int | None]:
    if given is None:
        return None, None
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise UsageError(
            f'concurrency is a key and a limit, such as ("tenant:{{tenant}}", 2); not {show(given)}.'
        )
    return given[0], check_int("concurrency's limit", given[1], 1, 10_000)
