"""Probes of API and workers, in the words of the original: /health says that it lives, /ready that it takes work."""

from __future__ import annotations

from typing import Any

from admissions.core import hf, settings
from holdfast.web import Report, probes

_DONE = "everything is well"


async def redis_answers() -> str | None:
    """None: it does. Without one there is nothing to be asked."""
    if settings.redis_url is None:
        return "none is configured"
    import redis.asyncio  # noqa: PLC0415  only where there is one

    client = redis.asyncio.Redis.from_url(settings.redis_url, socket_timeout=1.0, socket_connect_timeout=1.0)
    try:
        await client.ping()
    finally:
        await client.aclose()
    return None


def shape(report: Report) -> dict[str, Any]:
    told: dict[str, Any] = {"service": "admissions", "timestamp": report.timestamp}
    if report.probe == "live":
        return {
            "status": "healthy" if report.well else "unhealthy",
            "uptime": round(report.uptime, 3),
            **told,
        }
    told = {"status": "ready" if report.well else "not_ready", **told}
    if report.work is not None:
        told["worker"] = {"running": report.work.running, "activeJobs": report.work.jobs}
    told["redis"] = _redis(report)
    if not report.well:
        told["reasons"] = report.reasons
    return told


def _redis(report: Report) -> dict[str, Any]:
    """It makes nothing unready: guards and the cache do without for a while, and so does a portal that has none."""
    if settings.redis_url is None:
        return {"connected": False, "configured": False}
    found = next((each for each in report.checks if each.name == "redis"), None)
    return {"connected": found is not None and found.well, "configured": True}


probe_app = probes(
    hf,
    service="admissions",
    paths={"/health": "live", "/ready": "ready", "/startup": "startup"},
    shape=shape,
    told={"redis": redis_answers} if settings.redis_url is not None else {},
)
