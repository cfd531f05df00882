"""Every async verb that a program has is there for sync code, too: a new one cannot be forgotten."""

import inspect
from contextlib import AbstractAsyncContextManager

import pytest

from holdfast import Holdfast
from holdfast.events.versions import Versions
from holdfast.guards.guard import Guard
from holdfast.jobs.handle import Handle
from holdfast.jobs.task import Call, Task
from holdfast.sagas.handle import SagaRun
from holdfast.sagas.saga import Saga
from holdfast.views.cache import Caches
from holdfast.views.cached import Cached
from holdfast.views.view import View

# Parts of Holdfast that programs do not use.
INNER = {
    "store",
    "views",
}
# What is only of use on a loop, and why.
NOT_FOR_THREADS = {
    "worker": "runs on the loop of its program; `holdfast worker` is a process of its own",
}
OURS = {"start", "stop", "store", "store_many"}  # public to Holdfast's own layers
# `await gallery(7)` has no name: its twin is `call_sync`.
WITH_TWINS = [Task, Call, Handle, Saga, SagaRun, View, Cached, Caches, Versions]


def is_async(function):
    return inspect.iscoroutinefunction(inspect.unwrap(function))


def verbs(owner):
    """The names of its public async methods."""
    return {
        name
        for name, each in inspect.getmembers(owner, callable)
        if not name.startswith("_")
        and name not in OURS
        and not inspect.isclass(each)
        and is_async(each)
        and not name.endswith("_sync")
    }


def parts(hf):
    """What programs reach as `hf.…` and has async verbs."""
    found = {
        name: each
        for name, each in vars(hf).items()
        if not name.startswith("_") and name not in INNER | {"blocking"}
    }
    return {name: each for name, each in found.items() if verbs(each)}


@pytest.fixture
def closed(tmp_path):
    return Holdfast(f"sqlite:///{tmp_path / 'x.db'}")


def test_each_part_has_a_twin_with_all_its_verbs(closed):
    known = parts(closed)
    assert {"jobs", "queues", "dead", "unknown", "outbox", "workers"} <= set(known)
    for name, part in known.items():
        twin = getattr(closed.blocking, name, None)
        assert twin is not None, f"hf.blocking.{name} is missing: add it to runtime/blocking.py"
        for verb in verbs(part):
            sync = getattr(twin, verb, None)
            assert sync is not None, f"hf.blocking.{name}.{verb} is missing: add it to runtime/blocking.py"
            assert not inspect.iscoroutinefunction(sync)
            assert inspect.signature(sync) == inspect.signature(getattr(part, verb))


def test_each_verb_of_holdfast_itself_has_a_twin(closed):
    blocks = {
        name
        for name, each in inspect.getmembers(Holdfast, inspect.isfunction)
        if not name.startswith("_") and _is_block(each)
    }
    assert {"transaction", "lock"} <= blocks
    for name in (verbs(Holdfast) | blocks) - set(NOT_FOR_THREADS):
        assert hasattr(closed.blocking, name), f"hf.blocking.{name} is missing: add it to runtime/blocking.py"


def _is_block(function):
    returns = inspect.signature(function, eval_str=False).return_annotation
    kind = function.__globals__.get(str(returns).partition("[")[0])
    return isinstance(kind, type) and (
        issubclass(kind, AbstractAsyncContextManager) or hasattr(kind, "__aenter__")
    )


@pytest.mark.parametrize("kind", WITH_TWINS, ids=lambda each: each.__name__)
def test_what_programs_hold_has_a_twin_for_each_verb(kind):
    for verb in verbs(kind):
        assert hasattr(kind, f"{verb}_sync"), (
            f"{kind.__name__}.{verb}_sync is missing: `{verb}_sync = twin({verb}, …)`"
        )


def test_guards_have_their_own():
    assert {"call_sync", "open_sync"} <= set(dir(Guard))


def test_what_was_declared_keeps_its_types(closed):
    """The same parameters, so an editor and a type checker know them."""
    assert [*inspect.signature(closed.blocking.jobs.cancel).parameters] == [
        "job_id",
        "reason",
        "running",
        "tx",
    ]
    assert [*inspect.signature(Handle.result_sync).parameters] == ["self", "timeout"]
    assert closed.blocking.jobs.get.__doc__ == closed.jobs.get.__doc__
