"""An option that there is not: the error names the nearest one, and all that there are."""

from __future__ import annotations

import pytest

from holdfast import Backoff, Holdfast
from holdfast.events.settings import EventSettings
from holdfast.guards import Breaker, Bulkhead, Limiter
from holdfast.guards.budget import Budget
from holdfast.guards.fallback import Fallback
from holdfast.kernel.errors import UsageError


@pytest.fixture
def hf(tmp_path):
    """Never opened."""
    return Holdfast(f"sqlite:///{tmp_path / 'jobs.db'}")


async def ada() -> None:
    """Does nothing."""


def test_what_is_mistyped_is_told_with_the_nearest(hf):
    task = hf.task(ada)
    for make, wrong, right in (
        (Backoff, "attemps", "attempts"),
        (Breaker, "failure", "failures"),
        (lambda **options: Limiter(rate=1, **options), "bursts", "burst"),
        (lambda **options: Bulkhead(1, **options), "waitin", "waiting"),
        (Budget, "retry", "retries"),
        (EventSettings, "poisons", "poison"),
        (lambda **options: hf.guard("g", **options), "timeouts", "timeout"),
        (lambda **options: hf.task(**options)(ada), "retries", "retry"),
        (lambda **options: hf.cron("@daily", **options)(ada), "queues", "queue"),
        (lambda **options: task.options(**options), "prio", "priority"),
        (lambda **options: hf.saga("s", **options)(ada), "time_out", "timeout"),
    ):
        with pytest.raises(
            UsageError, match=rf"no option '{wrong}' for .*Did you mean '{right}'\? There are: .*{right}"
        ):
            make(**{wrong: 1})


def test_what_is_like_nothing_is_told_with_all_there_are():
    with pytest.raises(
        UsageError,
        match=r"^There is no option 'tries' for Backoff\. There are: attempts, first, ceiling, never\.$",
    ):
        Backoff(tries=3)
    with pytest.raises(UsageError, match="no option 'zzz' for Fallback"):
        Fallback(ada, zzz=1)


def test_other_errors_stay_as_they_are():
    with pytest.raises(TypeError):
        Backoff(1, 2)
    with pytest.raises(TypeError):
        Limiter()
