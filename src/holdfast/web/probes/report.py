"""What a probe has found, and how it is written when nobody says otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from holdfast.jobs.working import Work


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One question. One that is not `needed` is told, and fails no probe."""

    name: str
    well: bool
    error: str | None = None
    needed: bool = True
    seconds: float = 0.0


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of one probe."""

    probe: str  # live, ready or startup
    well: bool
    checks: tuple[Check, ...]
    service: str
    uptime: float  # seconds
    timestamp: str
    work: Work | None = None  # of the worker, when there is one
    progress: float = 1.0  # of the start, from 0 to 1

    @property
    def reasons(self) -> list[str]:
        """Why it is not well."""
        return [f"{each.name}: {each.error}" for each in self.checks if each.needed and not each.well]


Shape: TypeAlias = Callable[[Report], Any]


def plain(report: Report) -> dict[str, Any]:
    found: dict[str, Any] = {
        "probe": report.probe,
        "well": report.well,
        "reasons": report.reasons,
        "service": report.service,
        "uptime": round(report.uptime, 3),
        "timestamp": report.timestamp,
        "checks": report.checks,
    }
    if report.work is not None:
        found["work"] = report.work
    if report.probe == "startup":
        found["progress"] = report.progress
    return found
