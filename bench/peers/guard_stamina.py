"""stamina: retries."""

from __future__ import annotations

import stamina

from bench.guards.overhead import Call, measurer


def retried(work: Call) -> Call:
    return stamina.retry(on=Exception, attempts=3)(work)


measure = measurer(retry=retried)
