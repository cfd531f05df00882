"""What cannot work is refused where it is declared, with what to write instead."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast import Event, Holdfast, Job
from holdfast.jobs.cron import SHORT, check_cron, fires
from holdfast.kernel.errors import UsageError


@pytest.fixture
def hf(tmp_path):
    """Never opened."""
    return Holdfast(f"sqlite:///{tmp_path / 'jobs.db'}")


# --- the running job ---


def unannotated(job, n):
    """Its first parameter was meant."""


def second(n: int, job: Job):
    """Only the first one receives it."""


def optional(job: Job | None, n: int):
    """It always receives one."""


@pytest.mark.parametrize("function", [unannotated, second, optional])
def test_a_job_that_nobody_would_receive(hf, function):
    with pytest.raises(UsageError, match="annotate the first parameter: `job: Job`"):
        hf.task(function)


def test_an_argument_may_be_called_job(hf):
    @hf.task
    def hire(job: str, n: int) -> None: ...

    @hf.task
    def fire(n, job): ...

    assert hire.signature.names == ["job", "n"]
    assert fire.signature.names == ["n", "job"]


# --- handlers of ends ---


def too_few(job):
    """It cannot write."""


def too_many(job, tx, error):
    """Nobody has the third."""


@pytest.mark.parametrize("declare", ["on_dead", "on_unknown", "on_cancelled"])
@pytest.mark.parametrize("function", [too_few, too_many])
def test_a_handler_of_ends_that_could_not_be_called(hf, declare, function):
    with pytest.raises(UsageError, match=r"a function \(job, tx\), async or not; .* takes \(job"):
        getattr(hf, declare)("mail.send")(function)


def test_a_handler_of_ends_may_have_more_with_defaults(hf):
    @hf.on_dead("mail.send")
    async def mourn(job, tx, *, loudly=False): ...

    @hf.on_dead("mail.send")
    def tell(*given): ...


# --- names ---


def test_a_lambda_has_no_name(hf):
    for declare in (
        hf.task,
        hf.task(name="greet"),
        hf.cron("* * * * *"),
        hf.every(60),
        hf.on("order.*", group="mail"),
        hf.cached(fresh=1, stale=2),
    ):
        with pytest.raises(UsageError, match="Write a function: `def"):
            declare(lambda event: 1)
    with pytest.raises(UsageError, match="async def"):
        hf.saga("battle")(lambda saga: 1)


def test_what_is_made_twice_and_does_not_do_the_same(hf):
    def task(n):
        @hf.task
        async def inner():
            return n

    def default(n):
        @hf.task
        async def inner_default(m=n):
            return m

    def options(n):
        @hf.task(queue=f"q{n}")
        async def inner_options(): ...

    def handler(n):
        @hf.on("order.*", group=f"g{n}", name="heard")
        async def heard(event: Event):
            return n

    def saga(n):
        @hf.saga("battle")
        async def battle(saga):
            return n

    for make in (task, default, options, handler, saga):
        make(1)
        with pytest.raises(UsageError, match="is declared twice"):
            make(2)


def test_what_is_made_twice_and_does_the_same(hf):
    same = object()

    def make(n):
        @hf.task
        async def inner(m=n):
            return same

    make(1)
    make(1)

    async def function(): ...

    hf.task(function)
    hf.task(function)


def test_a_module_that_is_loaded_again_declares_the_same(hf):
    source = """
def make(n):
    @hf.task
    async def inner():
        return n

    @hf.on("order.*", group="g")
    async def heard(event):
        return n

make([1])
"""
    for _ in range(2):
        exec(compile(source, "shop.py", "exec"), {"hf": hf, "__name__": "shop"})
    assert "shop.make.inner" in hf._inside.registry.names


# --- cron ---


def test_short_names_of_cron_expressions(hf):
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    for short, whole in SHORT.items():
        args = "Europe/Zurich", begin, begin + timedelta(days=800)
        assert [*fires(short, *args)] == [*fires(whole, *args)]

    @hf.cron("@daily", tz="Europe/Zurich")
    async def tidy() -> None: ...

    assert "@daily" in hf._inside.registry.schedules[tidy.name].times.told()


def test_a_short_name_that_there_is_not():
    with pytest.raises(UsageError, match="@hourly, @daily"):
        check_cron("@reboot", "UTC")
