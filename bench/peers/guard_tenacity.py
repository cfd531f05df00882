"""tenacity: retries."""

from __future__ import annotations

from tenacity import retry, stop_after_attempt, wait_random_exponential

from bench.guards.overhead import Call, measurer


def retried(work: Call) -> Call:
    return retry(stop=stop_after_attempt(3), wait=wait_random_exponential(2, max=600), reraise=True)(work)


measure = measurer(retry=retried)
