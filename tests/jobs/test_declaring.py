"""Declaring tasks: names, options, and what is refused when the module is imported."""

from __future__ import annotations

import functools
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from datetime import timedelta

import pytest
from pydantic import SecretStr

from holdfast import Backoff, Holdfast, Job, Retry, Snooze
from holdfast.guards.backoff import Backoff as Same
from holdfast.kernel.errors import UsageError


@pytest.fixture
def app(tmp_path):
    return Holdfast(f"sqlite:///{tmp_path / 'x.db'}")


def plain(user_id: str, count: int = 1): ...


def test_a_task_is_called_as_its_function(app):
    @app.task
    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    assert add(1, 2) == 3
    assert add.__doc__ == "Adds."
    assert add.__name__ == "add"


async def test_an_async_task_is_awaited_as_its_function(app):
    @app.task
    async def add(a: int, b: int) -> int:
        return a + b

    assert await add(1, 2) == 3


def test_the_name_is_where_it_is_imported_from(app):
    assert app.task(plain).name == f"{__name__}.plain"
    assert app.task(name="mail.send")(plain).name == "mail.send"


def test_aliases_find_the_task(app):
    task = app.task(name="new", aliases=["old"])(plain)
    assert app._inside.registry.get("old") is task
    assert app._inside.registry.names == ["new", "old"]


def test_two_tasks_of_one_name_are_refused(app):
    app.task(name="twin")(plain)

    def other(): ...

    with pytest.raises(UsageError, match=r"Two tasks are called 'twin': plain .*test_declaring.py"):
        app.task(name="twin")(other)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": ""}, "must not be empty"),
        ({"name": "a" * 201}, "too long"),
        ({"aliases": "old"}, "aliases is a list"),
        ({"retry": 3}, "retry is a Backoff"),
        ({"timeout": 0}, "timeout must be from"),
        ({"timeout": "5"}, "timeout must be a number"),
        ({"priority": 101}, "priority must be from"),
        ({"max_waiting": 0}, "max_waiting must be from"),
        ({"concurrency": "tenant"}, "concurrency is a key and a limit"),
        ({"concurrency": ("t", 0)}, "concurrency's limit"),
        ({"lock": "user:{nobody}"}, "names 'nobody', which is no argument"),
        ({"lock": "user:{user_id!r}"}, "format or a conversion"),
        ({"lock": "user:{"}, "cannot be read"),
        ({"unique": 5}, "unique is text"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_bad_options_are_refused_and_leave_nothing(app, options, words):
    with pytest.raises(UsageError, match=words):
        app.task(**options)(plain)
    assert app._inside.registry.names == []


class Cart:
    async def total(self, order: int) -> None: ...

    @staticmethod
    async def empty(order: int) -> None: ...


def test_a_method_is_refused_and_a_staticmethod_is_not(app):
    with pytest.raises(UsageError, match=r"Cart\.total is a method, and its object would have to be stored"):
        app.task(Cart.total)
    assert app._inside.registry.names == []
    assert app.task(Cart.empty).signature.names == ["order"]


@pytest.mark.parametrize("name", ["secrets_", "__token", "__dict__"])
def test_names_that_stored_arguments_cannot_have_are_refused(app, name):
    found = {"__name__": __name__}
    exec(f"async def login(job: Job, {name}: str) -> None: ...", {"Job": Job}, found)
    with pytest.raises(UsageError, match=f"an argument cannot be called '{name}'.*another name"):
        app.task(name="login")(found["login"])
    assert app._inside.registry.names == []


@pytest.mark.parametrize("queues", [["default"], "default", [("default", 10)], 10])
def test_slots_are_a_dict(app, queues):
    with pytest.raises(UsageError, match=r'queues is a dict of slots by queue, such as {"default": 10}; not'):
        app.worker(queues)


@dataclass
class Dog:
    name: str


@dataclass
class Cat:
    name: str


def test_types_that_json_cannot_tell_apart_are_refused_when_declared(app):
    async def feed(animal: Dog | Cat) -> None: ...

    with pytest.raises(UsageError, match="argument animal cannot be read from JSON"):
        app.task(feed)
    assert app._inside.registry.names == []


def test_a_task_is_declared_once(app):
    task = app.task(plain)
    with pytest.raises(UsageError, match="stands on a function"):
        app.task(task)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"attempts": 0}, "attempts must be from"),
        ({"first": -1}, "first must be from"),
        ({"first": 10, "ceiling": 5}, "above ceiling"),
        ({"never": ValueError}, "tuple of exception types"),
        ({"never": (5,)}, "tuple of exception types"),
        ({"first": float("nan")}, "first must be from"),
    ],
)
def test_a_bad_backoff_is_refused(options, words):
    with pytest.raises(UsageError, match=words):
        Backoff(**options)


def test_backoff_grows_to_its_ceiling_with_full_jitter():
    assert Backoff is Same
    backoff = Backoff(attempts=8, first=5, ceiling=320)
    assert [backoff.longest(attempt) for attempt in range(1, 9)] == [5, 10, 20, 40, 80, 160, 320, 320]
    drawn = [backoff.delay(3) for _ in range(2000)]
    assert min(drawn) < 1
    assert max(drawn) > 19
    assert 9 < sum(drawn) / len(drawn) < 11
    assert backoff.longest(10_000) == 320


def test_backoff_counts_runs():
    backoff = Backoff(attempts=2, never=(KeyError,))
    assert backoff.allows(1, ValueError())
    assert not backoff.allows(2, ValueError())
    assert not backoff.allows(1, KeyError())


def test_templates_render_from_arguments_and_defaults(app):
    task = app.task(unique="u:{user_id}:{count}", concurrency=("c:{user_id}", 2))(plain)
    from holdfast.jobs.options import NONE

    job = app._inside.enqueuer.build(task, task.signature.bind(("ada",), {}), NONE)
    assert (job.unique, job.concurrency, job.concurrency_limit) == ("u:ada:1", "c:ada", 2)


@pytest.mark.parametrize("value", [1.5, True, None, [1]])
def test_a_key_takes_only_values_with_one_form(app, value):
    def loose(thing): ...

    task = app.task(unique="k:{thing}")(loose)
    from holdfast.jobs.options import NONE

    with pytest.raises(UsageError, match="needs 'thing' as text"):
        app._inside.enqueuer.build(task, {"thing": value}, NONE)


def test_a_module_has_one_name_whether_it_is_run_or_imported(tmp_path):
    (tmp_path / "shop.py").write_text(
        textwrap.dedent("""
        from holdfast import Holdfast
        hf = Holdfast("sqlite:///shop.db")
        @hf.task
        async def ship(order: int) -> None: ...
        if __name__ == "__main__":
            import shop
            print(ship.name, shop.ship.name)
        """)
    )
    for command in (["shop.py"], ["-m", "shop"]):
        done = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.stdout.split() == ["shop.ship", "shop.ship"], done.stderr


def test_a_schedule_is_one_whether_its_module_is_run_or_imported(tmp_path):
    (tmp_path / "shop.py").write_text(
        textwrap.dedent("""
        from central import hf
        @hf.every(60)
        async def poll() -> None: ...
        @hf.cron("0 6 * * *", schedule="daily", arguments={"days": 1})
        @hf.cron("0 6 * * 1", schedule="weekly", arguments={"days": 7})
        @hf.task
        async def report(days: int) -> None: ...
        if __name__ == "__main__":
            import shop
            print(*hf._inside.registry.schedules)
        """)
    )
    (tmp_path / "central.py").write_text(
        "from holdfast import Holdfast\nhf = Holdfast('sqlite:///shop.db')\n"
    )
    for command in (["shop.py"], ["-m", "shop"]):
        done = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.stdout.split() == ["shop.poll", "weekly", "daily"], done.stderr


TASKS = """
import asyncio
from holdfast import Backoff, Holdfast
hf = Holdfast("sqlite:///shop.db")
@hf.task(process=True, retry=Backoff(attempts=1))
def greet(name: str) -> str:
    return name.upper()
async def main():
    async with hf, hf.worker():
        print(greet.name, await (await greet.enqueue("ada")).result(20))
if __name__ == "__main__":
    asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("file", "ways", "name"),
    [
        ("tasks.py", (["shop/tasks.py"], ["-m", "shop.tasks"]), "shop.tasks.greet"),
        ("__main__.py", (["shop/__main__.py"], ["-m", "shop"]), "shop.greet"),
    ],
)
def test_a_module_in_a_package_has_one_name_and_is_found_by_a_process(tmp_path, file, ways, name):
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").touch()
    (tmp_path / "shop" / file).write_text(TASKS)
    module = f"shop.{file.removesuffix('.py')}"
    asked = ["-c", f"import importlib; print(importlib.import_module({module!r}).greet.name, 'ADA')"]
    for command in (*ways, asked):
        done = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.stdout.split() == [name, "ADA"], done.stderr


def test_a_scheduled_task_needs_no_arguments(app):
    with pytest.raises(UsageError, match="has no value for user_id"):
        app.cron("* * * * *")(plain)
    with pytest.raises(UsageError, match="missed is one of"):

        @app.cron("* * * * *", missed="maybe")
        def tidy(): ...

    with pytest.raises(UsageError, match="5 fields"):
        app.cron("* * *")


def test_resources_say_what_they_yield(app):
    with pytest.raises(UsageError, match="must be a generator"):
        app.resource(lambda: 5)

    def unsaid():
        yield 5

    with pytest.raises(UsageError, match="must say what it yields"):
        app.resource(unsaid)


def test_job_is_public():
    assert Job.__module__ == "holdfast.jobs.job"


class Callable:
    def __call__(self, a: int): ...

    def method(self, a: int): ...


def generator():
    yield 1


@pytest.mark.parametrize(
    "odd", [Callable(), Callable, Callable().method, functools.partial(plain, "x"), generator, 5]
)
def test_what_is_no_function_is_refused(app, odd):
    with pytest.raises(UsageError, match=r"stands on a function|yields"):
        app.task(odd)
    assert app._inside.registry.names == []


def test_a_secret_type_that_loses_its_value_is_refused(app):
    def login(password: SecretStr): ...

    with pytest.raises(UsageError, match=r"Annotate with Secret\[str\]"):
        app.task(login)


@pytest.mark.parametrize("bad", ["30", -1, float("nan"), None])
def test_control_exceptions_check_their_seconds(bad):
    for kind in (Retry, Snooze):
        with pytest.raises(UsageError, match="after must be"):
            kind(bad)
    assert Snooze(timedelta(minutes=1)).outcome.after == 60


def test_an_on_dead_handler_is_a_function(app):
    def generator(job, tx):
        yield

    for odd in ("tell", generator, None):
        with pytest.raises(UsageError, match="a function"):
            app.on_dead("x")(odd)
